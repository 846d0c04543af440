package limit_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/paceline-go/paceline/limit"
)

// A Book agrees with a map, whatever the distance of the numbers, and at any number of open
// requests.
func TestBookAgainstAMap(t *testing.T) {
	for _, step := range []uint64{1, 2, 7, 64, 1 << 32, 1 << 48} {
		var b limit.Book[uint64]
		want, open := map[uint64]uint64{}, []uint64{}
		rng, number := rand.New(rand.NewPCG(step, 3)), uint64(0)
		for i := range 4000 {
			if grows := i/500%2 == 0; len(open) == 0 || rng.IntN(4) < 1 == !grows {
				number += step
				b.Open(number, uint64(i))
				want[number], open = uint64(i), append(open, number)
			} else {
				k := rng.IntN(len(open))
				n := open[k]
				open[k], open = open[len(open)-1], open[:len(open)-1]
				if got := b.Close(n); got != want[n] {
					t.Fatalf("numbers %d apart: %d had %d, want %d", step, n, got, want[n])
				}
				delete(want, n)
				if b.At(n) != nil {
					t.Fatalf("numbers %d apart: %d is settled, and still there", step, n)
				}
			}
			if b.Len() != len(want) {
				t.Fatalf("numbers %d apart: %d are open, want %d", step, b.Len(), len(want))
			}
		}
		for _, n := range open {
			if at := b.At(n); at == nil || *at != want[n] {
				t.Fatalf("numbers %d apart: %d is not there", step, n)
			}
		}
		rest := maps.Clone(want)
		for v := range b.All() {
			maps.DeleteFunc(rest, func(_, w uint64) bool { return w == *v })
		}
		if len(rest) > 0 {
			t.Errorf("numbers %d apart: All leaves out %v", step, rest)
		}
		for range b.All() {
			break
		}
	}
}

// A Book allocates nothing once it has held as many requests.
func TestBookAllocations(t *testing.T) {
	var b limit.Book[[4]int]
	for n := range uint64(100) {
		b.Take(n)
	}
	number := uint64(100)
	if n := testing.AllocsPerRun(1000, func() {
		b.Return(number - 100)
		b.Take(number)
		number++
	}); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}
