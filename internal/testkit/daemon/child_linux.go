package daemon

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"syscall"
)

// dieWithUs has c end when this process does, however that ends: a panic, a kill or a timeout runs no cleanup.
func dieWithUs(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// loopback returns an address that nobody else is likely to have.
func loopback() string { return fmt.Sprintf("127.%d.%d.%d", 1+rand.N(254), rand.N(256), 1+rand.N(254)) }
