package daemon

import (
	"os/exec"
	"syscall"
)

// dieWithUs has c end when this process does, however that ends: a panic, a kill or a timeout runs no cleanup.
func dieWithUs(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
