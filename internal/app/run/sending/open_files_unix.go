//go:build unix

package sending

import "syscall"

// OpenFiles returns how many connections the process may open beside its other files; known is false if
// there is no such bound.
func OpenFiles() (n int, known bool) {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil {
		return 0, false
	}
	return connections(uint64(files.Cur)), true
}
