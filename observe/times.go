package observe

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
	"github.com/paceline-go/paceline/limit/mono"
)

// WaitTimes are the waits of one client's requests for one limit: the limit that took most of each
// wait. Requests that went at once have the limit "". Requests that gave up count too.
type WaitTimes struct {
	Limit  string `json:"limit"`
	Client string `json:"client"`
	Times
}

// UpstreamTimes are the durations of a host's answers, from the written request to the answer's
// header. The quantiles are of the last 5 to 10 minutes.
type UpstreamTimes struct {
	Host string        `json:"host"`
	P50  time.Duration `json:"p50_ns"`
	P90  time.Duration `json:"p90_ns"`
	P99  time.Duration `json:"p99_ns"`
	Max  time.Duration `json:"max_ns"`
	Times
}

// Times are counted durations. Upto[i] is how many were at most Snapshot.Bounds[i]; Count is all.
type Times struct {
	Count int64         `json:"count"`
	Sum   time.Duration `json:"sum_ns"`
	Upto  []int64       `json:"upto"`
}

func timesOf(c *histogram.Classes) Times { return Times{c.N(), c.Sum(), c.Upto(nil)} }

// Sampled is how often Waits are due for the limit of the first in line. Asking a limiter costs as
// much as a request does otherwise, and that limit seldom changes.
const Sampled = 5 * time.Millisecond

// Waits counts how long the goroutines of a lane, or the requests of a Pool, waited, by limit. The
// zero value is ready. It has no lock of its own: the owner's lock guards it.
type Waits struct {
	// AtOnce is how many went without a wait. The owner counts them.
	AtOnce int64
	each   []limitWaits
	head   int       // index in each of the limit of the first in line, as last noted
	noted  mono.Time // when head was noted
}

type limitWaits struct {
	limit string
	histogram.Classes
}

// Due reports whether the owner should find the limit of the first in line again, and Note it.
func (w *Waits) Due(now mono.Time) bool { return len(w.each) == 0 || now >= w.noted.Add(Sampled) }

// Note records the limit for which the first in line waits.
func (w *Waits) Note(now mono.Time, limit string) {
	w.head, w.noted = w.Of(limit), now
}

// Noted reports whether any limit was noted so far.
func (w *Waits) Noted() bool { return len(w.each) > 0 }

// Of returns the number of a limit, for Add.
func (w *Waits) Of(limit string) int {
	i := slices.IndexFunc(w.each, func(l limitWaits) bool { return l.limit == limit })
	if i < 0 {
		i = len(w.each)
		w.each = append(w.each, limitWaits{limit: limit})
	}
	return i
}

// Head returns the number of the latest noted limit, or of the limit "limit" if none was noted.
func (w *Waits) Head() int {
	if !w.Noted() {
		return w.Of("limit")
	}
	return w.head
}

// Add counts a wait for the limit of that number.
func (w *Waits) Add(limit int, waited time.Duration) { w.each[limit].Add(waited) }

// Merge adds the counts of more.
func (w *Waits) Merge(more *Waits) {
	w.AtOnce += more.AtOnce
	for i := range more.each {
		l := &more.each[i]
		w.each[w.Of(l.limit)].Merge(&l.Classes)
	}
}

// Append appends the waits of a client, as in a Snapshot: those that went at once, then each
// limit's.
func (w *Waits) Append(to []WaitTimes, client string) []WaitTimes {
	if w.AtOnce > 0 {
		at := WaitTimes{Client: client, Times: Times{Count: w.AtOnce}}
		for range histogram.Bounds() {
			at.Upto = append(at.Upto, w.AtOnce)
		}
		to = append(to, at)
	}
	for i := range w.each {
		l := &w.each[i]
		if l.N() > 0 {
			to = append(to, WaitTimes{l.limit, client, timesOf(&l.Classes)})
		}
	}
	return to
}

// Answers counts the durations of answers, by host. The zero value is ready. It has no lock of its
// own: the owner's lock guards it.
type Answers struct{ named histogram.Named }

// Add counts an answer that came at now.
func (a *Answers) Add(now mono.Time, host string, took time.Duration) {
	a.named.Add(time.Duration(now), host, took)
}

// Append appends each host's times, as in a Snapshot, in the order of the hosts' names.
func (a *Answers) Append(to []UpstreamTimes, now mono.Time) []UpstreamTimes {
	told := a.named.Summaries(time.Duration(now))
	for i := range told {
		h := &told[i]
		to = append(to, UpstreamTimes{h.Name, h.P50, h.P90, h.P99, h.Max, timesOf(&h.Classes)})
	}
	return to
}
