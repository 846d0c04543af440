package boottime

import (
	"sync"
	"time"
)

// Clock is a clock of one process. Nobody can set it. It goes on while the machine sleeps, since
// other machines give up a process that sleeps. NewClock makes it. Safe for concurrent use.
type Clock struct {
	base  time.Time
	since Reading

	mu    sync.Mutex
	slept time.Duration
}

// clockRead is replaced by a test.
var clockRead = Read

// NewClock returns a Clock that begins at 0.
func NewClock() *Clock { return &Clock{base: time.Now(), since: steady(Reading{})} }

// steady reads how long the machine was awake and how long it was up, until two readings in a row
// agree. A process that is stopped between the halves of one reading would seem to have slept, and
// its clock would go ahead.
func steady(since Reading) Reading {
	for r := clockRead(); ; {
		again := clockRead()
		if d := again.Slept(since) - r.Slept(since); d > -time.Millisecond && d < time.Millisecond {
			return again
		}
		r = again
	}
}

// Now returns the time since the Clock began.
func (c *Clock) Now() time.Duration {
	slept := clockRead().Slept(c.since)
	c.mu.Lock()
	defer c.mu.Unlock()
	if slept > c.slept+10*time.Millisecond {
		c.slept = max(c.slept, steady(c.since).Slept(c.since))
	}
	return time.Since(c.base) + c.slept
}

// Rough is Now, without a sleep since the last Now. It takes a tenth of the time.
func (c *Clock) Rough() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.base) + c.slept
}
