package run

import (
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

const (
	// lookEvery is how often watch reads why the head of the queue waits. People need no finer
	// figures.
	lookEvery = 20 * time.Millisecond
	// mostCauses bounds the causes that each request keeps.
	mostCauses = 16
)

// waits adds up how long the head of the queue waited for each cause. All other requests wait for
// the head. So a request waited for the sums that were added between its submission and its send.
// Safe for concurrent use.
type waits struct {
	mu     sync.Mutex
	names  []string
	total  []time.Duration
	latest int       // index in names of the present cause; -1: nothing waits
	since  time.Time // start of the present cause
}

// look notes the cause for which the head waits from now on. It is empty if the head does not wait.
func (w *waits) look(now time.Time, cause string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(now)
	w.latest = -1
	if cause == "" {
		return
	}
	for i, name := range w.names {
		if name == cause {
			w.latest = i
		}
	}
	if w.latest < 0 && len(w.names) < mostCauses {
		w.latest = len(w.names)
		w.names, w.total = append(w.names, cause), append(w.total, 0)
	}
}

func (w *waits) addLocked(now time.Time) {
	if d := now.Sub(w.since); w.latest >= 0 && len(w.total) > 0 && d > 0 {
		w.total[w.latest] += d
	}
	w.since = now
}

// until returns the time waited for each cause so far.
func (w *waits) until(now time.Time) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(now)
	if len(w.total) == 0 {
		return nil
	}
	return append([]time.Duration(nil), w.total...)
}

// between returns by cause the time waited between two results of until, in milliseconds. It leaves
// out causes with less than lookEvery.
func (w *waits) between(from, to []time.Duration) map[string]int64 {
	var all map[string]int64
	for i, total := range to {
		if i < len(from) {
			total -= from[i]
		}
		if total < lookEvery {
			continue
		}
		if all == nil {
			all = map[string]int64{}
		}
		w.mu.Lock()
		all[w.names[i]] = total.Milliseconds()
		w.mu.Unlock()
	}
	return all
}

// watch calls look for every group until done, and now and then notes the ceiling.
func (r *Run) watch(done <-chan struct{}) {
	t := time.NewTicker(lookEvery * time.Duration(1+len(r.c.Keys)/50))
	defer t.Stop()
	midnights := r.newMidnights()
	for looks := 1; ; looks++ {
		if looks%ceilingEvery == 0 {
			r.ceilings.note(r.sustained())
		}
		if midnights.look() {
			r.moveMidnights(midnights.slept)
		}
		for _, g := range r.groups {
			g.look()
		}
		select {
		case <-t.C:
		case <-done:
			return
		}
	}
}

// look notes why the head of the group's queue waits.
func (g *group) look() {
	r, cause := g.r, ""
	var wait time.Duration
	var text string
	g.pool.Update(func(now mono.Time, q *pool.Queue, d *pool.Dispatcher) {
		if q.Counts().Waiting > 0 {
			var at mono.Time
			at, cause, text = g.why(now, q, d)
			wait = at.Sub(now)
		}
		if cause == "concurrency" && len(r.c.Limits) == 0 { // no other cause is possible
			cause = ""
		}
	})
	g.waits.look(time.Now(), cause)
	if wait >= longWait {
		if reason := g.unsaid.Swap(nil); reason != nil {
			r.tellUnsaid(*reason, text, time.Now().Add(wait))
		}
	}
}
