//go:build unix

package launch

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// asked is ended, by asking now and then.
func asked(ctx context.Context, pid int) {
	for ctx.Err() == nil && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}
