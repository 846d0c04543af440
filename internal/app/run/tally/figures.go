package tally

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/core/ceiling"
	"github.com/paceline-go/paceline/internal/core/histogram"
	"github.com/paceline-go/paceline/limit"
)

// LatencyMS is how long answers took, in milliseconds, from the first written byte of the request
// to the end of the answer.
type LatencyMS struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
}

func (l LatencyMS) String() string {
	unit, each := "ms", 1.0
	if l.Mean >= 999.5 {
		unit, each = "s", 1000
	}
	text := func(ms float64) string {
		if n := ms / each; n >= 999.5 { // %.3g would write an exponent
			return fmt.Sprintf("%.0f", n)
		}
		return fmt.Sprintf("%.3g", ms/each)
	}
	return fmt.Sprintf("%s %s (median %s, p99 %s)", text(l.Mean), unit, text(l.P50), text(l.P99))
}

// KeyTotals are the figures of a key.
type KeyTotals struct {
	Key      string    `json:"key"`
	Sends    int       `json:"sends"`
	Done     int       `json:"done"`     // how many answers ended their request well
	Rejected int       `json:"rejected"` // how many answers were 429
	Latency  LatencyMS `json:"latency_ms"`
	// Percent is the cost that the key sent, in percent of the most that its limits and the order
	// of its nonces allow.
	Percent float64 `json:"percent_of_ceiling,omitempty"`
	// OfLimit is the cost that the key sent, in percent of the most that its limits alone allow.
	OfLimit float64 `json:"percent_of_limit,omitempty"`
}

// figures are the measurements of each key.
type figures struct {
	latency histogram.Histogram // of all keys together
	keys    []keyFigures
}

type keyFigures struct {
	KeyTotals
	latency histogram.Histogram
	best    []*ceiling.Client // with nonces, the best client for each limit with a window, after the one for no limit
	spent   []limit.Cost      // the cost that the key sent in each group
}

// maxBest bounds the memory. A larger limit lets so much go at once that the order of nonces binds,
// and not the limit.
const maxBest = 100_000

// NewFigures measures keys with these limits; numbered: their requests carry nonces.
func NewFigures(keys []format.Key, limits []format.Rate, gap time.Duration, numbered bool) figures {
	f := figures{keys: make([]keyFigures, len(keys))}
	for i := range f.keys {
		f.keys[i].Key = keys[i].Name
		if !numbered {
			continue
		}
		knows := ceiling.Config{Knowledge: ceiling.OneInFlight}
		if gap > 0 {
			knows = ceiling.Config{Knowledge: ceiling.Answers, Gap: gap}
		}
		windows := []format.Rate{{N: 1024, Per: 1}} // there is no limit here, so only the order of the nonces binds
		for _, l := range limits {
			if !l.Bucket && l.Zone == "" && l.Unit == 0 && l.N <= maxBest {
				windows = append(windows, l)
			}
		}
		for n, l := range windows {
			knows.Limit, knows.Window, knows.Tick = int(l.N), l.Per, 0
			if n == 0 {
				knows.Tick = -1
			}
			if best, err := ceiling.New(knows); err == nil {
				f.keys[i].best = append(f.keys[i].best, best)
			}
		}
	}
	return f
}

// sent takes in a written attempt, and how long it took.
func (f *figures) sent(group, key int, took time.Duration, answered bool, cost limit.Cost) {
	k := &f.keys[key]
	k.Sends++
	for len(k.spent) <= group {
		k.spent = append(k.spent, limit.Cost{})
	}
	Add(&k.spent[group], cost, 1)
	if answered {
		f.latency.Add(took)
		k.latency.Add(took)
	}
	for n, best := range k.best {
		places := cost[limit.Requests]
		if n == 0 {
			places = 1
		}
		for i := range places {
			if i == places-1 {
				best.Next(took, 0)
			} else {
				best.Next(0, 0)
			}
		}
	}
}

func latencyOf(h *histogram.Histogram) LatencyMS {
	return LatencyMS{format.Milliseconds(h.Mean()), format.Milliseconds(h.Quantile(0.5)), format.Milliseconds(h.Quantile(0.99))}
}

// All returns the latency of all keys together; nil: nothing was answered.
func (f *figures) All() *LatencyMS {
	if f.latency.N() == 0 {
		return nil
	}
	l := latencyOf(&f.latency)
	return &l
}

// LimitsChange forgets what the limits of the beginning allow together with the order of nonces: they hold no more.
func (t *Tally) LimitsChange() {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	for i := range t.Figures.keys {
		k := &t.Figures.keys[i]
		k.best = k.best[:min(len(k.best), 1)]
	}
}

// takes returns how long the best client would need for all that the key sent; 0: not known.
func (k *keyFigures) takes() (least time.Duration) {
	for _, best := range k.best {
		least = max(least, best.At().Sub(0))
	}
	return least
}

// InOrder returns how many requests per second the keys can send if their nonces must arrive in
// order. It uses the measured round trips. 0: there are no nonces, or nothing was sent yet.
func (f *figures) InOrder() (perSecond float64) {
	for i := range f.keys {
		if d := f.keys[i].takes(); d > 0 {
			perSecond += float64(f.keys[i].spent[0][limit.Requests]) / d.Seconds() // a run with nonces has one group
		}
	}
	return perSecond
}

// Allowed is the most of a unit that a limit of a key lets go in a whole run.
type Allowed struct {
	Unit limit.Unit
	Most float64
}

// Totals returns the figures of all keys, with the limits of each group, after a run of d.
func (f *figures) Totals(allowed [][]Allowed, d time.Duration) []KeyTotals {
	var all []KeyTotals
	for i := range f.keys {
		k := &f.keys[i]
		k.Latency = latencyOf(&k.latency)
		k.OfLimit = 0
		for n, spent := range k.spent {
			for _, a := range allowed[n] {
				k.OfLimit = max(k.OfLimit, 100*float64(spent[a.Unit])/a.Most)
			}
		}
		k.Percent = max(k.OfLimit, 100*k.takes().Seconds()/d.Seconds())
		all = append(all, k.KeyTotals)
	}
	return all
}

// Found is the limit that a run found for a key (--limit auto).
type Found struct {
	Key string `json:"key"`
	// N is how many requests are let through in Seconds; 0: no limit was found.
	N       int64   `json:"n"`
	Seconds float64 `json:"seconds,omitempty"`
	// By is the source of the limit: nobody (no answer named a limit, and nothing was refused),
	// refusals, server (as it states), remains (what answers say is left) or provider (its
	// documentation).
	By string `json:"by"`
	// Soon is how many requests were refused in the first minute, and Later since.
	Soon  int `json:"refused_first_minute"`
	Later int `json:"refused_since"`
	// Text is all of that in words, for people.
	Text string `json:"text"`
}
