package uptime

import (
	"os"
	"strings"
	"sync"
	"time"

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

func read() Reading {
	awake, awakeOK := clock(unix.CLOCK_MONOTONIC) // first, lest it be ahead
	up, ok := clock(unix.CLOCK_BOOTTIME)
	if !ok || !awakeOK || boot() == "" {
		return fallback()
	}
	return Reading{boot(), up, awake}
}

func clock(id int32) (time.Duration, bool) {
	var t unix.Timespec
	err := unix.ClockGettime(id, &t)
	return time.Duration(t.Nano()), err == nil
}
