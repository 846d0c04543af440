package paceline

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit/mono"
)

// waits counts how long the goroutines of a lane, or the requests of a Pool, waited, by the limit that they waited for. What went at
// once is not in it, and costs nothing.
type waits struct {
	each    []limitWaits
	bound   int       // of each: what the first waits for, as last looked at
	looked  mono.Time // when
	granted int64     // of those that waited
}

type limitWaits struct {
	limit string
	histogram.Classes
}

// sampled is how often it is found out what the first waits for, where nobody else wants to know: to ask a limiter costs as much as a
// request does otherwise, and what holds up a line seldom changes.
const sampled = 5 * time.Millisecond

// of returns the waits for a limit.
func (v *waits) of(name string) int {
	i := slices.IndexFunc(v.each, func(w limitWaits) bool { return w.limit == name })
	if i < 0 {
		i = len(v.each)
		v.each = append(v.each, limitWaits{limit: name})
	}
	return i
}

// due tells whether to look at what the first waits for.
func (v *waits) due(now mono.Time) bool { return len(v.each) == 0 || now >= v.looked.Add(sampled) }

// sees notes what the first waits for.
func (v *waits) sees(now mono.Time, name string) {
	v.bound, v.looked = v.of(name), now
}

// sampleLocked looks at what the first in line waits for, now and then.
func (a *Lane) sampleLocked(now mono.Time) {
	if a.lane.Len() > 0 && a.waits.due(now) {
		a.lookAgainLocked(now)
	}
}

func (a *Lane) lookAgainLocked(now mono.Time) {
	if a.lane.Watched { // somebody wants to know at every change
		return
	}
	name := "limit"
	if on, _ := a.lane.At(); on != nil {
		name = on.Bound(now).Name
	}
	a.waits.sees(now, name)
}

// waitedLocked counts a wait that is over.
func (w *waiter) waitedLocked(now mono.Time) {
	a := w.lane
	v := &a.waits
	i := v.bound
	if w.measured { // then it is known exactly
		most := time.Duration(-1)
		for k, d := range w.tally.spent {
			if d > most {
				most, i = d, v.of(a.watch.spent[k].name)
			}
		}
	}
	if len(v.each) == 0 { // nobody looked
		i = v.of("limit")
	}
	v.each[i].Add(now.Sub(w.asked))
	if w.ticket.State == scheduler.Granted {
		v.granted++
	}
}
