package boottime

import (
	"fmt"
	"hash/fnv"
	"os"
	"strings"
	"sync"
)

// Process returns a name of this process that no other process has, on any machine. It is "" if ProcessEnded could
// not judge it.
var Process = sync.OnceValue(func() string {
	started, running := start(os.Getpid())
	if machine() == "" || !running {
		return ""
	}
	return fmt.Sprintf("%s-%d-%s", machine(), os.Getpid(), started)
})

// ProcessEnded reports whether the process with that name of Process has certainly ended. It is false for a process
// of another machine, container or boot, of which this process knows nothing.
func ProcessEnded(name string) bool {
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
	boot, space := Read().Boot, numbers()
	if boot == "" || space == "" {
		return ""
	}
	h := fnv.New64a()
	fmt.Fprint(h, boot, space)
	return fmt.Sprintf("%x", h.Sum64())
})
