package fairshare_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// says is an answer with a remainder and a reset.
func says(remaining int64, reset time.Duration) limit.Outcome {
	o := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests}
	o.Remaining[limit.Requests], o.Reset[limit.Requests] = remaining, reset
	return o
}

func TestHintsTimeline(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{}))
	ready := func(now time.Duration, n int64, want time.Duration) {
		t.Helper()
		if got := h.Ready(at(now), limit.Cost{n}); got != at(want) {
			t.Errorf("at %v: %d ready at %v, want %v", now, n, got, want)
		}
	}
	ready(0, 1000, 0) // nothing is known
	a, b, c := limittest.Admit(h, 0, limit.One), limittest.Admit(h, 0, limit.Cost{3}), limittest.Admit(h, 0, limit.Cost{2})
	h.Settle(at(100*ms), a, new(says(10, 2*time.Second))) // b and c may not be in it
	ready(100*ms, 5, 100*ms)
	ready(100*ms, 6, time.Duration(limit.AfterSettle)) // with these two more than was ever left
	h.Settle(at(150*ms), b, new(says(13, 1900*ms)))    // counted before a, so it is in it
	ready(150*ms, 8, 150*ms)
	ready(150*ms, 9, 2050*ms) // that reset was 50 ms earlier
	h.Settle(at(160*ms), c, &limit.Outcome{Result: limit.Unsent})
	ready(160*ms, 10, 160*ms)
	d, lost := limittest.Admit(h, at(200*ms), limit.Cost{2}), limittest.Admit(h, at(200*ms), limit.Cost{3})
	ready(200*ms, 5, 200*ms)
	ready(200*ms, 6, 2050*ms)
	metered := says(9, 1700*ms)
	metered.Metered, metered.Actual = true, limit.One
	h.Settle(at(300*ms), d, &metered)
	ready(300*ms, 6, 300*ms)
	h.Settle(at(400*ms), lost, &limit.Outcome{}) // it may have been counted, and no word says so
	ready(400*ms, 6, 400*ms)
	ready(400*ms, 7, 2000*ms)
	ready(400*ms, 0, 400*ms)

	// Past the reset nothing is said yet: no more at once than was ever left.
	ready(2100*ms, 13, 2100*ms)
	ready(2100*ms, 99, 2100*ms) // more than that, but the only one
	e, f := limittest.Admit(h, at(2100*ms), limit.Cost{10}), limittest.Admit(h, at(2100*ms), limit.Cost{3})
	ready(2100*ms, 1, time.Duration(limit.AfterSettle))
	h.Settle(at(2200*ms), e, new(says(20, 60*time.Second)))
	ready(2200*ms, 17, 2200*ms)
	ready(2200*ms, 18, time.Duration(limit.AfterSettle))
	h.Settle(at(2300*ms), f, new(says(0, time.Second))) // of the window before
	ready(2300*ms, 20, 2300*ms)

	g := limittest.Admit(h, at(2300*ms), limit.One)
	h.Settle(at(2400*ms), g, new(says(0, 24*time.Hour)))
	ready(2400*ms, 1, time.Hour+2400*ms)
	l := limittest.Admit(h, at(2400*ms), limit.One)
	h.Settle(at(2500*ms), l, new(says(-5, -time.Second))) // nonsense is not heard
	ready(2500*ms, 1, time.Hour+2400*ms)
}

// A cost below zero or beyond all bounds counts as zero and as the most that limiters count, in each
// unit: on admission, and as metered.
func TestHintsOfImpossibleCosts(t *testing.T) {
	for u := range (limit.Cost{}) {
		of := func(n int64) (all limit.Cost) { all[u] = n; return all }
		for cost, left := range map[int64]int64{1: 9, 0: 10, -5: 10, math.MinInt64: 10, math.MaxInt64: 0} {
			h := must(fairshare.NewHints(fairshare.HintsConfig{}))
			check := func(when string, left int64) {
				t.Helper()
				if now, later := h.Ready(0, of(left)) == 0, h.Ready(0, of(left+1)) == 0; !now || later {
					t.Errorf("%v, %d, %s: %d go now: %v; one more: %v", limit.Unit(u), cost, when, left, now, later)
				}
			}
			o := limit.Outcome{Result: limit.Accepted, Known: 1 << u, Remaining: of(10)}
			o.Reset[u] = time.Minute
			h.Settle(0, limittest.Admit(h, 0, of(1)), &o)
			l := limittest.Admit(h, 0, of(cost))
			check("admitted", left)
			h.Settle(0, l, &limit.Outcome{Result: limit.Unsent})
			check("unsent", 10)
			h.Settle(0, limittest.Admit(h, 0, of(1)), &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: of(cost)})
			check("metered", left)
		}
	}
}

// A bucket of 60 that says when it will be full again has more before that.
func TestHintsOfABucket(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{Capacity: limit.Cost{60}}))
	h.Settle(0, limittest.Admit(h, 0, limit.One), new(says(0, time.Minute)))
	for n, want := range map[int64]time.Duration{1: time.Second, 10: 10 * time.Second, 60: time.Minute, 61: time.Minute} {
		if got := h.Ready(0, limit.Cost{n}); got != at(want) {
			t.Errorf("%d ready at %v, want %v", n, got, want)
		}
	}
	a, b := limittest.Admit(h, at(5*time.Second), limit.Cost{5}), limittest.Admit(h, at(5*time.Second), limit.Cost{})
	if got := h.Ready(at(5*time.Second), limit.One); got != at(6*time.Second) {
		t.Errorf("the sixth ready at %v", got)
	}
	h.Settle(at(6*time.Second), a, new(says(0, time.Minute))) // one went to a stranger
	if got := h.Ready(at(6*time.Second), limit.Cost{2}); got != at(8*time.Second) {
		t.Errorf("the second ready at %v", got)
	}
	h.Settle(at(7*time.Second), b, new(says(1, 59*time.Second))) // and now there is one more
	if got := h.Ready(at(7*time.Second), limit.Cost{2}); got != at(8*time.Second) {
		t.Errorf("the second ready at %v", got)
	}
}

// A forecast takes the server at its word.
func TestHintsForecast(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{Capacity: limit.Cost{0, 60}}))
	forecast := func(ahead, cost limit.Cost, want time.Duration) {
		t.Helper()
		if got := h.NotBefore(0, 1, ahead, cost); got != at(want) {
			t.Errorf("%v with %v ahead: not before %v, want %v", cost, ahead, got, want)
		}
	}
	forecast(limit.Cost{9}, limit.One, 0)
	limittest.Admit(h, 0, limit.Cost{2, 2}) // may be in the next answer
	o := says(3, time.Minute)
	o.Known, o.Remaining[limit.Weight], o.Reset[limit.Weight] = 3, 10, 50*time.Second
	h.Settle(0, limittest.Admit(h, 0, limit.One), &o)
	forecast(limit.Cost{2}, limit.One, 0)
	forecast(limit.Cost{-5}, limit.Cost{3}, 0)
	forecast(limit.Cost{3}, limit.One, time.Minute)
	forecast(limit.Cost{math.MaxInt64}, limit.One, time.Minute)
	forecast(limit.Cost{}, limit.Cost{0, 10}, 0)
	forecast(limit.Cost{0, 5}, limit.Cost{0, 10}, 5*time.Second)
	forecast(limit.Cost{3, 90}, limit.Cost{0, 1}, 50*time.Second)
}

func TestHintsRefuseBadConfig(t *testing.T) {
	for want, c := range map[string]fairshare.HintsConfig{
		"fairshare: Hints: Longest -1ns is negative":                                                {Longest: -1},
		"fairshare: Hints: Capacity of -1 weight is not between 0 and 17592186044416":               {Capacity: limit.Cost{limit.Weight: -1}},
		"fairshare: Hints: Capacity of 17592186044417 requests is not between 0 and 17592186044416": {Capacity: limit.Cost{limit.MaxCost + 1}},
	} {
		if _, err := fairshare.NewHints(c); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", c, err, want)
		}
	}
}

var hintsSpec = limittest.Spec{
	New:        func() limit.Limiter { return must(fairshare.NewHints(fairshare.HintsConfig{})) },
	ClosedLoop: true,
	Burst:      1 << 20, // alone it bounds nothing
}

func TestHintsLaws(t *testing.T) { limittest.Laws(t, hintsSpec) }

func TestHintsDoNotAllocate(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{}))
	now := mono.Time(0)
	o, sent := says(10, time.Second), limit.Sent{Cost: limit.One}
	if n := testing.AllocsPerRun(1000, func() {
		now = h.Ready(now.Add(time.Second), limit.One)
		limittest.Again(h, now, &sent)
		h.Settle(now, &sent, &o)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// ReadyAfter of an Admit is what Ready returns after it, under any answers.
func TestHintsForesee(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		h := must(fairshare.NewHints(fairshare.HintsConfig{Capacity: limit.Cost{limit.Tokens: 50 * (int64(seed) % 2)}}))
		now := mono.Time(0)
		var open []*limit.Sent
		for range 100 {
			now = now.Add(time.Duration(rng.IntN(2000)) * time.Millisecond)
			if i := len(open) - 1; i >= 0 && rng.IntN(2) == 0 {
				h.Settle(now, open[i], &limit.Outcome{Result: limit.Accepted, Known: 1<<limit.Requests | 1<<limit.Tokens,
					Remaining: limit.Cost{limit.Requests: rng.Int64N(5), limit.Tokens: rng.Int64N(50)},
					Reset:     [8]time.Duration{limit.Requests: time.Duration(rng.IntN(9)) * time.Second, limit.Tokens: time.Duration(rng.IntN(9)) * time.Second}})
				open = open[:i]
				continue
			}
			first := limit.Cost{limit.Requests: 1, limit.Tokens: rng.Int64N(30)}
			costs := []limit.Cost{{}, limit.One, {limit.Tokens: 20}, {limit.Requests: 1, limit.Tokens: 60}}
			var want []mono.Time
			for _, c := range costs {
				want = append(want, h.ReadyAfter(now, first, c))
			}
			open = append(open, limittest.Admit(h, now, first))
			for i, c := range costs {
				if got := h.Ready(now, c); got != want[i] {
					t.Fatalf("seed %d, %v: %v after %v is ready at %v, foreseen %v", seed, now, c, first, got, want[i])
				}
			}
		}
	}
}

// A remainder without a reset does not say when to come back, and a reset without a remainder not
// how much is left. Neither counts, whatever the other is.
func TestHintsOfHalfAWord(t *testing.T) {
	number, reset := says(0, 0), says(0, time.Minute)
	reset.Known = 0
	for name, half := range map[string]limit.Outcome{"no reset": number, "no number": reset} {
		for _, before := range []bool{false, true} {
			silent, h := must(fairshare.NewHints(fairshare.HintsConfig{})), must(fairshare.NewHints(fairshare.HintsConfig{}))
			for _, h := range []*fairshare.Hints{silent, h} {
				if before {
					h.Settle(at(ms), limittest.Admit(h, 0, limit.One), new(says(5, 10*time.Second)))
				}
			}
			silent.Settle(at(200*ms), limittest.Admit(silent, at(100*ms), limit.One), &limit.Outcome{Result: limit.Accepted})
			h.Settle(at(200*ms), limittest.Admit(h, at(100*ms), limit.One), &half)
			for _, now := range []time.Duration{300 * ms, 11 * time.Second} {
				for n := range int64(8) {
					if want, got := silent.Ready(at(now), limit.Cost{n}), h.Ready(at(now), limit.Cost{n}); got != want {
						t.Errorf("%s, at %v: %d ready at %v; if nothing were said at all, at %v", name, now, n, got, want)
					}
				}
			}
		}
	}
}

// Before the first word of all anything goes, however much is in flight.
func TestHintsHaveHeardNothing(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{Capacity: limit.Cost{limit.Weight: 60}}))
	for k := range 5 {
		limittest.Admit(h, at(time.Duration(k)), limit.Cost{3})
		if got := h.Ready(at(ms), limit.Cost{7}); got != at(ms) {
			t.Errorf("with %d in flight: ready at %v", k+1, got)
		}
	}
}

// A request in no answer reduces the remainder by its actual cost, and not by the reserved one.
func TestHintsOfWhatIsMetered(t *testing.T) {
	for actual, left := range map[int64]int64{0: 10, 2: 8, 4: 6, 7: 3} {
		h := must(fairshare.NewHints(fairshare.HintsConfig{}))
		h.Settle(at(ms), limittest.Admit(h, 0, limit.One), new(says(10, time.Minute)))
		h.Settle(at(3*ms), limittest.Admit(h, at(2*ms), limit.Cost{4}), &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{actual}})
		if now, later := h.Ready(at(4*ms), limit.Cost{left}), h.Ready(at(4*ms), limit.Cost{left + 1}); now != at(4*ms) || later <= now {
			t.Errorf("it came to %d: %d ready at %v, one more at %v", actual, left, now, later)
		}
	}
}

// Where more was used than was left, a request that costs nothing of it still goes.
func TestHintsForecastOfNothing(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{}))
	late := limittest.Admit(h, 0, limit.Cost{5})
	h.Settle(at(ms), limittest.Admit(h, 0, limit.One), new(says(2, time.Minute)))
	h.Settle(at(2*ms), late, &limit.Outcome{Result: limit.Accepted})
	for cost, want := range map[limit.Cost]mono.Time{{}: at(3 * ms), {limit.Weight: 9}: at(3 * ms), limit.One: at(time.Minute + ms)} {
		if got := h.NotBefore(at(3*ms), 0, limit.Cost{}, cost); got != want {
			t.Errorf("%v: not before %v, want %v", cost, got, want)
		}
	}
}

// The inflow of a bucket since its first answer is taken off a later remainder, as of then:
// strangers have had the rest.
func TestHintsOfABucketThatOthersUse(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{Capacity: limit.Cost{60}}))
	h.Settle(0, limittest.Admit(h, 0, limit.One), new(says(0, time.Minute)))
	h.Settle(at(10*time.Second), limittest.Admit(h, at(10*time.Second), limit.One), new(says(5, 55*time.Second))) // of ten that came, five are left
	if got := h.Ready(at(10*time.Second), limit.Cost{6}); got != at(11*time.Second) {
		t.Errorf("the sixth ready at %v", got)
	}

	h = must(fairshare.NewHints(fairshare.HintsConfig{Capacity: limit.Cost{60}}))
	h.Settle(0, limittest.Admit(h, 0, limit.One), new(says(59, time.Second))) // one is missing
	h.Settle(at(100*ms), limittest.Admit(h, at(100*ms), limit.One), new(says(58, 1900*ms)))
	if got := h.Ready(at(100*ms), limit.Cost{60}); got != at(2*time.Second) {
		t.Errorf("full at %v", got)
	}
}

// The later of two answers says the earliest that the window may end. One that ends before that is
// the window before.
func TestHintsOfTheWindowBefore(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{}))
	early := limittest.Admit(h, 0, limit.One)
	h.Settle(0, limittest.Admit(h, 0, limit.One), new(says(10, 10*time.Second)))
	h.Settle(at(500*ms), limittest.Admit(h, at(500*ms), limit.One), new(says(9, 10200*ms))) // not before 9.7 s, or it was rounded up by more than a second
	h.Settle(at(time.Second), early, new(says(0, 8500*ms)))
	if got := h.Ready(at(time.Second), limit.One); got != at(time.Second) {
		t.Errorf("ready at %v", got)
	}
}

// At the instant at which a window ends an answer about the next one arrives.
func TestHintsAtTheReset(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{}))
	h.Settle(0, limittest.Admit(h, 0, limit.One), new(says(0, 10*time.Second)))
	h.Settle(at(10*time.Second), limittest.Admit(h, at(10*time.Second), limit.One), new(says(5, 500*ms)))
	for n, want := range map[int64]time.Duration{5: 10100 * ms, 6: 10500 * ms} {
		if got := h.Ready(at(10100*ms), limit.Cost{n}); got != at(want) {
			t.Errorf("%d ready at %v", n, got)
		}
	}
}

// A reset that is later than Longest is asked about with one request at a time, however much was
// left before.
func TestHintsAskOneAtATime(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{}))
	h.Settle(0, limittest.Admit(h, 0, limit.One), new(says(20, time.Minute)))
	h.Settle(at(2*time.Minute), limittest.Admit(h, at(2*time.Minute), limit.One), new(says(0, 24*time.Hour)))
	now := 2*time.Minute + time.Hour
	if got := h.Ready(at(now), limit.One); got != at(now) {
		t.Errorf("after an hour the first asks at %v", got)
	}
	limittest.Admit(h, at(now), limit.One)
	if got := h.Ready(at(now), limit.One); got != limit.AfterSettle {
		t.Errorf("the second at %v, and not when the first is answered", got)
	}
}

// Past a reset as much may be in flight as was ever left, or as a bucket is known to hold.
func TestHintsPastTheReset(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{}))
	h.Settle(0, limittest.Admit(h, 0, limit.One), new(says(20, time.Second)))
	limittest.Admit(h, at(2*time.Second), limit.Cost{10})
	for n, want := range map[int64]mono.Time{10: at(2 * time.Second), 11: limit.AfterSettle} {
		if got := h.Ready(at(2*time.Second), limit.Cost{n}); got != want {
			t.Errorf("beside ten in flight %d are ready at %v", n, got)
		}
	}
	h = must(fairshare.NewHints(fairshare.HintsConfig{Capacity: limit.Cost{1}}))
	limittest.Admit(h, 0, limit.One)
	if got := h.Ready(0, limit.One); got != limit.AfterSettle {
		t.Errorf("of a bucket of one, a second is ready at %v", got)
	}
}

// Hints that come back remember each of the three facts about what the server said by itself.
func TestIdleHintsKeepEachFact(t *testing.T) {
	h := must(fairshare.NewHints(fairshare.HintsConfig{}))
	said := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests}
	said.Remaining[limit.Requests], said.Reset[limit.Requests] = 3, time.Minute
	h.Settle(0, limittest.Admit(h, 0, limit.One), &said)
	state := h.AppendIdle(nil)
	for facts := range byte(8) {
		state[2] = facts // behind the instant of the last change, and the unit
		next := must(fairshare.NewHints(fairshare.HintsConfig{}))
		if rest, err := next.RestoreIdle(state); err != nil || len(rest) > 0 {
			t.Fatalf("%03b: %v, %v", facts, rest, err)
		}
		if again := next.AppendIdle(nil); !bytes.Equal(again, state) {
			t.Errorf("%03b: %v has become %v", facts, state, again)
		}
	}
}
