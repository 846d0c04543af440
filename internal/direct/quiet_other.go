//go:build !unix

package direct

const supported = false

func quiet(uintptr) bool { return false }
