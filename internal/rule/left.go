package rule

import "github.com/paceline-go/paceline/limit/mono"

// Left returns the largest cost, up to most, that would pass at now. It calls Fits of r, and
// searches outwards from guess, such as the last result. The number of calls is about twice the
// logarithm of the distance.
func Left(r Rule, now mono.Time, most, guess int64) int64 {
	if most <= 0 {
		return 0
	}
	lo, hi := int64(0), most+1 // lo fits, and hi does not
	if guess = min(max(guess, 0), most); r.Fits(now, guess) {
		lo = guess
		for step := int64(1); step < hi-lo; step *= 2 {
			if !r.Fits(now, lo+step) {
				hi = lo + step
				break
			}
			lo += step
		}
	} else {
		hi = guess
		for step := int64(1); step < hi-lo; step *= 2 {
			if r.Fits(now, hi-step) {
				lo = hi - step
				break
			}
			hi -= step
		}
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; r.Fits(now, mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
