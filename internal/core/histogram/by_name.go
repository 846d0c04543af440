package histogram

import (
	"maps"
	"slices"
	"time"
)

const (
	// generation is the time after which a new Histogram begins. Summaries reads the present one
	// and the one before.
	generation = 5 * time.Minute
	// mostNamed bounds the memory of Named, at 130 KiB for each name. Later names are counted under
	// Other.
	mostNamed = 32
	// Other is the name for durations without a name of their own.
	Other = "other"
)

// Named counts durations by name, such as latencies by host. Instants come from the caller, on any
// scale. The zero value is empty. Not safe for concurrent use.
type Named struct{ all map[string]*lately }

// lately has the durations of one name: all of them in a few classes, and those of the last 5 to 10
// minutes in fine ones.
type lately struct {
	Classes
	fine  [2]Histogram // of this generation, and of the one before
	began time.Duration
}

// Add counts a duration that ended at now.
func (n *Named) Add(now time.Duration, name string, d time.Duration) {
	l := n.all[name]
	if l == nil && len(n.all) >= mostNamed {
		name = Other
		l = n.all[name]
	}
	if l == nil {
		if n.all == nil {
			n.all = map[string]*lately{}
		}
		l = &lately{began: now}
		n.all[name] = l
	}
	l.turn(now)
	l.Classes.Add(d)
	l.fine[0].Add(d)
}

func (l *lately) turn(now time.Duration) {
	age := now - l.began
	if age < generation {
		return
	}
	l.fine[0], l.fine[1] = l.fine[1], l.fine[0]
	l.fine[0].reset()
	if age >= 2*generation {
		l.fine[1].reset()
	}
	l.began = now
}

// Summary is the summary of a name: quantiles of the last 5 to 10 minutes, and the classes of all
// durations.
type Summary struct {
	Name               string
	P50, P90, P99, Max time.Duration
	Classes
}

// Summaries returns the summaries of all names, in their order.
func (n *Named) Summaries(now time.Duration) (all []Summary) {
	for _, name := range slices.Sorted(maps.Keys(n.all)) {
		l := n.all[name]
		l.turn(now)
		var both Histogram
		both.merge(&l.fine[0])
		both.merge(&l.fine[1])
		all = append(all, Summary{name, both.Quantile(0.5), both.Quantile(0.9), both.Quantile(0.99), both.Quantile(1),
			l.Classes})
	}
	return all
}

func (h *Histogram) reset() {
	clear(h.classes)
	h.n, h.sum = 0, 0
}

func (h *Histogram) merge(more *Histogram) {
	if more.n == 0 {
		return
	}
	if h.classes == nil {
		h.classes = make([]uint64, len(more.classes))
	}
	for i, n := range more.classes {
		h.classes[i] += n
	}
	h.n += more.n
	h.sum += more.sum
}
