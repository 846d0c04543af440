package rule

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// WeightedConfig is the rule that approximates a rolling window by two counters. Limit and Window
// have no default.
type WeightedConfig struct {
	// Limit is the largest allowed current + previous × remaining / Window. remaining is the part
	// of Window that is left of the current interval.
	Limit int64
	// Window is the length of an interval. Its first instant belongs to it, its last to the next.
	Window time.Duration
	// Phase is the first instant of one of the intervals.
	Phase mono.Time
	// Rotating says that the intervals are aligned to the first request, not to Phase. A new
	// alignment comes with the first request that counts after a pause. The pause is two intervals
	// or more since the beginning of the last interval in which any request counted.
	Rotating bool
	// RoundsDown says that the server rounds the sum down before it compares. Then any sum below
	// Limit + 1 passes.
	RoundsDown bool
	// Tick is the unit of the server's clock. If zero, 1 ms; if negative, 1 ns.
	Tick time.Duration
	// RefusedCount says that refused requests count as well, each as at most Limit.
	RefusedCount bool
}

func (c WeightedConfig) check() error {
	err := checkCommon(c.Limit, c.Window, c.Tick)
	if c.Rotating && c.Phase != 0 {
		err = errors.Join(err, fmt.Errorf("rule: Phase %v of a Rotating interval, which has none", c.Phase))
	}
	return err
}

// weighted counts the interval before in proportion to the part of it in the last Window, as if its
// requests were spread evenly. Content delivery networks do it by the calendar, and some reverse
// proxies with Rotating.
type weighted struct {
	dial
	limit, window, phase int64
	rotating, refused    bool
	down                 bool
	counters
}

// counters has the counts of the interval that begins at from, and of the one before it.
type counters struct{ from, current, previous int64 }

// NewWeighted returns a server that no request has reached.
func NewWeighted(c WeightedConfig) (Rule, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	w := int64(c.Window)
	return &weighted{dial: newDial(c.Tick), limit: c.Limit, window: w, phase: inFirst(c.Phase, w),
		rotating: c.Rotating, refused: c.RefusedCount, down: c.RoundsDown, counters: counters{from: never}}, nil
}

// Arrive is as in Server.
func (w *weighted) Arrive(now mono.Time, cost int64) bool {
	ok := w.Fits(now, cost)
	w.Count(now, cost, ok)
	return ok
}

// Fits is as in Rule.
func (w *weighted) Fits(now mono.Time, cost int64) bool {
	if cost <= 0 {
		return free(cost)
	}
	t := w.read(now)
	c := w.at(t)
	room := w.limit - c.current - cost
	if room < 0 {
		return false
	}
	// previous × remaining / window ≤ room, or < room + 1, multiplied by window
	hi, lo := bits.Mul64(uint64(c.previous), uint64(w.window-(t-c.from)))
	if w.down {
		roomHi, roomLo := bits.Mul64(uint64(room+1), uint64(w.window))
		return hi < roomHi || hi == roomHi && lo < roomLo
	}
	roomHi, roomLo := bits.Mul64(uint64(room), uint64(w.window))
	return hi < roomHi || hi == roomHi && lo <= roomLo
}

// at returns the counters as they are at t. It does not store them: a request that does not count
// must not move the rotation.
func (w *weighted) at(t int64) counters {
	switch in := t - w.from; {
	case in < w.window:
		return w.counters
	case in < 2*w.window:
		return counters{w.from + w.window, 0, w.current}
	case w.rotating:
		return counters{from: t}
	}
	return counters{from: floor(t-w.phase, w.window) + w.phase}
}

// Count is as in Rule.
func (w *weighted) Count(now mono.Time, cost int64, passed bool) {
	if cost <= 0 || !passed && !w.refused {
		return
	}
	w.counters = w.at(w.read(now))
	w.current = min(w.current+min(cost, w.limit), 1<<60)
}
