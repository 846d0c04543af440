package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
)

// node is the limits of one partition, and its server's statements about them. The Group guards all
// but the atomic fields, provider and leaves.
type node struct {
	t        *Transport
	is       atomic.Pointer[Partition] // see in
	stack    *stack.Stack
	limit    *paceline.Limit
	taught   bool                             // the limiter learns from the server's statements
	leaves   int                              // guarded by the Transport's lock
	follows  bool                             // requests of an earlier process may be in flight
	shut     atomic.Bool                      // no request may wait in line, until look reports otherwise
	provider provider.Dialect                 // of a host in the table; otherwise nil
	dialect  atomic.Pointer[provider.Dialect] // of any other host: the format of its answers
	known    atomic.Pointer[known]            // the provider of the host; nil: unknown

	pauses   int       // how many pauses have begun
	retreat  mono.Time // end of the latest logged retreat from an opt-in of the limit
	misfit   mono.Time // end of the latest logged misfit of the limit
	refusal  provider.Refusal
	refusals refusals // guarded by the Transport's lock
	out      bool     // all keys of the account are out
	denies   bool     // the server denies requests with every key
	said     []provider.Policy
	takes    takes
	least    float64     // the usage of a request that costs nothing in the counted units
	money    atomic.Bool // it counts money
	told     int         // what the log has of its money: 1: most is used, 2: all

	// Of a host:
	rooms  map[string]*room // by model; guarded by the Transport's lock
	health *stack.Breaker
	way    *paceline.Limit // to the host
	down   atomic.Bool     // the host was down at the latest look
	heads  atomic.Bool     // it is down, and a HEAD may show that it is back: see headFirst
	mute   atomic.Bool     // a HEAD got no answer in this outage
	stated atomic.Int64    // which limits the latest answer stated, as one number
	cause  error           // of the outage

	// Of a host, guarded by the Transport's lock:
	row    keyring.Row
	denial string // the answer by which row began its latest pause
}

// in returns the partition, which is not to be changed. Another name of a key is another partition.
func (n *node) in() *Partition { return n.is.Load() }

// newNode makes the node of a partition that has counted nothing in this process.
func (t *Transport) newNode(p Partition, own limit.Limiter) (*node, error) {
	if err := t.fills(p, own); err != nil {
		return nil, err
	}
	t.recall(p, own)
	n, err := t.bareNode(p, own)
	if err != nil {
		return nil, err
	}
	n.follows = true
	return n, n.join()
}

// bareNode makes a node that is not in the Group yet.
func (t *Transport) bareNode(p Partition, own limit.Limiter) (*node, error) {
	c := stack.Config{Limiter: own, Beside: t.config.Limiter, Pause: t.pause(), MaxPause: t.config.MaxPause,
		Rand: t.jitter}
	if p.Scope != ScopeClient {
		c.Slow, c.SlowAgain, c.Use, c.Ramp = t.slowAt(p), t.config.MaxWait != nil, t.config.Use, t.config.Ramp
	}
	if a := t.order(p); a != nil {
		if c.Ordered = true; !a.alone {
			c.Gap = a.gap
		}
	}
	g, err := stack.New(c)
	if err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	n := &node{t: t, stack: g, taught: ability.Learns(own)}
	n.is.Store(&p)
	n.weigh(own)
	if p.Scope != provider.IP {
		return n, nil
	}
	if d, ok := t.reads(p); ok {
		n.provider = d
	}
	n.known.Store(t.runs(p))
	return n, nil
}

// join puts a node into the Group, unless it is there.
func (n *node) join() (err error) {
	if n.limit != nil {
		return nil
	}
	t, p := n.t, *n.in()
	if err := limit.Bind(n.stack, t.group); err != nil {
		return fmt.Errorf("transport: %v: %w", p, err)
	}
	n.limit = t.group.Limit(n.looks(paceline.LimitConfig{Limiter: n.stack, Fair: t.config.Client != nil, Use: n.uses,
		Logger: t.waits(n), Own: p.Scope == ScopeClient}))
	if n.follows {
		n.follow()
	}
	if p.Scope != provider.IP {
		return nil
	}
	if n.health, err = stack.NewBreaker(stack.BreakerConfig{Rand: t.jitter, Backoff: t.probes(),
		Patience: n.settings().MaxOutage}); err != nil {
		return fmt.Errorf("transport: %w", err)
	}
	n.way = t.group.Limit(paceline.LimitConfig{Limiter: n.health, Fair: t.config.Client != nil,
		Logger: t.waits(n), Paused: n.downs})
	return nil
}

// fills returns an error if Config.Fill is set and the limiter does not let requests pass each
// other.
func (t *Transport) fills(p Partition, own limit.Limiter) error {
	if t.config.Fill > 0 && own != nil && !limit.Foresees(own) {
		return fmt.Errorf("transport: Fill %d: the limiter of %v, %T, does not foresee", t.config.Fill, p, own)
	}
	return nil
}

// settings returns the present configuration: With may have changed it since the node was made.
func (n *node) settings() *Config { return &n.t.latest.Load().config }

// pause returns how long a partition stays away after refusals without a stated time. It is never
// longer than the longest wait.
func (t *Transport) pause() backoff.Policy {
	if most := t.config.MaxRetryAfter; most > 0 {
		return t.config.Backoff.AtMost(most)
	}
	return t.config.Backoff
}

// waits returns the log for the waits of a partition; nil: none.
func (t *Transport) waits(n *node) *slog.Logger {
	if t.config.Logger == nil {
		return nil
	}
	return slog.New(&named{t.config.Logger.Handler(), n})
}

// named is a slog.Handler whose lines name a partition. Logger.With would write the name before it
// is needed, at a kilobyte for each partition.
type named struct {
	slog.Handler
	of *node
}

func (h *named) whole() slog.Handler {
	return h.Handler.WithAttrs([]slog.Attr{slog.Any("partition", *h.of.in())})
}

// Handle implements slog.Handler.
func (h *named) Handle(ctx context.Context, r slog.Record) error { return h.whole().Handle(ctx, r) }

// WithAttrs implements slog.Handler.
func (h *named) WithAttrs(attrs []slog.Attr) slog.Handler { return h.whole().WithAttrs(attrs) }

// WithGroup implements slog.Handler.
func (h *named) WithGroup(name string) slog.Handler { return h.whole().WithGroup(name) }

// refused records a refusal of the partition. The pause that it begins may be longer than any wait.
func (n *node) refused(said *provider.Observation, asked time.Duration) (pause time.Duration) {
	why := said.Refusal
	began := false
	var retreats []limit.Retreat
	var misfits []limit.Misfit
	n.t.group.Update(func(now mono.Time) {
		for _, r := range limit.Retreats(n.stack, now) {
			if r.Until > n.retreat {
				n.retreat, retreats = r.Until, append(retreats, r)
			}
		}
		for _, m := range n.stack.Misfits() {
			if m.Until > n.misfit {
				n.misfit, misfits = m.Until, append(misfits, m)
			}
		}
		p, on := n.stack.Paused(now)
		if began = n.stack.Pauses() > n.pauses; began {
			n.t.pauses.Add(int64(n.stack.Pauses() - n.pauses))
			n.pauses = n.stack.Pauses()
			if said.Surged {
				n.stack.Surged(now)
			}
		}
		if why == provider.Banned && on {
			n.stack.Banned(now)
		}
		if on {
			n.refusal, pause = why, p.Next.Sub(now)
			n.shutIf(pause > n.settings().MaxRetryAfter)
		}
	}, n.limit)
	if began {
		n.t.notePaused(*n.in(), pause, asked > 0)
		n.t.log.Info("paused", "partition", *n.in(), "for", pause, "refusal", string(why), "told", asked > 0)
	}
	for _, r := range retreats {
		n.t.log.Warn("an opt-in of the limit is wrong, and not relied on for a while", "partition", *n.in(), "limit",
			r.Limit, "option", r.Option, "until", n.t.group.Time(r.Until))
	}
	for _, m := range misfits {
		n.t.noteMisfit(*n.in(), &m)
		n.t.log.Warn("the limit is wrong, or others use it, too", "partition", *n.in(), "limit", m.Rule.String(),
			"fits", m.Fits, "until", n.t.group.Time(m.Until))
	}
	return pause
}

func (n *node) shutIf(yes bool) {
	yes = yes || n.out || n.denies
	if yes {
		n.stack.Close()
	} else {
		n.stack.Open()
	}
	n.shut.Store(yes)
}

// look returns why no request may wait in line. If the reason is over, it opens the line again.
func (n *node) look() (err *Error) {
	if err = n.deniedUntil(); err != nil {
		return err
	}
	out := false
	n.t.group.Update(func(now mono.Time) {
		out, n.denies = n.out, false
		if p, on := n.stack.Paused(now); on && p.Next.Sub(now) > n.settings().MaxRetryAfter {
			err = &Error{Partition: *n.in(), Ready: n.t.group.Time(p.Until), Refusal: n.refusal, Err: ErrPaused}
			return
		}
		if s, over := n.outage(now); over && (s.Probing || s.Next > now) {
			err = &Error{Partition: *n.in(), Ready: n.t.group.Time(s.Next),
				Err: fmt.Errorf("%w for %v: %w", ErrOutage, now.Sub(s.Since).Round(time.Millisecond), n.cause)}
			return
		}
		n.shutIf(false)
	}, n.limit)
	if out {
		err = &Error{Partition: Partition{Scope: provider.IP, Host: n.in().Host}, Err: n.t.noKeys()}
	}
	return err
}

// outage reports whether the host has been down for longer than any wait.
func (n *node) outage(now mono.Time) (s stack.BreakerState, over bool) {
	if n.health == nil {
		return s, false
	}
	s = n.health.State(now)
	at, down := s.Over(n.settings().MaxOutage)
	return s, down && at <= now
}

// failed records that an attempt failed on the way to the host, or had an error of the server's
// own.
func (n *node) failed(cause error) {
	var s stack.BreakerState
	news := false
	n.t.group.Update(func(now mono.Time) {
		n.health.SetPatience(n.settings().MaxOutage)
		s, news = n.health.News(now)
		if s = n.health.State(now); s.Down {
			n.cause = openly(cause)
			n.down.Store(true)
			n.heads.Store(s.Kind != limit.Broken && s.Kind != limit.Silent)
		}
		if _, over := n.outage(now); over {
			n.shutIf(true)
		}
	}, n.limit)
	if news && s.Down {
		said := fmt.Sprintf("nothing arrives at the host (%v)", s.Kind)
		if s.Kind == limit.Away {
			said = fmt.Sprintf("passed over while other targets are open (%v)", openly(cause))
		}
		n.t.note(observe.EventDown, *n.in(), said)
		n.t.log.Warn("host is down", "partition", *n.in(), "kind", s.Kind.String(), "err", openly(cause))
	}
}

// served records that the host answers again after an outage.
func (n *node) served() {
	var s stack.BreakerState
	news := false
	n.t.group.Update(func(now mono.Time) {
		_, news = n.health.News(now)
		if s = n.health.State(now); !s.Down {
			n.cause = nil
			n.down.Store(false)
			n.heads.Store(false)
			n.mute.Store(false)
		}
	})
	if news && !s.Down {
		n.t.note(observe.EventBack, *n.in(), "the host is back after "+text.Span(s.Lasted))
		n.t.log.Info("host is back", "partition", *n.in(), "after", s.Lasted)
	}
}

// hear records an answer's statements about the limits themselves, and the sizes of the buckets. o
// is the rest of the answer.
func (n *node) hear(said []provider.Policy, capacity limit.Cost, o *limit.Outcome) {
	n.t.group.Update(func(now mono.Time) {
		if slices.Equal(n.said, said) {
			return
		}
		n.said = said
		n.stack.Contain(now, capacity, o)
		if own := n.stack.Own(); own != nil && n.settings().Adopt != nil {
			n.settings().Adopt(now, *n.in(), own, said)
			n.weigh(own)
		}
	}, n.limit)
}

// most returns the first unit of cost that the configured limit never allows, and the most of it
// that ever fits.
func (n *node) most(cost limit.Cost) (unit limit.Unit, most int64, found bool) {
	own := n.stack.Own()
	if own == nil {
		return 0, 0, false
	}
	n.t.group.Update(func(now mono.Time) {
		never := func(u limit.Unit, size int64) bool {
			var c limit.Cost
			c[u] = size
			return own.Ready(now, c) == limit.Never
		}
		for u, size := range cost {
			if u := limit.Unit(u); size > 0 && never(u, size) {
				low, high := int64(0), size // low fits, high does not
				for high-low > 1 {
					if middle := low + (high-low)/2; never(u, middle) {
						high = middle
					} else {
						low = middle
					}
				}
				unit, most, found = u, low, true
				return
			}
		}
	})
	return unit, most, found
}

// refuse makes the error for a node that did not let a request go.
func (n *node) refuse(err error, cost limit.Cost) *Error {
	e := &Error{Partition: *n.in(), Err: err, failed: time.Now()}
	if w, ok := errors.AsType[*paceline.WaitError](err); ok {
		e.cause, e.rule = n.stands(w.Limit), w.Rule
		e.Ready, e.Ahead, e.Name, e.Unit, e.waited = w.Ready, w.Ahead, w.Rule.Name, w.Rule.Unit, w.Waited
		if w.Reason == paceline.ErrNever {
			if u, most, ok := n.most(cost); ok {
				e.Unit, e.Size, e.Limit = u, cost[u], most
			}
		}
	}
	return e
}

// stands says in words what stood in the way, if that is no limit: the host, or the store of a limit.
func (n *node) stands(l *paceline.Limit) (cause string) {
	if l == nil || l != n.way {
		limit.Ask(n.stack.Own(), func(stored interface{ Err() error }) {
			if err := stored.Err(); err != nil {
				cause = "the store of its limit: " + strings.TrimPrefix(secret.SanitizeURLs(err.Error()), "share: ")
			}
		})
		return cause
	}
	n.t.group.Update(func(now mono.Time) {
		s := n.health.State(now)
		if !s.Down {
			return
		}
		cause = fmt.Sprintf("the host has been down for %s", text.Span(now.Sub(s.Since).Round(time.Millisecond)))
		if n.cause != nil {
			cause += fmt.Sprintf(" (%v)", n.cause)
		}
		if next := s.Next.Sub(now); next > 0 {
			cause += ", and is asked again in " + text.Span(next.Round(time.Millisecond))
		}
	})
	return cause
}

// update is Group.Update for changes at nodes.
func update(j *paceline.Group, f func(now mono.Time), changed []*node, limits ...*paceline.Limit) {
	for _, n := range changed {
		limits = append(limits, n.limit)
	}
	j.Update(f, limits...)
}

// recall makes a limiter count the requests of earlier processes.
func (t *Transport) recall(p Partition, own limit.Limiter) {
	keeps := t.config.Recorder != nil
	full := !keeps && t.config.StartFull > 0 && p.Scope != ScopeClient
	if own == nil || ability.Lapses(own) || !keeps && !full { // a store knows what was sent
		return
	}
	zero := t.group.Time(0)
	limit.SetEpoch(own, zero)
	if full {
		limit.ReplayFull(own, mono.Of(zero, t.began), t.config.StartFull)
		return
	}
	if r, ok := t.config.Recorder.(Lasting); ok {
		r.KeepFor(2 * limit.Span(own)) // a bucket needs it twice: see limit.Replay
	}
	all, since := t.config.Recorder.Earlier(p, zero)
	limit.Replay(own, mono.Of(zero, time.Now()), since, all)
}

// follow makes a new node count the requests of an earlier process that are still in flight.
func (n *node) follow() {
	n.follows = false
	u, ok := n.t.config.Recorder.(Underway)
	if !ok {
		return
	}
	u.Underway(*n.in(), func(cost limit.Cost) func(o limit.Outcome) {
		s := &limit.Sent{Cost: cost}
		n.t.group.Update(func(now mono.Time) {
			s.At, s.Number = now, n.t.group.Number()
			n.stack.Admit(s)
		}, n.limit)
		return func(o limit.Outcome) {
			n.t.group.Update(func(now mono.Time) { n.stack.Settle(now, s, &o) }, n.limit)
		}
	})
}
