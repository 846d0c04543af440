//go:build unix

package launch

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// keepFiles keeps files that this process has inherited from processes that start until again is called:
// they are the program's. A process that lasts longer would hold pipes and locks of the caller's.
func keepFiles() (again func()) {
	var kept []int
	all, _ := os.ReadDir("/dev/fd")
	for _, each := range all {
		fd, err := strconv.Atoi(each.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.CloseOnExec(fd)
			kept = append(kept, fd)
		}
	}
	return func() {
		for _, fd := range kept {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
		}
	}
}
