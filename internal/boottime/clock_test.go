package boottime

import (
	"testing"
	"time"
)

// A process that is stopped for 3 s between the two halves of a reading has not slept; a machine
// that slept for an hour has.
func TestClock(t *testing.T) {
	defer func() { clockRead = Read }()
	var up, stopped time.Duration
	clockRead = func() Reading {
		r := Reading{Boot: "b", Up: up + stopped, Awake: time.Second}
		stopped = 0
		return r
	}
	up = time.Second
	c := NewClock()
	before := c.Now()
	stopped = 3 * time.Second
	if d := c.Now() - before; d > 2*time.Second {
		t.Errorf("it went on by %v", d)
	}
	up += time.Hour
	if d := c.Rough() - before; d > 2*time.Second {
		t.Errorf("roughly it went on by %v", d)
	}
	if d := c.Now() - before; d < time.Hour {
		t.Errorf("in an hour of sleep it went on by %v", d)
	}
	if d := c.Rough() - before; d < time.Hour {
		t.Errorf("roughly it went on by %v after that", d)
	}
	stopped = 3 * time.Second
	c = NewClock()
	before = c.Now()
	if d := c.Now() - before; d > 2*time.Second || c.slept != 0 {
		t.Errorf("one that was stopped when it began went on by %v", d)
	}
}

// A stop between the two halves of any reading, however short, is no sleep. A sleep of seconds is
// one.
func TestClockOfStopsAndNaps(t *testing.T) {
	defer func() { clockRead = Read }()
	for _, stop := range []time.Duration{20 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second} {
		for at := range 6 {
			n, up := 0, time.Second
			clockRead = func() Reading {
				r := Reading{Boot: "b", Up: up, Awake: time.Second}
				if n == at {
					r.Up += stop
				}
				n++
				return r
			}
			c := NewClock()
			before := c.Now()
			c.Now()
			if d := c.Now() - before; d < 0 || d > stop/2 {
				t.Errorf("with a stop of %v in reading %d it went on by %v", stop, at, d)
			}
			up += 5 * time.Second
			if d := c.Now() - before; d < 5*time.Second {
				t.Errorf("in a nap of 5 s it went on by %v", d)
			}
		}
	}
}
