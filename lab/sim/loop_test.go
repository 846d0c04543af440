package sim_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit/mono"
)

func TestLoopHandsOutInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	type planned struct {
		at mono.Time
		n  int
	}
	var l sim.Loop[int]
	var want []planned
	for n := range 500 {
		at := mono.Time(rng.IntN(50))
		l.At(at, n)
		want = append(want, planned{at, n})
	}
	slices.SortStableFunc(want, func(a, b planned) int { return int(a.at - b.at) })
	for _, w := range want {
		if n, ok := l.Next(100); !ok || n != w.n || l.Now() != w.at {
			t.Fatalf("event %d at %v (%v), want %d at %v", n, l.Now(), ok, w.n, w.at)
		}
	}
	l.At(10, 1) // in the past: now
	if _, ok := l.Next(l.Now() - 1); ok {
		t.Error("an event after until was handed out")
	}
	if _, ok := l.Next(100); !ok || l.Now() != want[len(want)-1].at {
		t.Errorf("an event in the past moved time to %v", l.Now())
	}
}

func BenchmarkLoop(b *testing.B) {
	var l sim.Loop[[4]int32]
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		l.At(mono.Time(rng.IntN(1000)), [4]int32{})
	}
	for b.Loop() {
		e, _ := l.Next(mono.Max)
		l.At(l.Now()+mono.Time(rng.IntN(1000)), e)
	}
}
