package process

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"sync"

	"github.com/paceline-go/paceline/internal/boottime"
)

// Here returns a name of this process that no other process has, on any machine. It is "" if Ended could
// not judge it.
var Here = sync.OnceValue(func() string {
	started, running := start(os.Getpid())
	if machine() == "" || !running {
		return ""
	}
	return fmt.Sprintf("%s-%d-%s", machine(), os.Getpid(), started)
})

// Ended reports whether the process with that name of Here has certainly ended. It is false for a process
// of another machine, container or boot, of which this process knows nothing.
func Ended(name string) bool {
	var pid int
	where, rest, _ := strings.Cut(name, "-")
	number, started, _ := strings.Cut(rest, "-")
	if _, err := fmt.Sscan(number, &pid); err != nil || machine() == "" || where != machine() {
		return false
	}
	is, running := start(pid)
	return !running || is != "" && is != started
}

// machine names the processes that see one another, since the machine was booted; "": it is not known.
var machine = sync.OnceValue(func() string {
	boot, space := boottime.Read().Boot, numbers()
	if boot == "" || space == "" {
		return ""
	}
	h := fnv.New64a()
	fmt.Fprint(h, boot, space)
	return fmt.Sprintf("%x", h.Sum64())
})
