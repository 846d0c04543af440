package share

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// Config says which limit is shared, and how. Store, Name and Own have no default.
type Config struct {
	Store Store
	// Name is the limit's name in the store: "openai:gpt-4o". All who give it must give the same limit. 1 to 200 bytes of UTF-8, none of them 0.
	Name string
	// Own makes the limiter, always configured alike. Instants of its scale are nanoseconds since 1970, for the Phase of a Calendar. It is
	// called for each turn. It should have a Grain (of Window/2000, say), where Limit is large: what is remembered travels.
	Own func() limit.Keeper
	// Weight is this process' share where there is not enough for all: of weights 1 and 3 the second gets three quarters. If zero, 1; between
	// 0.001 and 1,000.
	Weight float64
	// Least is the part of the whole that this process has at least where there is not enough for all, whatever the weights: 0.2 of 500 a
	// minute are 100. What it does not want is the others'. 0 to 0.95; if those who want theirs come to more than 0.95 together, each has so
	// much less.
	Least float64
	// Poll is the time between turns while there is demand. If zero, 250 ms. Shorter uses a little more of short windows, for more turns.
	Poll time.Duration
	// Who is this process for people. If empty, the host's name and the number of the process.
	Who string
	// Fallback is what the process does while it cannot reach the store. If zero, Wait.
	Fallback Fallback
	// Logger is told, at level warn, when the store cannot be reached or refuses, when Split begins and ends, and when nothing is granted for a
	// while as the store has lost what it kept; and at level info when all is well again. If nil, nobody is. The driver's Events have the same.
	Logger *slog.Logger
}

// Member is one process' part of a shared limit: a limit.Limiter for one Gate, Pool or Transport. What it may send it fetches by itself, in
// turns, while there is demand; it has one goroutine then, and none while there is nothing to fetch or to tell. Where Ready says AfterSettle, it
// waits for what is to be fetched, and the driver is told when that is there.
//
// It reads its own clock: now is only what instants are told relative to. Safe for concurrent use, by one driver at a time.
type Member struct {
	config Config
	clock  *clock
	nudge  chan struct{}
	done   chan struct{} // closed by Close

	mu      sync.Mutex
	node    *node.Node
	planned mono.Time  // the next turn, as far as the goroutine knows
	again   func()     // has the driver ask again
	waiting func() int // how many wait there; nil: nobody says
	closing bool
	ended   chan struct{} // closed when the goroutine has ended; nil: there is none
	note    func(kind, text string)
	news    news
	said    struct{ at, as mono.Time } // the latest instant that was said: by the node's clock, and by the driver's
}

// Driver is a Gate, a Pool or a Group's part: its Update has f called under its lock, and asks the limiter again.
type Driver interface {
	Update(f func(now mono.Time))
}

// Limiter is New with a store, a name and a limiter alone.
func Limiter(store Store, name string, own func() limit.Keeper) (*Member, error) {
	return New(Config{Store: store, Name: name, Own: own})
}

// New returns a Member that holds nothing, and asks the store for nothing before there is demand. The error names the field that makes no
// sense, or what in the limiter cannot be shared.
func New(c Config) (*Member, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("share: the Store is nil")
	case CheckName(c.Name) != nil:
		return nil, fmt.Errorf("share: the Name %w", CheckName(c.Name))
	case c.Own == nil:
		return nil, errors.New("share: Own is nil")
	case c.Weight != 0 && CheckWeight(c.Weight) != nil:
		return nil, fmt.Errorf("share: Weight %w", CheckWeight(c.Weight))
	case CheckLeast(c.Least) != nil:
		return nil, fmt.Errorf("share: Least %w", CheckLeast(c.Least))
	case c.Poll < 0 || c.Poll > time.Second || c.Poll > 0 && c.Poll < time.Millisecond:
		return nil, fmt.Errorf("share: Poll %v is not between 1ms and 1s", c.Poll)
	}
	own := c.Own()
	if own == nil {
		return nil, errors.New("share: Own returns nil")
	}
	if err := Shareable(own); err != nil {
		return nil, err
	}
	if c.Who == "" {
		host, _ := os.Hostname()
		c.Who = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	m := &Member{config: c, clock: newClock(), nudge: make(chan struct{}, 1), done: make(chan struct{}), planned: limit.Never}
	m.node = node.New(node.Config{New: c.Own, ID: rand.Text(), Name: c.Who, Weight: c.Weight, Least: c.Least, Poll: c.Poll, Split: c.Fallback == Split})
	return m, nil
}

// CheckName says why a text is no Name, such as one that some database would refuse; nil: it is one.
func CheckName(name string) error {
	switch {
	case name == "" || len(name) > 200:
		return fmt.Errorf("%q is not between 1 and 200 bytes long", name)
	case strings.ToValidUTF8(name, "") != name || strings.Contains(name, "\x00"):
		return fmt.Errorf("%q is no UTF-8, or has a zero byte", name)
	}
	return nil
}

// CheckWeight says why a number is no Weight; nil: it is one.
func CheckWeight(weight float64) error { return between(weight, 0.001, 1000) }

// CheckLeast says why a number is no Least; nil: it is one.
func CheckLeast(least float64) error { return between(least, 0, 0.95) }

func between(n, least, most float64) error {
	if n >= least && n <= most {
		return nil
	}
	return fmt.Errorf("%v is not between %v and %v", n, least, most)
}

// Shareable says what in a limiter cannot be shared; nil: all of it can.
func Shareable(l limit.Limiter) error {
	if err := limit.Keeps(l); err != nil {
		return fmt.Errorf("share: %w", err)
	}
	for _, part := range limit.Parts(l) {
		switch part := part.(type) {
		case *limit.Rolling, *limit.Calendar, *limit.Weighted, *limit.Cooldown:
		case *limit.Bucket:
			if part.Alone() {
				return errors.New("share: a Bucket with Alone cannot be shared")
			}
		default:
			return fmt.Errorf("share: a %T cannot be shared", part)
		}
	}
	return nil
}

// Attach has d told whenever there may be something new to send. Call it once, before the first request, of a driver that does not call Supply.
func (m *Member) Attach(d Driver) {
	var waiting func() int
	if s, ok := d.(interface{ Stats() observe.Stats }); ok {
		waiting = func() int { return s.Stats().Waiting }
	}
	m.Supply(func() { d.Update(func(mono.Time) {}) }, waiting, nil)
}

// Supply implements limit.Supplied: Gate, Group, Pool and transport call it.
func (m *Member) Supply(again func(), waiting func() int, note func(kind, text string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.again, m.waiting, m.note = again, waiting, note
}

// Ready implements limit.Limiter. That there is demand is noted: it is what is fetched for. While nothing is granted to anybody it is the
// instant at which that ends, as far as is known.
func (m *Member) Ready(now mono.Time, cost limit.Cost) mono.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.clock.now()
	at := m.node.Ready(p, cost)
	switch {
	case at <= p:
		return now
	case at == limit.Never:
		return at
	}
	m.node.Asked(cost)
	m.replanLocked()
	if at == limit.AfterSettle {
		if at = m.news.until; at <= p {
			return limit.AfterSettle
		}
	}
	return m.instantLocked(now, at, p)
}

// instantLocked is what an instant of the node's clock, which is at p, is by the driver's. The same instant stays the same, although between
// the two readings of clocks more or less time passes: else a stack could not tell by whom it is named.
func (m *Member) instantLocked(now, at, p mono.Time) mono.Time {
	as := now.Add(at.Sub(p))
	if d := as.Sub(m.said.as); at != m.said.at || d < -time.Millisecond || d > time.Millisecond {
		m.said.at, m.said.as = at, as
	}
	return max(now, m.said.as)
}

// Join takes a turn at the store now, without demand, for who would rather know at the start what is wrong: the store's error, or that another
// limit is kept under the Name. If none is, this one is from now on. Call it before the first request; afterwards, and while another call lasts, it only
// says what Err does.
func (m *Member) Join(ctx context.Context) error {
	m.mu.Lock()
	if m.closing || m.ended != nil {
		m.mu.Unlock()
		return m.Err()
	}
	ended := make(chan struct{}) // as if its goroutine were there: turns are taken one at a time
	m.ended, m.planned = ended, mono.Min
	m.mu.Unlock()
	ctx, cancel := m.untilClosed(ctx)
	err := m.turn(ctx)
	cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended, m.planned = nil, limit.Never
	close(ended)
	m.replanLocked()
	if errors.Is(err, node.ErrWait) { // it is the limit that others use
		return nil
	}
	return err
}

// Admit implements limit.Limiter.
func (m *Member) Admit(_ mono.Time, cost limit.Cost) limit.Lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.node.Admit(m.clock.now(), cost)
	m.replanLocked()
	return l
}

// Settle implements limit.Limiter.
func (m *Member) Settle(_ mono.Time, l limit.Lease, o limit.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node.Settle(m.clock.now(), l, o)
	m.replanLocked()
}

// Fresh implements limit.Fresher: whether a request that was admitted may still be written. Ask right before; if not, settle it as Unsent.
func (m *Member) Fresh(l limit.Lease) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node.Fresh(m.clock.now(), l)
}

// Explain implements limit.Explainer.
func (m *Member) Explain(now mono.Time, cost limit.Cost) (mono.Time, limit.Bound) {
	at := m.Ready(now, cost)
	m.mu.Lock()
	defer m.mu.Unlock()
	_, b := limit.Explain(m.node.Limiter(), mono.Min, cost)
	b.Name = m.config.Name
	return at, b
}

// AppendUsage implements limit.Gauged: the whole limit as of the last turn, under the Name (nothing is known of it where this process has not
// used it for long), and then what of it this process holds, under the Name and ", here": what it was granted and has not sent, and what is in
// flight (Open).
func (m *Member) AppendUsage(to []limit.Usage, _ mono.Time) []limit.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := len(to)
	to = m.node.AppendUsage(to, m.clock.now())
	half := (len(to) - first) / 2
	for i := range half {
		to[first+i].Limit, to[first+half+i].Limit = m.config.Name, m.config.Name+", here"
	}
	return to
}

// SetLimit changes the limit for all who share it, by a turn that is taken soon: f changes the limiter that it is given, by SetLimit or
// SetWindow of what Own returns. It may be called several times. Until the store forgets, that is the limit; those who come are configured
// as before, and paceline share names it as it is configured. The page and the usage have it as it is.
func (m *Member) SetLimit(f func(l limit.Limiter, now mono.Time) error) error {
	if err := f(m.config.Own(), 0); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node.Alter(f)
	m.replanLocked()
	return nil
}

// Err returns why nothing is fetched, if that is so: the last turn's error; after one that was put, why nothing is granted for a while, as
// where the store has lost or damaged what it kept; and otherwise nil.
func (m *Member) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.news.err != nil {
		return m.news.err
	}
	return m.node.View().Quiet.Why
}

// Close gives back at once what was granted and not sent, tells what is to be told, and ends. Nothing is ready afterwards. What is in
// flight and not settled counts for others until it is given up; so settle first. The error is the store's.
func (m *Member) Close(ctx context.Context) error {
	m.mu.Lock()
	if m.closing {
		m.mu.Unlock()
		return nil
	}
	m.closing = true
	ended := m.ended
	m.mu.Unlock()
	close(m.done)
	if ended != nil {
		<-ended
	}
	m.mu.Lock()
	m.node.Close()
	holds := m.node.In()
	m.mu.Unlock()
	if !holds {
		return nil
	}
	err := m.turn(ctx)
	for range closingTurns {
		m.mu.Lock()
		more := err == nil && m.node.HeldBack()
		m.mu.Unlock()
		if !more {
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(closingPause):
			err = m.turn(ctx)
		}
	}
	return err
}

// A Member that has just come tells nothing before others have seen it: so closing it may take a few turns, between which they have theirs.
const (
	closingTurns = 4
	closingPause = 250 * time.Millisecond
)

// replanLocked wakes the goroutine if it would sleep too long.
func (m *Member) replanLocked() {
	if m.node.Next() >= m.planned || m.closing {
		return
	}
	m.planned = mono.Min
	if m.ended == nil {
		m.ended = make(chan struct{})
		go m.run(m.ended)
		return
	}
	select {
	case m.nudge <- struct{}{}:
	default:
	}
}

// run takes turns while there is something to take them for. Without a goroutine a Member that nobody has any more is forgotten.
func (m *Member) run(ended chan struct{}) {
	defer close(ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	ctx, cancel := m.untilClosed(context.Background())
	defer cancel()
	for {
		m.mu.Lock()
		next, p := m.node.Next(), m.clock.now()
		m.planned = next
		if next == limit.Never && !m.closing {
			m.ended = nil
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
		if next <= p {
			m.mu.Lock()
			m.planned = mono.Min
			m.mu.Unlock()
			m.turn(ctx)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		timer.Reset(next.Sub(p))
		select {
		case <-m.nudge:
		case <-timer.C:
		case <-m.done:
			return
		}
	}
}

// untilClosed returns a context of turns that do not hold up Close.
func (m *Member) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-m.done:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, cancel
}

// turn takes one turn at the store, and has the driver ask again: there may be something new to send.
func (m *Member) turn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, turnMost)
	defer cancel()
	if count := m.supplied(); count != nil {
		waiting := count()
		m.mu.Lock()
		m.node.Waiting(waiting)
		m.mu.Unlock()
	}
	m.mu.Lock()
	began := m.clock.now()
	m.node.Begin(began)
	m.mu.Unlock()
	err := m.config.Store.Turn(ctx, m.config.Name, func(r Reading) ([]byte, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		blob, err := m.node.Read(began, m.clock.now(), r)
		began = m.clock.now() // of the next reading, if there is one
		return blob, err
	})
	m.mu.Lock()
	p, tell := m.clock.now(), func() {}
	m.node.End(p, err)
	if !m.closing {
		m.news.turned(p, m.node, m.config.Fallback, err)
		tell = m.news.tell(&m.config, m.note)
	}
	again := m.again
	m.mu.Unlock()
	tell()
	if again != nil && (err == nil || m.config.Fallback == Split) { // it may go by its part
		again()
	}
	return err
}

// turnMost is how long a turn may take before it is given up: grants end then.
const turnMost = 2 * time.Second

func (m *Member) supplied() func() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting
}
