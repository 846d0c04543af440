package window_test

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/limit/window"
)

// The published ring of slots divides twice for each event, and once more for every slot that it
// clears:
//
//	index = t / precision,  position = index % slots
//
// The cures below were published with it. Each is applied to the same ring. Two more are ours: a
// reciprocal computed at construction, and the remembered end of the current slot. window.Slots
// uses the second, with the reciprocal for jumps.
//
// All have 11 slots of 100 ms, except those of powers of two.

const (
	slotLen = int64(100 * time.Millisecond)
	slots   = 11
)

type counter interface {
	Add(t mono.Time, n int64) int64
}

// divided is the ring as published.
type divided struct {
	counts    []int64
	precision int64
	last      int64
	total     int64
}

func newDivided() *divided {
	return &divided{counts: make([]int64, slots), precision: slotLen}
}

func (r *divided) Add(t mono.Time, n int64) int64 {
	index := int64(t) / r.precision
	size := int64(len(r.counts))
	if index != r.last {
		if index-r.last >= size {
			clear(r.counts)
			r.total = 0
		} else {
			for i := r.last + 1; i <= index; i++ {
				p := i % size
				r.total -= r.counts[p]
				r.counts[p] = 0
			}
		}
		r.last = index
	}
	r.counts[index%size] += n
	r.total += n
	return r.total
}

// floating divides in floating point: the first published cure. It is exact until 2⁵³ ns from the
// epoch, 104 days.
type floating struct {
	counts    []int64
	precision float64
	size      float64
	last      float64
	total     int64
}

func newFloating() *floating {
	return &floating{counts: make([]int64, slots), precision: float64(slotLen), size: slots}
}

func (r *floating) position(index float64) int {
	return int(index - r.size*math.Floor(index/r.size))
}

func (r *floating) Add(t mono.Time, n int64) int64 {
	index := math.Floor(float64(t) / r.precision)
	if index != r.last {
		if index-r.last >= r.size {
			clear(r.counts)
			r.total = 0
		} else {
			for i := r.last + 1; i <= index; i++ {
				p := r.position(i)
				r.total -= r.counts[p]
				r.counts[p] = 0
			}
		}
		r.last = index
	}
	r.counts[r.position(index)] += n
	r.total += n
	return r.total
}

// split clears in two loops, up to the end of the ring and from its beginning: the second cure. The
// two divisions for the event itself are left.
type split struct{ divided }

func newSplit() *split { return &split{*newDivided()} }

func (r *split) Add(t mono.Time, n int64) int64 {
	index := int64(t) / r.precision
	size := int64(len(r.counts))
	p := index % size
	if index != r.last {
		if index-r.last >= size {
			clear(r.counts)
			r.total = 0
		} else {
			from := r.last%size + 1
			if from > p {
				r.clear(r.counts[from:])
				from = 0
			}
			r.clear(r.counts[from : p+1])
		}
		r.last = index
	}
	r.counts[p] += n
	r.total += n
	return r.total
}

func (r *split) clear(counts []int64) {
	for i, n := range counts {
		r.total -= n
		counts[i] = 0
	}
}

// masked has a power of two of slots, so a mask replaces the remainder: the third cure. In the
// published ring the slots are the window. With fewer slots the window shrinks to as little as
// half, and the counter undercounts. With more slots, as here, it grows to as much as twice. 16
// slots count events up to 1.6 s old, and 11 count events up to 1.1 s.
type masked struct{ divided }

func newMasked() *masked {
	return &masked{divided{counts: make([]int64, 16), precision: slotLen}}
}

func (r *masked) Add(t mono.Time, n int64) int64 {
	index := int64(t) / r.precision
	mask := int64(len(r.counts) - 1)
	if index != r.last {
		if index-r.last > mask {
			clear(r.counts)
			r.total = 0
		} else {
			for i := r.last + 1; i <= index; i++ {
				p := i & mask
				r.total -= r.counts[p]
				r.counts[p] = 0
			}
		}
		r.last = index
	}
	r.counts[index&mask] += n
	r.total += n
	return r.total
}

// shifted has a power of two of slots of a power of two of nanoseconds: no division at all. 16
// slots of 2²⁷ ns (134 ms) count events up to 2.1 s old.
type shifted struct {
	divided
	shift uint
}

func newShifted() *shifted {
	return &shifted{divided{counts: make([]int64, 16)}, uint(bits.Len64(uint64(slotLen - 1)))}
}

func (r *shifted) Add(t mono.Time, n int64) int64 {
	index := int64(t) >> r.shift
	mask := int64(len(r.counts) - 1)
	if index != r.last {
		if index-r.last > mask {
			clear(r.counts)
			r.total = 0
		} else {
			for i := r.last + 1; i <= index; i++ {
				p := i & mask
				r.total -= r.counts[p]
				r.counts[p] = 0
			}
		}
		r.last = index
	}
	r.counts[index&mask] += n
	r.total += n
	return r.total
}

// constant has its precision and number of slots in the source, so the compiler multiplies: the
// fourth cure. A library cannot use it: it gets both at run time.
type constant struct {
	counts [slots]int64
	last   int64
	total  int64
}

func (r *constant) Add(t mono.Time, n int64) int64 {
	index := int64(t) / slotLen
	if index != r.last {
		if index-r.last >= slots {
			clear(r.counts[:])
			r.total = 0
		} else {
			for i := r.last + 1; i <= index; i++ {
				p := i % slots
				r.total -= r.counts[p]
				r.counts[p] = 0
			}
		}
		r.last = index
	}
	r.counts[index%slots] += n
	r.total += n
	return r.total
}

// reciprocal does at construction the compiler's work for constant: it multiplies by ⌊(2⁶⁴−1)/d⌋,
// and corrects.
type reciprocal struct {
	divided
	ofPrecision, ofSize uint64
}

func newReciprocal() *reciprocal {
	return &reciprocal{*newDivided(), math.MaxUint64 / uint64(slotLen), math.MaxUint64 / slots}
}

func quotient(a, b, reciprocal uint64) (q, rest uint64) {
	q, _ = bits.Mul64(a, reciprocal)
	rest = a - q*b
	for rest >= b {
		q++
		rest -= b
	}
	return q, rest
}

func (r *reciprocal) Add(t mono.Time, n int64) int64 {
	q, _ := quotient(uint64(t), uint64(r.precision), r.ofPrecision)
	index := int64(q)
	size := int64(len(r.counts))
	if index != r.last {
		if index-r.last >= size {
			clear(r.counts)
			r.total = 0
		} else {
			for i := r.last + 1; i <= index; i++ {
				_, p := quotient(uint64(i), uint64(size), r.ofSize)
				r.total -= r.counts[p]
				r.counts[p] = 0
			}
		}
		r.last = index
	}
	_, p := quotient(uint64(index), uint64(size), r.ofSize)
	r.counts[p] += n
	r.total += n
	return r.total
}

// cures lists all of them, and whether each has exactly the totals of the published ring.
var cures = []struct {
	name  string
	exact bool
	new   func() counter
}{
	{"as published", true, func() counter { return newDivided() }},
	{"floating point", true, func() counter { return newFloating() }},
	{"split loop", true, func() counter { return newSplit() }},
	{"power of two slots", false, func() counter { return newMasked() }},
	{"power of two slots and precision", false, func() counter { return newShifted() }},
	{"constant", true, func() counter { return new(constant) }},
	{"reciprocal", true, func() counter { return newReciprocal() }},
	{"window.Slots", true, func() counter { return must(window.NewSlots((slots-1)*time.Duration(slotLen), time.Duration(slotLen))) }},
}

// The exact cures count like the published ring with 11 slots. Those of powers of two never count
// less.
func TestDivisionCuresCountAlike(t *testing.T) {
	for _, c := range cures[1:] {
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			plain, cured := newDivided(), c.new()
			more := 0
			var now mono.Time
			for range 20_000 {
				now += mono.Time(random.Int64N(slotLen))
				switch random.IntN(50) {
				case 0:
					now += mono.Time(random.Int64N(30 * slotLen))
				case 1:
					now += mono.Time(slotLen) - now%mono.Time(slotLen) // exactly where a slot begins
				}
				n := 1 + random.Int64N(5)
				want, got := plain.Add(now, n), cured.Add(now, n)
				if got > want {
					more++
				}
				if got < want || c.exact && got != want {
					t.Fatalf("at %v: total %d, want %d", now, got, want)
				}
			}
			if !c.exact && more == 0 {
				t.Error("its window should be longer, but it never counted more")
			}
		})
	}
}

// Floating point is exact for 104 days. After that, an instant just before a slot counts as in it,
// and a slot is emptied too soon.
func TestFloatingPointLosesNanoseconds(t *testing.T) {
	wrong := func(from mono.Time) bool {
		from -= from % mono.Time(slotLen)
		plain, float := newDivided(), newFloating()
		plain.Add(from, 1)
		float.Add(from, 1)
		at := from + slots*mono.Time(slotLen) - 1
		return plain.Add(at, 1) != float.Add(at, 1)
	}
	if wrong(1<<53 - 2*slots*mono.Time(slotLen)) {
		t.Error("wrong before 2⁵³ ns")
	}
	if !wrong(1<<60 + 1<<55) {
		t.Error("right at 2⁶⁰ ns (36 years), where floating point has steps of 256 ns: the caveat is gone")
	}
}

func BenchmarkDivision(b *testing.B) {
	for _, w := range []struct {
		name string
		step int64
	}{
		{"same slot", 0},
		{"next slot", slotLen},
		{"5 slots on", 5 * slotLen},
		{"big jump", 40*slotLen + 1},
	} {
		for _, c := range cures {
			b.Run(fmt.Sprintf("%s/%s", w.name, c.name), func(b *testing.B) {
				r := c.new()
				var now mono.Time
				var sum int64
				for b.Loop() {
					now += mono.Time(w.step)
					sum += r.Add(now, 1)
				}
				if sum == 0 {
					b.Fatal("nothing counted")
				}
			})
		}
	}
}
