package work

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

const (
	// batch is how many requests are added at once, and settledFrom from how many on the database is to
	// take note of them.
	batch       = 5000
	settledFrom = 20_000
)

// Adder adds requests to a backlog.
type Adder struct {
	Backlog *backlog.Backlog
	// Storing says how requests are stored. Read is set by From.
	Storing format.Storing
	// Priority is added to that of each request, and Due is when they may go; zero: at once.
	Priority int
	Due      time.Time

	entered time.Time
	jobs    []backlog.Job
	// Read is how many requests were read, and Added how many of them were not there already.
	Read, Added int
}

// From adds the requests of an input, which r reads. It adds many at a time, so after an error some of
// them may be there. The same call again adds the rest.
func (a *Adder) From(ctx context.Context, r *run.Run, name string, in io.Reader) error {
	a.entered = time.Now()
	a.Storing.Read = a.entered
	err := r.Each(name, in, func(q *format.Request) error {
		line, err := r.Stored(q, a.Storing)
		if err != nil {
			return &format.InputError{File: name, Line: q.Line, Column: q.Column, Reason: err.Error()}
		}
		a.jobs = append(a.jobs, backlog.Job{ID: q.ID, Data: line, Priority: q.Priority + a.Priority, Entered: a.entered,
			Due: a.Due, Deadline: a.deadline(q)})
		if len(a.jobs) < batch {
			return nil
		}
		return a.flush(ctx)
	})
	if ferr := a.flush(ctx); err == nil {
		err = ferr
	}
	return err
}

func (a *Adder) flush(ctx context.Context) error {
	n, err := a.Backlog.Enqueue(ctx, a.jobs...)
	a.Added += n
	if err == nil {
		a.Read += len(a.jobs)
		a.jobs = a.jobs[:0]
	}
	return err
}

// deadline is the instant after which a request is of no use; zero: none.
func (a *Adder) deadline(q *format.Request) time.Time {
	lasts := cmp.Or(q.TTL, a.Storing.TTL)
	switch {
	case !q.At.IsZero():
		return q.At
	case lasts == 0:
		return time.Time{}
	case q.Created.IsZero():
		return a.entered.Add(lasts)
	}
	return q.Created.Add(lasts)
}
