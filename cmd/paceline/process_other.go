//go:build !unix

package main

import (
	"os"
	"syscall"
)

// cpuSeconds is 0: the time cannot be read on this system.
func cpuSeconds() float64 { return 0 }

func ownGroup() *syscall.SysProcAttr { return nil }

// notifyAgain does nothing: there is no such signal on this system.
func notifyAgain(chan<- os.Signal) {}
