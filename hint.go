package paceline

import (
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// hint is the last refusal of a TryWait, which anybody may repeat without the lock: a limiter that is not changed gives
// the same answer at any now before it (law 2 of limit/limittest). So it goes with every Admit, Settle and Update, and
// with every change of the head of the line. It holds for the very same cost alone: a dearer one is refused too, but for
// how long only the limiter knows.
//
// It is written under the Group's lock. A reader without it takes one hint and not parts of two if version was even and
// the same before and after; what it then says was so at an instant during the call.
type hint struct {
	version atomic.Uint64
	until   atomic.Int64 // from then on the Gate must be asked; noHint: now
	at      atomic.Int64 // the refusal: until or later
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
		if h.cost[u].Load() != n { // a store costs twenty loads
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
