//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// cpuSeconds returns the processor time that this process has used, user and system.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// ownGroup puts a child into a process group of its own, since a terminal sends Ctrl-C to all processes of our group.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// notifyAgain has SIGUSR1 told to a channel, by which keys that are out of use are tried again. Without it the signal ends a process.
func notifyAgain(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR1) }
