package nodesim_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/nodesim"
)

// In each window of a long limit, each process that always wants more gets its part of this window, and not of the sum of several windows. In the
// first window of a new store, a process that starts a second after the first one still gets something.
func TestPartsOfEachWindow(t *testing.T) {
	for _, x := range []struct {
		name            string
		weights, leasts []float64
		parts           []float64
		within          float64
	}{
		{"equal", nil, nil, []float64{200, 200, 200}, 0.15},
		{"least", nil, []float64{0, 0, 0.5}, []float64{150, 150, 300}, 0.1},
		{"weights", []float64{1, 1, 3}, nil, []float64{120, 120, 360}, 0.15},
	} {
		for seed := range uint64(2) {
			c := base(rolling(600, time.Minute), 3, seed)
			c.Rested, c.Later, c.LaterAt, c.Length = true, 2, 300*ms, 5*time.Minute
			c.Way = func(*rand.Rand) time.Duration { return 25 * ms }
			c.StoreWay = func(*rand.Rand) time.Duration { return ms / 2 } // a file
			c.Weights, c.Leasts = x.weights, x.leasts
			r := nodesim.Run(c)
			if r.Refused > 0 {
				t.Errorf("%s: %d refused", x.name, r.Refused)
			}
			for w := range int(c.Length / time.Minute) {
				var by [3]int
				for i := range by {
					for _, n := range r.BySecond[i][60*w : 60*w+60] {
						by[i] += n
					}
				}
				t.Logf("%s, seed %d, window %d: %v", x.name, seed, w, by)
				if sum := by[0] + by[1] + by[2]; sum < 588 {
					t.Errorf("%s, seed %d, window %d: %d of 600 were sent", x.name, seed, w, sum)
				}
				for i, part := range x.parts {
					least, most := (1-x.within)*part, (1+x.within)*part
					if w == 0 {
						least, most = 0.5*part, 600
					}
					if n := float64(by[i]); n < least || n > most {
						t.Errorf("%s, seed %d, window %d: %v, want %v within %v", x.name, seed, w, by, x.parts, x.within)
					}
				}
			}
		}
	}
}
