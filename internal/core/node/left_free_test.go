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
