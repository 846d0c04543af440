package uptime

import (
	"sync"
	"time"

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
func read() Reading {
	awake, awakeOK := clock(unix.CLOCK_UPTIME_RAW) // first, lest it be ahead
	up, ok := clock(unix.CLOCK_MONOTONIC_RAW)
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
