package slot_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy/slot"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// hearing is one process that believes in ten sharers of one token a second, and sends as soon as it may.
type hearing struct {
	*slot.Slot
	now mono.Time
}

func newHearing(t *testing.T) *hearing {
	t.Helper()
	l, err := slot.New(slot.Config{Rate: 1, Burst: 4500, Start: 10 * time.Second, Rng: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	return &hearing{l, 0}
}

// hear sends, is answered 100 ms later that so much is left (below 0: it is refused), and returns when the next may go.
func (h *hearing) hear(left int64) (next time.Duration) {
	h.now = h.Ready(h.now, limit.One)
	lease := h.Admit(h.now, limit.One)
	h.now = h.now.Add(100 * time.Millisecond)
	o := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, Remaining: limit.Cost{limit.Requests: left}}
	if left < 0 {
		o = limit.Outcome{Result: limit.Limited}
	}
	h.Settle(h.now, lease, o)
	return h.Ready(h.now, limit.One).Sub(h.now)
}

// Two things in a row that cannot be true, and what is said is not heeded: there may be plenty, and the next goes when it would
// have gone anyway. One thing may happen to anybody, and sixteen answers later it is forgotten.
func TestSlotTrusts(t *testing.T) {
	falling := func(from int64, n int) (s []int64) {
		for i := range int64(n) {
			s = append(s, from-i)
		}
		return s
	}
	for name, c := range map[string]struct {
		left  []int64 // after each request; the last says that there is plenty
		heeds bool
	}{
		"plenty":                          {[]int64{26, 2000}, true},
		"more than any refill brings":     {[]int64{26, 26, 1000}, true},
		"twice":                           {[]int64{26, 26, 1000, 2000}, false},
		"twice, with a true one between":  {[]int64{26, 1000, 999, 2000}, false},
		"plenty, and a refusal":           {[]int64{1000, -1, 2000}, false},
		"a refusal where little was left": {[]int64{26, 26, -1, 2000}, true},
		"after a long time of true ones":  {slices.Concat(falling(46, 20), []int64{1000, 999, 2000}), false},
		"the first is forgotten":          {slices.Concat([]int64{26, 1000}, falling(999, 20), []int64{2000}), true},
		"the first is not yet forgotten":  {slices.Concat([]int64{26, 1000}, falling(999, 10), []int64{2000}), false},
		"more than there can be":          {[]int64{26, 26, 4501, 2000}, false},
		"nothing is left, five times":     {[]int64{26, 0, 0, 0, 0, 0, 2000}, true},
	} {
		h := newHearing(t)
		var next time.Duration
		for _, left := range c.left {
			next = h.hear(left)
		}
		if heeded := next < 100*time.Millisecond; heeded != c.heeds {
			t.Errorf("%s: the next goes after %v", name, next)
		}
	}
}

// An answer that says nothing of what is left, once, is no news; and a bucket that has been emptied is not what it means.
func TestSlotHearsNothing(t *testing.T) {
	h := newHearing(t)
	h.hear(26)
	before := h.Ready(h.now, limit.One)
	h.now = before
	lease := h.Admit(h.now, limit.One)
	h.now = h.now.Add(100 * time.Millisecond)
	unheard := h.Ready(h.now, limit.One)
	h.Settle(h.now, lease, limit.Outcome{Result: limit.Accepted})
	if at := h.Ready(h.now, limit.One); at != unheard {
		t.Errorf("the next goes %v after the one before, and %v without an answer", at.Sub(before), unheard.Sub(before))
	}
}

// A window that begins anew brings back what was taken: that says nothing of how many share it.
func TestSlotMeasuresNothingByALeap(t *testing.T) {
	left := func(n int64) limit.Outcome {
		return limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests, Remaining: limit.Cost{limit.Requests: n}}
	}
	h := newHearing(t)
	h.hear(20)
	h.now = h.now.Add(100 * time.Millisecond)
	lease := h.Admit(h.now, limit.One)
	h.Settle(h.now.Add(50*time.Millisecond), lease, left(26)) // 6 in 0.2 s, where 16 a second is the most
	if next := h.Ready(h.now, limit.One).Sub(h.now); next < 9800*time.Millisecond || next > 10200*time.Millisecond {
		t.Errorf("where ten rest the next goes after %v, not 10 s", next)
	}
}

// A quota sixteen times as large as stated is found out; when it is what was stated, that is found out as well.
func TestSlotForgetsScale(t *testing.T) {
	w := strangers(t, 3, 10, 165*time.Millisecond, 20, newSlot, nil)
	w.length = 4 * 3600
	w.refill = func(at float64) float64 {
		if at < 600 {
			return 16 * w.rate
		}
		return w.rate
	}
	late := 0
	w.run()
	for _, c := range w.clients {
		for _, at := range c.sent {
			if at > w.length-3600 {
				late++
			}
		}
	}
	if used := float64(late) / (w.rate * 3600); used < 0.97 || used > 1.03 {
		t.Errorf("in the last hour %.1f %% of the quota are used", 100*used)
	}
	if n := w.rejectsAfter(w.length - 3600); n > 0 {
		t.Errorf("in the last hour %d were refused", n)
	}
}
