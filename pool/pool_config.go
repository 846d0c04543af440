package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/dispatch"
	"github.com/paceline-go/paceline/pool/queue"
)

// Config describes a Pool. Keys and Send have no default. Send is called by as many goroutines at once
// as attempts are in flight; Ended, EndedAll, Outage and Learned by that of Run alone, one call at a
// time.
type Config struct {
	// Keys are the API keys, at least one. Their limiters belong to the Pool from now on.
	Keys []Key
	// Send sends one attempt and says how it ended. It is called in a goroutine that has no other
	// attempt meanwhile, and must return; its context ends when Run's does, or after Timeout. What it
	// returns for a context that ended should be limit.Unknown, or limit.Unsent if the request had not
	// been written. Outcome.Link says what the attempt has shown of the way to its host; the Answer of
	// a classify.Verdict has it. If Send panics the attempt ends as limit.Unknown, nothing more is sent,
	// and Run panics with the same value, a *SendPanic, once all others have returned.
	Send func(context.Context, Attempt) Answer
	// Timeout bounds one attempt. If zero, only the context of Run does.
	Timeout time.Duration
	// InFlight is the most attempts in flight over all keys. If zero, what the keys allow.
	InFlight int
	// Queue bounds and orders what waits. If requests go to several servers, its Host should tell them
	// apart: a host where nothing arrives is then tried by one request at a time, and requests to other
	// hosts are not held up.
	Queue QueueConfig
	// MaxOutage is how long nothing may arrive at a host before Run gives up, if there is nothing else to
	// do: see ErrOutage. If zero, for ever; negative: as soon as it is known.
	MaxOutage time.Duration
	// Backoff is the delay before the next attempt of a request that failed.
	Backoff Backoff
	// Ended, if not nil, gets every request that reached an end state, but for those that were cancelled
	// or dropped through Update: one call at a time, in order, on the goroutine of Run, with no lock
	// held. Run returns after the last call.
	//
	// An Ended that is slow holds sending and Submit back and fills no memory: once it is a thousand ends
	// behind nothing more is sent, and until it has caught up no more requests are taken than it has
	// finished with. It must not wait in Submit itself, which would wait for it, but may TrySubmit.
	Ended func(Ended)
	// EndedAll, if not nil, takes the place of Ended. It gets up to 64 requests at once, in order, so
	// that they can be written down together. The slice is the Pool's, and must not be kept.
	EndedAll func([]Ended)
	// Outage, if not nil, gets every host that goes down and that is back. It is called as Ended is, and
	// before the requests that ended at that.
	Outage func(HostInfo)
	// Learned, if not nil, gets every key that may have learned more of a limit that is wrong, and all
	// that the key knows, to be kept for limit.Fitted.Recall after a restart. It is called as Ended is,
	// and before it.
	Learned func(key int, all []limit.Lesson)
	// Log gets a line per answer and expiry, at debug level, and one when a host goes down and when it is
	// back: a warning, if Outage is nil. If Log is nil, nothing is logged.
	Log *slog.Logger
	// Epoch is instant 0 of the Pool's scale, for limiters with a history (Admit at mono.Of(Epoch, t)).
	// If zero, the time of New.
	Epoch time.Time
	// Rand jitters the backoff. If nil, it is seeded by the runtime.
	Rand *rand.Rand
}

// New checks the configuration and returns a Pool that takes requests; Run sends them.
func New(c Config) (*Pool, error) {
	if c.Send == nil {
		return nil, errors.New("paceline: Pool: Send is nil")
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("paceline: Pool: Timeout %v is negative", c.Timeout)
	}
	if c.InFlight < 0 {
		return nil, fmt.Errorf("paceline: Pool: InFlight %d is negative", c.InFlight)
	}
	now := time.Now()
	if c.Epoch.IsZero() {
		c.Epoch = now
	}
	c.Epoch = now.Add(c.Epoch.Sub(now)) // a wall time alone would make the Pool follow the steps of the wall clock
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	q, err := queue.New(c.Queue)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		config: c, epoch: c.Epoch, began: now, log: c.Log, queue: q, wake: limit.Never,
		finished: make(chan struct{}), news: make(chan struct{}, 1),
	}
	p.dispatcher, err = dispatch.New(dispatch.Config{
		Queue: q, Keys: c.Keys, Epoch: c.Epoch, Backoff: c.Backoff, Rand: c.Rand,
		Ended: p.keepEnded,
		Outage: func(h HostInfo) {
			p.outages = append(p.outages, h)
			p.look.outage(&h)
		},
		Learned: func(key int) {
			if c.Learned != nil && !slices.Contains(p.learned, key) {
				p.learned = append(p.learned, key)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	for i := range c.Keys {
		limit.Supply(c.Keys[i].Limiter, p.again, p.waiting, p.noteOf(c.Keys[i].Name))
		p.supply(c.Keys[i].Shared)
	}
	return p, nil
}
