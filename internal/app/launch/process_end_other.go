//go:build unix && !linux

package launch

import "context"

// ended returns when a process has ended, or ctx.
func ended(ctx context.Context, pid int) { asked(ctx, pid) }
