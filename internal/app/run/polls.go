package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// polls keeps the rounds of a run that asks its requests again and again. Safe for concurrent use. A nil *polls has
// none.
type polls struct {
	c       *Config
	checked bool // Check has counted and told of invalid lines
	before  int  // the last round of earlier runs

	mu    sync.Mutex
	epoch time.Time
	turns *queue.Turns // nil until the input is read
}

func newPolls(c *Config) *polls {
	if c.Every == 0 {
		return nil
	}
	return &polls{c: c, epoch: time.Now()}
}

func (p *polls) now() mono.Time { return mono.Time(time.Since(p.epoch)) }

// note takes in a result of an earlier run: the rounds go on from there.
func (p *polls) note(e format.Entry) { p.before = max(p.before, e.Round) }

// ended notes the end of a turn.
func (p *polls) ended(q *format.Request, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turns.Ended(p.now(), q.Turn, answered)
}

// totals fills in the ages over the whole run. A turn that was not asked in the end counts as skipped.
func (p *polls) totals(t *tally.Totals) {
	if p == nil || p.turns == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	unsent := t.Left - t.Unwritten
	t.Left, t.Input = t.Left-unsent, t.Input-unsent
	t.Rounds, t.Skipped, t.Age = p.turns.Round(), p.turns.Skipped()+unsent, tally.AgesOf(p.turns.Overall(p.now()))
}

// progress fills in the present ages.
func (p *polls) progress(t *tally.Totals) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turns != nil {
		t.Rounds, t.Skipped, t.Age = p.turns.Round(), p.turns.Skipped(), tally.AgesOf(p.turns.Now(p.now()))
	}
}

// turnOf names a turn for the Pool, which knows each name once.
func turnOf(q *format.Request) string {
	if q.Round == 0 {
		return q.ID
	}
	return q.ID + "#" + strconv.Itoa(q.Round)
}

// poll reads the whole input, and then asks its requests in rounds, until the last round or the end of the run.
func (f *feeder) poll(ctx context.Context, name string, in io.Reader) {
	all, err := f.readAll(name, in)
	if err != nil {
		f.course.first(&f.course.input, err)
		return
	}
	p := f.polls
	p.mu.Lock()
	p.turns = queue.NewTurns(p.now(), len(all), f.c.Every, f.c.Rounds, p.before)
	p.mu.Unlock()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var due []int
	for told, more := false, true; more; {
		if f.course.isReading(true); f.course.isStopped() {
			return
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		if !f.course.isReading(false) {
			return
		}
		var next mono.Time
		var round int
		p.mu.Lock()
		round, due = p.turns.Due(p.now(), due[:0])
		next, more = p.turns.Next()
		p.mu.Unlock()
		for _, i := range due {
			f.tally.Turn(f.groups.of(f.c.Meter, all[i].Estimate.Model).index, all[i])
		}
		if !told {
			told = true
			f.tellSlower(all)
		}
		for _, i := range due {
			if !f.hand(ctx, all[i].Again(round, i, time.Now()), nil) {
				return
			}
		}
		timer.Reset(next.Sub(p.now()))
	}
}

// readAll reads the input to its end. All of it must be right before anything is sent, unless invalid lines are
// skipped.
func (f *feeder) readAll(name string, in io.Reader) (all []*format.Request, err error) {
	reader := format.NewReader(f.c.Format, name, in, f.c.Input)
	reader.Meter = f.c.Meter
	size := int64(0)
	for f.course.isReading(true) {
		q, err := f.read(reader)
		if !f.course.isReading(false) {
			break
		}
		_, invalid := errors.AsType[*format.InputError](err)
		switch {
		case err == io.EOF:
			return all, nil
		case invalid && f.c.SkipInvalid:
			if !f.polls.checked {
				f.tally.Count(&f.tally.Totals.Invalid, 1)
				f.c.Notice(err.Error())
			}
			continue
		case err != nil:
			return nil, fmt.Errorf("%w: %w; %w", ErrInput, err, ErrUnsent)
		}
		if size += int64(len(q.Raw) + len(q.Body)); size > heldBytes {
			return nil, fmt.Errorf("%w: %s has more than %d MiB of requests, and all of them are kept to be asked again; %w",
				ErrInput, name, heldBytes>>20, ErrUnsent)
		}
		all = append(all, q)
	}
	return nil, nil
}

// tellSlower says how often each request is asked, if the limits do not allow the interval.
func (f *feeder) tellSlower(all []*format.Request) {
	cost, allowed := int64(0), f.gauge.sustained()
	for _, q := range all {
		cost += q.Cost[limit.Requests]
	}
	need := float64(cost) / f.c.Every.Seconds()
	if allowed == 0 || need <= allowed {
		return
	}
	f.teller.Say("%s every %s need %.4g/s; the limits allow %.4g/s: each is asked every %s",
		text.Count(len(all), "request", "requests"), text.Span(f.c.Every), need, allowed,
		text.Span(time.Duration(float64(cost)/allowed*float64(time.Second))))
}
