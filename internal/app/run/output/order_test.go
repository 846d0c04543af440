package output

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// Nothing more is read while the most rows wait for one request. Reading goes on once that has
// ended.
func TestOrderHoldsBack(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int   // that are read at once
		size int64 // of the line of each
	}{{"many", mostOutOfOrder, 1}, {"large", 3, mostBytesOutOfOrder/2 + 1}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOrder()
				read := 0
				go func() {
					for i := range c.n + 5 {
						o.read(format.HashOf(fmt.Sprint(i)), true)
						read++
						if i > 0 {
							o.ended(format.HashOf(fmt.Sprint(i)), span{at: int64(i), n: c.size})
						}
					}
				}()
				synctest.Wait()
				if read != c.n {
					t.Errorf("%d are read, want %d", read, c.n)
				}
				o.ended(format.HashOf("0"), span{})
				for shown := 0; shown < c.n+5; {
					s, ok := o.next()
					if !ok {
						synctest.Wait()
						continue
					}
					if s.at != int64(shown) {
						t.Fatalf("%d is shown for %d", s.at, shown)
					}
					shown++
				}
				if o.bytes != 0 || len(o.ends) != 0 {
					t.Errorf("%d bytes and %d ends are left", o.bytes, len(o.ends))
				}
			})
		})
	}
}

// FuzzOrder: in any order of ends, the shown rows are in order, each once. After rest, all ended
// ones are shown.
func FuzzOrder(f *testing.F) {
	f.Add(uint64(1), uint8(20), uint8(3))
	f.Add(uint64(7), uint8(200), uint8(60))
	f.Fuzz(func(t *testing.T, seed uint64, n, never uint8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		o := newOrder()
		d := func(i int) format.Hash { return format.HashOf(fmt.Sprint(i)) }
		var going, shown []int
		ended := map[int]bool{}
		take := func(next func() (span, bool)) {
			for s, ok := next(); ok; s, ok = next() {
				shown = append(shown, int(s.at))
			}
		}
		for i := range int(n) {
			anew := rng.IntN(4) > 0
			if !anew || rng.IntN(3) == 0 { // a run before
				o.ended(d(i), span{at: int64(i), n: 5, isOld: true})
			}
			if o.read(d(i), anew); anew {
				going = append(going, i)
			} else {
				ended[i] = true
			}
			for len(going) > 0 && rng.IntN(2) == 0 {
				at := rng.IntN(len(going))
				if i := going[at]; rng.IntN(256) >= int(never) {
					o.ended(d(i), span{at: int64(i), n: 5})
					ended[i] = true
				}
				going = slices.Delete(going, at, at+1)
			}
			take(o.next)
		}
		if !slices.IsSorted(shown) {
			t.Fatalf("%v", shown)
		}
		for i := range shown {
			if shown[i] != i {
				t.Fatalf("%v: before those that have not ended nothing is shown", shown)
			}
		}
		take(o.rest)
		if len(shown) != len(ended) || !slices.IsSorted(shown) || o.bytes != 0 {
			t.Fatalf("%d of %d are shown: %v; %d bytes", len(shown), len(ended), shown, o.bytes)
		}
	})
}
