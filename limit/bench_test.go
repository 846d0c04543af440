package limit_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// benchKinds are limits of n per minute, of every kind, at default settings.
var benchKinds = []struct {
	name string
	new  func(n int64) (limit.Limiter, error)
}{
	{"Rolling", func(n int64) (limit.Limiter, error) {
		return limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Minute})
	}},
	{"RollingCoarse", func(n int64) (limit.Limiter, error) {
		return limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Minute, Grain: 100 * ms})
	}},
	{"Calendar", func(n int64) (limit.Limiter, error) {
		return limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: time.Minute})
	}},
	{"CalendarOfAZone", func(n int64) (limit.Limiter, error) {
		zone, err := time.LoadLocation("America/Los_Angeles")
		if err != nil {
			return nil, err
		}
		return limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: time.Minute, Zone: zone, Epoch: time.Unix(1e9, 0)})
	}},
	{"Anchored", func(n int64) (limit.Limiter, error) {
		return limit.NewAnchored(limit.AnchoredConfig{Limit: n, Window: time.Minute})
	}},
	{"Bucket", func(n int64) (limit.Limiter, error) {
		return limit.NewBucket(limit.BucketConfig{Limit: n, Window: time.Minute})
	}},
	{"Weighted", func(n int64) (limit.Limiter, error) {
		return limit.NewWeighted(limit.WeightedConfig{Limit: n, Window: time.Minute})
	}},
	{"AllOfFour", func(n int64) (limit.Limiter, error) {
		var all []limit.Limiter
		for _, unit := range []limit.Unit{limit.Requests, limit.Input, limit.Output, limit.Tokens} {
			l, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Minute, Unit: unit})
			if err != nil {
				return nil, err
			}
			all = append(all, l)
		}
		return limit.NewAll(all...), nil
	}},
}

var benchCost = limit.Cost{limit.Requests: 1, limit.Input: 1, limit.Output: 1, limit.Tokens: 1}

// BenchmarkLease is the price of a request: Ready, Admit and Settle through the interface. It runs
// at the rate of the limit, so the window is always nearly full. B/limiter is the memory of the
// limiter then.
func BenchmarkLease(b *testing.B) {
	for _, kind := range benchKinds {
		for _, n := range []int64{20, 300, 6000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, n), func(b *testing.B) {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				l := must(kind.new(n))
				now, step := mono.Time(0), time.Minute*11/10/time.Duration(n)
				sent, served := limit.Sent{Cost: benchCost}, limit.Outcome{Result: limit.Accepted}
				request := func() {
					now = max(now.Add(step), l.Ready(now, benchCost))
					sent.At = now
					sent.Number++
					l.Admit(&sent)
					l.Settle(now, &sent, &served)
				}
				for range 2 * n {
					request()
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportAllocs()
				for b.Loop() {
					request()
				}
				b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "B/limiter")
				runtime.KeepAlive(l)
			})
		}
	}
}

// BenchmarkRefused is Ready while the window is full.
func BenchmarkRefused(b *testing.B) {
	for _, kind := range benchKinds {
		for _, n := range []int64{20, 300, 6000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", kind.name, n), func(b *testing.B) {
				l := must(kind.new(n))
				now := mono.Time(0)
				for l.Ready(now, benchCost) == now {
					l.Settle(now, limittest.Admit(l, now, benchCost), &limit.Outcome{Result: limit.Accepted})
				}
				b.ReportAllocs()
				for b.Loop() {
					if l.Ready(now, benchCost) <= now {
						b.Fatal("not refused")
					}
				}
			})
		}
	}
}
