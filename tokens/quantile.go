package tokens

import (
	"math"
	"slices"
)

// memory is the number of ratios that a quantile remembers. The smallest chance of an overrun that
// can be stated is 1/(memory+1).
const memory = 512

// quantile is the split-conformal upper bound of the next ratio in a series, from the last 512
// ratios. With n remembered ratios and a chance α of being wrong, the bound is the k-th smallest,
//
//	k = ⌈(n + 1) (1 − α)⌉
//
// For exchangeable ratios of any distribution, the next one is above the bound with probability α
// at most (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005). While k > n
// there is no bound. So many ratios are needed first: 19 for α = 0.05, 99 for 0.01.
//
// A quantile takes at most 8 kB and grows with the ratios. The zero value is ready and has no
// ratio. Not safe for concurrent use.
type quantile struct {
	recent []float64 // a ring once it is full
	sorted []float64
	next   int // index in recent of the ratio that is forgotten next
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

// above returns the ratio that the next one exceeds with probability chance at most. ok is false
// while there are too few ratios.
func (q *quantile) above(chance float64) (ratio float64, ok bool) {
	n := len(q.sorted)
	k := int(math.Ceil(float64(n+1) * (1 - chance) * (1 - 1e-12))) // 20 × 0.95 is a little more than 19 in floats
	if k < 1 || k > n {
		return 0, false
	}
	return q.sorted[k-1], true
}

// largest returns the largest remembered ratio, 0 if there is none.
func (q *quantile) largest() float64 {
	if len(q.sorted) == 0 {
		return 0
	}
	return q.sorted[len(q.sorted)-1]
}
