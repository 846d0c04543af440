package node

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A request goes by the grants that covered it. Those of its own kind come first, but not if they hold only
// later: then it would go too early.
func TestTakeWhatHolds(t *testing.T) {
	for _, c := range []struct {
		yields bool
		parts  []part
		want   part // which is left
	}{
		{false, []part{{5, limit.One, true}, {6, limit.One, false}}, part{5, limit.One, true}},
		{false, []part{{5, limit.One, true}, {9, limit.One, false}}, part{9, limit.One, false}},
		{true, []part{{5, limit.One, false}, {6, limit.One, true}}, part{5, limit.One, false}},
		{true, []part{{5, limit.One, false}, {9, limit.One, true}}, part{9, limit.One, true}},
	} {
		g := pool{parts: c.parts}
		if at, all := g.take(limit.One, c.yields, 7); !all || at > 7 || len(g.parts) != 1 || g.parts[0] != c.want {
			t.Errorf("%+v: taken from %d on, %v; left: %+v", c, at, all, g.parts)
		}
	}
	g := pool{parts: []part{{5, limit.One, false}}}
	if _, ok := g.covers(limit.One, true); ok {
		t.Error("what is for those who cannot wait covers one that leaves something free")
	}
}

// Requests yield that are wanted and leave something free, be it a thousandth. A book yields by what its nodes leave
// free.
func TestWhoYields(t *testing.T) {
	for _, c := range []struct {
		e           Entry
		heir, book  bool
		plain, free int64
	}{
		{Entry{Want: 5}, false, false, 5, 0},
		{Entry{Want: 5, Yielding: 1, Leaves: 1}, true, true, 4, 1},
		{Entry{Want: 5, Yielding: 9, Leaves: 250}, true, true, 0, 5},
		{Entry{Want: 5, Yielding: 1}, false, false, 4, 1},
		{Entry{Leaves: 250}, false, true, 0, 0},
	} {
		b := Book{Nodes: []Entry{{}, c.e}}
		if heir, book := yields([]*Entry{{Want: 1}, &c.e}), b.yields(); heir != c.heir || book != c.book {
			t.Errorf("%+v: an heir yields: %t, a book does: %t", c.e, heir, book)
		}
		if p, y, n := c.e.want(plain), c.e.want(yielding), c.e.want(all); p != c.plain || y != c.free || n != c.e.Want {
			t.Errorf("%+v: it wants %d and %d, in all %d", c.e, p, y, n)
		}
	}
	for part, want := range map[float64]uint64{-1: 0, 0: 0, 0.0001: 1, 0.25: 250, 0.2501: 251, 1: 1000, 2: 1000} {
		if got := thousandths(part); got != want {
			t.Errorf("of %v: %d, want %d", part, got, want)
		}
	}
}

// A request that yields leaves its part of the limit free, to the last request. What others hold unsent is in that
// part.
func TestReadyOfWhatYields(t *testing.T) {
	for _, c := range []struct {
		used, theirs int64
		yields, goes bool
	}{
		{7499, 0, true, true}, {7500, 0, true, false}, {7500, 0, false, true}, {9999, 0, false, true}, {10_000, 0, false, false},
		{7400, 99, true, true}, {7400, 2500, true, true}, {7500, 2500, true, false},
	} {
		d := dividing(1, 1)
		d.limiter = limit.MustRolling(10_000, time.Second)
		d.mine.Leaves = 250
		d.admit(mono.Min, limit.Cost{limit.Requests: c.used})
		d.theirs, d.kept = d.admit(mono.Min, limit.Cost{limit.Requests: c.theirs}), d.admit(mono.Min, limit.Cost{})
		if goes := d.readyOf(&d.mine, limit.One, c.yields) <= d.now; goes != c.goes {
			t.Errorf("beside %d, and %d that others hold: one that yields %t goes %t", c.used, c.theirs, c.yields, goes)
		}
	}
}

// places6 is a node's turn at a limit of six places, of which it holds some unused, beside one that wants any.
func places6(plain, yielding int64) *pending {
	const now = 60_000 * ms
	n := New(Config{ID: "a", New: six})
	t := &pending{Node: n, book: &Book{}, limiter: n.config.New(), now: now, mine: Entry{ID: "a", Weight: 1000, Counts: 1000},
		others: []Entry{{ID: "b", Want: 9, Weight: 1000, Mean: limit.One, Until: now + 1}}}
	n.fresh = t.limiter
	n.Line(0, limit.One, 0)
	n.pool.add(part{mono.Min, limit.Cost{limit.Requests: plain}, false})
	n.pool.add(part{mono.Min, limit.Cost{limit.Requests: yielding}, true})
	n.places.peaks = [2][2]int64{{9, 9}, {9, 9}}
	t.kept, t.held = t.admit(mono.Min, n.pool.kind(false)), t.admit(mono.Min, n.pool.kind(true))
	return t
}

// A node gives up the places beyond its part: first those that yield. What it gives up is free.
func TestPlacesBeyondThePart(t *testing.T) {
	for _, c := range []struct{ plain, yielding, plainLeft, yieldingLeft int64 }{
		{2, 1, 2, 1}, {2, 3, 2, 1}, {1, 5, 1, 2}, {5, 1, 3, 0}, {4, 0, 3, 0}, {0, 4, 0, 3},
	} {
		d := places6(c.plain, c.yielding)
		d.dividePlaces()
		plain, yielding := d.pool.kind(false)[limit.Requests], d.pool.kind(true)[limit.Requests]
		if used := limit.AppendUsage(nil, d.limiter, d.now)[0].Used; plain != c.plainLeft || yielding != c.yieldingLeft || used != plain+yielding {
			t.Errorf("of %d and %d that yield it keeps %d and %d, want %d and %d; %d are used", c.plain, c.yielding, plain, yielding,
				c.plainLeft, c.yieldingLeft, used)
		}
	}
}
