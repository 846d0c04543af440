package transport

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
)

// Hedge sends a second copy of a request whose answer is slow. The first answer of the two is
// returned; the other attempt is cancelled and settled. An answer that refuses because of a limit,
// or whose failure may pass, is returned only if the other attempt has no better one. The zero
// Hedge sends none.
//
// Only requests that may be processed twice are copied: by their method or an Idempotency-Key, and
// only if the body can be read again (GetBody). A copy needs its own permit of every limit. It is
// sent only if that permit is free at once and no request waits, so it never delays another. An
// attempt has at most one copy, which is not one of Config.Attempts. The server may finish what it
// has begun, so both count in full. Over HTTP/1.1 the connection of the cancelled attempt is
// closed.
type Hedge struct {
	// After is the wait for an answer's header before the copy goes. With Quantile, it is the least
	// wait.
	After time.Duration
	// Quantile learns the wait from the latest answers of the same host, key, model and route. 0.95
	// copies a request that takes longer than 95 of 100. Until 20 answers have come, After alone
	// counts; if After is zero, no copy is sent. If zero, nothing is learned.
	Quantile float64
	// Share is the most copies per attempt that could be copied, over the life of the Transport. If
	// zero, 0.05: one for twenty. If 1, there is no bound.
	Share float64
}

const defaultShare = 0.05

func (h Hedge) on() bool { return h.After > 0 || h.Quantile > 0 }

func (h Hedge) share() float64 {
	if h.Share == 0 {
		return defaultShare
	}
	return h.Share
}

func (h Hedge) check() error {
	switch {
	case h.After < 0:
		return fmt.Errorf("transport: Hedge: After %v is negative", h.After)
	case !(h.Quantile >= 0 && h.Quantile < 1):
		return fmt.Errorf("transport: Hedge: Quantile %v is not at least 0 and below 1", h.Quantile)
	case !(h.Share >= 0 && h.Share <= 1):
		return fmt.Errorf("transport: Hedge: Share %v is not between 0 and 1", h.Share)
	case h.Share > 0 && !h.on():
		return fmt.Errorf("transport: Hedge: Share %v, and neither After nor Quantile", h.Share)
	}
	return nil
}

// hedges counts copies, to keep them within Share.
type hedges struct {
	mu               sync.Mutex // guards the fields below
	share            float64
	asked, sent, won int64
}

// ask counts a request that could be copied.
func (h *hedges) ask() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
}

// take reports whether one more copy is within Share, and counts it.
func (h *hedges) take() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if float64(h.sent+1) > h.share*float64(h.asked) {
		return false
	}
	h.sent++
	return true
}

// back returns a copy that was taken and not sent.
func (h *hedges) back() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent--
}

func (h *hedges) wins() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.won++
}

func (h *hedges) counts() (sent, won int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sent, h.won
}

// answers remembers how long the latest answers of a partition took.
type answers struct {
	mu     sync.Mutex          // guards the fields below
	latest *[100]time.Duration // nil: there are none, as without a Hedge
	count  int
}

const enough = 20 // the fewest answers for a quantile

// took notes that an answer's header came after d, or that the attempt was given up after d.
// Without the latter, no answer would ever look slow.
func (a *answers) took(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.latest == nil {
		a.latest = new([100]time.Duration)
	}
	a.latest[a.count%len(a.latest)] = d
	a.count++
}

// quantile returns the time within which the fraction q of the latest answers came, if there are
// enough.
func (a *answers) quantile(q float64) (time.Duration, bool) {
	a.mu.Lock()
	n := min(a.count, len(a.latest))
	if n < enough {
		a.mu.Unlock()
		return 0, false
	}
	sorted := *a.latest // a copy
	a.mu.Unlock()
	slices.Sort(sorted[:n])
	return sorted[min(int(q*float64(n)), n-1)], true
}

// pair is an attempt and, if its answer is slow, the copy of it.
type pair struct {
	c      *call         // a copy, since the pair may outlive the RoundTrip
	req    *http.Request // the caller's; not to be read after the RoundTrip
	body   bool          // whether the request has a body
	number int
	last   bool
	first  *sent
	start  time.Time
	timer  *time.Timer // sends the copy; nil: the wait is not known yet

	mu    sync.Mutex // guards the fields below
	taken bool       // an answer was chosen: neither the other attempt nor a copy is needed
	heard bool       // the first attempt has ended
	copy  *sent      // nil: no copy was sent
	began time.Time  // of the copy, with Config.Ended
	leg   leg        // the end of the copy, once ended is closed
	ended chan struct{}
}

// leg is the end of one of the two attempts.
type leg struct {
	sent   *sent
	resp   *http.Response
	in     classify.Evidence
	panics any
}

// errLost ends an attempt when the other copy was answered. It shows nothing of the host.
var errLost = fmt.Errorf("transport: the other copy of the request was answered first: %w", context.Canceled)

// hedge prepares a copy of an attempt, to be sent when its answer is slow, if a copy may be sent.
func (c *call) hedge(s *sent, number int, last bool) *pair {
	h := &c.t.config.Hedge
	if c.getBody == nil || c.barred != 0 || !classify.Idempotent(c.req) {
		return nil
	}
	c.t.hedges.ask()
	own := *c
	p := &pair{c: &own, req: c.req, body: c.req.Body != nil, number: number, last: last, first: s, start: time.Now(),
		ended: make(chan struct{})}
	after := h.After
	if h.Quantile > 0 {
		learned, ok := s.leaf.answers.quantile(h.Quantile)
		if !ok && after == 0 {
			return p
		}
		after = max(after, learned)
	}
	s.wire.Stops = true
	s.leaf.active.Add(1) // until second has ended, or certainly does not begin
	p.timer = time.AfterFunc(after, p.second)
	return p
}

// stop ends the pair after a panic of the first attempt: no copy is sent, and a sent one loses.
func (p *pair) stop() {
	if p == nil || p.timer == nil {
		return
	}
	if p.timer.Stop() {
		p.c.leaf.release()
		return
	}
	p.mu.Lock()
	p.taken = true
	asked := p.heard || p.copy == nil
	p.mu.Unlock()
	if !asked {
		p.drop()
	}
}

// withdraw prevents the copy. It reports whether none was sent.
func (p *pair) withdraw() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.copy == nil {
		p.taken = true
	}
	return p.copy == nil
}

// drop makes the copy lose: at its end, or now if it has ended. taken must be set before.
func (p *pair) drop() {
	p.copy.wire.Stop(errLost)
	select {
	case <-p.ended:
		p.lose(&p.leg, Attempt{Hedged: true, Sent: p.began})
	default:
	}
}

// second sends the copy, on its own goroutine, if its permit is free at once.
func (p *pair) second() {
	defer p.c.leaf.release()
	r := p.begins()
	if r == nil {
		return
	}
	l := leg{sent: p.copy}
	func() {
		defer func() { l.panics = recover() }()
		var err error
		l.resp, err = p.c.trip(l.sent, r)
		l.in = p.c.hear(l.sent, l.resp, err, p.last)
		p.heed(&l)
	}()
	p.mu.Lock()
	lost := p.taken
	if !lost {
		p.leg, p.taken = l, p.final(&l)
		if p.taken {
			p.first.wire.Stop(errLost)
		}
		close(p.ended)
	}
	p.mu.Unlock()
	if lost {
		p.lose(&l, Attempt{Hedged: true, Sent: p.began})
	}
}

// begins returns the copy to send, or nil if there is none.
func (p *pair) begins() *http.Request {
	c := p.c
	if c.leaf.moved.Load() != nil || c.leaf.look() != nil || !c.t.hedges.take() {
		return nil
	}
	permit, ok := c.atOnce()
	if !ok {
		c.t.hedges.back()
		return nil
	}
	c.permit, c.way = permit, c.leaf.by(permit.Way())
	var body io.ReadCloser
	var err error
	if p.body {
		body, err = p.again()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken || err != nil {
		if body != nil {
			body.Close()
		}
		c.giveBack()
		c.t.hedges.back()
		return nil
	}
	p.copy, p.began = c.begin(1)
	p.copy.wire.Stops = true
	c.req = p.req.Clone(p.req.Context())
	return c.with(body)
}

// atOnce gets a permit that is free now, with the cost at each Target.
func (c *call) atOnce() (permit paceline.Permit, ok bool) {
	if c.costs == nil {
		permit, _, ok = c.leaf.lane.TryWait(c.cost)
		return permit, ok
	}
	permit, _, err := c.leaf.lane.WaitTurn(c.req.Context(), c.cost, paceline.Turn{Costs: c.costs, MaxWait: 1})
	return permit, err == nil
}

// again reads the body again. It turns a panic into an error, since this goroutine has no other
// recover.
func (p *pair) again() (body io.ReadCloser, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("GetBody panicked: %v", v)
			p.c.t.log.Error("no copy of a request", "partition", p.c.leaf.partition, "err", err)
		}
	}()
	return p.c.getBody()
}

// heed reports a failure or refusal to the limits at once, since the other copy may take long. A
// copy that lost shows nothing.
func (p *pair) heed(l *leg) {
	if l.in.Err != errLost {
		p.c.heed(l.sent, p.number)
	}
}

// final reports whether the other attempt cannot end better. This one was answered. It was not
// refused by a limit, which the other may have passed, and its answer cannot soon change.
func (p *pair) final(l *leg) bool {
	if l.panics != nil || l.resp == nil {
		return l.panics != nil
	}
	in := l.in
	in.Last = false
	switch l.sent.verdict.Result {
	case limit.Accepted:
		return true
	case limit.Limited:
		return false
	}
	return !p.c.t.policy.Of(&in).Again
}

// primary handles the end of the first attempt. If the end of the copy counts, it replaces the
// first.
func (p *pair) primary(a *Attempt, s **sent, resp **http.Response, in *classify.Evidence) {
	if *resp != nil || in.Err == errLost {
		(*s).leaf.answers.took((*s).headed.Sub(p.start))
	}
	l := leg{sent: *s, resp: *resp, in: *in}
	p.heed(&l)
	p.mu.Lock()
	p.heard = true
	copied, answered := p.copy, p.taken
	if !answered && (copied == nil || p.final(&l)) {
		p.taken = true
	}
	taken := p.taken
	p.mu.Unlock()
	switch {
	case copied == nil:
		return
	case taken && !answered:
		p.drop()
		return
	}
	<-p.ended // until the copy is answered or fails
	switch {
	case p.leg.panics != nil:
		p.leg.sent.settle(limit.Outcome{})
		panic(p.leg.panics)
	case !p.final(&p.leg) && l.resp != nil:
		p.lose(&p.leg, Attempt{Hedged: true, Sent: p.began})
		return
	}
	if p.final(&p.leg) {
		p.c.t.hedges.wins()
	}
	lost := *a
	a.Hedged, a.Waits, a.Sent = true, paceline.WaitStats{}, p.began
	if *s, *resp, *in = p.leg.sent, p.leg.resp, p.leg.in; *resp != nil {
		(*resp).Request = p.req
	}
	p.lose(&l, lost)
}

// lose settles the attempt whose end does not count. a is its record.
func (p *pair) lose(l *leg, a Attempt) {
	t := p.c.t
	defer l.sent.settle(limit.Outcome{}) // if it is not settled
	if l.panics != nil {                 // this goroutine has no other recover
		t.log.Error("the Base panicked", "partition", l.sent.leaf.partition, "panic",
			secret.SanitizeURLs(fmt.Sprint(l.panics)))
		return
	}
	if l.resp != nil && l.resp.Body != nil {
		l.resp.Body.Close()
	}
	v := &l.sent.verdict
	l.sent.settle(v.Outcome)
	if t.config.Ended == nil && t.config.Settled == nil {
		return
	}
	a.Partition, a.Key = l.sent.partition()
	a.Request, a.Number, a.Cost = p.req, p.number, l.sent.cost
	a.tell(&l.in, v)
	a.Again, a.Why = false, errLost.Error()
	l.sent.reports(&a)
}
