package bench

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"golang.org/x/time/rate"
)

// Limits of one window each: a small one, and one whose history no longer fits the nearest cache.
var sizes = []int64{20, 6000}

const window = time.Second

var served = limit.Outcome{Result: limit.Accepted, RTT: 30 * time.Millisecond}

// full returns a limiter whose window holds n answered requests, evenly spread, and the instant of the last of them.
func full(tb testing.TB, n int64) (limit.Limiter, mono.Time) {
	tb.Helper()
	l, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: window})
	if err != nil {
		tb.Fatal(err)
	}
	var now mono.Time
	for range n {
		now = now.Add(window / time.Duration(n))
		l.Settle(now, l.Admit(now, limit.One), served)
	}
	mustBeFull(tb, l, now)
	return l, now
}

func mustBeFull(tb testing.TB, l limit.Limiter, now mono.Time) {
	tb.Helper()
	if ready := l.Ready(now, limit.One); ready <= now || ready >= limit.AfterSettle {
		tb.Fatalf("at %v the limiter is ready at %v: its window is not full of answered requests", now, ready)
	}
}

// cycle sends ops requests, each at the first instant that the limiter allows: its window is full before each of them
// and after. It returns the instant of the last.
func cycle(l limit.Limiter, now mono.Time, ops int) mono.Time {
	for range ops {
		now = l.Ready(now, limit.One)
		l.Settle(now, l.Admit(now, limit.One), served)
	}
	return now
}

// BenchmarkRolling is one request through a full window: Ready, Admit and Settle by way of the Limiter interface.
func BenchmarkRolling(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			l, now := full(b, n)
			b.ReportAllocs()
			b.ResetTimer()
			now = cycle(l, now, b.N)
			b.StopTimer()
			mustBeFull(b, l, now)
		})
	}
}

// BenchmarkRollingRefused is a Ready that answers with a later instant.
func BenchmarkRollingRefused(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			l, now := full(b, n)
			b.ReportAllocs()
			b.ResetTimer()
			var latest mono.Time
			for range b.N {
				latest = max(latest, l.Ready(now, limit.One))
			}
			b.StopTimer()
			if latest <= now {
				b.Fatalf("not refused: ready at %v, now is %v", latest, now)
			}
		})
	}
}

// BenchmarkBeside times the same work in turns: Rolling, Rolling under a mutex, and golang.org/x/time/rate, which
// locks one itself, reserving at instants it is given. A turn is short, so that noise of the machine hits all three;
// the metrics are medians over the turns. x_faster is rate's time over Rolling's, x_faster_locked over that of Rolling
// under a mutex.
//
// The two do not promise the same: a token bucket of burst N lets through up to 2 N in a window, by its own clock and
// not the server's.
func BenchmarkBeside(b *testing.B) {
	const turn = 20_000
	for _, n := range sizes {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			var ours, locked, theirs []float64

			l, now := full(b, n)
			under, nowUnder := full(b, n)
			var mu sync.Mutex

			bucket := rate.NewLimiter(rate.Every(window/time.Duration(n)), int(n))
			wall := time.Now()
			bucket.ReserveN(wall, int(n))

			timed := func(f func()) float64 {
				start := time.Now()
				f()
				return float64(time.Since(start).Nanoseconds()) / turn
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range (b.N + turn - 1) / turn {
				ours = append(ours, timed(func() { now = cycle(l, now, turn) }))
				locked = append(locked, timed(func() {
					for range turn {
						mu.Lock()
						nowUnder = under.Ready(nowUnder, limit.One)
						lease := under.Admit(nowUnder, limit.One)
						mu.Unlock()
						mu.Lock()
						under.Settle(nowUnder, lease, served)
						mu.Unlock()
					}
				}))
				theirs = append(theirs, timed(func() {
					for range turn {
						r := bucket.ReserveN(wall, 1)
						wall = wall.Add(r.DelayFrom(wall))
					}
				}))
			}
			b.StopTimer()
			mustBeFull(b, l, now)
			mustBeFull(b, under, nowUnder)
			b.ReportMetric(0, "ns/op") // the three together; it would only mislead
			b.ReportMetric(median(ours), "rolling-ns")
			b.ReportMetric(median(locked), "rolling_locked-ns")
			b.ReportMetric(median(theirs), "rate-ns")
			b.ReportMetric(median(theirs)/median(ours), "x_faster")
			b.ReportMetric(median(theirs)/median(locked), "x_faster_locked")
		})
	}
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
