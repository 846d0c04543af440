package boottime

import (
	"sync"

	"golang.org/x/sys/unix"
)

var boot = sync.OnceValue(func() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
})

// Here the monotonic clock goes on in sleep, and CLOCK_UPTIME_RAW does not.
const upClock, awakeClock = unix.CLOCK_MONOTONIC_RAW, unix.CLOCK_UPTIME_RAW
