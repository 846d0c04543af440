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

	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// Config describes a shared limit. Store, Name and Own have no default.
type Config struct {
	Store Store
	// Name is the limit's name in the store: "openai:gpt-4o". All processes with one Name must
	// configure the same limit. It has 1 to 200 bytes of UTF-8, none of them 0.
	Name string
	// Own makes the limiter, always with the same configuration. Instants of its scale are
	// nanoseconds since 1970, for the Phase of a Calendar; a Calendar with a Zone needs no Epoch.
	// Each turn calls it. Give it a Grain (of
	// Window/2000, say) where Limit is large, since its state travels.
	Own func() limit.Limiter
	// Weight is this process' share where there is not enough for all. Of weights 1 and 3 the
	// second gets three quarters. If zero, 1; between 0.001 and 1,000.
	Weight float64
	// Least is the least part of the whole for this process where there is not enough for all.
	// Weights do not lower it: 0.2 of 500 a minute are 100. Others may use the part that this
	// process does not want. From 0 to 0.95. If all wanted parts are more than 0.95 together, each
	// is proportionally less.
	Least float64
	// Poll is the time between turns while there is demand. If zero, 250 ms. A shorter Poll uses a
	// little more of short windows, and takes more turns.
	Poll time.Duration
	// Who names this process for people. If empty, the host's name and the number of the process.
	Who string
	// Fallback is the behaviour of the process while it cannot reach the store. If zero, Wait.
	Fallback Fallback
	// Logger records three events at level warn: the store cannot be reached or refuses; Split
	// begins or ends; nothing is granted for a while, since the store has lost its state. It
	// records at level info that all is well again. If nil, nothing is recorded. The driver's
	// Events have the same.
	Logger *slog.Logger
}

// Member is one process' part of a shared limit: a limit.Limiter for one Gate, Pool or Transport.
// While there is demand it fetches grants in turns. It has one goroutine then, and none while there
// is nothing to fetch or to report. Where Ready returns AfterSettle, the request waits for grants
// that are still to be fetched. The Member wakes the driver when they are there.
//
// A Member reads its own clock. Its now arguments are only the origin of the instants that it
// returns. Safe for concurrent use, by one driver at a time.
type Member struct {
	config Config
	clock  *boottime.Clock
	nudge  chan struct{}
	done   chan struct{} // closed by Close

	mu      sync.Mutex
	node    *node.Node
	planned mono.Time                    // the next turn, as far as the goroutine knows
	again   func()                       // makes the driver ask again
	waiting func() (n int, free float64) // how many requests wait in the driver; nil: unknown
	fails   bool                         // see FailRefused
	closing bool
	ended   chan struct{} // closed when the goroutine has ended; nil: there is none
	note    func(kind, text string)
	news    news
	said    struct{ at, as mono.Time } // the latest instant that Ready returned: by the node's clock, and by the driver's
}

// Driver is a Gate, a Pool or a Group's part. Its Update calls f under its lock, and asks the
// limiter again.
type Driver interface {
	Update(f func(now mono.Time))
}

// Limiter is New with only a store, a name and a limiter.
func Limiter(store Store, name string, own func() limit.Limiter) (*Member, error) {
	return New(Config{Store: store, Name: name, Own: own})
}

// New returns a Member that holds nothing. It asks the store for nothing before there is demand.
// The error names the field that makes no sense, or the part of the limiter that cannot be shared.
func New(c Config) (*Member, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("share: the Store is nil")
	case node.CheckName(c.Name) != nil:
		return nil, fmt.Errorf("share: the Name %w", node.CheckName(c.Name))
	case c.Own == nil:
		return nil, errors.New("share: Own is nil")
	case c.Weight != 0 && node.CheckWeight(c.Weight) != nil:
		return nil, fmt.Errorf("share: Weight %w", node.CheckWeight(c.Weight))
	case node.CheckLeast(c.Least) != nil:
		return nil, fmt.Errorf("share: Least %w", node.CheckLeast(c.Least))
	case c.Poll < 0 || c.Poll > time.Second || c.Poll > 0 && c.Poll < time.Millisecond:
		return nil, fmt.Errorf("share: Poll %v is not between 1ms and 1s", c.Poll)
	}
	own := c.Own()
	if own == nil {
		return nil, errors.New("share: Own returns nil")
	}
	c.Own = dated(c.Own)
	if err := Shareable(own); err != nil {
		return nil, err
	}
	if c.Who == "" {
		host, _ := os.Hostname()
		c.Who = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	m := &Member{config: c, clock: boottime.NewClock(), nudge: make(chan struct{}, 1), done: make(chan struct{}),
		planned: limit.Never}
	m.node = node.New(c.node())
	return m, nil
}

// node is the configuration of a new node.
func (c *Config) node() node.Config {
	n := node.Config{New: c.Own, ID: rand.Text(), Name: c.Who, Weight: c.Weight, Least: c.Least, Poll: c.Poll,
		Split: c.Fallback == Split}
	if atOnce(c.Own()) {
		n.ID += "@" + boottime.Process()
		n.Ended = func(id string) bool {
			_, name, _ := strings.Cut(id, "@")
			return boottime.ProcessEnded(name)
		}
	}
	return n
}

// atOnce reports whether a limit is a bound on requests in flight.
func atOnce(l limit.Limiter) bool {
	_, is := l.(*limit.Concurrency)
	return is
}

// dated returns a function that makes limiters on the scale of the store.
func dated(own func() limit.Limiter) func() limit.Limiter {
	return func() limit.Limiter {
		l := own()
		limit.SetEpoch(l, time.Unix(0, 0))
		return l
	}
}

// Shareable reports which part of a limiter cannot be shared. It is nil if all parts can.
func Shareable(l limit.Limiter) error {
	if atOnce(l) {
		return nil
	}
	for _, part := range limit.Parts(l) {
		switch part := part.(type) {
		case *limit.Rolling, *limit.Calendar, *limit.Weighted, *limit.Cooldown:
		case *limit.Bucket:
			if part.Alone() {
				return errors.New("share: a Bucket with Alone cannot be shared")
			}
		case *limit.Concurrency:
			return errors.New("share: a *limit.Concurrency cannot be shared together with other limits, since its requests count " +
				"until they end: leave it out here, and give it a Member of its own, under another Name")
		case *limit.Adaptive:
			return fmt.Errorf("share: a %T cannot be shared, since what it finds is of one process: leave it out here, and let each "+
				"process keep its own, as Config.Limiter of a Transport or by a Gate of its own", part)
		default:
			return fmt.Errorf("share: a %T cannot be shared: leave it out here, and let each process keep its own", part)
		}
	}
	if err := limit.Keeps(l); err != nil {
		return fmt.Errorf("share: %w", err)
	}
	return nil
}

// now reads the node's own clock.
func (m *Member) now() mono.Time { return mono.Time(m.clock.Now()) }

// Attach makes the Member wake d whenever there may be something new to send. It is for a driver
// that does not call Supply. Call it once, before the first request.
func (m *Member) Attach(d Driver) {
	var waiting func() (n int, free float64)
	if s, ok := d.(interface{ Stats() observe.Stats }); ok {
		waiting = func() (int, float64) { return s.Stats().Waiting, 0 }
	}
	m.Supply(func() { d.Update(func(mono.Time) {}) }, waiting, nil)
}

// Supply gives the Member the functions of its driver. Gate, Group, Pool and transport call it. again
// makes the driver call Ready again for all waiting requests. waiting returns their number, and the part
// of the limit that all of them leave free (ReadyLeaving). note shows an event to
// people. A driver of your own finds the Members in a limiter by limit.Ask.
func (m *Member) Supply(again func(), waiting func() (n int, free float64), note func(kind, text string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.again, m.waiting, m.note = again, waiting, note
}

// Ready implements limit.Limiter. It also notes the demand, for which turns are taken. While
// nothing is granted to anybody, the result is the instant at which that ends, as far as is known.
func (m *Member) Ready(now mono.Time, cost limit.Cost) mono.Time { return m.ready(now, cost, 0) }

// ReadyLeaving is the function limit.ReadyLeaving: a part of the limit stays free for all processes that share
// it. Where requests that leave less wait in any process, nothing stays free.
func (m *Member) ReadyLeaving(now mono.Time, first *limit.Cost, cost limit.Cost, free float64) mono.Time {
	if first != nil {
		return limit.ReadyAfter(m, now, *first, cost)
	}
	return m.ready(now, cost, free)
}

func (m *Member) ready(now mono.Time, cost limit.Cost, free float64) mono.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.now()
	at := m.node.ReadyLeaving(p, cost, free)
	switch {
	case at <= p:
		return now
	case at == limit.Never:
		return at
	}
	m.node.Asked(cost, free)
	m.replanLocked()
	if at == limit.AfterSettle {
		if m.fails && m.refusedLocked() {
			return limit.Never
		}
		if at = m.news.until; at <= p {
			return limit.AfterSettle
		}
	}
	return m.instantLocked(now, at, p)
}

// ReadyAfter implements limit.Forecaster. It is not known.
func (m *Member) ReadyAfter(mono.Time, limit.Cost, limit.Cost) mono.Time { return limit.Never }

// NotBefore implements limit.Forecaster. All processes together send no more than the limit, so this one
// does not either. While nothing is granted to anybody, nothing goes before that ends.
func (m *Member) NotBefore(now mono.Time, n int, ahead, cost limit.Cost) mono.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.now()
	at := m.node.NotBefore(p, n, ahead, cost)
	if at >= limit.AfterSettle {
		return at
	}
	if r := m.node.Ready(p, cost); r >= limit.AfterSettle {
		at = max(at, m.news.until)
	}
	return now.Add(max(at.Sub(p), 0))
}

// Room returns when the whole limit will have room for a cost, as far as this process knows. Other processes may take the
// room first. limit.AfterSettle means that it is not known. It changes nothing, and is for people: Ready decides.
func (m *Member) Room(now mono.Time, cost limit.Cost) mono.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.now()
	at := m.node.Room(p, cost)
	if at >= limit.AfterSettle {
		return at
	}
	return now.Add(at.Sub(p))
}

// instantLocked converts an instant of the node's clock, which is at p, to the driver's clock. The
// same instant keeps the same value, although the time between the two readings of clocks varies.
// Otherwise a stack could not see which limiter named it.
func (m *Member) instantLocked(now, at, p mono.Time) mono.Time {
	as := now.Add(at.Sub(p))
	if d := as.Sub(m.said.as); at != m.said.at || d < -time.Millisecond || d > time.Millisecond {
		m.said.at, m.said.as = at, as
	}
	return max(now, m.said.as)
}

// Join takes a turn at the store now, without demand, so that a process learns at its start of a
// mistake. The error is the store's, or reports that another limit is kept under the Name. If no
// limit is kept there, this one is from now on. Call Join before the first request. Afterwards, and
// while another call lasts, it only returns the result of Err.
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
	if errors.Is(err, node.ErrWait) { // the limit is the one that others use
		return nil
	}
	return err
}

// Admit implements limit.Limiter.
func (m *Member) Admit(s *limit.Sent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := *s
	own.At = m.now()
	m.node.Admit(&own)
	m.replanLocked()
}

// Settle implements limit.Limiter.
func (m *Member) Settle(_ mono.Time, s *limit.Sent, o *limit.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.node.Settle(m.now(), s, o)
	m.replanLocked()
}

// Fresh reports whether an admitted request may still be written. Call
// it right before the write. If it is false, settle the request as Unsent.
func (m *Member) Fresh(s *limit.Sent) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node.Fresh(m.now(), s)
}

// FreshFor is Fresh, also for a write that may come up to d later. It is for a permission that this
// process passes on to another one.
func (m *Member) FreshFor(s *limit.Sent, d time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node.Fresh(m.now().Add(d), s)
}

// Rules implements limit.Describer. Other processes use the rules, too. So the Counts of those with a
// window is CountsSomehow, and no Fitted tests them.
func (m *Member) Rules() []limit.Rule {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, _ := limit.Rules(m.node.Limiter())
	for i := range all {
		if all[i].Name = m.config.Name; all[i].Counts != limit.CountsInFlight {
			all[i].Counts = limit.CountsSomehow
		}
	}
	return all
}

// AppendUsage implements limit.Describer. It appends the usage of the whole limit as of the last turn,
// under the Name. Grants for later count, too, up to what is Allowed. The usage is zero, since unknown,
// where this process has not used the limit for long. Then it appends this process' part, under the
// Name and ", here": grants that it has not sent, and requests in flight (Open). That alone has a
// Total: what this process has settled.
func (m *Member) AppendUsage(to []limit.Usage, _ mono.Time) []limit.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := len(to)
	to = m.node.AppendUsage(to, m.now())
	half := (len(to) - first) / 2
	for i := range half {
		to[first+i].Limit, to[first+half+i].Limit = m.config.Name, m.config.Name+", here"
	}
	return to
}

// SetLimit changes the limit for all processes that share it, by a turn soon. f changes the limiter
// that is passed to it, by SetLimit or SetWindow of the type that Own returns. f may be called
// several times.
//
// The change holds until the store loses its state. Processes that come later are configured as
// before, and paceline share shows the configured limit. The page and the usage show the changed
// one.
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

// FailRefused makes Ready return limit.Never while the store has another limit under the Name, or a
// state of another version, and nothing is granted. So requests fail at once, and do not wait for
// somebody to see to that. Each of them makes the Member ask the store again. A transport calls it.
func (m *Member) FailRefused() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = true
}

// refusedLocked reports whether the store has a state that this process cannot use.
func (m *Member) refusedLocked() bool { return m.news.err != nil && !node.Away(m.news.err) }

// Stored returns how the store serves this process: a constant of package observe that begins with Store,
// and why, as Err does.
func (m *Member) Stored() (state string, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.news.err == nil && m.news.until > m.now():
		return observe.StoreQuiet, m.node.View().Quiet.Why
	case m.news.err == nil:
		return observe.StoreOK, nil
	case m.refusedLocked():
		return observe.StoreRefused, m.news.err
	}
	return observe.StoreAway, m.news.err
}

// Err returns why nothing is fetched: the last turn's error. After a turn that was put it returns
// why nothing is granted for a while, for instance since the store has lost or damaged its state.
// Otherwise it is nil.
func (m *Member) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.news.err != nil {
		return m.news.err
	}
	return m.node.View().Quiet.Why
}

// Close gives back unsent grants at once, reports what is still to be reported, and ends. Nothing
// is ready afterwards. A request in flight that is not settled counts for others until they give it
// up; so settle first. The error is the store's.
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

// A new Member reports nothing before others have seen it. So closing it may take a few turns, with
// turns of the others between them.
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

// run takes turns while there is a reason for them. It ends when there is none, so that an
// abandoned Member can be collected as garbage.
func (m *Member) run(ended chan struct{}) {
	defer close(ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	ctx, cancel := m.untilClosed(context.Background())
	defer cancel()
	for {
		m.mu.Lock()
		next, p := m.node.Next(), m.now()
		m.planned = next
		if next == limit.Never {
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

// untilClosed returns a context for turns that ends with Close, so that they do not hold it up.
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

// turn takes one turn at the store. Then it makes the driver ask again, since there may be
// something new to send.
func (m *Member) turn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, turnMost)
	defer cancel()
	if count := m.supplied(); count != nil {
		waiting, free := count()
		m.mu.Lock()
		m.node.Waiting(waiting, free)
		m.mu.Unlock()
	}
	m.mu.Lock()
	began := m.now()
	m.node.Begin(began)
	m.mu.Unlock()
	err := m.config.Store.Turn(ctx, m.config.Name, func(r Reading) ([]byte, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		blob, err := m.node.Read(began, m.now(), r)
		began = m.now() // for the next reading, if there is one
		return blob, err
	})
	m.mu.Lock()
	p, tell := m.now(), func() {}
	m.node.End(p, err)
	if !m.closing {
		m.news.turned(p, m.node, m.config.Fallback, err)
		tell = m.news.tell(&m.config, m.note)
	}
	again := m.again
	// With Split the process may go on by its part. With FailRefused those that wait fail now.
	changed := err == nil || m.config.Fallback == Split || m.fails && m.refusedLocked()
	m.mu.Unlock()
	tell()
	if again != nil && changed {
		again()
	}
	return err
}

// turnMost is the longest time of a turn before it is given up: grants end then.
const turnMost = 2 * time.Second

func (m *Member) supplied() func() (n int, free float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.waiting
}
