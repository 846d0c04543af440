//go:build unix

package issuer

import (
	"context"
	"os/exec"
	"syscall"
)

func shell(ctx context.Context, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, "sh", "-c", line)
	// It gets a process group of its own, so that processes that it starts end with it, and Ctrl-C reaches only us.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}
