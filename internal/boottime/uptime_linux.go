package boottime

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// boot is of one kernel's run, and of one time namespace: each has its own zero.
var boot = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, _ := os.Readlink("/proc/self/ns/time") // none before Linux 5.6
	return strings.TrimSpace(strings.TrimSpace(string(id)) + " " + space)
})

const upClock, awakeClock = unix.CLOCK_BOOTTIME, unix.CLOCK_MONOTONIC
