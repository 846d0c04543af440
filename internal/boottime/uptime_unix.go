//go:build linux || darwin

package boottime

import (
	"time"

	"golang.org/x/sys/unix"
)

func read() Reading {
	awake, awakeOK := clock(awakeClock) // first, lest it be ahead
	up, ok := clock(upClock)
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
