package scheduler

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// The virtual time of a while ago is read between two steps, and before the first it is that of the
// first.
func TestPastBetweenSteps(t *testing.T) {
	at := func(s float64) mono.Time { return mono.Time(s * 1e9) }
	p := &past{span: 32 * time.Second} // a step a second
	if got := p.at(at(5), at(9), 77); got != 77 {
		t.Errorf("where nothing is known it is %v", got)
	}
	q := &fairness{past: *p, virtual: 10}
	for _, c := range []struct{ now, start float64 }{{10, 20}, {10.5, 30}, {11, 40}, {11.5, 35}, {20, 50}} {
		q.serve(at(c.now), c.start, 3)
	}
	if q.virtual != 50 || q.past.most != 3 || len(q.past.steps) != 3 {
		t.Fatalf("%+v", q)
	}
	for _, c := range []struct{ when, want float64 }{{1, 10}, {10, 10}, {10.5, 20}, {11, 30}, {15.5, 35}, {20, 40}, {21, 45}, {22, 50}} {
		if got := q.past.at(at(c.when), at(22), q.virtual); got != c.want {
			t.Errorf("at %v s it was %v, want %v", c.when, got, c.want)
		}
	}
	if got := q.past.at(at(20), at(20), 50); got != 40 {
		t.Errorf("at the last step itself it was %v, want 40", got)
	}
	q.past.note(at(43), 60) // 32 s ago is 11: the step at 10 says nothing more
	if n := len(q.past.steps); n != 3 || q.past.steps[0].at != at(11) || q.past.steps[2] != (step{at(43), 60}) {
		t.Errorf("%+v", q.past.steps)
	}
	for span, want := range map[time.Duration]time.Duration{0: time.Second, time.Minute: time.Minute / 32, 64 * time.Millisecond: 2 * time.Millisecond, 32 * time.Millisecond: time.Millisecond, 1: time.Millisecond} {
		if got := (&past{span: span}).every(); got != want {
			t.Errorf("of %v there is a step every %v, want %v", span, got, want)
		}
	}
	q.remember(time.Second)
	if q.past.span != 32*time.Second {
		t.Errorf("known for %v", q.past.span)
	}
}

// A Class of weight 0 or none has 1, and too large or small a weight the nearest bound. Size bounds
// its tickets, too.
func TestWhatAShareIs(t *testing.T) {
	s := New(Config{}).Share(ShareConfig{})
	nan := 0.0
	for weight, want := range map[float64]float64{0: 1, -3: 1, nan / nan: 1, 0.5: 0.5, 3: 3, 1e7: 1e6, 1e-9: 1e-6} {
		if s.Set(ShareConfig{Weight: weight, Size: 4}); s.Config() != (ShareConfig{Weight: want, Size: 4}) {
			t.Errorf("%v becomes %+v", weight, s.Config())
		}
	}
	for _, c := range []struct {
		size, count int
		full        bool
	}{{0, 0, false}, {0, 5, false}, {1, 0, false}, {1, 1, true}, {3, 2, false}, {3, 3, true}, {3, 4, true}} {
		if s.config.Size, s.count = c.size, c.count; s.full() != c.full {
			t.Errorf("%d of %d: full %v", c.count, c.size, s.full())
		}
	}
}

// A lane knows whether it is asked for the same cost as before, so that its ways need not be asked again. A ticket
// whose cost depends on the way is never the same, and neither is the one after it.
func TestAsksForTheSame(t *testing.T) {
	plain := func(requests, tokens int64) *Ticket {
		t := &Ticket{}
		t.Ask(&limit.Cost{limit.Requests: requests, limit.Tokens: tokens})
		return t
	}
	each := &Ticket{}
	each.AskEach(&limit.Cost{limit.Requests: 1}, []limit.Cost{limit.One, limit.One})
	for name, classes := range map[string]bool{"a lane with classes": true, "a lane without": false} {
		a := &Lane{classes: classes}
		for i, c := range []struct {
			t    *Ticket
			same bool
		}{
			{plain(1, 0), false}, {plain(1, 0), true}, {plain(1, 5), false}, {each, false}, {each, !classes}, {plain(1, 5), false},
			{plain(0, 5), false}, {each, false}, {plain(0, 5), false},
		} {
			if same := a.asks(c.t); same != c.same {
				t.Errorf("%s, ticket %d: the same %t", name, i, same)
			}
		}
	}
}
