package window_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

// told is a counter's report of events that left it.
type told struct {
	at mono.Time
	n  int64
}

type listener struct{ told []told }

func (l *listener) leave(at mono.Time, n int64) { l.told = append(l.told, told{at, n}) }

// expect checks the reports since its last call.
func (l *listener) expect(t *testing.T, now time.Duration, want ...told) {
	t.Helper()
	if !slices.Equal(l.told, want) {
		t.Errorf("at %v: told %v, want %v", now, l.told, want)
	}
	l.told = nil
}

func TestLogRemoveTimeline(t *testing.T) {
	l := must(window.NewLog(4, time.Second))
	for _, c := range []struct {
		now, remove time.Duration // the instant to take from; negative: nothing, but added
		count       int
		ready       time.Duration
	}{
		{100 * ms, -1, 1, 100 * ms},
		{200 * ms, -1, 2, 200 * ms},
		{300 * ms, -1, 3, 300 * ms},
		{300 * ms, -1, 4, 1100*ms + 1},
		{300 * ms, 300 * ms, 3, 300 * ms}, // the last
		{300 * ms, 250 * ms, 3, 300 * ms}, // nothing was at that instant
		{300 * ms, 400 * ms, 3, 300 * ms}, // nor later than the last
		{400 * ms, -1, 4, 1100*ms + 1},
		{400 * ms, 100 * ms, 3, 400 * ms}, // the first
		{500 * ms, -1, 4, 1200*ms + 1},
		{500 * ms, 300 * ms, 3, 500 * ms}, // one in the middle
		{500 * ms, 300 * ms, 3, 500 * ms}, // but once
		{600 * ms, -1, 4, 1200*ms + 1},
		{1201 * ms, 200 * ms, 3, 1201 * ms}, // gone by itself, though the log does not know it
		{1300 * ms, -1, 4, 1400*ms + 1},
		{1301 * ms, -1, 4, 1500*ms + 1}, // too many: the one of 400 ms is displaced
		{1301 * ms, 1301 * ms, 4, 1400*ms + 1},
		{1401 * ms, 1301 * ms, 3, 1401 * ms}, // that event is not there any more
		{1401 * ms, 600 * ms, 2, 1401 * ms},
		{5 * time.Second, 1300 * ms, 0, 5 * time.Second},
	} {
		if c.remove < 0 {
			l.Add(at(c.now))
		} else {
			l.Remove(at(c.remove))
		}
		if got := l.Count(at(c.now)); got != c.count {
			t.Errorf("at %v, after %v: %d, want %d", c.now, c.remove, got, c.count)
		}
		if got := l.Ready(at(c.now)); got != at(c.ready) {
			t.Errorf("at %v, after %v: ready at %v, want %v", c.now, c.remove, got, c.ready)
		}
	}
}

func TestRunsRemoveTimeline(t *testing.T) {
	r := must(window.NewRuns(time.Second, 4)) // shared pairs are up to 250 ms long
	for _, c := range []struct {
		now, remove time.Duration // the instant to take from; −1: nothing, but added
		n, want     int64
	}{
		{100 * ms, 100 * ms, 1, 0},
		{100 * ms, -1, 3, 3},
		{200 * ms, -1, 4, 7},
		{300 * ms, 200 * ms, 1, 6},
		{300 * ms, 100 * ms, 2, 4},
		{300 * ms, 100 * ms, 5, 3},  // only one is left
		{300 * ms, 150 * ms, 1, 3},  // nothing happened then
		{300 * ms, 200 * ms, -1, 3}, // nor does a negative number take anything
		{300 * ms, 300 * ms, 1, 3},
		{300 * ms, -1, 1, 4},
		{400 * ms, -1, 1, 5},
		{450 * ms, -1, 5, 10}, // a fifth instant: shared with the one before
		{460 * ms, 420 * ms, 1, 9},
		{460 * ms, 400 * ms, 1, 8}, // it counts as at 450 ms, too
		{1200 * ms, -1, 0, 8},
		{1200 * ms, 200 * ms, 1, 7}, // exactly a window old
		{1201 * ms, 200 * ms, 2, 5}, // gone by itself, so not once more
		{1451 * ms, 450 * ms, 1, 0},
	} {
		if c.remove == -1 {
			r.Add(at(c.now), c.n)
		} else {
			r.Total(at(c.now))
			r.Remove(at(c.remove), c.n)
		}
		if got := r.Total(at(c.now)); got != c.want {
			t.Errorf("at %v, after %d from %v: %d, want %d", c.now, c.n, c.remove, got, c.want)
		}
	}
}

// A pair is shared with events up to ⌈window/instants⌉ before its newest event, and not with
// earlier ones.
func TestRunsRemoveTakesFromNoOther(t *testing.T) {
	r := must(window.NewRuns(time.Second, 2))
	for _, now := range []time.Duration{900 * ms, 1000 * ms, 1100 * ms} {
		r.Add(at(now), 1)
	}
	r.Remove(at(300*ms), 1)
	if got := r.Total(at(1100 * ms)); got != 3 {
		t.Errorf("%d, want 3: nothing was added at 300 ms", got)
	}
	r = must(window.NewRuns(10, 1))
	r.Add(1, 1)
	r.Add(10, 1) // the last instant that shares the pair
	r.Remove(0, 1)
	if got := r.Total(10); got != 2 {
		t.Errorf("%d, want 2: nothing was added at 0", got)
	}
}

func TestLeaveTimelines(t *testing.T) {
	var heard listener
	log := must(window.NewLog(3, time.Second))
	log.Add(at(-5 * time.Second))
	log.Add(at(-5 * time.Second))
	log.Add(0)
	l := log.OnLeave(heard.leave)
	heard.expect(t, 0)
	l.Add(at(100 * ms))
	l.Add(at(100 * ms))
	heard.expect(t, 100*ms) // the earlier events were not in the window at OnLeave
	if l.Take(at(1000 * ms)) {
		t.Error("a fourth is taken")
	}
	heard.expect(t, 1000*ms)
	if !l.Take(at(1000*ms + 1)) {
		t.Error("there is no room when the first has left")
	}
	heard.expect(t, 1000*ms+1, told{0, 1})
	l.Add(at(1050 * ms)) // one too many
	heard.expect(t, 1050*ms, told{at(100 * ms), 1})
	l.Remove(at(1050 * ms)) // the displaced event is back, but was reported
	if got := l.Count(at(1050 * ms)); got != 3 {
		t.Errorf("count %d, want 3", got)
	}
	l.Full(at(9 * time.Second))
	l.Ready(at(9 * time.Second))
	heard.expect(t, 1050*ms) // by Count; questions alone report nothing
	if got := l.Count(at(9 * time.Second)); got != 0 {
		t.Errorf("count %d, want 0", got)
	}
	heard.expect(t, 9*time.Second, told{at(100 * ms), 1}, told{at(1000*ms + 1), 1})
	l.Add(0)
	l.Add(0) // at 9 s, since a clock that goes back stands still
	l.Count(at(time.Minute))
	heard.expect(t, time.Minute, told{at(9 * time.Second), 2})

	r := must(window.NewRuns(time.Second, 2)) // shared pairs are up to 500 ms long
	r.OnLeave(heard.leave)
	r.Add(at(0), 2)
	r.Add(at(100*ms), 3)
	r.Add(at(200*ms), 4) // shared with those before
	r.Add(at(700*ms), 5)
	r.Remove(at(700*ms), 5)
	r.Total(at(1001 * ms))
	heard.expect(t, 1001*ms, told{0, 2})
	r.Add(at(1201*ms), 1)
	heard.expect(t, 1201*ms, told{at(200 * ms), 7})
	r.Total(at(9 * time.Second))
	heard.expect(t, 9*time.Second, told{at(1201 * ms), 1}) // and nothing of 700 ms
	r.OnLeave(nil)
	r.Add(at(9*time.Second), 1)
	r.Total(at(time.Minute))
	heard.expect(t, time.Minute)

	s := must(window.NewSlots(time.Second, 100*ms))
	s.OnLeave(heard.leave)
	s.Add(at(50*ms), 2)
	s.Add(at(90*ms), 2)
	s.Add(at(150*ms), 3)
	s.Remove(at(150*ms), 3)
	s.Add(at(250*ms), 4)
	s.Add(at(1100*ms-1), 5)
	heard.expect(t, 1100*ms-1)
	s.Bounds(at(1100 * ms))
	heard.expect(t, 1100*ms, told{0, 4})
	s.Total(at(1300 * ms))
	heard.expect(t, 1300*ms, told{at(200 * ms), 4})
	s.Add(at(1310*ms), 1)
	s.Total(at(time.Hour))
	heard.expect(t, time.Hour, told{at(1000 * ms), 5}, told{at(1300 * ms), 1})
}

// leaving is a counter with its model: the events that were added and not taken back, by their
// counted instants.
type leaving struct {
	*testing.T
	heard listener
	seen  naive
	at    []mono.Time // of each step: where its events count; mono.Min: nowhere
	sum   int64       // of all added events, less all removed and reported ones
	last  mono.Time
}

// take returns the instant to take from, and the number of events there.
func (l *leaving) take(s step) (from mono.Time, n int64) {
	if s.take == 0 || s.take > len(l.at) {
		return 0, 0
	}
	from = l.at[len(l.at)-s.take]
	return from, min(l.seen[from], 1+s.n)
}

// listen checks the reports of a step. If exact is true, they equal the model's events at each
// instant.
func (l *leaving) listen(i int, w time.Duration, exact bool) {
	for k, e := range l.heard.told {
		l.sum -= e.n
		switch {
		case k > 0 && (e.at < l.heard.told[k-1].at || exact && e.at == l.heard.told[k-1].at):
			l.Fatalf("step %d: told of %v after %v", i, e, l.heard.told[k-1])
		case exact && e.n != l.seen[e.at]:
			l.Fatalf("step %d: told of %v, where %d happened", i, e, l.seen[e.at])
		case exact && uint64(l.last)-uint64(e.at) <= uint64(w):
			l.Fatalf("step %d, at %v: told of %v, which is in the window", i, l.last, e)
		}
	}
	l.heard.told = nil
}

// FuzzRunsLeave: after removals a Runs counts as the naive counter does, and reports each instant
// that has left. With too many instants it is on the safe side in both.
func FuzzRunsLeave(f *testing.F) {
	for i, s := range fuzzSeeds {
		f.Add(s.start, s.window, uint8(i+1), []byte(s.ops))
		f.Add(s.start, s.window, uint8(40), []byte(s.ops+s.ops))
	}
	f.Fuzz(func(t *testing.T, start, length int64, instants uint8, ops []byte) {
		w := time.Duration(length)
		if w <= 0 || instants == 0 {
			return // no such Runs
		}
		r := must(window.NewRuns(w, int(instants)))
		l := leaving{T: t, seen: naive{}, last: mono.Min}
		r.OnLeave(l.heard.leave)
		ever := naive{} // instants, also those whose events were all removed
		crowded := false
		for i, s := range timeline(start, w, ops) {
			l.last = max(s.now, l.last)
			from, n := l.take(s)
			if n > 0 {
				if before := r.Total(s.now); uint64(l.last)-uint64(from) <= uint64(w) {
					l.seen[from] -= n
					l.sum -= n
				} else if r.Remove(from, n); r.Total(s.now) != before {
					t.Fatalf("step %d, at %d: what had left was taken back", i, l.last)
				}
				r.Remove(from, n)
				l.at = append(l.at, mono.Min)
			} else if s.n > 0 {
				r.Add(s.now, s.n)
				l.seen[l.last] += s.n
				ever[l.last]++
				l.sum += s.n
				l.at = append(l.at, l.last)
			}
			crowded = crowded || ever.instants(l.last, w) > int(instants)
			got, exact := r.Total(s.now), l.seen.count(l.last, w)
			l.listen(i, w, !crowded)
			if got < exact || got > exact && !crowded || got != l.sum {
				t.Fatalf("step %d, at %d: total %d, want %d: %d were added and neither taken back nor told", i, l.last, got, exact, l.sum)
			}
		}
	})
}

// FuzzSlotsLeave: after removals a Slots counts as if the removed events had not been, and reports
// each slot that has left.
func FuzzSlotsLeave(f *testing.F) {
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
		s, quiet := must(window.NewSlots(w, precision)), must(window.NewSlots(w, precision))
		l := leaving{T: t, seen: naive{}, last: mono.Min - mono.Min%mono.Time(precision)}
		s.OnLeave(l.heard.leave)
		for i, step := range timeline(start, w, ops) {
			l.last = max(step.now, l.last)
			if from, n := l.take(step); n > 0 {
				before := s.Total(step.now)
				quiet.Total(step.now)
				s.Remove(from, n)
				quiet.Remove(from, n)
				switch after := s.Total(step.now); {
				case after == before-n:
					l.seen[from] -= n
					l.sum -= n
				case after != before || uint64(l.last)-uint64(from) <= uint64(w):
					t.Fatalf("step %d, at %d: %d, and after %d of %d were taken back %d", i, l.last, before, n, from, after)
				}
				l.at = append(l.at, mono.Min)
			} else if step.n > 0 {
				s.Add(step.now, step.n)
				quiet.Add(step.now, step.n)
				l.seen[l.last] += step.n
				l.sum += step.n
				l.at = append(l.at, l.last)
			}
			got := s.Total(step.now)
			for _, e := range l.heard.told {
				if in := l.seen.since(e.at, min(e.at.Add(precision)-1, mono.Max)); e.n != in || uint64(l.last)-uint64(e.at) < uint64(w)+uint64(precision) {
					t.Fatalf("step %d, at %d: told of %v, a slot with %d", i, l.last, e, in)
				}
			}
			l.listen(i, w, false)
			if exact := l.seen.count(l.last, w); got < exact || got != l.sum || got != quiet.Total(step.now) {
				t.Fatalf("step %d, at %d: total %d, at least %d: %d were added and neither taken back nor told, %d are there if nobody listens", i, l.last, got, exact, l.sum, quiet.Total(step.now))
			}
		}
	})
}

// FuzzLogLeave: after removals a Log counts as the naive counter does, up to its limit, and reports
// each event that has left. If more than the limit were added, it is on the safe side after a
// removal.
func FuzzLogLeave(f *testing.F) {
	for i, s := range fuzzSeeds {
		f.Add(s.start, s.window, uint8(i+1), []byte(s.ops))
		f.Add(s.start, s.window, uint8(3*i+3), []byte(s.ops+s.ops))
		f.Add(s.start, s.window, uint8(100), []byte(s.ops+s.ops))
	}
	f.Fuzz(func(t *testing.T, start, length int64, limit uint8, ops []byte) {
		w := time.Duration(length)
		if w <= 0 || limit == 0 {
			return // no such Log
		}
		quiet := must(window.NewLog(int(limit), w))
		l := leaving{T: t, seen: naive{}, last: mono.Min}
		heard := must(window.NewLog(int(limit), w)).OnLeave(l.heard.leave)
		ever, displaced, back := false, mono.Min, false // the last instant of one, and whether anything was removed since
		for i, s := range timeline(start, w, ops) {
			l.last = max(s.now, l.last)
			heard.Count(s.now)
			if from, n := l.take(s); n > 0 {
				quiet.Remove(from)
				heard.Remove(from)
				if uint64(l.last)-uint64(from) <= uint64(w) {
					l.seen[from]--
					l.sum--
					back = true
				}
				l.at = append(l.at, mono.Min)
			} else {
				for range s.n {
					if l.seen.count(l.last, w) >= int64(limit) {
						if s.n < 6 {
							break
						}
						ever, displaced, back = true, l.last, false
					}
					quiet.Add(l.last) // no question has moved it on to that
					heard.Add(s.now)
					l.seen[l.last]++
					l.sum++
				}
				l.at = append(l.at, l.last)
			}
			got, want := int64(heard.Count(s.now)), min(l.seen.count(l.last, w), int64(limit))
			l.listen(i, w, !ever)
			crowded := ever && l.last.Sub(displaced) <= w
			switch {
			case got < want || got > want && !(crowded && back):
				t.Fatalf("step %d, at %d: count %d, want %d", i, l.last, got, want)
			case got != int64(quiet.Count(l.last)):
				t.Fatalf("step %d, at %d: count %d, and %d if nobody listens", i, l.last, got, quiet.Count(l.last))
			case !ever && got != l.sum:
				t.Fatalf("step %d, at %d: count %d, and %d were added and neither taken back nor told", i, l.last, got, l.sum)
			case heard.Full(s.now) != (got == int64(limit)) || heard.Full(s.now) != (heard.Ready(s.now) > l.last):
				t.Fatalf("step %d, at %d: full %v, of %d of %d", i, l.last, heard.Full(s.now), got, limit)
			}
		}
	})
}

// Each of Add, Take and Count first reports by itself the events that have left by its now.
func TestEachOfALogTells(t *testing.T) {
	for name, do := range map[string]func(l *window.TellingLog, now mono.Time){
		"Add":   func(l *window.TellingLog, now mono.Time) { l.Add(now) },
		"Take":  func(l *window.TellingLog, now mono.Time) { l.Take(now) },
		"Count": func(l *window.TellingLog, now mono.Time) { l.Count(now) },
	} {
		var heard listener
		l := must(window.NewLog(9, time.Second)).OnLeave(heard.leave)
		l.Add(mono.Time(100 * ms))
		l.Add(mono.Time(600 * ms))
		do(l, mono.Time(1500*ms))
		heard.expect(t, 1500*ms, told{mono.Time(100 * ms), 1})
		do(l, mono.Time(1601*ms))
		if heard.expect(t, 1601*ms, told{mono.Time(600 * ms), 1}); t.Failed() {
			t.Fatalf("by %s", name)
		}
	}
}

// Add displaces the oldest event, and reports it by its own instant.
func TestLogTellsWhatIsDisplaced(t *testing.T) {
	var heard listener
	l := must(window.NewLog(3, 10*time.Second)).OnLeave(heard.leave)
	for i := range 7 {
		l.Add(at(time.Duration(i) * time.Second))
	}
	heard.expect(t, 6*time.Second, told{at(0), 1}, told{at(time.Second), 1}, told{at(2 * time.Second), 1}, told{at(3 * time.Second), 1})
}
