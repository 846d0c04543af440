package fairshare

import "math"

// noise is the error in what servers say remains: it is rounded, or told by a replica that is late. What was taken between two answers
// has the errors of both, and the next such figure has that of the second again, with the opposite sign. So deviations from what was
// expected alternate, and the product of two in a row is −σ² on average.
type noise struct {
	product float64 // the mean of the products
	before  float64
}

const (
	noiseMean  = 8.0 // over how many revisions
	noiseNews  = 6.0 // × σ: how much all should take from one revision to the next
	noiseLeast = 2.0 // σ: a smaller one is only the way in which requests of others come
	noiseMost  = 20.0
	noisePart  = 1.0 / 8 // of L: more than that, and noiseMost, is no error but another quota, window or unit
)

// heed is told of a deviation, in units, of a quota of limit. One that is no error ends a row of them: it would outweigh all others for
// so long that n were hardly ever revised again.
func (q *noise) heed(deviation, limit float64) {
	if math.Abs(deviation) > max(noiseMost, noisePart*limit) {
		deviation = 0
	}
	product := q.before * deviation
	q.before = deviation
	q.product += (product - q.product) / noiseMean
}

// sigma returns the standard deviation.
func (q *noise) sigma() float64 {
	if -q.product < noiseLeast*noiseLeast {
		return 0
	}
	return math.Sqrt(-q.product)
}

// news returns how much all should take between two revisions of n, for the estimate to be worth something.
func (q *noise) news() float64 { return noiseNews * q.sigma() }
