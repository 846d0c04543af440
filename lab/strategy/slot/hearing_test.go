package slot_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy/slot"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// What was on its way when a request was refused says nothing new, whoever hears of it: of three that were refused together the first counts.
func TestOneRefusalOfThoseUnderway(t *testing.T) {
	l, err := slot.NewHeaderless(slot.Config{Rate: 10, Burst: 4500, Rng: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	now := mono.Time(0)
	send := func() limit.Lease {
		now = l.Ready(now, limit.One)
		return l.Admit(now, limit.One)
	}
	for range 4 { // so that several may be in flight
		lease := send()
		now = now.Add(100 * time.Millisecond)
		l.Settle(now, lease, limit.Outcome{Result: limit.Accepted})
	}
	first := now
	leases := []limit.Lease{send(), send(), send()}
	if now.Sub(first) > 250*time.Millisecond {
		t.Fatalf("the third goes after %v: they were not underway together", now.Sub(first))
	}
	now = now.Add(100 * time.Millisecond)
	var next []time.Duration
	for _, lease := range leases {
		l.Settle(now, lease, limit.Outcome{Result: limit.Limited})
		next = append(next, l.Ready(now, limit.One).Sub(now))
	}
	if next[1] != next[0] || next[2] != next[0] {
		t.Errorf("the next goes after %v", next)
	}
}

// Who is not answered goes on by his share of ten: twice as often with twice the weight.
func TestWeightWithoutAnswers(t *testing.T) {
	for weight, want := range map[float64]time.Duration{1: 9500 * time.Millisecond, 2: 4750 * time.Millisecond} {
		l, err := slot.New(slot.Config{Rate: 1, Burst: 4500, Weight: weight, Rng: rand.New(rand.NewPCG(1, 2))})
		if err != nil {
			t.Fatal(err)
		}
		l.Admit(0, limit.One)
		if next := l.Ready(0, limit.One).Sub(0); next != want {
			t.Errorf("with a weight of %v the next goes after %v, want %v", weight, next, want)
		}
	}
}

// After the first refusal nobody knows how many there are, and none goes before a token is there for it: not even who claims most of them.
func TestHeavyIsRefusedFirst(t *testing.T) {
	for seed := range uint64(20) {
		l, err := slot.New(slot.Config{Rate: 1, Burst: 4500, Weight: 20, Rng: rand.New(rand.NewPCG(1, seed))})
		if err != nil {
			t.Fatal(err)
		}
		l.Settle(mono.Time(time.Millisecond), l.Admit(0, limit.One), limit.Outcome{Result: limit.Limited})
		if next := l.Ready(0, limit.One).Sub(0); next < 1500*time.Millisecond {
			t.Errorf("the next goes after %v", next)
		}
	}
}

// Where what is said is not heeded any more, neither is how quickly the quota seemed to be refilled: it is the stated one that is shared.
func TestLeavesWithTheStatedRate(t *testing.T) {
	h := newHearing(t)
	h.hear(20)
	for i := range int64(6) {
		h.hear(60 + 40*i)
	}
	for n := range 8 {
		h.now = h.Ready(h.now, limit.One)
		lease := h.Admit(h.now, limit.One)
		h.now = h.now.Add(100 * time.Millisecond)
		h.Settle(h.now, lease, limit.Outcome{Result: limit.Accepted})
		if s := h.Sleep(); n >= 3 && s < 900*time.Millisecond { // less what it tries to be quicker
			t.Errorf("answer %d without what is left: one goes each %v, where one a second flows in", n, s)
		}
	}
}
