package auth

import (
	"context"
	"os/exec"
	"syscall"
)

func shell(ctx context.Context, line string) *exec.Cmd {
	c := exec.CommandContext(ctx, "cmd")
	// The line is passed as it is, since cmd reads quotes in a way of its own. With a process group
	// of its own, Ctrl-C reaches only this program.
	c.SysProcAttr = &syscall.SysProcAttr{CmdLine: `cmd /s /c "` + line + `"`,
		CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	return c
}
