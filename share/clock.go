package share

import (
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/limit/mono"
)

// clock is the node's own clock. Nobody can set it. It goes on while the machine sleeps, since
// other nodes give up a node that sleeps.
type clock struct {
	base  time.Time
	since boottime.Reading

	mu    sync.Mutex
	slept time.Duration
}

// read is replaced by a test.
var read = boottime.Read

func newClock() *clock { return &clock{base: time.Now(), since: steady(boottime.Reading{})} }

// steady reads how long the machine was awake and how long it was up, until two readings in a row
// agree. A process that is stopped between the halves of one reading would seem to have slept, and
// its clock would go ahead.
func steady(since boottime.Reading) boottime.Reading {
	for r := read(); ; {
		again := read()
		if d := again.Slept(since) - r.Slept(since); d > -time.Millisecond && d < time.Millisecond {
			return again
		}
		r = again
	}
}

func (c *clock) now() mono.Time {
	slept := read().Slept(c.since)
	c.mu.Lock()
	defer c.mu.Unlock()
	if slept > c.slept+10*time.Millisecond {
		c.slept = max(c.slept, steady(c.since).Slept(c.since))
	}
	return mono.Time(time.Since(c.base) + c.slept)
}
