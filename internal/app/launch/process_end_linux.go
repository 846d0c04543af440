package launch

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// ended returns when a process has ended, or ctx.
func ended(ctx context.Context, pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		if err != unix.ESRCH {
			asked(ctx, pid) // an old kernel, or a sandbox
		}
		return
	}
	defer unix.Close(fd)
	for ctx.Err() == nil {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(time.Second/time.Millisecond))
		if n > 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}
