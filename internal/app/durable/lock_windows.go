package durable

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock takes the file for this process. The lock ends with the process, however that ends. It is on a byte beyond
// every line, since a lock on Windows also keeps others from reading.
func lock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
}

// unlock leaves it to the end of the file's one handle: none is inherited here.
func unlock(*os.File) error { return nil }
