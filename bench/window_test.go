package bench

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/RussellLuo/slidingwindow"
	"github.com/paceline-go/paceline/mono"
	counters "github.com/paceline-go/paceline/window"
	"golang.org/x/time/rate"
)

// An admitter says whether one more event may happen now, and counts it if so.
type admitter func(now time.Duration) bool

// admitters are ours, alone and under a mutex, and theirs, which lock one themselves, all for n events per window. epoch
// is the instant 0 of those that take a time.Time.
func admitters(epoch time.Time, n int) (names []string, makers []func() admitter) {
	add := func(name string, f func() admitter) {
		names, makers = append(names, name), append(makers, f)
	}
	log := func() *counters.Log { return must(counters.NewLog(n, window)) }
	runs := func() *counters.Runs { return must(counters.NewRuns(window, n+1)) }
	slots := func() *counters.Slots { return must(counters.NewSlots(window, window/10)) }
	limit := int64(n)

	add("log", func() admitter {
		l := log()
		return func(now time.Duration) bool { return l.Take(mono.Time(now)) }
	})
	add("runs", func() admitter {
		r := runs()
		return func(now time.Duration) bool {
			ok := r.Total(mono.Time(now)) < limit
			if ok {
				r.Add(mono.Time(now), 1)
			}
			return ok
		}
	})
	add("slots", func() admitter {
		s := slots()
		return func(now time.Duration) bool {
			ok := s.Total(mono.Time(now)) < limit
			if ok {
				s.Add(mono.Time(now), 1)
			}
			return ok
		}
	})
	add("log_locked", func() admitter {
		l := log()
		var mu sync.Mutex
		return func(now time.Duration) bool {
			mu.Lock()
			ok := l.Take(mono.Time(now))
			mu.Unlock()
			return ok
		}
	})
	add("rate", func() admitter {
		l := rate.NewLimiter(rate.Every(window/time.Duration(n)), n)
		return func(now time.Duration) bool { return l.AllowN(epoch.Add(now), 1) }
	})
	add("slidingwindow", func() admitter {
		l, _ := slidingwindow.NewLimiter(window, limit, func() (slidingwindow.Window, slidingwindow.StopFunc) {
			return slidingwindow.NewLocalWindow()
		})
		return func(now time.Duration) bool { return l.AllowN(epoch.Add(now), 1) }
	})
	return names, makers
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// BenchmarkAdmit times one decision to admit, all at the same instants, in turns, so that noise of the machine hits all
// alike; the metrics are medians over the turns, and x_rate and x_slidingwindow are their times over that of a Log
// (x_…_locked: over that of a Log under a mutex). Slots refuse one in eleven at this pace, 10 % above what they sustain.
func BenchmarkAdmit(b *testing.B) {
	const turn = 20_000
	for _, n := range sizes {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			names, makers := admitters(time.Now(), int(n))
			took := map[string][]float64{}
			admitted := map[string]int{}
			var running []admitter
			for _, f := range makers {
				running = append(running, f())
			}
			gap := window/time.Duration(n) + 1
			var from time.Duration
			b.ReportAllocs()
			b.ResetTimer()
			turns := (b.N + turn - 1) / turn
			for range turns {
				for i, allow := range running {
					ok := 0
					start := time.Now()
					for k := range time.Duration(turn) {
						if allow(from + k*gap) {
							ok++
						}
					}
					took[names[i]] = append(took[names[i]], float64(time.Since(start).Nanoseconds())/turn)
					admitted[names[i]] += ok
				}
				from += turn * gap
			}
			b.StopTimer()
			for _, name := range names {
				if admitted[name] < turns*turn*9/10-int(n) {
					b.Errorf("%s admitted %d of %d: it was not timed admitting", name, admitted[name], turns*turn)
				}
			}
			b.ReportMetric(0, "ns/op") // all of them together; it would only mislead
			medians := map[string]float64{}
			for _, name := range names {
				medians[name] = median(took[name])
				b.ReportMetric(medians[name], name+"-ns")
			}
			for _, peer := range []string{"rate", "slidingwindow"} {
				b.ReportMetric(medians[peer]/medians["log"], "x_"+peer)
				b.ReportMetric(medians[peer]/medians["log_locked"], "x_"+peer+"_locked")
			}
		})
	}
}

// TestMostInOneWindow asks every millisecond, and as often as it is admitted: the most that is then admitted in any one
// window, of a limit of 300. Ours never admit more than the limit. A token bucket of that burst admits it at once and
// again while it refills; a weighted previous window takes what happened at its end for evenly spread, and fades it out.
func TestMostInOneWindow(t *testing.T) {
	const n = 300
	// The windows of slidingwindow begin with whole seconds: 667 ms from here.
	names, makers := admitters(time.Date(2025, 1, 1, 0, 0, 0, 333_000_000, time.UTC), n)
	for i, name := range names {
		var worst int
		for _, first := range []time.Duration{0, window / 3, window/10 - 1, 666 * time.Millisecond, window - 1} {
			for _, pause := range []time.Duration{time.Millisecond, window / 4, window / 2, window - time.Millisecond} {
				worst = max(worst, mostInOneWindow(makers[i](), first, pause))
			}
		}
		t.Logf("%-14s %d of %d in one window (%.2f)", name, worst, n, float64(worst)/n)
		ours := name != "rate" && name != "slidingwindow"
		if ours && worst != n {
			t.Errorf("%s: %d in one window, want the limit, %d", name, worst, n)
		}
		if !ours && worst <= n {
			t.Errorf("%s: %d in one window: the remark that it admits more than %d is out of date", name, worst, n)
		}
	}
}

// mostInOneWindow asks at first, and from pause later on every millisecond, and returns the most admitted in one closed
// window.
func mostInOneWindow(allow admitter, first, pause time.Duration) (most int) {
	var events []time.Duration
	for now := first; now < 3*window; {
		for allow(now) {
			events = append(events, now)
		}
		if now == first {
			now += pause
		} else {
			now += time.Millisecond
		}
	}
	oldest := 0
	for i, now := range events {
		for now-events[oldest] > window {
			oldest++
		}
		most = max(most, i-oldest+1)
	}
	return most
}
