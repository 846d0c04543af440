package stack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// server is a key at a server that allows 20 a second, and what it has counted.
type server interface{ takes(now mono.Time) bool }

type rollingServer struct{ taken []mono.Time }

func (s *rollingServer) takes(now mono.Time) bool {
	for len(s.taken) > 0 && s.taken[0] <= now.Add(-time.Second) {
		s.taken = s.taken[1:]
	}
	if len(s.taken) >= 20 {
		return false
	}
	s.taken = append(s.taken, now)
	return true
}

type calendarServer struct {
	phase    time.Duration
	interval int64
	taken    int
}

func (s *calendarServer) takes(now mono.Time) bool {
	if i := int64(now.Add(s.phase)) / int64(time.Second); i != s.interval {
		s.interval, s.taken = i, 0
	}
	s.taken++
	return s.taken <= 20
}

type bucketServer struct {
	gone float64
	last mono.Time
}

func (s *bucketServer) takes(now mono.Time) bool {
	s.gone = max(0, s.gone-20*now.Sub(s.last).Seconds())
	s.last = now
	if s.gone > 19 {
		return false
	}
	s.gone++
	return true
}

// wrong is a client with a wrong limit that always has something to send.
type wrong struct {
	stack    *stack.Stack
	server   server
	inFlight int
	rng      *rand.Rand
	flights  []wrongFlight
	refused  int
	accepted []mono.Time
}

type wrongFlight struct {
	arrives, ends mono.Time
	arrived, ok   bool
	lease         *limit.Sent
}

// to runs until an instant. Each leg takes 10 to 20 ms.
func (w *wrong) to(now, until mono.Time) {
	leg := func() time.Duration { return 10*ms + time.Duration(w.rng.Int64N(int64(10*ms))) }
	for now < until {
		next := until
		for len(w.flights) < w.inFlight {
			if t := w.stack.Ready(now, limit.One); t > now {
				next = min(next, t)
				break
			}
			f := wrongFlight{arrives: now.Add(leg()), lease: limittest.Admit(w.stack, now, limit.One)}
			f.ends = f.arrives.Add(leg())
			w.flights = append(w.flights, f)
		}
		for _, f := range w.flights {
			if f.arrived {
				next = min(next, f.ends)
			} else {
				next = min(next, f.arrives)
			}
		}
		now = next
		for i := range w.flights {
			if f := &w.flights[i]; !f.arrived && f.arrives <= now {
				f.arrived = true
				if f.ok = w.server.takes(now); !f.ok {
					w.refused++
				}
			}
		}
		w.flights = slices.DeleteFunc(w.flights, func(f wrongFlight) bool {
			if !f.arrived || f.ends > now {
				return false
			}
			o := limit.Outcome{Result: limit.Limited}
			if f.ok {
				o.Result = limit.Accepted
				w.accepted = append(w.accepted, now)
			}
			w.stack.Settle(now, f.lease, &o)
			return true
		})
	}
}

// rate is how much was accepted a second in the time before now.
func (w *wrong) rate(now mono.Time, d time.Duration) float64 {
	n := 0
	for _, t := range w.accepted {
		if t > now.Add(-d) {
			n++
		}
	}
	return float64(n) / d.Seconds()
}

// A server allows 20 a second, bans after ten refusals, and is configured with more. The key is not
// banned, and in the end sends what the server allows.
func TestWrongLimit(t *testing.T) {
	servers := []struct {
		name string
		new  func(*rand.Rand) server
	}{
		{"rolling", func(*rand.Rand) server { return &rollingServer{} }},
		{"calendar", func(r *rand.Rand) server { return &calendarServer{phase: time.Duration(r.Int64N(int64(time.Second)))} }},
		{"bucket", func(*rand.Rand) server { return &bucketServer{} }},
	}
	for _, s := range servers {
		for _, inFlight := range []int{1, 2, 4} {
			t.Run(fmt.Sprintf("%s/%d", s.name, inFlight), func(t *testing.T) {
				t.Parallel()
				for _, n := range []int64{21, 25, 29, 43, 100} {
					for seed := range need.Fewer[uint64](1, 2) {
						rng := rand.New(rand.NewPCG(seed, uint64(n)))
						w := wrong{stack: must(stack.New(stack.Config{Limiter: limit.MustRolling(n, time.Second), Pause: steady})), server: s.new(rng), inFlight: inFlight, rng: rng}
						const lasts = 20 * time.Minute
						w.to(0, at(lasts))
						rate := w.rate(at(lasts), 5*time.Minute)
						if w.refused >= 10 {
							t.Errorf("%d/s, seed %d: %d refused, so the key is banned", n, seed, w.refused)
						}
						if rate < 18 {
							t.Errorf("%d/s, seed %d: %.1f/s in the end, want 18", n, seed, rate)
						}
					}
				}
			})
		}
	}
}

// Lessons returns what was learned of a wrong limit, and passes it on. A stack without a limit has
// learned nothing.
func TestLessons(t *testing.T) {
	g := plain(stack.Config{Limiter: limit.MustRolling(25, time.Second)})
	for i := range 40 {
		o := served
		if i == 39 {
			o = limit.Outcome{Result: limit.Limited}
		}
		now := g.Ready(at(time.Duration(i)*50*ms), limit.One)
		g.Settle(now, limittest.Admit(g, now, limit.One), &o)
	}
	all := g.Lessons()
	if len(all) != 1 || all[0].Rule.N != 25 || all[0].Fits == 0 || g.Learned() == 0 {
		t.Errorf("learned %d: %+v", g.Learned(), all)
	}
	if g := plain(stack.Config{}); len(g.Lessons()) != 0 || g.Learned() != 0 {
		t.Errorf("without a limit %d are learned: %+v", g.Learned(), g.Lessons())
	}
}
