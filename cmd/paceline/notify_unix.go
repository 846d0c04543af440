//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyAgain sends SIGUSR1 to c. At this signal the proxy puts excluded keys back into use.
// Without it the signal ends a process.
func notifyAgain(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR1) }
