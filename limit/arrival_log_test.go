package limit

import (
	"math/rand/v2"
	"testing"

	"github.com/paceline-go/paceline/limit/mono"
)

// A log that forgets and adds answers as the list of its arrivals does, whichever of two instants is later.
func TestArrivalLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(3112, 0))
	for range 300 {
		g, at := newLog(), mono.Time(0)
		type one struct {
			at   mono.Time
			cost int64
		}
		var all []one
		sum := func(after mono.Time) (n int64) {
			for _, a := range all {
				if a.at > after {
					n += a.cost
				}
			}
			return n
		}
		gone := mono.Min
		for range 60 {
			at += mono.Time(rng.IntN(4))
			cost := 1 + rng.Int64N(9)
			g.add(at, cost)
			all = append(all, one{at, cost})
			if rng.IntN(8) == 0 {
				gone = max(gone, at-mono.Time(rng.IntN(40)))
				g.forget(gone)
			}
			u, v := max(gone, at-mono.Time(rng.IntN(50))), max(gone, at-mono.Time(rng.IntN(50)))
			if a, b := g.afterBoth(u, v); a != sum(u) || b != sum(v) || g.after(u) != a {
				t.Fatalf("after %d and %d came %d and %d, expected %d and %d: %v", u, v, a, b, sum(u), sum(v), all)
			}
		}
	}
}
