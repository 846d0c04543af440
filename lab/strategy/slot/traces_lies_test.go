package slot_test

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy/slot"
)

// The same where what a server says is wrong, useless or missing, where the law gives up on it and comes back to it, and where clients come
// with figures of their own.
func TestLawsDoWhatTheyDidWhenLiedTo(t *testing.T) { traced(t, "lies.golden", lies) }

// saying has a world say what is left by an answer's number.
func saying(says func(level float64, k int) (int64, bool)) func(w *world) {
	return func(w *world) { w.says = says }
}

// until says something else up to an answer.
func until(last int, other int64) func(level float64, k int) (int64, bool) {
	return func(level float64, k int) (int64, bool) {
		if k <= last {
			return other, true
		}
		return int64(level), true
	}
}

var lies = []trace{
	{"slot: always the same, for a while", 2, 165 * ms, 1, newSlot, nil, saying(until(60, 25))},
	{"slot: always full, for a while", 2, 165 * ms, 3, newSlot, nil, saying(until(200, 4500))},
	{"slot: always empty, for a while", 2, 60 * ms, 1, newSlot, nil, saying(until(40, 0))},
	{"slot: more than there can be, at first", 3, 60 * ms, 1, newSlot, nil, saying(until(20, 4501))},
	{"slot: less than nothing, and plenty after it", 3, 60 * ms, 2, newSlot, nil, func(w *world) {
		w.level = 1000
		w.says = until(30, math.MinInt64)
	}},
	{"slot: twice what there is", 3, 165 * ms, 2, newSlot, nil, saying(func(level float64, _ int) (int64, bool) { return 2*int64(level) + 60, true })},
	{"slot: every third answer says nothing", 4, 60 * ms, 2, newSlot, nil, saying(func(level float64, k int) (int64, bool) { return int64(level), k%3 > 0 })},
	{"slot: every other three say nothing", 4, 60 * ms, 1, newSlot, nil, saying(func(level float64, k int) (int64, bool) { return int64(level), k%6 > 2 })},
	{"slot: it leaps, once in a while twice", 3, 60 * ms, 1, newSlot, nil, saying(func(level float64, k int) (int64, bool) {
		if k%41 == 0 || k%97 == 0 || k%97 == 1 {
			return int64(level) + 500, true
		}
		return int64(level), true
	})},
	{"slot: a bucket too small to say anything", 3, 60 * ms, 2, newSlot, func(_ int, c *slot.Config) { c.Burst = 15 }, func(w *world) { w.burst = 15 }},
	{"slot: a small bucket", 3, 60 * ms, 2, newSlot, func(_ int, c *slot.Config) { c.Burst = 40 }, func(w *world) { w.burst = 40 }},
	{"slot: a quota that is used up in turns", 4, 60 * ms, 1, newSlot, nil, func(w *world) {
		w.refill = func(at float64) float64 { return w.rate * (1 + math.Copysign(1, math.Sin(at/40))) / 2 }
	}},
	{"slot: short waits, and weights", 3, 60 * ms, 1, newSlot, func(i int, c *slot.Config) {
		c.MaxWait, c.Weight = time.Duration(i+1)*4*time.Second, []float64{1, 8, 0.2}[i]
	}, func(w *world) { w.refill = func(float64) float64 { return w.rate / 5 } }},
	{"slot: more than there can be in a small bucket, now and then", 2, 60 * ms, 1, newSlot, func(_ int, c *slot.Config) { c.Burst = 60 }, func(w *world) {
		w.burst = 60
		w.says = func(level float64, k int) (int64, bool) {
			if k%12 < 2 {
				return 61, true
			}
			return int64(level), true
		}
	}},
	{"slot: waits of a second, and a bucket of which nothing is said at first", 3, 60 * ms, 1, newSlot, func(_ int, c *slot.Config) { c.MaxWait = time.Second }, func(w *world) {
		w.says = func(level float64, k int) (int64, bool) { return int64(level), k > 500 && k%700 > 10 }
	}},
	{"headerless: waits of a second", 3, 60 * ms, 1, newHeaderless, func(_ int, c *slot.Config) { c.MaxWait = time.Second }, func(w *world) { w.says = mute }},
	{"headerless: short waits, and weights", 3, 60 * ms, 1, newHeaderless, func(i int, c *slot.Config) {
		c.MaxWait, c.Weight = time.Duration(i+1)*4*time.Second, []float64{1, 8, 0.2}[i]
	}, func(w *world) { w.says, w.refill = mute, func(float64) float64 { return w.rate / 5 } }},
	{"headerless: starts", 4, 165 * ms, 2, newHeaderless, func(i int, c *slot.Config) {
		c.Start = time.Duration(1+4*i) * time.Second
	}, func(w *world) { w.says, w.burst = mute, 30 }},
	{"headerless: nothing for a while, twice", 3, 60 * ms, 3, newHeaderless, nil, func(w *world) {
		w.says = mute
		w.refill = func(at float64) float64 {
			if math.Mod(at, 400) < 120 {
				return 0
			}
			return w.rate
		}
	}},
}
