package window_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

// The published recipe for 300 per second in slots of 0.1 s is to hold 0.9 s, or ten slots, at 300.
// Both let 600 through in one second: 300 at the end of a slot, and as many as soon as that slot is
// emptied. It takes 11 slots.
func TestElevenSlotsAndNotTen(t *testing.T) {
	const limit, second, precision = 300, time.Second, 100 * ms
	for _, c := range []struct {
		name      string
		counter   func() counter
		worst     int64 // most in any second
		sustained int64 // most in 11 s, from the first event on
	}{
		{"published, 9 slots", func() counter { return &divided{counts: make([]int64, 9), precision: int64(precision)} }, 600, 13 * limit},
		{"published, 10 slots", func() counter { return &divided{counts: make([]int64, 10), precision: int64(precision)} }, 600, 11 * limit},
		{"published, 11 slots", func() counter { return newDivided() }, limit, 10 * limit},
		{"window.Slots", func() counter { return must(window.NewSlots(second, precision)) }, limit, 10 * limit},
	} {
		var worst, sustained int64
		for _, first := range []time.Duration{0, 30 * ms, 50 * ms, 99 * ms, precision - 1} {
			count, sent := c.counter(), naive{}
			// The caller uses room as soon as there is any: the hardest case.
			for now := at(first); now < at(first+11*second); now = now.Add(ms) {
				if room := limit - count.Add(now, 0); room > 0 {
					count.Add(now, room)
					sent[now] += room
				}
			}
			worst = max(worst, sent.worst(second))
			if first == 0 {
				sustained = sent.since(mono.Min, mono.Max)
			}
		}
		if worst != c.worst {
			t.Errorf("%s: %d of %d in one second, want %d", c.name, worst, limit, c.worst)
		}
		if sustained != c.sustained {
			t.Errorf("%s: %d in 11 s, want %d", c.name, sustained, c.sustained)
		}
	}
}

// The published example of ten slots of 1 s beside Slots for 10 s, which has 11. The totals are the
// same at the instants of the example. They differ between, where ten slots drop events in the
// window.
func TestSlotsBesideTenSlots(t *testing.T) {
	ten := &divided{counts: make([]int64, 10), precision: int64(time.Second)}
	s, exact := must(window.NewSlots(10*time.Second, time.Second)), naive{}
	if s.Len() != 11 {
		t.Errorf("%d slots, want 11", s.Len())
	}
	for _, e := range []struct {
		now                 time.Duration
		n                   int64
		ten, eleven, really int64
	}{
		{6500 * ms, 2, 2, 2, 2},
		{8800 * ms, 6, 8, 8, 8},
		{12700 * ms, 1, 9, 9, 9},
		{15999 * ms, 0, 9, 9, 9},
		{16000 * ms, 0, 7, 9, 9}, // the events of 6.5 s are 9.5 s old
		{16500 * ms, 0, 7, 9, 9}, // 10 s
		{16501 * ms, 0, 7, 9, 7}, // counted until their slot has left the window: the excess is that slot's
		{16999 * ms, 0, 7, 9, 7},
		{17000 * ms, 3, 10, 10, 10},
		{32000 * ms, 0, 0, 0, 0},
	} {
		exact[at(e.now)] += e.n
		if got := ten.Add(at(e.now), e.n); got != e.ten {
			t.Errorf("ten slots: at %v total %d, want %d", e.now, got, e.ten)
		}
		if got := s.Add(at(e.now), e.n); got != e.eleven {
			t.Errorf("Slots: at %v total %d, want %d", e.now, got, e.eleven)
		}
		if got := exact.count(at(e.now), 10*time.Second); got != e.really {
			t.Errorf("at %v %d are in the window, want %d", e.now, got, e.really)
		}
	}
}

func TestSlotsBounds(t *testing.T) {
	// 25 ms in slots of 10 ms: 4 slots. The oldest leaves the window in the middle of the current
	// one.
	s := must(window.NewSlots(25*ms, 10*ms))
	if s.Len() != 4 {
		t.Errorf("%d slots, want 4", s.Len())
	}
	for _, e := range []struct {
		now         time.Duration
		n           int64
		least, most int64
	}{
		{0, 1, 1, 1}, {9, 2, 3, 3}, {10, 4, 7, 7}, {24, 8, 15, 15},
		{25, 0, 12, 15}, // the slot from 0 contains now − window
		{34, 0, 12, 15},
		{35, 0, 8, 12}, // it has left; now it is the slot from 10
		{44, 0, 8, 12},
		{45, 0, 0, 8},
		{54, 0, 0, 8},
		{55, 0, 0, 0},
		{60, 16, 16, 16},
		{94, 0, 0, 16},
		{95, 0, 0, 0},
	} {
		s.Add(at(e.now*ms), e.n)
		if least, most := s.Bounds(at(e.now * ms)); least != e.least || most != e.most {
			t.Errorf("at %d ms: %d to %d, want %d to %d", e.now, least, most, e.least, e.most)
		}
	}
}

// A jump of any length empties the slots that have left, and nothing else, on both sides of the
// epoch.
func TestSlotsJumps(t *testing.T) {
	for _, epoch := range []mono.Time{0, -1, -50, 1 << 62, -1 << 62} {
		for jump := mono.Time(1); jump < 200; jump++ {
			s, exact := must(window.NewSlots(60, 10)), naive{}
			for now := epoch; now < epoch+60; now += 3 {
				s.Add(now, 1)
				exact[now]++
			}
			now := epoch + 57 + jump
			got, least := s.Total(now), exact.count(now, 60)
			if most := exact.count(now, 69); got < least || got > most {
				t.Fatalf("from %d by %d: total %d, want %d to %d", int64(epoch), int64(jump), got, least, most)
			}
			if got := s.Add(now, 5); got < least+5 {
				t.Fatalf("from %d by %d: total %d after 5 more", int64(epoch), int64(jump), got)
			}
			if got := s.Total(now + 70); got != 0 {
				t.Fatalf("from %d by %d: total %d long after", int64(epoch), int64(jump), got)
			}
		}
	}
}
