package telling

import (
	"sync"
	"time"
)

const (
	// LookEvery is how often watch reads why the head of the queue waits. People need no finer
	// figures.
	LookEvery = 20 * time.Millisecond
	// LookRarely is how often watch reads it while the head waits for seconds.
	LookRarely = time.Second
	// mostCauses bounds the causes that each request keeps.
	mostCauses = 16
)

// Waits adds up how long the head of the queue waited for each cause. All other requests wait for
// the head. So a request waited for the sums that were added between its submission and its send.
// Safe for concurrent use.
type Waits struct {
	mu     sync.Mutex
	names  []string
	total  []time.Duration
	latest int       // index in names of the present cause; -1: nothing waits
	since  time.Time // start of the present cause
}

// Look notes the cause for which the head waits from now on. It is empty if the head does not wait.
func (w *Waits) Look(now time.Time, cause string) {
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

func (w *Waits) addLocked(now time.Time) {
	if d := now.Sub(w.since); w.latest >= 0 && len(w.total) > 0 && d > 0 {
		w.total[w.latest] += d
	}
	w.since = now
}

// Until returns the time waited for each cause so far.
func (w *Waits) Until(now time.Time) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addLocked(now)
	if len(w.total) == 0 {
		return nil
	}
	return append([]time.Duration(nil), w.total...)
}

// Between returns by cause the time waited between two results of until, in milliseconds. It leaves
// out causes with less than lookEvery.
func (w *Waits) Between(from, to []time.Duration) map[string]int64 {
	var all map[string]int64
	for i, total := range to {
		if i < len(from) {
			total -= from[i]
		}
		if total < LookEvery {
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
