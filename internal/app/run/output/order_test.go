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
						o.read(format.HashOf(fmt.Sprint(i)), i, true)
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

// A feeder waits where it is too far ahead of what was read, and never before what was read. What ended without
// being read is shown at the end, as it came.
func TestOrderOfSeveralFeeders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOrder()
		o.ended(format.HashOf("9"), span{at: 9, n: mostBytesOutOfOrder + 1})
		o.ended(format.HashOf("7"), span{at: 7, n: 1})
		o.read(format.HashOf("1"), 1, true)
		o.await(1) // does not wait
		went := false
		go func() {
			o.await(2)
			went = true
		}()
		if synctest.Wait(); went {
			t.Error("it does not wait")
		}
		o.ended(format.HashOf("1"), span{at: 1, n: 1})
		if n := o.ready(); n != 3 {
			t.Errorf("%d are ready", n)
		}
		for _, want := range []int64{1, 7, 9} {
			if s, ok := o.rest(); !ok || s.at != want {
				t.Errorf("%v, %v, want %d", s, ok, want)
			}
		}
		if _, ok := o.rest(); ok || o.bytes != 0 {
			t.Errorf("one more, or %d bytes are left", o.bytes)
		}
		o.stop()
		if synctest.Wait(); !went {
			t.Error("it waits for good")
		}
	})
}

// A request that is done and sent again keeps its line where it ends in vain, also in the next run.
func TestOrderOfWhatIsSentAgain(t *testing.T) {
	a, b := format.HashOf("a"), format.HashOf("b")
	for _, c := range []struct {
		name string
		end  span
		want int64
	}{{"in vain", span{}, 1}, {"with a new line", span{at: 5, n: 3}, 5}} {
		o := newOrder()
		o.ended(a, span{at: 1, n: 3, isOld: true})
		o.ended(b, span{at: 2, n: 3, isOld: true})
		o.read(a, 1, true)
		o.read(b, 2, false)
		if s, ok := o.next(); ok {
			t.Errorf("%s: %v is shown before its end", c.name, s)
		}
		o.ended(a, c.end)
		first, _ := o.next()
		second, _ := o.next()
		if first.at != c.want || second.at != 2 || o.bytes != 0 || len(o.ends)+len(o.cut) != 0 {
			t.Errorf("%s: %v, %v; %d bytes", c.name, first, second, o.bytes)
		}
	}
	o := newOrder()
	o.ended(a, span{at: 1, n: 3, isOld: true})
	o.ended(a, span{}) // the next run reads that it expired
	if s := o.ends[a]; s.at != 1 {
		t.Errorf("%v", s)
	}
}

// FuzzOrder: in any order of ends, the shown rows are in order, each once. After rest, all ended
// ones are shown.
func FuzzOrder(f *testing.F) {
	f.Add(uint64(1), uint8(20), uint8(3), false)
	f.Add(uint64(7), uint8(200), uint8(60), false)
	f.Add(uint64(7), uint8(200), uint8(60), true)
	f.Fuzz(func(t *testing.T, seed uint64, n, never uint8, several bool) {
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
		ahead := map[int]bool{}
		for i := range int(n) {
			if j := i + 1 + rng.IntN(5); several && j < int(n) && !ahead[j] { // another feeder hands it over, and it ends
				o.await(j)
				o.ended(d(j), span{at: int64(j), n: 5})
				ahead[j], ended[j] = true, true
			}
			if ahead[i] {
				o.read(d(i), i, true)
				take(o.next)
				continue
			}
			anew := rng.IntN(4) > 0
			if !anew || rng.IntN(3) == 0 { // a run before
				o.ended(d(i), span{at: int64(i), n: 5, isOld: true})
			}
			if o.read(d(i), i, anew); anew {
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
