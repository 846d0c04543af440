//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyAgain has SIGUSR1 told to a channel, by which keys that are out of use are tried again. Without it the signal ends a process.
func notifyAgain(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR1) }
