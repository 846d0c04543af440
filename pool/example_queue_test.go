package pool_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// A request that is given up stays as a dead letter. Somebody mends the cause, and sends it again. The
// function of Update may change both the queue and the keys.
func ExamplePool_Update() {
	broken := true
	var p *pool.Pool
	p, err := pool.New(pool.Config{
		Keys: []pool.Key{{
			Name: "mine", Limiter: limit.MustRolling(20, time.Second), Nonce: &pool.NonceConfig{Unit: time.Millisecond},
		}},
		Queue:   pool.QueueConfig{MaxLen: 2, KeepDead: 10, OnExpiry: pool.Retry},
		Backoff: pool.Backoff{Base: time.Millisecond},
		Send: func(_ context.Context, a pool.Attempt) pool.Answer {
			if broken {
				return pool.Answer{Invalid: true, Reason: "no such account"}
			}
			return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
		},
		Ended: func(e pool.Ended) { fmt.Println(e.Request.ID, e.State, e.Reason) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := p.TrySubmit(pool.Request{ID: "17", Cost: limit.One}); err != nil {
		fmt.Println(err)
	}
	p.Close()
	fmt.Println(p.Run(context.Background()))
	fmt.Println(errors.Is(p.TrySubmit(pool.Request{ID: "18"}), pool.ErrClosed))

	p.Update(func(now mono.Time, q *pool.Queue, d *pool.Dispatcher) {
		var dead []pool.DeadLetter = q.DeadLetters()
		fmt.Println(len(dead), "dead letter:", dead[0].Request.ID, q.Counts().Dead)
		d.Ban(0, "its owner left")
		var key pool.KeyInfo = d.KeyInfo(now, 0)
		fmt.Println(key.Banned(), key.Reason)
		d.Resume(0)
		fmt.Println(d.KeyInfo(now, 0).Banned())
	})
	for _, h := range p.Hosts() {
		fmt.Println("down:", h.Down)
	}
	// Output:
	// 17 dead no such account
	// <nil>
	// true
	// 1 dead letter: 17 1
	// true its owner left
	// false
	// down: false
}

// Why was a request not taken, and why did a Run end?
func ExamplePool_TrySubmit() {
	p, err := pool.New(pool.Config{
		Keys:  []pool.Key{{Name: "mine", Limiter: limit.MustRolling(20, time.Second)}},
		Queue: pool.QueueConfig{MaxLen: 1},
		Send: func(context.Context, pool.Attempt) pool.Answer {
			return pool.Answer{Banned: true, Reason: "no credit"}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	submit := func(id string) string {
		err := p.TrySubmit(pool.Request{ID: id, Cost: limit.One})
		switch {
		case errors.Is(err, pool.ErrDuplicate):
			return "it waits already"
		case errors.Is(err, pool.ErrDead):
			return "it was given up before: requeue it"
		case errors.Is(err, pool.ErrFull):
			return "come back later"
		}
		return fmt.Sprint(err)
	}
	fmt.Println(submit("17"))
	fmt.Println(submit("17"))
	fmt.Println(submit("18"))
	err = p.Run(context.Background())
	var outage *pool.OutageError
	switch {
	case errors.Is(err, pool.ErrExhausted):
		fmt.Println("no key is left")
	case errors.As(err, &outage), errors.Is(err, pool.ErrOutage):
		fmt.Println("nothing reached", outage.Host, "for", outage.For)
	}
	p.Update(func(now mono.Time, q *pool.Queue, _ *pool.Dispatcher) {
		ticket, state, _ := q.Lookup("17")
		fmt.Println(state, q.Cancel(now, ticket))
		fmt.Println(errors.Is(q.Requeue(now, ticket), pool.ErrGone)) // it is no dead letter
	})
	// Output:
	// <nil>
	// it waits already
	// come back later
	// no key is left
	// waiting true
	// true
}

// A Send that panics ends Run with a panic, which names the request.
func ExampleSendPanic() {
	p, err := pool.New(pool.Config{
		Keys: []pool.Key{{Name: "mine", Limiter: limit.MustRolling(20, time.Second)}},
		Send: func(context.Context, pool.Attempt) pool.Answer { panic("no such table") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := p.TrySubmit(pool.Request{ID: "17", Cost: limit.One}); err != nil {
		fmt.Println(err)
	}
	defer func() {
		if e, ok := recover().(*pool.SendPanic); ok {
			fmt.Println(e.Request.ID, e.Value)
		}
	}()
	fmt.Println(p.Run(context.Background()))
	// Output: 17 no such table
}

// Prices are worth less with each second, so the freshest request goes first. One that is three
// seconds old goes before it if its priority is two steps higher.
func ExampleRequest_decay() {
	p, err := pool.New(pool.Config{
		Keys:     []pool.Key{{Name: "mine", Limiter: limit.MustRolling(20, time.Second)}},
		Queue:    pool.QueueConfig{Decay: 2 * time.Second},
		InFlight: 1,
		Send: func(_ context.Context, a pool.Attempt) pool.Answer {
			fmt.Println(a.Request.ID)
			return pool.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	old := p.Now().Add(-3 * time.Second)
	for _, r := range []pool.Request{
		{ID: "stale", Created: old}, {ID: "fresh"}, {ID: "important", Created: old, Priority: 2},
	} {
		if err := p.TrySubmit(r); err != nil {
			fmt.Println(err)
		}
	}
	p.Close()
	fmt.Println(p.Run(context.Background()))
	// Output:
	// important
	// fresh
	// stale
	// <nil>
}
