package pool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
)

// Config describes a Pool. Keys and Send have no default. Several goroutines may call Send at once,
// one per attempt in flight. Only the goroutine of Run calls Ended, EndedAll, Outage, Slow and
// Learned, one call at a time.
type Config struct {
	// Keys are the API keys, at least one. Their limiters belong to the Pool from now on.
	Keys []Key
	// Send sends one attempt and returns its end. It runs in a goroutine without another attempt,
	// and must return. Its context ends with Run's, or after Timeout. After that end it should
	// return limit.Unknown, or limit.Unsent if the request had not been written. Outcome.Link is
	// the attempt's evidence about the way to its host; the Answer of a classify.Verdict has it.
	//
	// If Send panics, the attempt ends as limit.Unknown, and no further request is sent. Run then
	// panics with a *SendPanic of the same value, once all other attempts have returned.
	Send func(context.Context, Attempt) Answer
	// Timeout bounds one attempt. If zero, only the context of Run does.
	Timeout time.Duration
	// InFlight is the most attempts in flight over all keys. If zero, as many as the keys allow.
	InFlight int
	// Queue bounds and orders the waiting requests. If requests go to several servers, its Host
	// should distinguish them. A host that no request reaches is then probed by one request at a
	// time, and requests to other hosts go on.
	Queue QueueConfig
	// AnswerTime is how long an answer takes, from the decision to send to the return of Send. A
	// request whose deadline is no later than that is not sent. It ends as expired, so that others
	// are answered in time. If zero, each host's is measured: the time that 95 % of its latest 64
	// answers did not exceed. Until an answer was measured nothing is kept back. If negative,
	// nothing ever is.
	//
	// If answers take longer than all of a request's TTL, one such request at a time still goes to
	// its host: see Slow. A request that is answered after its deadline is done, and Ended.Late.
	AnswerTime time.Duration
	// MaxOutage is how long a host may be unreachable before Run gives up, if there is no other
	// work: see ErrOutage. If zero, for ever; if negative, Run gives up as soon as the outage is
	// known.
	MaxOutage time.Duration
	// Backoff is the delay before the next attempt of a request that failed.
	Backoff Backoff
	// Ended, if not nil, gets every request that reached an end state, except those that Update
	// cancelled or dropped. It gets one request at a time, in order, on the goroutine of Run, with
	// no lock held. Run returns after the last call.
	//
	// A slow Ended delays sending and Submit, and fills no memory. Once it is a thousand ends
	// behind, the Pool sends nothing more. Until it has caught up, the Pool takes only as many
	// requests as Ended has finished with. Ended must not wait in Submit itself, since Submit waits
	// for Ended; it may TrySubmit.
	Ended func(Ended)
	// EndedAll, if not nil, replaces Ended. It gets up to 64 requests at once, in order, so that
	// they can be written down together. The slice belongs to the Pool and must not be kept.
	EndedAll func([]Ended)
	// Outage, if not nil, gets every host that goes down or is back. It is called as Ended is,
	// before the requests that ended because of it.
	Outage func(HostInfo)
	// Slow, if not nil, gets a host whose answers take longer than whole, the TTL of a request.
	// HostInfo.AnswerTime says how long. It is called once for each slow time of a host, as Outage
	// is.
	Slow func(h HostInfo, whole time.Duration)
	// Learned, if not nil, gets every key that may have learned more about a wrong limit, with all
	// lessons of the key. They can be kept for limit.Fitted.Recall after a restart. It is called as
	// Ended is, and before it.
	Learned func(key int, all []limit.Lesson)
	// Log gets a line per answer and expiry, at debug level. It also gets one when a host goes down
	// and when it is back, or too slow: a warning, if Outage, or Slow, is nil. If Log is nil, there
	// is no log.
	Log *slog.Logger
	// Epoch is instant 0 of the Pool's scale, for limiters with a history (Admit at mono.Of(Epoch,
	// t)). If zero, the time of New.
	Epoch time.Time
	// Rand jitters the backoff. If nil, the runtime seeds it.
	Rand *rand.Rand
}

// New checks the configuration and returns a Pool that takes requests. Run sends them.
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
	c.Epoch = now.Add(c.Epoch.Sub(now)) // with a wall time alone, the Pool would follow the steps of the wall clock
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
		Queue: q, Keys: c.Keys, Epoch: c.Epoch, Backoff: c.Backoff, Rand: c.Rand, AnswerTime: c.AnswerTime,
		Ended: p.keepEnded,
		Slow: func(h HostInfo, whole time.Duration) {
			s := slowHost{h, whole}
			p.slow = append(p.slow, s)
			p.look.slow(&s)
		},
		Outage: func(h HostInfo) {
			p.outages = append(p.outages, h)
			p.look.outage(&h)
		},
		Learned: func(key int) {
			if c.Learned != nil && !slices.Contains(p.learned, key) {
				p.learned = append(p.learned, key)
			}
		},
		Made: p.supply,
	})
	if err != nil {
		return nil, err
	}
	for i := range c.Keys {
		k := &c.Keys[i]
		if err := p.takes(k.Name, k.Limiter, k.Shared); err != nil {
			return nil, err
		}
		p.supply(k.Name, "", k.Limiter, nil)
		for _, s := range k.Shared {
			p.supply(s.Name, "", s.Limiter, s)
		}
	}
	return p, nil
}

// takes makes the limiters of a key its own. The error says that one belongs to another owner.
func (p *Pool) takes(key string, own limit.Limiter, with []*Shared) error {
	if err := limit.Bind(own, p); err != nil {
		return fmt.Errorf("paceline: Pool: limit of %q: %w", key, err)
	}
	for _, s := range with {
		if err := limit.Bind(s.Limiter, p); err != nil {
			return fmt.Errorf("paceline: Pool: Shared %q: %w", s.Name, err)
		}
	}
	return nil
}

// supply lets a limiter call again when it has more room: that of a key, or of a Shared, or of one of their
// resources. The Dispatcher calls it for those that come later.
func (p *Pool) supply(owner, resource string, l limit.Limiter, s *Shared) {
	waits := func() int { return p.queue.Counts().Waiting }
	if resource != "" {
		owner += " (" + resource + ")"
		waits = func() int { return p.queue.WaitForResource(resource) }
	}
	if err := p.takes(owner, l, nil); err != nil {
		panic(err.Error()) // only of a resource: New and Share have taken all others
	}
	limit.SetEpoch(l, p.epoch)
	ability.Supply(l, p.again, func() (int, float64) { return p.waitingFor(s, waits), 0 }, p.noteOf(owner))
}
