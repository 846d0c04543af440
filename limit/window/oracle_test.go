package window_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

const ms = time.Millisecond

func at(d time.Duration) mono.Time { return mono.Time(d) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// naive is the trivial counter: it keeps every event, and sums them up for every question. The
// other counters are judged by it.
type naive map[mono.Time]int64

// since returns the number of events from one instant to another, both included.
func (m naive) since(from, to mono.Time) (total int64) {
	for t, n := range m {
		if from <= t && t <= to {
			total += n
		}
	}
	return total
}

// count returns the number of events in the closed window that ends at now.
func (m naive) count(now mono.Time, window time.Duration) int64 {
	return m.since(now.Add(-window), now)
}

// instants returns how many different instants are in the closed window that ends at now.
func (m naive) instants(now mono.Time, window time.Duration) (total int) {
	for t := range m {
		if now.Add(-window) <= t && t <= now {
			total++
		}
	}
	return total
}

// worst returns the most events in any closed window. Such a window can always be moved to end at
// an event.
func (m naive) worst(window time.Duration) (most int64) {
	for t := range m {
		most = max(most, m.count(t, window))
	}
	return most
}

// A step of a fuzzed timeline: n events at now, or a question if n is 0. now may be before that of
// the last step. If take is not 0, a removal takes events from the instant of the take-th step
// before.
type step struct {
	now  mono.Time
	n    int64
	take int
}

// timeline makes steps of fuzzed bytes, two each. Steps in time are small ones, a tenth of the
// window, the window itself and one more, back, and far ahead.
func timeline(start int64, window time.Duration, ops []byte) (steps []step) {
	now := min(mono.Time(start), mono.Max)
	for len(ops) >= 2 && len(steps) < 300 {
		size := time.Duration(ops[0] >> 3)
		switch ops[0] & 7 {
		case 0, 1:
			now = now.Add(size)
		case 2, 3:
			now = now.Add(window/16*size + 1)
		case 4:
			now = now.Add(window)
		case 5:
			now = now.Add(1).Add(window)
		case 6:
			now = now.Add(-window / 16 * size)
		case 7:
			for range size {
				now = now.Add(window)
			}
		}
		steps = append(steps, step{now, int64(ops[1] & 7), int(ops[1] >> 3)})
		ops = ops[2:]
	}
	return steps
}

var fuzzSeeds = []struct {
	start  int64
	window int64
	ops    string
}{
	{0, 1000, "\x08\x01\x08\x01\x08\x03\x28\x02\x04\x01\x05\x01\x10\x00"},
	{-50, 100, "\x00\x01\x50\x03\xa0\x01\x8a\x04\x8a\x01\x8a\x01\x46\x01\x05\x00"},
	{1 << 62, 1 << 61, "\x08\x01\x8a\x02\x04\x01\x05\x01\x3f\x02\x08\x01"},
	{int64(mono.Min), 17, "\x00\x07\x08\x01\x12\x01\x04\x01\x05\x01\x46\x03\x3f\x01\x08\x01"},
	{int64(mono.Max) - 60, 40, "\x08\x07\x50\x01\x12\x01\x04\x01\x05\x01\x46\x03\x3f\x01\x08\x01"},
	{0, 90, "\x02\x01\x02\x01\x02\x01\x0a\x01\x0a\x01\x0a\x01\x0a\x01\x0a\x01\x0a\x01\x0a\x01\x0a\x01\x0a\x01\x12\x01\x12\x01\x12\x01"},
	{5, 1<<63 - 1, "\x08\x01\x12\x01\x22\x01\x3f\x01"},
	{0, 7, long(1, 0xff)},
	{-1000, 64, long(2, 0x1f)}, // small steps in time
	{0, 200, long(3, 0x1b)},    // smaller ones, never a whole window
	{0, 1_000_000_000, long(4, 0xff)},
}

// long is a timeline of 300 steps. It has random bytes. The first byte of each two keeps only the
// bits of mask.
func long(seed uint64, mask byte) string {
	random := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, 600)
	for i := range b {
		if b[i] = byte(random.Uint32()); i%2 == 0 {
			b[i] &= mask
		}
	}
	return string(b)
}

// FuzzLog: a Log counts as the naive counter does, up to its limit. It is ready exactly when one
// more event fits.
func FuzzLog(f *testing.F) {
	for i, s := range fuzzSeeds {
		f.Add(s.start, s.window, uint8(i+1), []byte(s.ops))
		f.Add(s.start, s.window, uint8(3*i+3), []byte(s.ops+s.ops))
	}
	f.Fuzz(func(t *testing.T, start, length int64, limit uint8, ops []byte) {
		w := time.Duration(length)
		if w <= 0 || limit == 0 {
			return // no such Log
		}
		l := must(window.NewLog(int(limit), w))
		seen := naive{}
		last := mono.Min
		for i, s := range timeline(start, w, ops) {
			now := max(s.now, last)
			exact := seen.count(now, w)
			if got, want := l.Count(s.now), int(min(exact, int64(limit))); got != want {
				t.Fatalf("step %d, at %d: count %d, want %d", i, now, got, want)
			}
			if got, want := l.Full(s.now), exact >= int64(limit); got != want {
				t.Fatalf("step %d, at %d: full %v, want %v: %d of %d", i, now, got, want, exact, limit)
			}
			ready := l.Ready(s.now)
			if ready < now {
				t.Fatalf("step %d, at %d: ready before, at %d", i, now, ready)
			}
			if ready <= mono.Max && seen.count(ready, w) >= int64(limit) {
				t.Fatalf("step %d, at %d: ready too soon, at %d", i, now, ready)
			}
			if ready > now && seen.count(min(ready-1, mono.Max), w) < int64(limit) {
				t.Fatalf("step %d, at %d: ready too late, at %d", i, now, ready)
			}
			for range s.n {
				if s.n == 7 { // a fact, full or not
					l.Add(s.now)
				} else if free := seen.count(now, w) < int64(limit); l.Take(s.now) != free {
					t.Fatalf("step %d, at %d: taken: %v", i, now, !free)
				} else if !free {
					continue
				}
				seen[now]++
				last = now
			}
		}
	})
}

// FuzzRuns: a Runs counts as the naive counter does while the window holds at most its number of
// instants. Beyond that it never counts less, and no event counts for longer than documented.
func FuzzRuns(f *testing.F) {
	for i, s := range fuzzSeeds {
		f.Add(s.start, s.window, uint8(i+1), []byte(s.ops))
		f.Add(s.start, s.window, uint8(3*i+3), []byte(s.ops+s.ops))
	}
	f.Fuzz(func(t *testing.T, start, length int64, instants uint8, ops []byte) {
		w := time.Duration(length)
		if w <= 0 || instants == 0 {
			return // no such Runs
		}
		r := must(window.NewRuns(w, int(instants)))
		grain := (w-1)/time.Duration(instants) + 1
		seen := naive{}
		last := mono.Min
		crowded, ever := mono.Min, false
		for i, s := range timeline(start, w, ops) {
			now := max(s.now, last)
			last = now
			if s.n > 0 {
				seen[now] += s.n
				if seen.instants(now, w) > int(instants) {
					crowded, ever = now, true
				}
				r.Add(s.now, s.n)
			}
			got, exact := r.Total(s.now), seen.count(now, w)
			if got < exact {
				t.Fatalf("step %d, at %d: total %d, undercounts %d", i, now, got, exact)
			}
			if got > exact && (!ever || now.Sub(crowded) > w) {
				t.Fatalf("step %d, at %d: total %d, want %d: never more than %d instants", i, now, got, exact, instants)
			}
			if most := seen.since(now.Add(-w).Add(1-grain), now); got > most {
				t.Fatalf("step %d, at %d: total %d, at most %d happened in the window and %v before it", i, now, got, most, grain)
			}
		}
	})
}

// FuzzSlots: a Slots never counts less than the naive counter does. It counts more by at most the
// events of the slot that contains now − window.
func FuzzSlots(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add(s.start, s.window, s.window, []byte(s.ops))
		f.Add(s.start, s.window, s.window/3+1, []byte(s.ops))
		f.Add(s.start, s.window, s.window/10+1, []byte(s.ops+s.ops))
	}
	f.Fuzz(func(t *testing.T, start, length, slot int64, ops []byte) {
		w, precision := time.Duration(length), time.Duration(slot)
		if w <= 0 || precision <= 0 || precision > w || w/precision > 1000 {
			return // no such Slots, or a large one
		}
		s := must(window.NewSlots(w, precision))
		// grid returns the beginning of an instant's slot. The first slot is the first that begins
		// at an instant. Earlier events count as in it.
		first := mono.Min - mono.Min%mono.Time(precision)
		grid := func(at mono.Time) mono.Time {
			at = max(at, first)
			into := at % mono.Time(precision)
			if into < 0 {
				into += mono.Time(precision)
			}
			return at - into
		}
		seen := naive{}
		last := first
		for i, step := range timeline(start, w, ops) {
			now := max(step.now, last)
			last = now
			if step.n > 0 {
				seen[now] += step.n
				s.Add(step.now, step.n)
			}
			from := now.Add(-w)
			exact, inSlots := seen.count(now, w), seen.since(grid(from), now)
			got := s.Total(step.now)
			if got < exact {
				t.Fatalf("step %d, at %d: total %d, undercounts %d", i, now, got, exact)
			}
			if got != inSlots {
				t.Fatalf("step %d, at %d: total %d, want %d: %d in the window, and the rest of the slot of %d", i, now, got, inSlots, exact, from)
			}
			certain := got
			if uint64(now)-uint64(first) >= uint64(w) { // otherwise the window is older than the first slot
				certain = seen.since(grid(from).Add(precision), now)
			}
			if least, most := s.Bounds(step.now); least != certain || most != got {
				t.Fatalf("step %d, at %d: bounds %d to %d, want %d to %d", i, now, least, most, certain, got)
			}
		}
	})
}
