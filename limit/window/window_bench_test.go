package window_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

// Every benchmark has one counter and a now of its own, in a variable of the loop.

var sizes = []int{20, 300, 6000, 100_000}

func BenchmarkLog(b *testing.B) {
	for _, n := range sizes {
		gap := mono.Time(time.Second)/mono.Time(n) + 1 // one event each is just within the limit
		full := func(gap mono.Time) (*window.Log, mono.Time) {
			l := must(window.NewLog(n, time.Second))
			var now mono.Time
			for range n {
				now += gap
				l.Add(now)
			}
			return l, now
		}
		b.Run(fmt.Sprintf("Add/N=%d", n), func(b *testing.B) {
			l, now := full(gap)
			b.ReportAllocs()
			for b.Loop() {
				now += gap
				l.Add(now)
			}
		})
		b.Run(fmt.Sprintf("Take/N=%d", n), func(b *testing.B) {
			l, now := full(gap)
			b.ReportAllocs()
			refused := 0
			for b.Loop() {
				now += gap
				if !l.Take(now) {
					refused++
				}
			}
			if refused > 0 {
				b.Fatalf("%d refused", refused)
			}
		})
		b.Run(fmt.Sprintf("Refused/N=%d", n), func(b *testing.B) {
			l, now := full(gap / 2)
			b.ReportAllocs()
			taken := 0
			for b.Loop() {
				if l.Take(now) {
					taken++
				}
			}
			if taken > 0 {
				b.Fatalf("%d taken", taken)
			}
		})
		b.Run(fmt.Sprintf("Ready/N=%d", n), func(b *testing.B) {
			l, now := full(gap / 2)
			b.ReportAllocs()
			var latest mono.Time
			for b.Loop() {
				latest = max(latest, l.Ready(now))
			}
			if latest <= now {
				b.Fatal("not full")
			}
		})
		b.Run(fmt.Sprintf("Count/N=%d", n), func(b *testing.B) {
			l, now := full(gap)
			b.ReportAllocs()
			sum := 0
			for b.Loop() {
				now++
				sum += l.Count(now)
			}
			if sum == 0 {
				b.Fatal("nothing counted")
			}
		})
	}
}

// BenchmarkThreeWindows admits events to three windows of different length at once: at the caller's
// now, or each at the first instant at which all three have room.
func BenchmarkThreeWindows(b *testing.B) {
	second := must(window.NewLog(20, time.Second))
	minute := must(window.NewLog(600, time.Minute))
	hour := must(window.NewLog(18000, time.Hour))
	var now mono.Time
	b.Run("admit", func(b *testing.B) {
		b.ReportAllocs()
		refused := 0
		for b.Loop() {
			now += mono.Time(time.Hour)/18000 + 1
			if second.Full(now) || minute.Full(now) || hour.Full(now) {
				refused++
				continue
			}
			second.Add(now)
			minute.Add(now)
			hour.Add(now)
		}
		if refused > 0 {
			b.Fatalf("%d refused", refused)
		}
	})
	b.Run("admit when ready", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			now = max(second.Ready(now), minute.Ready(now), hour.Ready(now))
			second.Add(now)
			minute.Add(now)
			hour.Add(now)
		}
	})
	b.Run("refuse", func(b *testing.B) {
		for !second.Full(now) && !minute.Full(now) && !hour.Full(now) {
			second.Add(now)
			minute.Add(now)
			hour.Add(now)
		}
		b.ReportAllocs()
		free := 0
		for b.Loop() {
			if !second.Full(now) && !minute.Full(now) && !hour.Full(now) {
				free++
			}
		}
		if free > 0 {
			b.Fatalf("%d not refused", free)
		}
	})
}

func BenchmarkRuns(b *testing.B) {
	for _, n := range sizes {
		gap := mono.Time(time.Second) / mono.Time(n)
		full := func() (*window.Runs, mono.Time) {
			r := must(window.NewRuns(time.Second, n+1))
			var now mono.Time
			for range n {
				now += gap
				r.Add(now, 3)
			}
			return r, now
		}
		b.Run(fmt.Sprintf("Add/N=%d", n), func(b *testing.B) {
			r, now := full()
			b.ReportAllocs()
			for b.Loop() {
				now += gap
				r.Add(now, 3)
			}
		})
		b.Run(fmt.Sprintf("AddUneven/N=%d", n), func(b *testing.B) { // none to several leave at each Add, and no processor can predict how many
			r := must(window.NewRuns(time.Second, 2*n+64))
			rng := rand.New(rand.NewPCG(1, 2))
			gaps := make([]mono.Time, 1<<16)
			for i := range gaps {
				gaps[i] = 1 + mono.Time(rng.ExpFloat64()*float64(gap))
			}
			var now mono.Time
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				now += gaps[i&(len(gaps)-1)]
				r.Add(now, int64(i&7))
				i++
			}
		})
		b.Run(fmt.Sprintf("AddSameInstant/N=%d", n), func(b *testing.B) {
			r, now := full()
			b.ReportAllocs()
			for b.Loop() {
				r.Add(now, 3)
			}
		})
		b.Run(fmt.Sprintf("AddShared/N=%d", n), func(b *testing.B) { // three instants where one has exact room
			r, now := full()
			b.ReportAllocs()
			for b.Loop() {
				now += gap / 3
				r.Add(now, 3)
			}
		})
		b.Run(fmt.Sprintf("Total/N=%d", n), func(b *testing.B) {
			r, now := full()
			b.ReportAllocs()
			var most int64
			for b.Loop() {
				most = max(most, r.Total(now))
			}
			if most == 0 {
				b.Fatal("nothing counted")
			}
		})
	}
}

func BenchmarkSlots(b *testing.B) {
	const precision = time.Millisecond
	for _, c := range []struct {
		name string
		step time.Duration
	}{
		{"same slot", 0},
		{"next slot", precision},
		{"5 slots on", 5 * precision},
		{"big jump", 1000*precision + 1},
	} {
		b.Run("Add/"+c.name, func(b *testing.B) {
			s := must(window.NewSlots(64*precision, precision)) // 65 slots
			b.ReportAllocs()
			var now mono.Time
			for b.Loop() {
				now += mono.Time(c.step)
				s.Add(now, 3)
			}
		})
	}
	b.Run("Add/next slot, window no multiple", func(b *testing.B) {
		s := must(window.NewSlots(64*precision-precision/2, precision))
		b.ReportAllocs()
		var now mono.Time
		for b.Loop() {
			now += mono.Time(precision / 2) // leaves the slot every other time
			s.Add(now, 3)
		}
	})
	b.Run("Total", func(b *testing.B) {
		s := must(window.NewSlots(64*precision, precision))
		b.ReportAllocs()
		s.Add(0, 3)
		var most int64
		for b.Loop() {
			most = max(most, s.Total(0))
		}
	})
}

// BenchmarkCold adds to one of 200,000 counters, another one each time. So nothing of it is in the
// nearest cache.
func BenchmarkCold(b *testing.B) {
	const keys, stride = 200_000, 76_801 // no common factor: it visits all of them
	each := func(b *testing.B, add func(key int, now mono.Time)) {
		var now mono.Time
		for key := range keys {
			add(key, now)
		}
		b.ReportAllocs()
		key := 0
		for b.Loop() {
			now++
			if key += stride; key >= keys {
				key -= keys
			}
			add(key, now)
		}
	}
	b.Run("none", func(b *testing.B) {
		each(b, func(int, mono.Time) {})
	})
	b.Run("Log of 20", func(b *testing.B) {
		all := make([]*window.Log, keys)
		for i := range all {
			all[i] = must(window.NewLog(20, time.Second))
		}
		each(b, func(key int, now mono.Time) { all[key].Take(now) })
	})
	b.Run("Runs of 20", func(b *testing.B) {
		all := make([]*window.Runs, keys)
		for i := range all {
			all[i] = must(window.NewRuns(time.Second, 20))
		}
		each(b, func(key int, now mono.Time) { all[key].Add(now, 1) })
	})
	b.Run("Slots of 11", func(b *testing.B) {
		all := make([]*window.Slots, keys)
		for i := range all {
			all[i] = must(window.NewSlots(time.Second, 100*time.Millisecond))
		}
		each(b, func(key int, now mono.Time) { all[key].Add(now, 1) })
	})
}

// BenchmarkRemove adds an event and takes it back, or one of a quarter of the window before.
func BenchmarkRemove(b *testing.B) {
	const n = 300
	gap := mono.Time(time.Second)/n + 1
	for name, back := range map[string]mono.Time{"last": 0, "a quarter back": n / 4 * gap} {
		b.Run("Log/"+name, func(b *testing.B) {
			l, now := must(window.NewLog(n, time.Second)), mono.Time(0)
			b.ReportAllocs()
			for b.Loop() {
				now += gap
				l.Add(now)
				l.Remove(now - back)
			}
		})
		b.Run("Runs/"+name, func(b *testing.B) {
			r, now := must(window.NewRuns(time.Second, n)), mono.Time(0)
			b.ReportAllocs()
			for b.Loop() {
				now += gap
				r.Add(now, 3)
				r.Remove(now-back, 1)
			}
		})
	}
}

// BenchmarkLeave is Add with a function set by OnLeave.
func BenchmarkLeave(b *testing.B) {
	const n = 300
	gap := mono.Time(time.Second)/n + 1
	left := int64(0)
	leave := func(_ mono.Time, n int64) { left += n }
	b.Run("Log", func(b *testing.B) {
		l, now := must(window.NewLog(n, time.Second)).OnLeave(leave), mono.Time(0)
		b.ReportAllocs()
		for b.Loop() {
			now += gap
			l.Add(now)
		}
	})
	b.Run("Runs", func(b *testing.B) {
		r, now := must(window.NewRuns(time.Second, n)), mono.Time(0)
		r.OnLeave(leave)
		b.ReportAllocs()
		for b.Loop() {
			now += gap
			r.Add(now, 3)
		}
	})
	b.Run("Slots, next slot", func(b *testing.B) {
		s, now := must(window.NewSlots(time.Second, time.Second/64)), mono.Time(0)
		s.OnLeave(leave)
		b.ReportAllocs()
		for b.Loop() {
			now += mono.Time(time.Second / 64)
			s.Add(now, 3)
		}
	})
}
