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
	living int
	past   []sample
}

type sample struct {
	at   time.Time
	left int64
}

// Watch begins to count. Stop it.
func Watch(ctx context.Context, b *backlog.Backlog) *Whole {
	ctx, cancel := context.WithCancel(ctx)
	w := &Whole{backlog: b, cancel: cancel, ended: make(chan struct{})}
	go w.count(ctx)
	return w
}

// Stop ends the counting.
func (w *Whole) Stop() {
	w.cancel()
	<-w.ended
}

func (w *Whole) count(ctx context.Context) {
	defer close(w.ended)
	for {
		began := time.Now()
		counts, err := w.backlog.Count(ctx)
		if err == nil {
			w.take(began, counts, w.workers(ctx))
		}
		select {
		case <-time.After(max(countEvery, countPart*time.Since(began))):
		case <-ctx.Done():
			return
		}
	}
}

func (w *Whole) workers(ctx context.Context) (living int) {
	all, err := w.backlog.Workers(ctx)
	if err != nil {
		return 0
	}
	for i := range all {
		if !all[i].Dead {
			living++
		}
	}
	return living
}

func (w *Whole) take(at time.Time, c backlog.Counts, living int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts, w.living = c, living
	w.past = append(w.past, sample{at, c.Left()})
	for len(w.past) > 2 && at.Sub(w.past[1].at) >= rateOver {
		w.past = w.past[1:]
	}
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
	parts = append(parts, text.Count(w.living, "worker", "workers"))
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
