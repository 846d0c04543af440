package limit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// The last 2000 round trips are kept, also in the order of their length.
func TestLastRoundTrips(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	var r rtts
	var all []time.Duration
	for n := range 4500 {
		d := time.Duration(rng.IntN(300))
		r.add(d)
		if all = append(all, d); n%500 == 499 {
			last := slices.Clone(all[max(0, len(all)-2000):])
			slices.Sort(last)
			if !slices.Equal(r.sorted, last) {
				t.Fatalf("after %d they are not the last 2000 in order", n+1)
			}
		}
	}
}

// An answer without a measured round trip teaches nothing.
func TestLeadLearnsFromWhatWasMeasured(t *testing.T) {
	l := newLead()
	for i := range 60 {
		l.settle(0, 0, &Outcome{Result: Accepted, RTT: time.Second + time.Duration(i)})
		l.settle(0, 0, &Outcome{Result: Accepted})
		l.settle(0, 0, &Outcome{Result: Unknown, RTT: time.Second})
	}
	if len(l.sorted) != 60 || l.goal != time.Second-49 {
		t.Errorf("%d are known, and the lead is %v", len(l.sorted), l.goal)
	}
}

// A Fitted knows when a request was last answered. It knows this also for requests counted for
// another process.
func TestCountedByAnother(t *testing.T) {
	f := NewFitted(MustRolling(10, time.Second))
	f.Count(1e9, One, Outcome{Result: Accepted})
	f.Count(2e9, Cost{}, Outcome{Result: Accepted}) // of something else
	if got := f.fits[0].answered; got != 1e9 {
		t.Errorf("answered at %v", got)
	}
	f.Count(3e9, One, Outcome{Result: Failed})
	f.Count(4e9, One, Outcome{Result: Limited})
	if got := f.fits[0].answered; got != 3e9 {
		t.Errorf("answered at %v", got)
	}
	f.Count(5e9, One, Outcome{Result: Unknown})
	if got := f.fits[0].latest; got != 5e9 || f.fits[0].answered != 3e9 {
		t.Errorf("sent at %v, answered at %v", got, f.fits[0].answered)
	}
}

// A lesson that no Fitted can produce is refused, at each of its bounds.
func TestLessonsThatMakeNoSense(t *testing.T) {
	rate := Rule{N: 10, Per: time.Second}
	for name, c := range map[string]struct {
		l    Lesson
		want bool
	}{
		"free":                      {Lesson{}, true},
		"free, after the most":      {Lesson{Times: cautionTimes}, true},
		"after more than the most":  {Lesson{Times: cautionTimes + 1}, false},
		"after less than none":      {Lesson{Times: -1}, false},
		"refused less than never":   {Lesson{Refused: -1}, false},
		"kept less than nothing":    {Lesson{Kept: -1}, false},
		"trial":                     {Lesson{State: uint8(trial), Fits: 1, Step: 1}, true},
		"trial of all":              {Lesson{State: uint8(trial), Fits: 10, Step: 1}, true},
		"trial of more":             {Lesson{State: uint8(trial), Fits: 11, Step: 1}, false},
		"trial of none":             {Lesson{State: uint8(trial), Fits: 0, Step: 1}, false},
		"trial without a step":      {Lesson{State: uint8(trial), Fits: 1}, false},
		"trial with the largest":    {Lesson{State: uint8(trial), Fits: 1, Step: MaxCost}, true},
		"trial with a larger":       {Lesson{State: uint8(trial), Fits: 1, Step: MaxCost + 1}, false},
		"held":                      {Lesson{State: uint8(held), Fits: 1}, true},
		"held with a gap":           {Lesson{State: uint8(held), Fits: 1, Gap: longGap}, true},
		"held with too long a gap":  {Lesson{State: uint8(held), Fits: 1, Gap: longGap + 1}, false},
		"a gap of two":              {Lesson{State: uint8(held), Fits: 2, Gap: 1}, false},
		"searching":                 {Lesson{State: uint8(searching), Fits: 2, Low: 2, High: 3}, true},
		"searching above":           {Lesson{State: uint8(searching), Fits: 3, Low: 2, High: 3}, false},
		"searching below":           {Lesson{State: uint8(searching), Fits: 2, Low: 3, High: 4}, false},
		"searching from nothing":    {Lesson{State: uint8(searching), Fits: 2, Low: 0, High: 3}, false},
		"growing":                   {Lesson{State: uint8(growing), Fits: 2, Low: 1, Step: 1}, true},
		"growing without a step":    {Lesson{State: uint8(growing), Fits: 2, Low: 1}, false},
		"growing from above":        {Lesson{State: uint8(growing), Fits: 2, Low: 3, Step: 1}, false},
		"growing from nothing":      {Lesson{State: uint8(growing), Fits: 2, Step: 1}, false},
		"a state that there is not": {Lesson{State: uint8(growing) + 1, Fits: 1, Step: 1, Low: 1}, false},
	} {
		c.l.Rule = rate
		if got := c.l.makesSense(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Sums stop at their ends.
func TestPlusAndLess(t *testing.T) {
	const most = 1<<63 - 1
	for _, c := range [][3]int64{{1, most, most}, {most, 1, most}, {most, most, most}, {1, most - 1, most}, {1, most - 2, most - 1}, {-most, -1, -most}, {-1, -most, -most}, {-most, 1, 1 - most}, {0, -most, -most}, {-most - 1, 0, -most}, {0, -most - 1, -most}, {-most - 1, -most - 1, -most}, {-most - 1, most, -1}, {most, -most - 1, -1}, {0, most, most}, {2, 3, 5}} {
		if got := plus(c[0], c[1]); got != c[2] {
			t.Errorf("%d + %d = %d, want %d", c[0], c[1], got, c[2])
		}
	}
	if less(0, -most-1) != most || less(-2, most) != -most || less(5, 3) != 2 {
		t.Error("less")
	}
}

// A request that was answered has arrived by now, or a lead after its send. What may still be on its way arrives by
// its own bound and the learned lead: it proves nothing of an answer's way back.
func TestBoundOfAnArrival(t *testing.T) {
	l := lead{rho: 30, goal: 50}
	for _, c := range []struct {
		name         string
		now, u, sent mono.Time
		result       Result
		want         mono.Time
	}{
		{"answered", 1000, 900, 800, Accepted, 1000},
		{"answered, and its bound is now", 1000, 1000, 800, Accepted, 1000},
		{"answered, and may arrive later", 1000, 1001, 800, Accepted, 1051},
		{"not answered", 1000, 900, 800, Unknown, 950},
		{"not answered, and may arrive later", 1000, 1200, 800, Unknown, 1250},
		{"sent a moment ago", 1000, 900, 990, Accepted, 1020},
		{"sent a moment ago, and not answered", 1000, 900, 990, Unknown, 1020},
	} {
		if got := l.bound(c.now, c.u, c.sent, &Outcome{Result: c.result}); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
