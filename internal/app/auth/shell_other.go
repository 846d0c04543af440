//go:build !unix && !windows

package auth

import (
	"context"
	"os/exec"
)

func shell(ctx context.Context, line string) *exec.Cmd {
	return exec.CommandContext(ctx, "sh", "-c", line)
}
