//go:build unix

package cli

import (
	"syscall"
	"time"
)

// CPUSeconds returns the processor time that this process has used, user and system.
func CPUSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
