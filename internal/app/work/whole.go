package work

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/text"
)

const (
	// countEvery is the least time between two counts. A count takes no more than a part of the time.
	countEvery = 2 * time.Second
	countPart  = 20
	// rateOver is the time over which the rate is an average.
	rateOver = 20 * time.Second
)

// Whole is how far all processes are together. It counts now and then, and its words are of the latest
// count. Safe for concurrent use.
type Whole struct {
	backlog *backlog.Backlog
	cancel  context.CancelFunc
	ended   chan struct{}

	mu     sync.Mutex
	counts backlog.Counts
	past   []sample
}

type sample struct {
	at      time.Time
	left    int64
	workers []backlog.WorkerStatus
}

// Watch begins to count. Stop it. gone is called with each worker that was given up meanwhile.
func Watch(ctx context.Context, b *backlog.Backlog, gone func(backlog.WorkerStatus)) *Whole {
	ctx, cancel := context.WithCancel(ctx)
	w := &Whole{backlog: b, cancel: cancel, ended: make(chan struct{})}
	go w.count(ctx, gone)
	return w
}

// Stop ends the counting.
func (w *Whole) Stop() {
	w.cancel()
	<-w.ended
}

func (w *Whole) count(ctx context.Context, gone func(backlog.WorkerStatus)) {
	defer close(w.ended)
	for {
		began := time.Now()
		counts, err := w.backlog.Count(ctx)
		if err == nil {
			var all []backlog.WorkerStatus
			if all, err = w.backlog.Workers(ctx); err == nil {
				for _, g := range w.take(began, counts, all) {
					gone(g)
				}
			}
		}
		select {
		case <-time.After(max(countEvery, countPart*time.Since(began))):
		case <-ctx.Done():
			return
		}
	}
}

// GivenUp reports whether a worker was given up while it may have been sending.
func GivenUp(s *backlog.WorkerStatus) bool { return s.Dead && s.Sending > 0 }

// take takes a count, and returns the workers that were given up since the one before.
func (w *Whole) take(at time.Time, c backlog.Counts, workers []backlog.WorkerStatus) (gone []backlog.WorkerStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.past); n > 0 {
		lived := map[int64]bool{}
		for i := range w.past[n-1].workers {
			s := &w.past[n-1].workers[i]
			lived[s.ID] = !s.Dead
		}
		for i := range workers {
			if s := &workers[i]; GivenUp(s) && lived[s.ID] {
				gone = append(gone, *s)
			}
		}
	}
	w.counts = c
	w.past = append(w.past, sample{at, c.Left(), workers})
	for len(w.past) > 2 && at.Sub(w.past[1].at) >= rateOver {
		w.past = w.past[1:]
	}
	return gone
}

// Lines say how far the whole is, and what each worker has; empty: not known yet.
func (w *Whole) Lines() (lines []string) {
	words := w.Words()
	if words == "" {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	first, last := &w.past[0], &w.past[len(w.past)-1]
	before := map[int64]int64{}
	for _, s := range first.workers {
		before[s.ID] = s.Results
	}
	lines = append(lines, words)
	for i := range last.workers {
		s := &last.workers[i]
		line := Name(s) + ": "
		if s.Dead {
			lines = append(lines, line+End(s))
			continue
		}
		line += fmt.Sprintf("has %s, may have sent %s of them; %s", text.Count(int(s.Held), "request", "requests"),
			text.Thousands(s.Sending), text.Count(int(s.Results), "result", "results"))
		if d := last.at.Sub(first.at); d > 0 {
			line += fmt.Sprintf(", %.1f/s", float64(s.Results-before[s.ID])/d.Seconds())
		}
		lines = append(lines, line)
	}
	return lines
}

// Name names a worker for people.
func Name(s *backlog.WorkerStatus) string {
	return fmt.Sprintf("worker %d (process %d on %s)", s.ID, s.PID, text.Sanitize(s.Host))
}

// End says how a worker that is dead ended.
func End(s *backlog.WorkerStatus) string {
	words, at := "ended", ""
	if !s.Ended.IsZero() {
		at = " at " + s.Ended.Format(time.TimeOnly)
	}
	if GivenUp(s) {
		words = "given up"
		at += "; " + text.Thousands(s.Sending) + " of its requests may be sent twice"
	}
	return words + at
}

// Words say how far the whole is; empty: not known yet.
func (w *Whole) Words() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.past) == 0 {
		return ""
	}
	c := &w.counts
	parts := []string{fmt.Sprintf("all workers: %s of %s ended", text.Thousands(c.Total-c.Left()), text.Thousands(c.Total))}
	first, last := w.past[0], w.past[len(w.past)-1]
	if d := last.at.Sub(first.at); d > 0 && first.left > last.left {
		rate := float64(first.left-last.left) / d.Seconds()
		parts = append(parts, fmt.Sprintf("%.1f/s", rate))
		if c.Left() > 0 {
			eta := time.Duration(float64(c.Left()) / rate * float64(time.Second))
			parts = append(parts, "ETA "+text.Span(eta.Round(time.Second)))
		}
	}
	living := 0
	for i := range last.workers {
		if !last.workers[i].Dead {
			living++
		}
	}
	parts = append(parts, text.Count(living, "worker", "workers"))
	return strings.Join(append(parts, endings(c)...), ", ")
}

// endings are the counts of a backlog that are worth a word.
func endings(c *backlog.Counts) (parts []string) {
	for _, p := range []struct {
		n    int64
		what string
	}{{c.Dead, "dead"}, {c.Expired, "expired"}, {c.Cancelled, "cancelled"}, {c.Repeats, "possible repeats"}} {
		if p.n > 0 {
			parts = append(parts, text.Thousands(p.n)+" "+p.what)
		}
	}
	return parts
}
