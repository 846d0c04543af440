package batch

import (
	"sync"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

const (
	// lookEvery is how often is looked what the head of the queue waits for: finer than a person cares.
	lookEvery = 20 * time.Millisecond
	// mostCauses bounds what is kept with each request.
	mostCauses = 16
)

// waits adds up what the head of the queue waited for. As all others wait for the head, what a request waited for is what was added
// between its submission and its send. Safe for concurrent use.
type waits struct {
	mu     sync.Mutex
	names  []string
	total  []time.Duration
	latest int       // of names: the cause since then; -1: nothing waits
	since  time.Time // of latest
}

// look notes what the head waits for from now on; empty: for nothing.
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

// until is what was waited for so far.
func (w *waits) until(now time.Time) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(now)
	if len(w.total) == 0 {
		return nil
	}
	return append([]time.Duration(nil), w.total...)
}

// between is what was waited for, in milliseconds; what took less than a look is left out.
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

// watch looks until done.
func (r *Run) watch(done <-chan struct{}) {
	t := time.NewTicker(lookEvery * time.Duration(1+len(r.c.Keys)/50))
	defer t.Stop()
	for {
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

// look looks what the head of the queue waits for.
func (g *group) look() {
	r, cause := g.r, ""
	g.pool.Update(func(now mono.Time, q *queue.Queue, d *dispatch.Dispatcher) {
		if q.Counts().Waiting > 0 {
			cause, _ = g.why(now, q, d)
		}
		if cause == "concurrency" && len(r.c.Limits) == 0 { // what else
			cause = ""
		}
	})
	g.waits.look(time.Now(), cause)
}
