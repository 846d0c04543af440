package throttle

import "math"

// noise is the error of what remains, as it is told: rounded, or by a replica that is late. What is taken from one answer to the next has the
// error of both, and the next one has that of the second again, the other way round. So deviations from what was expected alternate,
// and their product with the one before is −σ² on average.
type noise struct {
	product float64 // mean
	before  float64
}

const (
	noiseMean  = 8.0 // revisions
	noiseNews  = 6.0 // × σ, that all take from one revision to the next
	noiseLeast = 2.0 // σ: less is how requests of others come
)

// heed is told of a deviation, in units.
func (q *noise) heed(deviation float64) {
	product := q.before * deviation
	q.before = deviation
	q.product += (product - q.product) / noiseMean
}

// sigma is the standard deviation.
func (q *noise) sigma() float64 {
	if -q.product < noiseLeast*noiseLeast {
		return 0
	}
	return math.Sqrt(-q.product)
}

// news is how much all should take between two revisions of n, for the estimate to be worth something.
func (q *noise) news() float64 { return noiseNews * q.sigma() }
