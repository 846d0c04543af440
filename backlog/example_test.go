package backlog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/backlog"
	"github.com/paceline-go/paceline/backlog/sqlite"
	"github.com/paceline-go/paceline/limit"
)

// Mails wait in a file. Any number of processes sends them, 20 a second in all if their Gates are of
// package share. Each mail has one result.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := sqlite.Open(filepath.Join(dir, "jobs.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	mails, err := backlog.Open(ctx, store, "mails", backlog.Options{Format: "mail/1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	added, err := mails.Enqueue(ctx, backlog.Job{ID: "order-1", Data: []byte("to ann")},
		backlog.Job{ID: "order-2", Data: []byte("to bob"), Priority: 1, Deadline: time.Now().Add(time.Hour)},
		backlog.Job{ID: "order-1", Data: []byte("to ann, again")})
	fmt.Println(added, err)

	send := func(ctx context.Context, a *backlog.Attempt) backlog.Reply {
		if !a.Fresh() { // right before the write
			return backlog.NotSent()
		}
		answer, err := deliver(ctx, a.Data)
		if err != nil {
			return backlog.Retry(time.Second, true, backlog.Answer{Class: "network"})
		}
		return backlog.Finished(backlog.Answer{State: backlog.Done, Line: []byte(answer)})
	}
	w, err := backlog.NewWorker(backlog.WorkerConfig{
		Backlog: mails, Gate: paceline.NewGate(limit.MustRolling(20, time.Second)), Do: send, UntilEmpty: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Run(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for r, err := range mails.Results(ctx, 0) {
		fmt.Printf("%s: %v, repeat %v: %s %v\n", r.ID, r.State, r.Repeat, r.Line, err)
	}
	n, err := mails.RetryDead(ctx)
	fmt.Println(n, err)
	// Output:
	// 2 <nil>
	// order-1: done, repeat false: 250 OK <nil>
	// order-2: done, repeat false: 250 OK <nil>
	// 0 <nil>
}

// deliver is what sends a mail in these examples.
func deliver(context.Context, []byte) (answer string, err error) { return "250 OK", nil }

// A program with retries and limits of its own takes requests from a Session.
func ExampleSession() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if _, err := sqlite.OpenExisting(filepath.Join(dir, "jobs.db")); err != nil {
		fmt.Println("before:", err != nil)
	}
	store, err := sqlite.Open(filepath.Join(dir, "jobs.db"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	b, err := backlog.Open(ctx, store, "jobs", backlog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := b.Enqueue(ctx, backlog.Job{ID: "1"}); err != nil {
		fmt.Println(err)
		return
	}
	s, err := backlog.NewSession(backlog.SessionConfig{Backlog: b, UntilEmpty: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		a, err := s.Take(ctx, 0)
		if err == backlog.ErrEmpty {
			break
		} else if err != nil {
			fmt.Println(err)
			return
		}
		a.Tried(false) // a first attempt that failed
		a.End(backlog.Answer{State: backlog.Done})
	}
	fmt.Println(s.Stop(ctx))
	c, err := b.Count(ctx)
	fmt.Println(c.Done, c.Left(), err)
	// Output:
	// before: true
	// <nil>
	// 1 0 <nil>
}
