package paceline

import (
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// hint is the last refusal of a TryWait, which any goroutine may repeat without the lock. A limiter
// that does not change gives the same answer at any earlier now (law 2 of limit/limittest). So
// every Admit, Settle, Update and change of the head of the line clears the hint. It holds for
// exactly the same cost: a larger one is refused too, but only the limiter knows for how long.
//
// The hint is written under the Group's lock. A reader without the lock has one whole hint if
// version was even, and the same before and after. The answer was then true at an instant during
// the call.
type hint struct {
	version atomic.Uint64
	until   atomic.Int64 // the Gate must be asked from then on; noHint: now
	at      atomic.Int64 // the instant of the refusal: until or later
	lane    atomic.Pointer[Lane]
	cost    [len(limit.Cost{})]atomic.Int64
}

const noHint = int64(mono.Min)

func (h *hint) clear() {
	if h.until.Load() != noHint {
		h.until.Store(noHint)
	}
}

func (h *hint) set(until, at mono.Time, cost *limit.Cost, a *Lane) {
	h.version.Add(1)
	if h.lane.Load() != a {
		h.lane.Store(a)
	}
	h.until.Store(int64(until))
	h.at.Store(int64(at))
	for u, n := range cost {
		if h.cost[u].Load() != n { // a store costs as much as twenty loads
			h.cost[u].Store(n)
		}
	}
	h.version.Add(1)
}

// refuse repeats the last refusal, if it was of the same cost and nothing has changed.
func (a *Lane) refuse(cost *limit.Cost) (retry time.Duration, ok bool) {
	h := &a.group.hint
	version, until, at := h.version.Load(), h.until.Load(), h.at.Load()
	if until == noHint || version%2 != 0 || h.lane.Load() != a {
		return 0, false
	}
	for u, n := range cost {
		if h.cost[u].Load() != n {
			return 0, false
		}
	}
	now := a.group.now()
	if now >= mono.Time(until) || h.version.Load() != version {
		return 0, false
	}
	return retryAfter(now, mono.Time(at)), true
}
