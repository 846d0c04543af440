package main

import (
	"os/exec"
	"syscall"
)

// dieTogether lets the command end if this process is killed: nobody would report its end.
func dieTogether(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
