package boottime

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// numbers names the space of process numbers in which this process is, such as that of a container.
func numbers() string {
	space, _ := os.Readlink("/proc/self/ns/pid")
	return space
}

// start returns when a process started, in ticks. One that was killed and is only still in the table does not run.
func start(pid int) (ticks string, running bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil { // those of other users may be hidden
		return "", syscall.Kill(pid, 0) != syscall.ESRCH
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // its name may have spaces
	if len(fields) < 20 {
		return "", true
	}
	return fields[19], fields[0] != "Z" && fields[0] != "X"
}
