package node

import (
	"errors"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A request by a node's part counts in it until its answer has left the window, and no longer: the part serves as much
// in the next window.
func TestPartIsSettled(t *testing.T) {
	_, a, _, p, fails := apart(t)
	fails(*p + 5000*ms)
	for window := range 2 {
		var open []*limit.Sent
		for a.Ready(*p, limit.One) <= *p {
			sent := &limit.Sent{At: *p, Number: uint64(100*window + len(open) + 1), Cost: limit.One}
			a.Admit(sent)
			open = append(open, sent)
		}
		if len(open) != 50 {
			t.Fatalf("window %d: %d go by half of 100", window, len(open))
		}
		for _, sent := range open {
			a.Settle(*p+ms, sent, &limit.Outcome{Result: limit.Accepted})
		}
		fails(*p + 1250*ms)
	}
}

// apart returns two nodes of 100 a second, of which the first begins to send by its part at p. fails lets its turns
// fail until an instant.
func apart(t *testing.T) (s *shelf, a, b *Node, p *mono.Time, fails func(until mono.Time)) {
	s, p = &shelf{incarnation: "x"}, new(mono.Time)
	for id, n := range map[string]**Node{"a": &a, "b": &b} {
		*n = New(Config{ID: id, Split: true, New: func() limit.Limiter { return limit.MustRolling(100, time.Second) }})
		(*n).Line(1000, limit.One, 0)
	}
	for ; *p < 60_000*ms; *p += 250 * ms {
		s.turn(t, a, *p)
		s.turn(t, b, *p+100*ms)
	}
	fails = func(until mono.Time) {
		for ; *p < until; *p += 250 * ms {
			a.Begin(*p)
			a.End(*p+ms, errors.New("the store is away"))
		}
	}
	for {
		if from, of, on := a.Alone(); on && of == 2 {
			if late := p.Sub(from); late < 0 || late > 500*time.Millisecond { // two turns
				t.Fatalf("it sends by its part at %v, and said %v", *p, from)
			}
			return s, a, b, p, fails
		}
		if fails(*p + 250*ms); *p > 600_000*ms {
			t.Fatal("it never sends by its part")
		}
	}
}

// Once the store is back nothing is granted until parts hold no more and their last requests count no more: twice TTL,
// Late and a window after the turn.
func TestQuietAfterAPart(t *testing.T) {
	s, a, _, p, fails := apart(t)
	fails(*p + 5000*ms)
	book := s.turn(t, a, *p)
	for n := 0; book.Quiet <= book.Latest && n < 40; n++ { // the first turns only read the store's clock
		*p += 250 * ms
		book = s.turn(t, a, *p)
	}
	want := 2*a.config.TTL + a.config.Late + time.Second
	if quiet := book.Quiet.Sub(book.Latest); quiet < want || quiet > want+10*time.Millisecond { // by the bound of the clock
		t.Errorf("quiet for %v, want %v", quiet, want)
	}
}
