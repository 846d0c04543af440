package stack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

// story is all that ever happened, from which every question is answered anew.
type hostStory struct{ deeds []hostDeed }

type hostDeed struct {
	at   mono.Time
	send int // of an end: the index of its send; of a send: -1
	saw  limit.Link
	sent bool // of an end that shows nothing: it was one
}

// outage is an outage in the story.
type outage struct {
	since mono.Time
	first int // the earliest send of the row that began it
	next  mono.Time
	level int
	kind  limit.Link
	probe int // -1: none is out
}

type hostTold struct {
	ready mono.Time
	down  bool
	downs int
	most  int
}

var steps = []time.Duration{250 * ms, 500 * ms, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second}

func step(level int) time.Duration { return steps[min(level, len(steps))-1] }

// open are the sends after since that have not ended before the deed upTo.
func (s *hostStory) open(since, upTo int) (open []int) {
	for i, d := range s.deeds[:upTo] {
		if d.send < 0 && i > since {
			open = append(open, i)
		} else if d.send > since {
			open = slices.DeleteFunc(open, func(x int) bool { return x == d.send })
		}
	}
	return open
}

func (s *hostStory) tell(now mono.Time) (t hostTold) {
	var on, last *outage
	var ended mono.Time
	var row []int // ends
	alive, slowed := -1, -1
	struck, most := mono.Min, 0
	for i, d := range s.deeds {
		saw := d.saw
		if saw == limit.NoFiles && on == nil {
			if n := len(s.open(-1, i+1)); n > 0 {
				struck, most = d.at, n
				saw = limit.Implied
			}
		}
		switch {
		case d.send < 0:
			if on != nil && on.probe < 0 {
				on.probe = i
			}
		case saw == limit.Working:
			alive = max(alive, d.send)
			if slices.ContainsFunc(row, func(e int) bool { return s.deeds[e].send < d.send }) {
				row = nil
			}
			if on != nil && on.first < d.send {
				last, ended, on, slowed, row = on, d.at, nil, i, nil
				if last.kind == limit.Away && last.level == 1 { // an accident
					slowed = -1
				}
			} else if on != nil && on.probe == d.send {
				on.probe = -1
			}
		case saw == limit.Implied:
			if on != nil && on.probe == d.send {
				on.probe = -1
				if d.sent {
					on.next = d.at.Add(step(on.level))
				}
			}
		case on != nil:
			if on.probe == d.send {
				on.probe = -1
				on.level++
				on.kind = saw
				on.next = d.at.Add(step(on.level))
			}
		case d.send >= alive:
			row = append(row, i)
			if !s.convicts(row, i) {
				break
			}
			first := d.send
			for _, e := range row {
				first = min(first, s.deeds[e].send)
			}
			on = &outage{since: s.deeds[row[0]].at, first: first, level: 1, kind: saw, probe: -1}
			if last != nil && d.at.Sub(ended) < ended.Sub(last.since) {
				on.level = last.level + 1
			}
			on.next = d.at.Add(step(on.level))
			row, slowed = nil, -1
			t.downs++
		}
		if d.send >= 0 && d.at.Sub(max(struck, 0)) >= 10*time.Minute {
			most = 0
		}
	}
	t.down = on != nil
	t.ready = now
	open := len(s.open(-1, len(s.deeds)))
	switch {
	case on != nil && on.probe >= 0, on == nil && slowed >= 0 && s.full(slowed):
		t.ready = limit.AfterSettle
	case on != nil:
		t.ready = max(now, on.next)
	case most > 0:
		for t.ready < struck.Add(10*time.Second*time.Duration(open+1-most)) {
			t.ready = struck.Add(10 * time.Second * time.Duration(open+1-most))
		}
	}
	if most > 0 {
		t.most = most + int(now.Sub(struck)/(10*time.Second))
	}
	return t
}

// convicts reports whether a row of failures, the last of which is end, shows that the host is
// down.
func (s *hostStory) convicts(row []int, end int) bool {
	if s.deeds[end].saw == limit.Away {
		return true
	}
	if len(s.open(row[0], end+1)) > 2*len(row) {
		return false
	}
	lasted := s.deeds[end].at.Sub(s.deeds[row[0]].at)
	never := 0
	for _, e := range row {
		if saw := s.deeds[e].saw; saw != limit.Broken && saw != limit.Silent {
			never++
		}
	}
	return never >= 3 && lasted >= 100*ms || never >= 12 || len(row) >= 8 && lasted >= 500*ms || len(row) >= 32
}

// full reports whether the requests in flight that were sent since are as many as those of them
// that were served, and one.
func (s *hostStory) full(since int) bool {
	room := 1
	for _, d := range s.deeds {
		if d.send > since && d.saw == limit.Working {
			room++
		}
	}
	return len(s.open(since, len(s.deeds))) >= room
}

// play has a Breaker and the story go through a program, three bytes a step, and returns the first
// disagreement.
func playHost(program []byte) error {
	h := must(stack.NewBreaker(stack.BreakerConfig{Backoff: backoff.Policy{Jitter: -1}}))
	s := &hostStory{}
	type open struct {
		lease *limit.Sent
		send  int
	}
	var opened []open
	now := mono.Time(0)
	downs, wasDown := 0, false
	for i := 0; i+2 < len(program) && i < 3*400; i += 3 {
		op, a, b := program[i], program[i+1], program[i+2]
		ready := h.Ready(now, limit.One)
		switch op % 8 {
		case 0:
			now = now.Add(time.Duration(a) * []time.Duration{1, ms, 10 * ms, 100 * ms, 4 * time.Second}[b%5])
		case 1, 2, 3:
			if op%8 == 2 && ready < limit.AfterSettle {
				now = ready
			} else if ready > now && (op%8 != 3 || b > 20) { // 3: a driver that does not ask
				break
			}
			opened = append(opened, open{limittest.Admit(h, now, limit.One), len(s.deeds)})
			s.deeds = append(s.deeds, hostDeed{at: now, send: -1})
		default:
			if len(opened) == 0 {
				break
			}
			k := int(a) % len(opened)
			o, saw := hostOutcome(op, b)
			h.Settle(now, opened[k].lease, &o)
			s.deeds = append(s.deeds, hostDeed{at: now, send: opened[k].send, saw: saw, sent: o.Result != limit.Unsent})
			opened = slices.Delete(opened, k, k+1)
		}
		want, state := s.tell(now), h.State(now)
		if got := h.Ready(now, limit.One); got != want.ready {
			return fmt.Errorf("step %d at %v: ready at %v, by the story at %v", i/3, now, got, want.ready)
		}
		if state.Down && !wasDown {
			downs++
		}
		wasDown = state.Down
		if state.Down != want.down || downs != want.downs {
			return fmt.Errorf("step %d at %v: %+v after %d outages, by the story %+v", i/3, now, state, downs, want)
		}
		if state.Most != want.most {
			return fmt.Errorf("step %d at %v: files for %d, by the story for %d", i/3, now, state.Most, want.most)
		}
		if state.Down && len(opened) == 0 && h.Ready(now, limit.One) > now.Add(15*time.Second) {
			return fmt.Errorf("step %d at %v: no probe before %v", i/3, now, h.Ready(now, limit.One))
		}
	}
	return nil
}

// outcome is an end, and its evidence.
func hostOutcome(op, b byte) (limit.Outcome, limit.Link) {
	saw := limit.Link(b % 9)
	if op&8 != 0 { // in bad times
		saw = []limit.Link{limit.Broken, limit.Silent, limit.Unreachable, limit.NoName}[b%4]
	} else if saw == limit.Away && b >= 128 { // otherwise rows of other failures hardly ever grow
		saw = limit.Broken
	}
	o := limit.Outcome{Link: saw, Result: limit.Result(b >> 3 % 5)}
	if saw == limit.Implied && (o.Result == limit.Accepted || o.Result == limit.Limited || o.Result == limit.Failed) {
		saw = limit.Working
	}
	return o, saw
}

func TestBreakerModel(t *testing.T) {
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		program := make([]byte, 3*(20+rng.IntN(150)))
		for i := range program {
			program[i] = byte(rng.Uint32())
			if i%3 == 0 && seed%3 > 0 && i/60%2 == 0 { // times in which all fails
				program[i] |= 8
			}
		}
		if err := playHost(program); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzBreakerModel(f *testing.F) {
	f.Add([]byte{1, 0, 0, 12, 0, 2, 0, 100, 1, 1, 0, 0, 12, 0, 2, 1, 0, 0, 12, 0, 2, 2, 0, 0, 4, 0, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		if err := playHost(program); err != nil {
			t.Fatal(err)
		}
	})
}
