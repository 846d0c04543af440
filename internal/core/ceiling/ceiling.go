// Package ceiling computes the ceiling of a limit. The ceiling is the most requests in a given time
// that any client with a given Knowledge can send so that the server surely refuses none. It
// depends on how long requests and answers take, so the caller states these times. Simulators and
// the summary of a run with nonces compare the ceiling with what a client sent. Servers for tests
// supply the times (Legs).
//
// In in_flight.go, an InFlight computes how many requests a run may have in flight, so that no
// limit has to wait for answers. Package ceiling only computes: it sends nothing and reads no
// clock.
package ceiling

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// Knowledge is what a client can know about the arrivals of its requests. It decides how early the
// client may reuse a slot of the limit without ever being refused.
type Knowledge uint8

const (
	// Answers: the client only knows that a request arrived before its answer did, whatever the
	// latency.
	Answers Knowledge = iota
	// OneInFlight is like Answers, and each request must be answered before the next goes out.
	// Otherwise a server that wants rising nonces may see them in another order.
	OneInFlight
	// LargestLatency is like Answers, and no request takes longer than Config.Largest to arrive.
	LargestLatency
)

func (k Knowledge) String() string {
	if k > LargestLatency {
		return fmt.Sprintf("Knowledge(%d)", uint8(k))
	}
	return [...]string{"answers", "one in flight", "largest latency"}[k]
}

// Config is a limit, and the client's knowledge.
type Config struct {
	Knowledge Knowledge
	// Limit and Window are those of the rule. If zero, 20 and 1 s.
	Limit  int
	Window time.Duration
	// Tick is the unit of the server's clock. Both ends of a closed window are rounded, so it is
	// surely over only after Window + Tick. If zero, 1 ms; if negative, no rounding.
	Tick time.Duration
	// Largest is the largest latency on the way to the server.
	Largest time.Duration
	// Gap is the least time between two sends while one is in flight. A little more than the
	// difference of the largest and the smallest latency keeps nonces in order. If zero, none.
	Gap time.Duration
}

// Client computes the most requests per key that a client of some Knowledge can send. None may ever
// be refused, whatever the latencies of the next requests. It plays that client, which always has a
// request at hand and no delay of its own.
//
// Let f and b be the latencies of a request there and back, and W⁺ = Window + Tick. The client
// sends at
//
//	s = max(the earliest instant at which one of Limit slots is free, min(last send + Gap, last answer)[, last answer: OneInFlight])
//
// It has the answer at r = s + f + b. The slot is free again at u + W⁺, where u is the latest
// possible arrival of the request. u is r, or min(r, s + Largest) where that is known. In the long
// run, without Gap:
//
//	Answers         Limit / (W⁺ + E[f + b])
//	LargestLatency  Limit / (W⁺ + E[min(f + b, Largest)])
//	OneInFlight     r_k = max(r_{k−1}, r_{k−Limit} + W⁺) + f_k + b_k, which has no closed form
//
// It is a ceiling for this reason. Until the client has the answer, it cannot know how late within
// its bounds the request arrives. At any earlier reuse of the slot some latencies within those
// bounds make the server refuse.
//
// A real run gets as far if Next gets its own latencies. Not safe for concurrent use.
type Client struct {
	config   Config
	period   time.Duration // W⁺
	free     []mono.Time   // when each slot is free, as a heap
	sent     mono.Time
	answered mono.Time
	requests int
}

// Leg is the latencies of one request, there and back.
type Leg struct{ Forward, Back time.Duration }

// New returns the client at instant 0, with all slots free.
func New(c Config) (*Client, error) {
	c.Limit = cmp.Or(c.Limit, 20)
	c.Window = cmp.Or(c.Window, time.Second)
	switch {
	case c.Tick == 0:
		c.Tick = time.Millisecond
	case c.Tick < 0:
		c.Tick = 0
	}
	var errs []error
	if c.Knowledge > LargestLatency {
		errs = append(errs, fmt.Errorf("ceiling: no such Knowledge: %d", c.Knowledge))
	}
	if c.Limit < 0 {
		errs = append(errs, fmt.Errorf("ceiling: Limit %d is negative", c.Limit))
	}
	if c.Window < 0 {
		errs = append(errs, fmt.Errorf("ceiling: Window %v is negative", c.Window))
	}
	if c.Largest < 0 || c.Largest > 0 && c.Knowledge != LargestLatency {
		errs = append(errs, fmt.Errorf("ceiling: Largest %v is negative, or not known", c.Largest))
	}
	if c.Gap < 0 {
		errs = append(errs, fmt.Errorf("ceiling: Gap %v is negative", c.Gap))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Client{config: c, period: c.Window + c.Tick, free: make([]mono.Time, c.Limit), sent: mono.Min}, nil
}

// Next sends the next request as early as it may go, with the given latencies. It returns when the
// request is sent and when it is answered.
func (c *Client) Next(forward, back time.Duration) (sent, answered mono.Time) {
	s := max(c.free[0], min(c.sent.Add(c.config.Gap), c.answered), 0)
	if c.config.Knowledge == OneInFlight {
		s = max(s, c.answered)
	}
	r := s.Add(forward).Add(back)
	u := r
	if c.config.Knowledge == LargestLatency {
		u = min(r, s.Add(c.config.Largest))
	}
	c.reuse(u.Add(c.period))
	c.sent = s
	c.answered = max(c.answered, r)
	c.requests++
	return s, r
}

// reuse sets when the slot that was just used is free again.
func (c *Client) reuse(at mono.Time) {
	i, h := 0, c.free
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if at <= h[child] {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = at
}

// At returns the instant of the latest answer so far.
func (c *Client) At() mono.Time { return c.answered }

// Requests returns the number of requests so far.
func (c *Client) Requests() int { return c.requests }

// Most returns how many answers the client of one key can have within d of its start. Its requests
// meet the latencies of legs in turn, and begin again with the first when they run out. So with the
// legs of a real run it is the number of answers of the best client.
func (c Config) Most(d time.Duration, legs []Leg) (int, error) {
	best, err := New(c)
	if err != nil {
		return 0, err
	}
	if len(legs) == 0 {
		return 0, errors.New("ceiling: no latencies to compute a ceiling from")
	}
	end, answers := mono.Time(d), 0
	for i := 0; ; i = (i + 1) % len(legs) {
		sent, answered := best.Next(legs[i].Forward, legs[i].Back)
		if sent > end {
			return answers, nil
		}
		if answered <= end {
			answers++
		}
	}
}
