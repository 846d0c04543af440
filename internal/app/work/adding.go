package work

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

const (
	// batch is how many requests are added at once, and analyzeFrom from how many on the database takes note.
	batch, analyzeFrom = 5000, 20_000
	// flushEvery is how long a request waits for others, if they come slowly.
	flushEvery = 500 * time.Millisecond
)

// Adder adds requests to a backlog.
type Adder struct {
	// Storing says how requests are stored. Read is the instant from which durations and priorities count.
	Storing format.Storing
	// Priority is added to that of each request, and Due is when they may go; zero: at once.
	Priority int
	Due      time.Time
	// Read is how many requests were read, and Added how many of them were not there already.
	Read, Added int
	// Differing is how many were there with other content, which stays, and First the ID of the first of them.
	Differing int
	First     string
	// Counted says that the tokens of the requests are to be counted.
	Counted bool

	note Note // as it was last read or changed
	mu   sync.Mutex
	jobs []backlog.Job // read, and not added yet
}

// Check reads an input as From does, and adds nothing.
func (a *Adder) Check(r *run.Run, name string, in io.Reader) error {
	return a.each(r, name, in, func(*format.Request, *backlog.Job) error { return nil })
}

// From adds the requests of an input, which r reads, to b. It adds many at a time, so after an error some
// of them may be there. The same call again adds the rest. Of a pipe, none waits for long.
func (a *Adder) From(ctx context.Context, b *backlog.Backlog, r *run.Run, name string, in io.Reader) error {
	done := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { a.flushing(ctx, b, done) })
	err := a.each(r, name, in, func(q *format.Request, j *backlog.Job) (err error) {
		if j.Lane, err = a.lane(ctx, b, q); err != nil {
			return err
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.jobs = append(a.jobs, *j); len(a.jobs) < batch {
			return nil
		}
		return a.flushLocked(ctx, b)
	})
	close(done)
	beside.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if ferr := a.flushLocked(ctx, b); err == nil {
		err = ferr
	}
	if err == nil && a.Added >= analyzeFrom {
		err = b.Analyze(ctx)
	}
	return err
}

// Flush adds what From has read and not added yet. It may be called while From waits for more.
func (a *Adder) Flush(ctx context.Context, b *backlog.Backlog) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.flushLocked(ctx, b)
}

// Count returns Added. It may be called while From goes on.
func (a *Adder) Count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.Added
}

// each passes each request of an input as a job.
func (a *Adder) each(r *run.Run, name string, in io.Reader, f func(*format.Request, *backlog.Job) error) error {
	return r.Each(name, in, func(q *format.Request) error {
		line, err := r.Stored(q, a.Storing)
		j := backlog.Job{ID: q.ID, Data: line, Priority: q.Priority + a.Priority, Entered: a.Storing.Read, Due: a.Due,
			Deadline: a.deadline(q)}
		if err == nil {
			_, err = backlog.Entries(a.Storing.Read, []backlog.Job{j})
		}
		if err != nil {
			return &format.InputError{File: name, Line: q.Line, Column: q.Column, Reason: err.Error()}
		}
		return f(q, &j)
	})
}

// lane returns the lane of a request: that of its model. The note has the model before the backlog has the request,
// so each worker that finds the request knows its lane.
func (a *Adder) lane(ctx context.Context, b *backlog.Backlog, q *format.Request) (int32, error) {
	model, n := q.Model(), &a.note
	known := model == "" || len(model) > run.LongestModel || n.Lane(model) > 0 || len(n.Models) >= run.MostModels
	if known && (!a.Counted || n.API != "") {
		return n.Lane(model), nil
	}
	err := ChangeNote(ctx, b, func(n *Note) (changed bool, err error) {
		if changed = n.takes(model); a.Counted && n.API == "" {
			changed, n.API = true, (&url.URL{Scheme: q.URL.Scheme, Host: q.URL.Host, Path: q.URL.Path}).String()
		}
		a.note = *n
		return changed, nil
	})
	return n.Lane(model), err
}

// flushing adds what was read, now and then.
func (a *Adder) flushing(ctx context.Context, b *backlog.Backlog, done <-chan struct{}) {
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-done:
			return
		}
		a.mu.Lock()
		_ = a.flushLocked(ctx, b) // the last one has the error, too
		a.mu.Unlock()
	}
}

func (a *Adder) flushLocked(ctx context.Context, b *backlog.Backlog) error {
	n, err := b.Enqueue(ctx, a.jobs...)
	a.Added += n
	if err == nil && n < len(a.jobs) {
		err = a.compareLocked(ctx, b)
	}
	if err == nil {
		a.Read += len(a.jobs)
		a.jobs = a.jobs[:0]
	}
	return err
}

// compareLocked counts the requests that are there with other content. It leaves out those with a deadline: one that
// counts from the reading is another each time.
func (a *Adder) compareLocked(ctx context.Context, b *backlog.Backlog) error {
	timeless := slices.DeleteFunc(slices.Clone(a.jobs), func(j backlog.Job) bool { return !j.Deadline.IsZero() })
	ids, err := b.Differing(ctx, timeless...)
	if a.Differing += len(ids); a.First == "" && len(ids) > 0 {
		a.First = ids[0]
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
		return a.Storing.Read.Add(lasts)
	}
	return q.Created.Add(lasts)
}
