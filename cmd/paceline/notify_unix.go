//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyAgain sends SIGUSR1 to again, at which the proxy puts excluded keys back into use, and SIGUSR2
// to next, at which another process takes over. Without it these signals end a process.
func notifyAgain(again, next chan<- os.Signal) {
	signal.Notify(again, syscall.SIGUSR1)
	signal.Notify(next, syscall.SIGUSR2)
}
