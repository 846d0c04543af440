package fairshare

import "math"

// noise is the error of the remainders in answers. They are rounded, or come from a late replica.
// The amount taken between two answers has the errors of both. The next such amount has the error
// of the second again, with the opposite sign. So deviations from the expected amount alternate.
// The product of two in a row is −σ² on average.
type noise struct {
	product float64 // the mean of the products
	before  float64
}

const (
	noiseMean  = 8.0 // the number of revisions in the mean
	noiseNews  = 6.0 // × σ: the least amount that all should take from one revision to the next
	noiseLeast = 2.0 // σ: a smaller one only comes from the arrival of others' requests
	noiseMost  = 20.0
	noisePart  = 1.0 / 8 // of L: a deviation above that and noiseMost is no error but another quota, window or unit
)

// heed counts a deviation, in units, of a quota of limit. A deviation that is no error ends a row
// of them. It would outweigh all others for so long that n would hardly ever be revised again.
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

// news returns the least amount that all should take between two revisions of n, so that the
// estimate is worth something.
func (q *noise) news() float64 { return noiseNews * q.sigma() }
