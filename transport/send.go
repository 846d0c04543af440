package transport

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/tokens"
)

// sent is an attempt under way. It has to be settled, once. Each request takes memory of its size: see
// TestSizeOfAttempt.
type sent struct {
	t       *Transport
	leaf    *leaf
	way     *way
	key     *key   // nil: the request's own credential
	era     uint64 // of key
	permit  paceline.Permit
	wire    send.Exchange
	went    *http.Request // as it was sent, with the credential of key
	late    *send.Watched // of the Transport's late, until Send returns; nil: it is not watched
	headed  time.Time     // when the header of the answer was there
	verdict classify.Verdict
	wait    time.Duration // its request's wait before the next attempt, as heed found
	entry   int64         // in Config.Recorder
	end     *end          // for Config.Settled; nil: nobody asks
	req     *http.Request
	seen    *costs.Seen // nil: it did not begin, as most do not
	settled atomic.Bool
	heeded  bool
	more    bool // it waited with more than its cost at its target
	none    bool // nothing of it was sent, by a fault of the way to the host: it is not counted

	priced
	used *tokens.Usage // as stated in its answer; nil: not stated
}

// begin makes an attempt of the acquired permit. began is when, if Config.Ended or Settled is told.
func (c *call) begin(number int) (s *sent, began time.Time) {
	s = &sent{t: c.t, leaf: c.leaf, way: c.way, permit: c.permit, priced: c.priced, req: c.req}
	if g := c.way.target; g != nil {
		s.priced = c.at[g.in].priced
		waited := c.asks(g)
		for u, n := range waited { // it may have shrunk
			s.cost[u] = min(s.cost[u], n)
		}
		s.more = s.cost != *waited
	}
	if c.way.account != nil {
		s.key, s.era = c.t.take(c.way.account, &c.denied)
	}
	s.wire.Leave, c.begun = s, true
	s.leaf.active.Add(1)
	if p, _ := s.partition(); s.rows || s.t.notices.Reads(p.Host) {
		s.seen = s.t.notices.Began(p.Host, p.Key, s.cost, s.t.config.MaxPartitions)
	}
	c.t.attempts.Add(1)
	if number > 1 {
		c.t.resent.Add(1)
	}
	if c.t.config.Settled != nil {
		s.end = &end{}
	}
	if c.t.config.Ended != nil || s.end != nil {
		began = time.Now()
	}
	return s, began
}

// next returns the request to send, for the Base.
func (c *call) next() *http.Request {
	if c.body == nil {
		return c.req
	}
	r := c.with(c.body)
	c.body = nil // the Base closes it
	return r
}

// Fresh reports, right before the first byte, whether it may be written: see paceline.Permit.Fresh.
func (s *sent) Fresh() bool { return !s.settled.Load() && s.permit.Fresh() }

// lapsed takes back an attempt whose permit lapsed before anything was written, or that another
// process is to make: it was none. It reports whether that is the whole end of the attempt, with no
// copy under way.
func (s *sent) lapsed(err error, number int, p *pair) bool {
	if !errors.Is(err, send.ErrLapsed) && !errors.Is(err, ErrTakenOver) || !p.withdraw() {
		return false
	}
	s.settle(limit.Outcome{Result: limit.Unsent})
	s.t.attempts.Add(-1)
	if number > 1 {
		s.t.resent.Add(-1)
	}
	return true
}

// partition is what the attempt counts in, all fields, and the name of its key.
func (s *sent) partition() (p Partition, key string) {
	p = s.way.on(s.leaf)
	if s.key != nil {
		p.Key, key = s.key.account.name, s.key.Name
	}
	return p, key
}

// with returns the request for the Base, which closes its body.
func (c *call) with(body io.ReadCloser) *http.Request {
	if body == nil {
		return c.req
	}
	r := new(http.Request)
	*r = *c.req
	r.Body, r.GetBody = body, c.getBody
	return r
}

// trip sends, and returns an answer or the reason why there is none.
func (c *call) trip(s *sent, r *http.Request) (resp *http.Response, err error) {
	if c.t.config.Begins != nil {
		c.t.config.Begins(c.req)
	}
	noTimeout := c.t.config.NoTimeout != nil && c.t.config.NoTimeout(c.req)
	if c.t.config.Recorder != nil {
		if err := s.record(noTimeout); err != nil {
			if r.Body != nil {
				r.Body.Close()
			}
			return nil, err
		}
	}
	if g := s.way.target; g != nil {
		r = c.aimed(g, r)
	} else if s.key != nil {
		r = clean(r)
	}
	if s.key != nil {
		(*s.key.puts.Load())(r) // With may have brought a new secret
	}
	s.went = r
	late := c.t.late
	if noTimeout {
		late = nil
	}
	if late != nil {
		s.wire.Expires, s.late = true, &send.Watched{Of: s}
		late.Begin(s.late)
	}
	resp, err = c.t.base.SendIn(r.Context(), r, &s.wire)
	inTime := late == nil || late.End(s.late)
	switch {
	case err == nil && resp == nil:
		err = errors.New("transport: the Base returned neither an answer nor an error")
	case !inTime && err == nil: // reading the body may fail
		err = &timedOut{c.t.config.AttemptTimeout}
	}
	if err == nil {
		resp.Request = c.req
		return resp, nil
	}
	if resp != nil && resp.Body != nil {
		resp.Body.Close()
	}
	return nil, err
}

// Expired ends an attempt without an answer after Config.AttemptTimeout.
func (s *sent) Expired() { s.wire.Expire(&timedOut{s.t.config.AttemptTimeout}) }

// clean returns a copy of a request, to which a key can be applied.
func clean(r *http.Request) *http.Request {
	c := r.Clone(r.Context())
	c.Response = nil
	c.Trailer = r.Trailer // not cloned, since trailers are set while the body is read
	return c
}

// record writes an attempt to the Recorder, right before the attempt is written.
func (s *sent) record(noTimeout bool) (err error) {
	p, _ := s.partition()
	if c := s.leaf.client; c != nil && c.of != nil {
		p.Client = c.of.name
	}
	send := s.t.config.Recorder.Send
	if r, ok := s.t.config.Recorder.(LongRecorder); ok && noTimeout {
		send = r.SendLong
	}
	if s.entry, err = send(p, s.cost); err != nil {
		return fmt.Errorf("transport: not sent, since it cannot be recorded: %w", err)
	}
	return nil
}
