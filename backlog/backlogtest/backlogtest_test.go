package backlogtest_test

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/backlogtest"
	"github.com/paceline-go/paceline/backlog/sqlite"
)

// faulty is a store with one fault.
type faulty struct {
	backlog.Store
	fault string
}

func (f faulty) Turn(ctx context.Context, id int64, t *backlog.Turn) (o backlog.Outcome, err error) {
	c := *t
	switch f.fault {
	case "a turn of any number fits":
		row, err := f.Store.Read(ctx, t.Worker)
		if err != nil {
			return o, err
		}
		c.Beat = row.Beat
	case "doubts are lost":
		c.Doubts = nil
	case "marks are lost":
		c.Sending = nil
	case "a late turn loses its results":
		if row, err := f.Store.Read(ctx, t.Worker); err != nil || row.Dead {
			return o, err
		}
	case "a doubt of the worker is lost":
		c.Ends = slices.Clone(c.Ends)
		for i := range c.Ends {
			c.Ends[i].Doubt = false
		}
	case "attempts are lost":
		c.Returns = slices.Clone(c.Returns)
		for i := range c.Returns {
			c.Returns[i].Attempts = 0
		}
	case "claims begin at the front":
		c.Claims = slices.Clone(c.Claims)
		for i := range c.Claims {
			c.Claims[i].From = backlog.Place{Place: -1 << 62}
		}
	case "one more is claimed":
		c.Claims = slices.Clone(c.Claims)
		for i := range c.Claims {
			c.Claims[i].N++
		}
	case "a rest is none":
		c.Returns = slices.Clone(c.Returns)
		for i := range c.Returns {
			c.Returns[i].Rest = 0
		}
	}
	o, err = f.Store.Turn(ctx, id, &c)
	if f.fault == "a pause says nothing" {
		o.Paused = false
	}
	return o, err
}

func (f faulty) Differing(ctx context.Context, id int64, entries []backlog.Entry) ([]string, error) {
	if f.fault == "what is not there differs" {
		all := make([]string, len(entries))
		for i, e := range entries {
			all[i] = e.ID
		}
		return all, nil
	}
	return f.Store.Differing(ctx, id, entries)
}

func (f faulty) GiveUp(ctx context.Context, b backlog.Beat) (bool, error) {
	switch f.fault {
	case "any beat is given up":
		row, err := f.Store.Read(ctx, b.Worker)
		if err != nil || row.Dead {
			return false, err
		}
		b.Beat = row.Beat
	}
	return f.Store.GiveUp(ctx, b)
}

func (f faulty) Wake(ctx context.Context, id int64) error {
	if f.fault == "nothing wakes" {
		return nil
	}
	return f.Store.Wake(ctx, id)
}

func (f faulty) Results(ctx context.Context, id, after int64, n int) ([]backlog.Result, error) {
	all, err := f.Store.Results(ctx, id, after, n)
	switch f.fault {
	case "results in any order":
		slices.Reverse(all)
	case "repeats are not named":
		for i := range all {
			all[i].Repeat = false
		}
	}
	return all, err
}

func (f faulty) Look(ctx context.Context, id int64) ([]backlog.Beat, error) {
	all, err := f.Store.Look(ctx, id)
	if f.fault == "a look sees too few" && len(all) > 0 {
		all = all[1:]
	}
	return all, err
}

func (f faulty) Cancel(ctx context.Context, id int64, ids []string, n int) (int, error) {
	if f.fault == "all are cancelled" {
		ids = nil
	}
	return f.Store.Cancel(ctx, id, ids, n)
}

func (f faulty) RetryDead(ctx context.Context, id int64, classes []string, n int) (int, error) {
	if f.fault == "dead ones of any class go again" {
		classes = nil
	}
	return f.Store.RetryDead(ctx, id, classes, n)
}

func (f faulty) SetNote(ctx context.Context, id int64, was, note []byte) (bool, error) {
	if f.fault == "a note replaces any other" {
		i, err := f.Store.List(ctx)
		if err != nil {
			return false, err
		}
		for _, i := range i {
			if i.ID == id {
				was = i.Note
			}
		}
	}
	return f.Store.SetNote(ctx, id, was, note)
}

func (f faulty) Register(ctx context.Context, id int64, host string, pid int) (backlog.Beat, error) {
	b, err := f.Store.Register(ctx, id, host, pid)
	if f.fault == "a worker of nothing" && errors.Is(err, backlog.ErrNoBacklog) {
		err = nil
	}
	return b, err
}

// recorder is a test whose failure is recorded. Fatal ends its goroutine.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	failed bool
}

func (r *recorder) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Errorf(string, ...any) { r.fail() }
func (r *recorder) Error(...any)          { r.fail() }
func (r *recorder) Fatal(...any)          { r.fail(); runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.fail(); runtime.Goexit() }

// Each fault fails the test of the suite that is about it. Without a fault the suite passes: see the tests of
// the stores.
func TestFaults(t *testing.T) {
	for fault, finds := range map[string]string{
		"a turn of any number fits": "numbers", "marks are lost": "back", "doubts are lost": "doubts", "a late turn loses its results": "late",
		"a doubt of the worker is lost": "results", "attempts are lost": "returns", "claims begin at the front": "claims",
		"one more is claimed": "claims", "a rest is none": "rests", "a pause says nothing": "paused",
		"any beat is given up": "givenUp", "nothing wakes": "rests", "results in any order": "order",
		"repeats are not named": "late", "a look sees too few": "looks", "all are cancelled": "cancels",
		"dead ones of any class go again": "again", "a note replaces any other": "notes", "a worker of nothing": "unknown",
		"what is not there differs": "adds",
	} {
		t.Run(fault, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "jobs.db")
			i := slices.IndexFunc(backlogtest.Cases, func(c backlogtest.Case) bool { return c.Name == finds })
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				backlogtest.Cases[i].Check(r, func(testing.TB) backlog.Store {
					s, err := sqlite.Open(file)
					if err != nil {
						t.Error(err)
						runtime.Goexit()
					}
					t.Cleanup(func() { s.Close() })
					return faulty{s, fault}
				})
			}()
			<-done
			if !r.failed {
				t.Errorf("%s passes", finds)
			}
		})
	}
}
