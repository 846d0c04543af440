package stack

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// BreakerConfig describes a Breaker. The zero value is ready.
type BreakerConfig struct {
	// After is how many attempts in a row that never reached the host show that it is down. If
	// zero, 3.
	After int
	// Answers is how many attempts in a row that may have reached the host, but were not served,
	// show that it is down. If zero, 8.
	Answers int
	// Backoff is the time from one probe to the next: its n-th delay comes before the n-th probe.
	// If its Base is zero, 250 ms; its Max, 15 s.
	Backoff backoff.Policy
	// Patience is how long requests wait for the host. A probe is ready when it is over, however long
	// the pause would be, so that they learn the end then. If zero or negative, none is.
	Patience time.Duration
	// Rand jitters Backoff. It belongs to the driver. If nil, there is no jitter.
	Rand *rand.Rand
}

const (
	defaultAfter   = 3
	defaultAnswers = 8
	defaultBase    = 250 * time.Millisecond
	defaultMax     = 15 * time.Second

	// Failures at one instant have one cause, such as a full queue of connections or a server that
	// is being replaced. So a row of them has to last for a while, or to be too long for an
	// accident.
	lasting        = 100 * time.Millisecond
	lastingAnswers = 500 * time.Millisecond
	longRow        = 12
	longAnswersRow = 32

	// undecided is how many requests sent since the first failure may still be on their way, for
	// each that failed. If there are more, most have a connection, and may well be served.
	undecided = 2
)

// Breaker keeps load from a host that is down, as one more limit.Limiter of the scheduler, one for each
// host. NewBreaker makes it. Not safe for concurrent use.
//
// While the host is down one request at a time probes it, with a growing pause between two. The
// first that is served ends the outage, and load begins slowly. The evidence of an attempt is in
// its limit.Outcome.Link. A Breaker does not decide what happens to the request: an unsent
// request is free, and an answer of 500 is an attempt like another.
//
// A server that refuses because of a limit works; a Stack handles refusals.
//
// One answer that is limit.Away is enough, since others take the load meanwhile, and callers get each
// further one. It may be an accident. So the load begins at once, not slowly, if the first probe is
// served, and if the server was up for longer than the last outage took.
//
// Ready, Admit and Settle do not allocate.
//
//	up ── a row of failures, nothing served that was sent since ──► down ◄─┐
//	▲                                                               │ pause │ failed: a longer pause
//	└────────────── served; load begins slowly ◄── one request probes ──────┘
type Breaker struct {
	after, answers int
	policy         backoff.Policy
	patience       time.Duration // see BreakerConfig.Patience
	rand           *rand.Rand

	last mono.Time
	sent uint64 // the Number of the latest request
	open int    // in flight
	calm bool   // nothing is wrong: any request may go

	served uint64 // the latest request that was served
	row    failedRow
	outage outage
	begin  Beginning
	files  openFiles
	told   bool // News has reported the present state
}

// failedRow counts failed attempts, as long as no attempt is served that was sent after the first of
// them.
type failedRow struct {
	count int
	never int       // attempts among them that never reached the host
	began mono.Time // when the first failure was known
	first uint64    // the earliest sent request among them
	since uint64    // the last request that was sent before the first failure was known
	open  int       // requests in flight that were sent since then
	kind  limit.Link
}

type outage struct {
	on     bool
	kind   limit.Link
	since  mono.Time
	first  uint64 // row.first when the outage began
	next   mono.Time
	probe  uint64 // the probe in flight; 0: none
	failed int    // failed probes
	level  int    // of the backoff between probes
	ended  mono.Time
	lasted time.Duration
}

// NewBreaker checks the configuration and returns a Breaker for a host of unknown health. The error names
// the field and the value.
func NewBreaker(c BreakerConfig) (*Breaker, error) {
	if c.After < 0 {
		return nil, fmt.Errorf("breaker: After %d is negative", c.After)
	}
	if c.Answers < 0 {
		return nil, fmt.Errorf("breaker: Answers %d is negative", c.Answers)
	}
	c.After = cmp.Or(c.After, defaultAfter)
	c.Answers = cmp.Or(c.Answers, defaultAnswers)
	c.Backoff.Base = cmp.Or(c.Backoff.Base, defaultBase)
	c.Backoff.Max = cmp.Or(c.Backoff.Max, max(defaultMax, c.Backoff.Base))
	if err := c.Backoff.Check(); err != nil {
		return nil, fmt.Errorf("breaker: Backoff: %w", err)
	}
	return &Breaker{after: c.After, answers: c.Answers, policy: c.Backoff, patience: c.Patience, rand: c.Rand,
		last: mono.Min, calm: true, told: true}, nil
}

// Ready implements limit.Limiter.
func (h *Breaker) Ready(now mono.Time, _ limit.Cost) mono.Time {
	if h.calm {
		return max(now, h.last)
	}
	return h.ready(max(now, h.last), 0)
}

// ReadyAfter implements limit.Forecaster.
func (h *Breaker) ReadyAfter(now mono.Time, _, _ limit.Cost) mono.Time {
	if h.calm {
		return max(now, h.last)
	}
	return h.ready(max(now, h.last), 1)
}

func (h *Breaker) ready(now mono.Time, more int) mono.Time {
	switch {
	case h.outage.on && (h.outage.probe != 0 || more > 0), h.begin.Full(more):
		return limit.AfterSettle
	case h.outage.on:
		return max(now, h.outage.next)
	}
	return max(now, h.files.ready(h.open+more))
}

// NotBefore implements limit.Forecaster. Each request in flight may be served now, and end the
// outage or make room.
func (h *Breaker) NotBefore(now mono.Time, _ int, _, _ limit.Cost) mono.Time {
	now = max(now, h.last)
	if h.outage.on && h.open == 0 {
		return max(now, h.outage.next)
	}
	return now
}

// Explain is limit.Explain with the names "outage", "beginning" after one, and "files".
func (h *Breaker) Explain(now mono.Time, cost limit.Cost) (mono.Time, limit.Rule) {
	at := h.Ready(now, cost)
	switch {
	case h.outage.on:
		return at, limit.Rule{Name: "outage"}
	case at == limit.AfterSettle:
		return at, limit.Rule{Name: "beginning"}
	}
	return at, limit.Rule{Name: "files", N: int64(h.files.most), Counts: limit.CountsInFlight}
}

// Admit implements limit.Limiter.
func (h *Breaker) Admit(s *limit.Sent) {
	h.last = max(s.At, h.last)
	h.sent = s.Number
	h.open++
	if !h.calm {
		h.begin.Admit(h.last)
	}
	if h.outage.on && h.outage.probe == 0 {
		h.outage.probe = h.sent
	}
	if h.row.count > 0 {
		h.row.open++
	}
}

// Settle implements limit.Limiter.
func (h *Breaker) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	number := s.Number
	h.open--
	h.last = max(now, h.last)
	if h.row.count > 0 && number > h.row.since {
		h.row.open--
	}
	saw := o.Link
	if saw == limit.Implied && (o.Result == limit.Accepted || o.Result == limit.Limited || o.Result == limit.Failed) {
		saw = limit.Working
	}
	if h.calm && saw == limit.Working {
		h.works(number)
		return
	}
	probe := number == h.outage.probe
	if probe {
		h.outage.probe = 0
	}
	switch saw {
	case limit.Working:
		h.works(number)
	case limit.Implied:
		// It showed nothing: the next probe goes after the same pause.
		if probe && o.Result != limit.Unsent {
			h.rest()
		}
	case limit.NoFiles:
		if n := h.open; n > 0 && !h.outage.on {
			h.files.strike(h.last, n)
			break
		}
		fallthrough // no request of ours has them
	default:
		h.fails(number, saw, probe)
	}
	h.begin.Settle(now, number, saw == limit.Working)
	h.files.forget(h.last)
	h.calm = !h.outage.on && !h.begin.On() && h.files.most == 0
}

// works notes that a request was served.
func (h *Breaker) works(number uint64) {
	h.served = max(h.served, number)
	if h.row.count > 0 && number > h.row.first {
		h.row = failedRow{}
	}
	if p := &h.outage; p.on && number > p.first {
		p.on, p.probe, p.ended, p.lasted = false, 0, h.last, h.last.Sub(p.since)
		h.row = failedRow{}
		if !p.accident() {
			h.begin.Start(h.sent)
		}
		h.told = false
	}
}

// fails notes that a request was not served.
func (h *Breaker) fails(number uint64, saw limit.Link, probe bool) {
	if p := &h.outage; p.on {
		if probe {
			p.failed++
			p.level++
			p.kind = saw
			h.rest()
		}
		return
	}
	if number < h.served {
		return
	}
	r := &h.row
	if r.count == 0 {
		*r = failedRow{began: h.last, first: number, since: h.sent}
	}
	r.count++
	if saw > limit.Silent {
		r.never++
	}
	r.first = min(r.first, number)
	r.kind = saw
	if saw == limit.Away || h.shows() {
		h.stop()
	}
}

// shows reports whether the row shows that the host is down.
func (h *Breaker) shows() bool {
	r := &h.row
	lasted := h.last.Sub(r.began)
	switch {
	case r.open > undecided*r.count:
		return false
	case r.never >= h.after && (lasted >= lasting || r.never >= longRow):
		return true
	}
	return r.count >= h.answers && (lasted >= lastingAnswers || r.count >= longAnswersRow)
}

// accident reports whether an outage that has just ended had one answer as its evidence, and no more.
func (p *outage) accident() bool { return p.kind == limit.Away && p.level == 1 }

// stop begins an outage. If the host was up for less time than the last outage took, the pauses
// between probes continue from there.
func (h *Breaker) stop() {
	p := &h.outage
	level := 1
	if p.lasted > 0 && h.last.Sub(p.ended) < p.lasted {
		level = p.level + 1
	}
	*p = outage{on: true, kind: h.row.kind, since: h.row.began, first: h.row.first, level: level}
	h.rest()
	h.row, h.begin = failedRow{}, Beginning{}
	h.told = false
}

// rest sets the time of the next probe.
func (h *Breaker) rest() {
	p := &h.outage
	p.next = h.last.Add(h.policy.Delay(p.level, h.rand))
	if end := p.since.Add(h.patience); end > h.last {
		p.next = min(p.next, end)
	}
}

// SetPatience changes BreakerConfig.Patience.
func (h *Breaker) SetPatience(d time.Duration) { h.patience = d }

// Excuses reports whether an unsent attempt does not count, since the fault is on the way to the
// host. An attempt may also be unsent by the request's own fault. So a missing answer is evidence
// against the host only if that is known to be down.
func Excuses(saw limit.Link, down bool) bool {
	return saw >= limit.Unreachable || saw == limit.Silent && down
}

// Shut reports whether the host is down. A scheduler then passes over the ways to it: see
// scheduler.LaneConfig.
func (h *Breaker) Shut(mono.Time) bool { return h.outage.on }

// BreakerState is the state of a host.
type BreakerState struct {
	Down    bool
	Kind    limit.Link    // of the outage: the latest evidence
	Since   mono.Time     // of the outage: when its first failure was known; otherwise: when the last outage ended
	Next    mono.Time     // the next probe goes no sooner
	Probing bool          // a probe is in flight
	Probes  int           // failed probes
	Lasted  time.Duration // up: how long the last outage was; 0: there was none
	Most    int           // the bound on requests in flight for lack of file descriptors; 0: any number
}

// Over returns when an outage is longer than anybody waits, as it is from then on; ok means that the
// host is down.
func (s BreakerState) Over(most time.Duration) (at mono.Time, ok bool) {
	return s.Since.Add(most), s.Down
}

// State returns the health of the host at now.
func (h *Breaker) State(now mono.Time) BreakerState {
	now = max(now, h.last)
	p := &h.outage
	s := BreakerState{Down: p.on, Kind: p.kind, Probes: p.failed, Since: p.ended, Lasted: p.lasted, Most: h.files.now(now)}
	if p.on {
		s.Since, s.Next, s.Probing, s.Lasted = p.since, max(now, p.next), p.probe != 0, 0
	}
	return s
}

// News returns the health of the host if it went down or came back since the last call. So each
// change is reported once.
func (h *Breaker) News(now mono.Time) (BreakerState, bool) {
	if h.told {
		return BreakerState{}, false
	}
	h.told = true
	return h.State(now), true
}
