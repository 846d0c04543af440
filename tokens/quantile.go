package tokens

import (
	"math"
	"slices"
)

// memory is how many ratios a quantile remembers. The chance of an overrun can be stated down to 1/(memory+1).
const memory = 512

// quantile is the split-conformal upper bound of the next of a series of ratios, from the last 512 of them. With n
// remembered and a chance α of being wrong it answers the k-th smallest,
//
//	k = ⌈(n + 1) (1 − α)⌉
//
// and for exchangeable ratios, whatever their distribution, the next is above that with probability α at most (Vovk,
// Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005). While k > n nothing can be promised: that many
// ratios have to be seen first (19 for α = 0.05, 99 for 0.01).
//
// It takes at most 8 kB, growing as ratios come. The zero value is ready and has seen nothing. Not safe for concurrent
// use.
type quantile struct {
	recent []float64 // it becomes a ring once it is full
	sorted []float64
	next   int // the index in recent of the ratio that is forgotten next
}

func (q *quantile) observe(ratio float64) {
	if len(q.recent) < memory {
		q.recent = append(q.recent, ratio)
	} else {
		i, _ := slices.BinarySearch(q.sorted, q.recent[q.next])
		q.sorted = slices.Delete(q.sorted, i, i+1)
		q.recent[q.next] = ratio
		q.next = (q.next + 1) % memory
	}
	i, _ := slices.BinarySearch(q.sorted, ratio)
	q.sorted = slices.Insert(q.sorted, i, ratio)
}

// above returns what the next ratio exceeds with probability chance at most; ok is false while too few have been seen.
func (q *quantile) above(chance float64) (ratio float64, ok bool) {
	n := len(q.sorted)
	k := int(math.Ceil(float64(n+1) * (1 - chance) * (1 - 1e-12))) // 20 × 0.95 is a little more than 19 in floats
	if k < 1 || k > n {
		return 0, false
	}
	return q.sorted[k-1], true
}

// largest returns the largest ratio remembered, 0 if there is none.
func (q *quantile) largest() float64 {
	if len(q.sorted) == 0 {
		return 0
	}
	return q.sorted[len(q.sorted)-1]
}
