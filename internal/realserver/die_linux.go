package realserver

import (
	"os/exec"
	"syscall"
)

// dieWithUs has c end when this process does, however that ends: a panic or a timeout of the tests runs no cleanup.
func dieWithUs(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
