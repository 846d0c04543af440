package paceline

import (
	"fmt"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/window"
)

// Metrics counts what was sent and what came back: in all, and how much of it per minute, lately. It decides nothing: that
// is a limiter's part, which counts what is in flight as well and until when a server may count it.
//
//	sent := metrics.Send()
//	...
//	sent.Settle(outcome) // as the Permit's
//
// Memory is fixed at its making: 32 bytes for each Precision in a Window, so 3.2 kB as they are by default, whatever the
// rates, and 16 bytes for each request that was in flight at once. Send and Settle do not allocate beyond that. Safe for
// concurrent use. Made by NewMetrics; the zero Metrics is not usable.
type Metrics struct {
	base   time.Time
	window time.Duration

	mu        sync.Mutex // guards all below
	open      limit.Book[mono.Time]
	total     MetricsSnapshot
	requests  *window.Slots
	responses *window.Slots
	tokens    *window.Slots
	money     *window.Slots
}

// MetricsConfig says what "lately" is.
type MetricsConfig struct {
	// Window is the span of time that rates are taken over. If zero, one minute.
	Window time.Duration
	// Precision is how long an event may count longer than Window: rates are too high by what happened in one Precision, at
	// most. If zero, a hundredth of Window.
	Precision time.Duration
}

// NewMetrics returns a Metrics that has counted nothing.
func NewMetrics(c MetricsConfig) (*Metrics, error) {
	if c.Window == 0 {
		c.Window = time.Minute
	}
	if c.Window < 0 {
		return nil, fmt.Errorf("paceline: Metrics: Window %v is negative", c.Window)
	}
	if c.Precision == 0 {
		c.Precision = max(c.Window/100, 1)
	}
	if c.Precision < 0 || c.Precision > c.Window {
		return nil, fmt.Errorf("paceline: Metrics: Precision %v is negative or longer than Window %v", c.Precision, c.Window)
	}
	m := &Metrics{base: time.Now(), window: c.Window}
	for _, s := range []**window.Slots{&m.requests, &m.responses, &m.tokens, &m.money} {
		var err error
		if *s, err = window.NewSlots(c.Window, c.Precision); err != nil {
			return nil, fmt.Errorf("paceline: Metrics: %w", err)
		}
	}
	return m, nil
}

// Sending is a request that Metrics counts as sent. It must be settled, exactly once. Copies are the same Sending; the zero
// Sending is none.
type Sending struct {
	metrics *Metrics
	lease   limit.Lease
}

// Send counts a request that goes out now.
func (m *Metrics) Send() Sending {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.total.Sent++
	m.requests.Add(now, 1)
	return Sending{m, m.open.Open(now)}
}

// Settle counts how it ended:
//
//   - limit.Accepted, Limited and Failed are responses; with Outcome.Metered, Actual is what they used: its Input and Output
//     tokens, its Tokens, or if that is 0 the two together, and its Money. What is below 0 counts as 0.
//   - limit.Unsent undoes the sending, as if it had never been, in totals and rates.
//   - limit.Unknown is neither: the request was sent, and no response came.
//
// It panics if it was settled before or is the zero Sending.
func (s Sending) Settle(o limit.Outcome) {
	if s.metrics == nil {
		panic("paceline: settle of the zero Sending")
	}
	s.metrics.settle(s.lease, &o)
}

func (m *Metrics) settle(l limit.Lease, o *limit.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, sent := m.now(), m.open.Close(l)
	switch o.Result {
	case limit.Unsent:
		m.total.Sent--
		m.requests.Remove(sent, 1)
		return
	case limit.Accepted:
	case limit.Limited:
		m.total.Limited++
	case limit.Failed:
		m.total.Failed++
	default:
		m.total.Unknown++
		return
	}
	m.total.Received++
	m.responses.Add(now, 1)
	if !o.Metered {
		return
	}
	of := func(u limit.Unit) int64 { return min(max(o.Actual[u], 0), limit.MaxCost) }
	in, out, tokens, money := of(limit.Input), of(limit.Output), of(limit.Tokens), of(limit.Money)
	if tokens == 0 {
		tokens = in + out
	}
	m.total.Input += in
	m.total.Output += out
	m.total.Tokens += tokens
	m.total.Money += money
	m.tokens.Add(now, tokens)
	m.money.Add(now, money)
}

func (m *Metrics) now() mono.Time { return mono.Time(time.Since(m.base)) }

// MetricsSnapshot is what Metrics had counted at one instant: all figures are of the same.
type MetricsSnapshot struct {
	// Sent is how many requests went out, without those undone. Each is in flight, or received, or its end is unknown:
	// Sent = InFlight + Received + Unknown.
	Sent     int64
	InFlight int64
	Received int64 // responses, whatever they say
	Limited  int64 // of those, refused by a limit
	Failed   int64 // of those, failed otherwise
	Unknown  int64
	// Input, Output and Tokens are tokens, Money is in millionths, as the outcomes had them.
	Input, Output, Tokens, Money int64
	// Rates over the window, scaled to a minute whatever its length. A request counts from its sending, a response and what
	// it used from its settlement.
	RequestsPerMinute, ResponsesPerMinute, TokensPerMinute, MoneyPerMinute float64
}

// Snapshot returns all counts and rates as they are now, none of them without the others.
func (m *Metrics) Snapshot() MetricsSnapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	perMinute := func(s *window.Slots) float64 {
		return float64(s.Total(now)) * (float64(time.Minute) / float64(m.window))
	}
	s := m.total
	s.InFlight = int64(m.open.Len())
	s.RequestsPerMinute, s.ResponsesPerMinute = perMinute(m.requests), perMinute(m.responses)
	s.TokensPerMinute, s.MoneyPerMinute = perMinute(m.tokens), perMinute(m.money)
	return s
}
