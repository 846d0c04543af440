package node

import (
	"testing"

	"github.com/paceline-go/paceline/limit"
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

// Requests yield that are wanted and leave something free, be it a thousandth. A book yields by what its nodes leave free.
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
