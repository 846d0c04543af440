package fairshare_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Ten share a quota of which answers begin to say what is not so, or which becomes another one, in the middle of a window, and for two
// windows.
const (
	lieWindow = 15 * minute
	lieLimit  = 1125
	lieFrom   = lieWindow * 5 / 2
	lieUntil  = lieWindow * 9 / 2
	lieAfter  = lieUntil + lieWindow
	lieEnd    = 8 * lieWindow
	lieOf     = 10
	lieOne    = 0.2 // the CV, in percent, where one of them is served a request more in two windows, as the phases may have it
)

// A lie alters what the answer to a client says.
type lie func(now mono.Time, client int, rng *rand.Rand, o *limit.Outcome)

// heard is what became of ten clients while they were lied to, and when it had been over for a window.
type heard struct {
	lie lie

	sent, refused [2]int        // while it lasts, and when it has been over for a window
	served        [2][lieOf]int // in the one whole window while it lasts, and in the last two
	longest       time.Duration // between two sendings of one client, from when it begins
}

func phaseAt(now mono.Time) int {
	switch at := now.Sub(0); {
	case at >= lieFrom && at < lieUntil:
		return 0
	case at >= lieAfter:
		return 1
	}
	return -1
}

// liedTo is a client of a server that lies.
type liedTo struct {
	limit.Limiter
	all  *heard
	who  int
	rng  *rand.Rand
	last mono.Time
}

func (l *liedTo) Admit(s *limit.Sent) {
	if s.At.Sub(0) >= lieFrom {
		l.all.longest = max(l.all.longest, s.At.Sub(l.last))
	}
	l.last = s.At
	l.Limiter.Admit(s)
}

func (l *liedTo) Settle(now mono.Time, lease *limit.Sent, o *limit.Outcome) {
	if p := phaseAt(now); p >= 0 {
		l.all.sent[p]++
		if o.Result == limit.Limited {
			l.all.refused[p]++
		}
	}
	if w := int(now.Sub(0) / lieWindow); o.Result != limit.Limited && (w == 3 || w >= 6) {
		l.all.served[w/6][l.who]++
	}
	if at := now.Sub(0); l.all.lie != nil && at >= lieFrom && at < lieUntil {
		own := *o
		l.all.lie(now, l.who, l.rng, &own)
		o = &own
	}
	l.Limiter.Settle(now, lease, o)
}

// later is a clock of the server's that is wrong.
func later(by time.Duration) lie {
	return func(_ mono.Time, _ int, _ *rand.Rand, o *limit.Outcome) {
		o.Reset[limit.Requests] = max(0, o.Reset[limit.Requests]+by)
	}
}

// times is another unit.
func times(by float64) lie {
	return func(_ mono.Time, _ int, _ *rand.Rand, o *limit.Outcome) {
		o.Remaining[limit.Requests] = int64(float64(o.Remaining[limit.Requests]) * by)
	}
}

// stuck is a replica that answers a part of the requests, and says again and again what it said first, or asks anew when that is no longer
// fresh.
func stuck(part float64, fresh time.Duration) lie {
	var said *limit.Outcome
	var at mono.Time
	return func(now mono.Time, _ int, rng *rand.Rand, o *limit.Outcome) {
		if said == nil || fresh > 0 && now.Sub(at) > fresh {
			c := *o
			said, at = &c, now
		}
		if rng.Float64() < part {
			o.Remaining, o.Reset = said.Remaining, said.Reset
		}
	}
}

// stepping is a clock that is wrong for two minutes in four.
func stepping(by time.Duration) lie {
	return func(now mono.Time, _ int, _ *rand.Rand, o *limit.Outcome) {
		if now.Sub(0)/(2*minute)%2 == 1 {
			o.Reset[limit.Requests] = max(0, o.Reset[limit.Requests]+by)
		}
	}
}

// always is the quota of something else.
func always(n int64) lie {
	return func(_ mono.Time, _ int, _ *rand.Rand, o *limit.Outcome) { o.Remaining[limit.Requests] = n }
}

type liar struct {
	name    string
	lie     func() lie
	changes float64
	// What holds, by kind: bucket, fixed, rolling.
	bounds [3]lieBounds
}

// lieBounds are what is worst at most: percent refused while it lasts, windows that somebody is away for, percent unused while it lasts;
// and percent refused, CV of shares and percent unused when it has been over for a window.
type lieBounds struct{ refused, away, unused, later, laterCV, laterUnused float64 }

var liars = []liar{
	{"half the quota", nil, 0.5, [3]lieBounds{{0.1, 0.1, 0.1, 0.1, 0.2, 0.1}, {2, 0.8, 2, 0.1, 2, 2}, {2, 0.7, 45, 0.6, 15, 29}}},
	{"twice the quota", nil, 2, [3]lieBounds{{0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, {0.1, 0.7, 1, 0.1, 1, 2}, {0.1, 0.5, 40, 1.4, 52, 21}}},
	{"a reset 10 s late", func() lie { return later(10 * time.Second) }, 0, [3]lieBounds{{0.1, 0.1, 1, 0.1, 0.1, 0.1}, {0.1, 0.1, 3, 0.1, 1, 2}, {0.1, 0.3, 34, 0.1, 21, 29}}},
	{"a reset 10 s early", func() lie { return later(-10 * time.Second) }, 0, [3]lieBounds{{0.1, 0.1, 1, 0.1, 0.1, 0.1}, {1, 0.2, 0.1, 0.1, 1, 2}, {0.1, 0.3, 34, 0.1, 21, 29}}},
	{"a reset 5 min late", func() lie { return later(5 * minute) }, 0, [3]lieBounds{{0.1, 0.1, 1, 0.1, 0.1, 0.1}, {0.1, 0.1, 27, 0.1, 1, 2}, {0.1, 0.3, 34, 0.1, 21, 29}}},
	{"a reset 5 min early", func() lie { return later(-5 * minute) }, 0, [3]lieBounds{{0.1, 0.1, 1, 0.1, 0.1, 0.1}, {1, 0.4, 0.1, 0.1, 1, 2}, {0.1, 0.3, 34, 0.1, 21, 29}}},
	{"a clock that steps on 5 min and back", func() lie { return stepping(5 * minute) }, 0, [3]lieBounds{{0.1, 0.1, 1, 0.1, 0.1, 0.1}, {0.1, 0.1, 2, 0.1, 1, 2}, {0.1, 0.3, 34, 0.1, 21, 29}}},
	{"a clock that steps back 5 min and on", func() lie { return stepping(-5 * minute) }, 0, [3]lieBounds{{0.1, 0.1, 1, 0.1, 0.1, 0.1}, {2, 0.4, 0.1, 0.1, 1, 2}, {0.1, 0.3, 34, 0.1, 21, 29}}},
	{"stuck", func() lie { return stuck(1, 0) }, 0, [3]lieBounds{{0.1, 0.1, 5, 0.1, lieOne, 0.1}, {3, 0.7, 0.1, 0.1, 2, 2}, {6, 0.4, 36, 0.4, 36, 24}}},
	{"one of two replicas stuck", func() lie { return stuck(0.5, 0) }, 0, [3]lieBounds{{0.1, 0.1, 1, 0.1, 0.1, 0.1}, {1.5, 1.2, 0.1, 0.1, 10, 2}, {2, 0.5, 67, 0.2, 43, 18}}},
	{"up to 30 s old", func() lie { return stuck(1, 30*time.Second) }, 0, [3]lieBounds{{4, 0.4, 1, 0.1, lieOne, 0.1}, {2, 1.2, 0.1, 0.1, 11, 2}, {2, 0.3, 36, 0.1, 20, 30}}},
	{"one of two replicas up to 30 s old", func() lie { return stuck(0.5, 30*time.Second) }, 0, [3]lieBounds{{0.1, 0.1, 1, 0.1, 0.1, 0.1}, {0.5, 0.6, 2, 0.1, 1, 2}, {2, 0.3, 38, 0.1, 40, 29}}},
	{"in thousandths", func() lie { return times(1000.0 / lieLimit) }, 0, [3]lieBounds{{0.1, 0.3, 0.1, 0.1, 0.1, 0.1}, {0.1, 0.4, 2, 0.1, 1, 2}, {0.1, 0.3, 38, 0.1, 15, 30}}},
	{"a tenth", func() lie { return times(0.1) }, 0, [3]lieBounds{{0.1, 0.4, 76, 0.1, 0.1, 0.1}, {0.1, 0.5, 24, 0.1, 1, 2}, {0.1, 0.3, 60, 0.1, 15, 15}}},
	{"ten times", func() lie { return times(10) }, 0, [3]lieBounds{{0.1, 0.8, 0.2, 0.1, 0.2, 0.1}, {0.5, 1.5, 1, 0.1, 50, 2}, {1, 0.4, 6, 0.9, 39, 20}}},
	{"always 5,000", func() lie { return always(5000) }, 0, [3]lieBounds{{53, 0.4, 0.1, 0.1, lieOne, 0.1}, {2, 1.2, 0.1, 0.1, 10, 2}, {6, 0.4, 4, 1, 36, 25}}},
	{"always 0", func() lie { return always(0) }, 0, [3]lieBounds{{0.1, 1.2, 100, 0.1, lieOne, 0.1}, {0.1, 1.6, 100, 0.1, 2, 2}, {0.1, 1.7, 100, 1.2, 222, 53}}},
}

func (l liar) meets(q fleet.Quota, k fairshare.Kind, seed uint64) *heard {
	h := &heard{}
	if l.lie != nil {
		h.lie = l.lie()
	}
	if l.changes > 0 {
		q.Changes = []fleet.Change{{At: lieFrom, Factor: l.changes}, {At: lieUntil, Factor: 1}}
	}
	n := 0
	g := sharers(lieOf, knows(k))
	inner := g.Strategy.NewLimiter
	g.Strategy.NewLimiter = func(p strategy.Params, rng *rand.Rand) (limit.Limiter, error) {
		f, err := inner(p, rng)
		c := &liedTo{Limiter: f, all: h, who: n % lieOf, rng: rand.New(rand.NewPCG(seed, uint64(n)))}
		n++
		return c, err
	}
	f := must(fleet.New(fleet.Scenario{Duration: lieEnd, Seed: seed, Server: q, Groups: []fleet.Group{g}}))
	f.Advance(lieEnd)
	return h
}

type lieFigures struct{ refused, unused, cv float64 }

// figures are of one phase, of a quota so many times larger.
func (h *heard) figures(phase int, factor float64) lieFigures {
	sum, squares := 0.0, 0.0
	for _, n := range h.served[phase] {
		sum += float64(n)
	}
	mean := sum / lieOf
	for _, n := range h.served[phase] {
		squares += (float64(n) - mean) * (float64(n) - mean)
	}
	return lieFigures{percentOf(h.refused[phase], h.sent[phase]), 100 * (1 - sum/(float64((1+phase)*lieLimit)*factor)), 100 * math.Sqrt(squares/(lieOf-1)) / mean}
}

func percentOf(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// What servers say that is not so costs shares, and waits, but not more than this; and a window after it is over, refusals are too. Where
// shares are not even again by then, the bound says by how much. docs/fair.md has the figures.
func TestFairLiedTo(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("elsewhere a product and a sum may be rounded once, and shares while it lasts are another draw")
	}
	for i, kind := range []struct {
		name  string
		quota fleet.Quota
		kind  fairshare.Kind
	}{
		{"bucket", fleet.Quota{}, fairshare.TokenBucket},
		{"fixed", fleet.Quota{Kind: fleet.Calendar}, fairshare.FixedWindow},
		{"rolling", fleet.Quota{Kind: fleet.Rolling}, fairshare.RollingWindow},
	} {
		kind.quota.Limit, kind.quota.Window, kind.quota.Headers = lieLimit, lieWindow, inWhole
		for _, l := range liars {
			var got lieBounds
			for seed := range need.Fewer[uint64](1, 3) {
				h := l.meets(kind.quota, kind.kind, 1001+seed)
				during, after := h.figures(0, cmp.Or(l.changes, 1)), h.figures(1, 1)
				got = lieBounds{max(got.refused, during.refused), max(got.away, h.longest.Seconds()/lieWindow.Seconds()), max(got.unused, during.unused),
					max(got.later, after.refused), max(got.laterCV, after.cv), max(got.laterUnused, after.unused)}
			}
			t.Logf("%s, %s: %.1f", kind.name, l.name, got)
			w := l.bounds[i]
			if got.refused > w.refused || got.away > w.away || got.unused > w.unused || got.later > w.later || got.laterCV > w.laterCV || got.laterUnused > w.laterUnused {
				t.Errorf("%s, %s: %.1f, want at most %.1f", kind.name, l.name, got, w)
			}
		}
	}
}
