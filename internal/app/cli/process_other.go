//go:build !unix

package cli

import "syscall"

// CPUSeconds is 0: the time cannot be read on this system.
func CPUSeconds() float64 { return 0 }

// OwnGroup is nil: this system has no process groups that a terminal sends Ctrl-C to.
func OwnGroup() *syscall.SysProcAttr { return nil }
