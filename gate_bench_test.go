package paceline_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
)

// BenchmarkGate is the price of passing a Gate that is not full, and that of a refusal.
func BenchmarkGate(b *testing.B) {
	wide := func() *limit.Rolling { return limit.MustRolling(1<<40, time.Millisecond) }
	b.Run("WaitSettle", func(b *testing.B) {
		g := paceline.NewGate(wide())
		b.ReportAllocs()
		for b.Loop() {
			p, err := g.Wait(bg, limit.One)
			if err != nil {
				b.Fatal(err)
			}
			p.Settle(accepted)
		}
	})
	b.Run("WaitSettleWithDeadline", func(b *testing.B) {
		ctx, cancel := context.WithTimeout(bg, time.Hour)
		defer cancel()
		g := paceline.NewGate(wide())
		b.ReportAllocs()
		for b.Loop() {
			p, err := g.Wait(ctx, limit.One)
			if err != nil {
				b.Fatal(err)
			}
			p.Settle(accepted)
		}
	})
	b.Run("TryWaitSettle", func(b *testing.B) {
		g := paceline.NewGate(wide())
		b.ReportAllocs()
		for b.Loop() {
			p, _, _ := g.TryWait(limit.One)
			p.Settle(accepted)
		}
	})
	b.Run("TryWaitRefused", func(b *testing.B) {
		g := paceline.NewGate(limit.MustRolling(1, time.Hour))
		g.TryWait(limit.One)
		b.ReportAllocs()
		for b.Loop() {
			if _, _, ok := g.TryWait(limit.One); ok {
				b.Fatal("not refused")
			}
		}
	})
	b.Run("AllOfFour", func(b *testing.B) {
		g := paceline.NewGate(limit.NewAll(wide(), wide(), wide(), wide()))
		b.ReportAllocs()
		for b.Loop() {
			p, _ := g.Wait(bg, limit.One)
			p.Settle(accepted)
		}
	})
	b.Run("Parallel", func(b *testing.B) {
		g := paceline.NewGate(wide())
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				p, _ := g.Wait(bg, limit.One)
				p.Settle(accepted)
			}
		})
	})
}

// BenchmarkGateLine is one turn of a line of 100 goroutines, one in flight: settle, hand over, wake, line up again.
func BenchmarkGateLine(b *testing.B) {
	g := paceline.NewGate(concurrency(b, 1))
	b.ReportAllocs()
	b.SetParallelism(100 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, _ := g.Wait(bg, limit.One)
			p.Settle(accepted)
		}
	})
}

// BenchmarkGateGiveUp is 10,000 goroutines that line up and all give up.
func BenchmarkGateGiveUp(b *testing.B) {
	g := paceline.NewGate(concurrency(b, 1))
	g.TryWait(limit.One)
	for b.Loop() {
		ctx, cancel := context.WithCancel(bg)
		var wg sync.WaitGroup
		for range many {
			wg.Go(func() { g.Wait(ctx, limit.One) })
		}
		for g.Waiting() != many {
			runtime.Gosched()
		}
		cancel()
		wg.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(many), "ns/waiter")
}

// BenchmarkGroup is the price of passing four limits at once. Beside it is the price of passing
// four Gates one after another, where a waiting request blocks others. With Guarded, each limit has
// package stack around it, as the transport's limits have.
func BenchmarkGroup(b *testing.B) {
	bare := func() limit.Limiter { return limit.MustRolling(1<<40, time.Millisecond) }
	guarded := func() limit.Limiter {
		g, err := stack.New(stack.Config{Limiter: bare()})
		if err != nil {
			b.Fatal(err)
		}
		return g
	}
	for _, kind := range []struct {
		name  string
		limit func() limit.Limiter
	}{{"Bare", bare}, {"Guarded", guarded}} {
		b.Run("FourLimits"+kind.name, func(b *testing.B) {
			j, err := paceline.NewGroup(paceline.GroupConfig{})
			if err != nil {
				b.Fatal(err)
			}
			var way []*paceline.Limit
			for range 4 {
				way = append(way, j.Limit(paceline.LimitConfig{Limiter: kind.limit()}))
			}
			lane := j.Lane(paceline.LaneConfig{}, way)
			b.ReportAllocs()
			for b.Loop() {
				p, err := lane.Wait(bg, limit.One)
				if err != nil {
					b.Fatal(err)
				}
				p.Settle(accepted)
			}
		})
		b.Run("FourGates"+kind.name, func(b *testing.B) {
			var gates []*paceline.Gate
			for range 4 {
				gates = append(gates, paceline.NewGate(kind.limit()))
			}
			var permits [4]paceline.Permit
			b.ReportAllocs()
			for b.Loop() {
				for i, g := range gates {
					p, err := g.Wait(bg, limit.One)
					if err != nil {
						b.Fatal(err)
					}
					permits[i] = p
				}
				for i := range permits {
					permits[i].Settle(accepted)
				}
			}
		})
	}
}
