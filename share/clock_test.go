package share

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/boottime"
)

// A process that is stopped for 3 s between the two halves of a reading has not slept; a machine
// that slept for an hour has.
func TestClock(t *testing.T) {
	defer func() { read = boottime.Read }()
	var up, stopped time.Duration
	read = func() boottime.Reading {
		r := boottime.Reading{Boot: "b", Up: up + stopped, Awake: time.Second}
		stopped = 0
		return r
	}
	up = time.Second
	c := newClock()
	before := c.now()
	stopped = 3 * time.Second
	if d := c.now().Sub(before); d > 2*time.Second {
		t.Errorf("it went on by %v", d)
	}
	up += time.Hour
	if d := c.now().Sub(before); d < time.Hour {
		t.Errorf("in an hour of sleep it went on by %v", d)
	}
	stopped = 3 * time.Second
	c = newClock()
	before = c.now()
	if d := c.now().Sub(before); d > 2*time.Second || c.slept != 0 {
		t.Errorf("one that was stopped when it began went on by %v", d)
	}
}
