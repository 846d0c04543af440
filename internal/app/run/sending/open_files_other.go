//go:build !unix

package sending

// OpenFiles returns how many connections the process may open beside its other files; known is false if
// there is no such bound.
func OpenFiles() (n int, known bool) { return 0, false }
