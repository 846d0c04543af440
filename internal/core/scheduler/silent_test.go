package scheduler_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// shy is silent until it is to speak, and records each call.
type shy struct {
	on      bool
	skipped iter.Seq[*limit.Sent]
	calls   []string
}

func (s *shy) note(format string, a ...any) { s.calls = append(s.calls, fmt.Sprintf(format, a...)) }

func (s *shy) Silent(skipped iter.Seq[*limit.Sent]) *bool {
	s.skipped = skipped
	return &s.on
}

func (s *shy) Ready(now mono.Time, _ limit.Cost) mono.Time {
	s.note("ready")
	return now
}

func (s *shy) Admit(sent *limit.Sent) { s.note("admit %d", count(sent)) }

func (s *shy) Settle(_ mono.Time, sent *limit.Sent, o *limit.Outcome) {
	if !o.Plain() {
		s.speak()
	}
	s.note("settle %d", count(sent))
}

// count returns how many requests there were until sent. The lower bits of a Number are a place.
func count(sent *limit.Sent) uint64 { return sent.Number >> 24 }

// speak ends the silence.
func (s *shy) speak() {
	for sent := range s.skipped {
		s.note("skipped %d at %d", count(sent), sent.At)
	}
	s.on = false
}

// A limit is not called while it is silent. Before it speaks it gets all that is in flight, the request
// that ends included, and each once.
func TestSilent(t *testing.T) {
	for name, settle := range map[string]func(*scheduler.Scheduler, scheduler.Pass, limit.Outcome){
		"Settle": func(l *scheduler.Scheduler, p scheduler.Pass, o limit.Outcome) { l.Settle(3, p, &o) },
		"SettleEach": func(l *scheduler.Scheduler, p scheduler.Pass, o limit.Outcome) {
			l.SettleEach(3, p, func(*scheduler.Limit) *limit.Outcome { return &o })
		},
	} {
		l := scheduler.New(scheduler.Config{})
		limits := [2]*shy{{on: true}, {on: true}}
		wide, other := l.Limit(limits[0], scheduler.Sharing{}), l.Limit(limits[1], scheduler.Sharing{})
		lanes := [2]*scheduler.Lane{
			l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{other, wide}),
			l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{wide}),
		}
		send := func(now mono.Time, lane int) scheduler.Pass {
			p, at := l.Try(now, lanes[lane], &limit.One, nil)
			if at > now {
				t.Fatalf("it may go at %v", at)
			}
			return p
		}
		first, second, third := send(1, 0), send(2, 1), send(3, 0)
		settle(l, first, accepted)
		fourth := send(4, 1)
		if got := slices.Concat(limits[0].calls, limits[1].calls); len(got) > 0 {
			t.Errorf("%s: silent limits were called: %q", name, got)
		}
		settle(l, third, limit.Outcome{Result: limit.Limited})
		fifth := send(9, 1)
		slices.Sort(limits[0].calls[:3]) // those in flight come in no order
		wants := []string{"skipped 2 at 2", "skipped 3 at 3", "skipped 4 at 4", "settle 3", "ready", "admit 5"}
		if !slices.Equal(limits[0].calls, wants) {
			t.Errorf("%s: calls %q, want %q", name, limits[0].calls, wants)
		}
		if wants := []string{"skipped 3 at 3", "settle 3"}; !slices.Equal(limits[1].calls, wants) {
			t.Errorf("%s: calls of the other %q, want %q", name, limits[1].calls, wants)
		}
		limits[0].on, limits[0].calls = true, nil
		sixth := send(9, 1)
		for _, p := range []scheduler.Pass{second, fourth, fifth, sixth} {
			settle(l, p, accepted)
		}
		if wants := []string{"settle 2", "settle 4", "settle 5"}; !slices.Equal(limits[0].calls, wants) {
			t.Errorf("%s: silent again, calls %q, want %q", name, limits[0].calls, wants)
		}
		if limits[0].speak(); len(limits[0].calls) != 3 {
			t.Errorf("%s: with nothing in flight, it got %q", name, limits[0].calls[3:])
		}
	}
}

// What may have changed the result of Try changes the number that Due returns: a send, and its end.
func TestDueChanges(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	m := l.Limit(limit.MustRolling(1, 1000), scheduler.Sharing{})
	a := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{m})
	changes := func() uint64 {
		_, n, _ := l.Due(0)
		return n
	}
	before := changes()
	p, at := l.Try(0, a, &limit.One, nil)
	sent := changes()
	if at != 0 || sent == before {
		t.Errorf("it goes at %v, and a send makes %d of %d", at, sent, before)
	}
	if _, at := l.Try(0, a, &limit.One, nil); at == 0 || changes() != sent {
		t.Errorf("a refusal, until %v, makes %d of %d", at, changes(), sent)
	}
	if l.Settle(0, p, &accepted); changes() == sent {
		t.Errorf("the end of a request leaves %d", sent)
	}
}

// In the longest way, too, a limit that was silent at both ends of a request is not called.
func TestSilentInTheLongestWay(t *testing.T) {
	l := scheduler.New(scheduler.Config{})
	var all []*shy
	var way []*scheduler.Limit
	for range scheduler.MaxLimits {
		all = append(all, &shy{on: true})
		way = append(way, l.Limit(all[len(all)-1], scheduler.Sharing{}))
	}
	p, _ := l.Try(0, l.Lane(scheduler.LaneConfig{}, way), &limit.One, &limit.One)
	for _, s := range all {
		s.calls = nil
	}
	l.Settle(1, p, &limit.Outcome{Result: limit.Accepted})
	for k, s := range all {
		if len(s.calls) > 0 {
			t.Errorf("limit %d of %d: %q", k+1, len(all), s.calls)
		}
	}
}
