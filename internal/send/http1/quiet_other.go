//go:build !unix

package http1

const supported = false

func quiet(uintptr) bool { return false }
