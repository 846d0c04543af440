//go:build !unix

package main

import "syscall"

// cpuSeconds is not known here.
func cpuSeconds() float64 { return 0 }

func ownGroup() *syscall.SysProcAttr { return nil }
