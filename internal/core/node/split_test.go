package node

import (
	"errors"
	"fmt"
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

// How each kind of limiter is divided, as it was set meanwhile. A part below one is impossible, and so is a part of
// windows that the store begins.
func TestDivide(t *testing.T) {
	hundred := func() limit.Limiter {
		return made(limit.NewBucket(limit.BucketConfig{Limit: 100, Window: time.Second, Burst: 50}))
	}
	pause := func() limit.Limiter { return made(limit.NewCooldown(time.Second)) }
	all := func() limit.Limiter {
		return limit.NewAll(forty(), limit.Named("x", limit.MustRolling(100, time.Minute)))
	}
	two := func() limit.Limiter { return limit.MustRolling(2, time.Second) }
	set := func(l limit.Limiter) {
		l.(interface {
			SetLimit(now mono.Time, n int64) error
		}).SetLimit(0, 60)
		l.(interface {
			SetWindow(now mono.Time, d time.Duration) error
		}).SetWindow(0, 4*time.Second)
	}
	for _, c := range []struct {
		of     func() limit.Limiter
		change func(seen limit.Limiter)
		n      int64
		rate   int64 // 0: none
		burst  int64
		window time.Duration
	}{
		{forty, nil, 3, 13, 13, time.Second}, {forty, set, 3, 20, 20, 4 * time.Second}, {forty, nil, 40, 1, 1, time.Second}, {forty, nil, 41, 0, 0, 0},
		{two, nil, 3, 0, 0, 0}, {hundred, nil, 4, 25, 12, time.Second}, {hundred, set, 3, 20, 16, 4 * time.Second}, {hundred, nil, 51, 0, 0, 0},
		{weighs, nil, 3, 13, 13, 2 * time.Second}, {weighs, set, 3, 20, 20, 4 * time.Second}, {weighs, nil, 41, 0, 0, 0},
		{byClock, nil, 2, 0, 0, 0}, {all, nil, 5, 8, 8, time.Second}, {six, nil, 2, 0, 0, 0},
	} {
		l, seen := c.of(), c.of()
		if c.change != nil {
			c.change(seen)
		}
		ok := Divide(l, seen, 0, c.n)
		if ok != (c.rate > 0) {
			t.Errorf("%T by %d: %v", l, c.n, ok)
		}
		if u := limit.AppendUsage(nil, l, 0)[0]; ok && (u.PerWindow != c.rate || u.Allowed != c.burst || u.Window != c.window) {
			t.Errorf("%T by %d: %+v", l, c.n, u)
		}
	}
	if !Divide(pause(), pause(), 0, 9) {
		t.Error("a pause, which is the same for all, is not divided")
	}
}

// The store is away after any error but those of a turn that read it: of another limit, or of another version.
func TestAway(t *testing.T) {
	for _, c := range []struct {
		err  error
		away bool
	}{
		{errAway, true}, {ErrWait, true}, {&ConfigurationError{}, false}, {&VersionError{}, false},
		{fmt.Errorf("a turn: %w", &ConfigurationError{}), false}, {fmt.Errorf("a turn: %w", &VersionError{}), false},
	} {
		if got := Away(c.err); got != c.away {
			t.Errorf("after %v the store is away: %t", c.err, got)
		}
	}
}

// A part holds for twice TTL after the last turn that failed, and not at the end of that. Neither do its requests.
func TestEndOfAPart(t *testing.T) {
	_, a, _, p, fails := apart(t)
	fails(*p + 5000*ms)
	end := a.began.Add(2 * a.config.TTL)
	sent := &limit.Sent{At: *p, Number: 1e6, Cost: limit.One}
	a.Admit(sent)
	for _, c := range []struct {
		at mono.Time
		on bool
	}{{end - 1, true}, {end, false}} {
		if ready, fresh := a.Ready(c.at, limit.One) <= c.at, a.Fresh(c.at, sent); ready != c.on || fresh != c.on {
			t.Errorf("%v from its end: it may send %t, and a request may be written %t", c.at.Sub(end), ready, fresh)
		}
	}
}
