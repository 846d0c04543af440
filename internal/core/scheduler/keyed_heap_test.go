package scheduler

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paceline-go/paceline/limit/mono"
)

// After any pushes, moves and removals the first is the least, each entry knows its spot, and no
// entry is above a lesser one.
func TestHeap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 300
	var h heap[int]
	var spots [n]int32
	var keys [n]key
	for i := range spots {
		spots[i] = -1
	}
	draw := func() (k key) {
		for i := range k {
			k[i] = rng.Int64N(4) - 1
		}
		return k
	}
	check := func(what string, x int) {
		t.Helper()
		in := 0
		for i := range spots {
			if at := spots[i]; at >= 0 {
				in++
				if int(at) >= len(h.all) || h.all[at].x != i || h.all[at].key != keys[i] {
					t.Fatalf("after %s of %d: %d is not where it thinks", what, x, i)
				}
			}
		}
		if in != len(h.all) {
			t.Fatalf("after %s of %d: %d are in the heap of %d", what, x, in, len(h.all))
		}
		for i := 1; i < len(h.all); i++ {
			if slices.Compare(h.all[i].key[:], h.all[(i-1)/wide].key[:]) < 0 {
				t.Fatalf("after %s of %d: %v stands above %v", what, x, h.all[(i-1)/wide].key, h.all[i].key)
			}
		}
	}
	for step := range 20_000 {
		x := rng.IntN(n)
		grows := step/1000%2 == 0 // it is filled and emptied by turn
		switch {
		case spots[x] < 0 && (grows || rng.IntN(4) == 0):
			keys[x] = draw()
			h.push(x, &spots[x], keys[x])
			check("push", x)
		case spots[x] < 0:
			h.fix(&spots[x], draw())
			h.remove(&spots[x])
			if spots[x] != -1 {
				t.Fatal("what was not there is")
			}
		case rng.IntN(3) > 0:
			keys[x] = draw()
			h.fix(&spots[x], keys[x])
			check("fix", x)
		case !grows:
			if rng.IntN(2) == 0 {
				x = h.first()
			}
			h.remove(&spots[x])
			if spots[x] != -1 {
				t.Fatalf("%d was removed and is at %d", x, spots[x])
			}
			check("remove", x)
		}
	}
	var before key
	for i := 0; len(h.all) > 0; i++ {
		x := h.first()
		if i > 0 && slices.Compare(keys[x][:], before[:]) < 0 {
			t.Fatalf("%v comes after %v", keys[x], before)
		}
		before = keys[x]
		h.remove(&spots[x])
	}
}

// The ways of a lane that are ready are in their order, equals as they came, from either end.
func TestTurns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var r turns
	ways := make([]Way, 20)
	in := []*Way{}
	for range 3000 {
		w := &ways[rng.IntN(len(ways))]
		if i := slices.Index(in, w); i >= 0 {
			r.remove(w)
			in = slices.Delete(in, i, i+1)
		} else {
			w.ready, w.used = mono.Time(rng.Int64N(2)), rng.Int64N(3)
			r.insert(w)
			k := w.byChoice()
			at := len(in)
			for at > 0 {
				if other := in[at-1].byChoice(); slices.Compare(k[:], other[:]) >= 0 {
					break
				}
				at--
			}
			in = slices.Insert(in, at, w)
		}
		var forth, back []*Way
		for v := r.first; v != nil && len(forth) <= len(in); v = v.next {
			forth = append(forth, v)
		}
		for v := r.last; v != nil && len(back) <= len(in); v = v.prev {
			back = append(back, v)
		}
		slices.Reverse(back)
		if !slices.Equal(forth, in) || !slices.Equal(back, in) {
			t.Fatalf("%d are in order, and %d from the front, %d from the back", len(in), len(forth), len(back))
		}
	}
}
