// Package contention places the requests of sharers after a refusal, while they know nothing of
// each other. Each goes at a random time in a window of as many tokens as there may be sharers. So
// no request comes before there is a token for it.
package contention

import "math"

// Shares is the number of sharers that is assumed at first.
const Shares = 9.5

// These are the tokens of slack for a binomial number of arrivals. With ten sharers, one window in
// a hundred then has a refusal.
const (
	first = 1.5
	slack = 2.4
	tail  = 0.22
)

// Wait returns how many tokens after a refusal a request goes, in a window of n tokens. By then the
// fraction u of the sharers has sent, if there are n.
func Wait(n, u float64) float64 {
	spread := math.Sqrt(u * (1 - u))
	if u > 0.5 {
		spread = 0.5 - tail*(2*u-1)
	}
	return first + n*u + slack*math.Sqrt(n)*spread
}

// Share is the inverse of Wait: it returns the fraction of the sharers that has sent when this many
// tokens have come.
func Share(n, tokens float64) float64 {
	low, high := 0.0, 1.0
	for range 30 {
		if m := (low + high) / 2; Wait(n, m) <= tokens {
			low = m
		} else {
			high = m
		}
	}
	return low
}

// Wider returns the window that follows one of n in which a request was refused, tokens after the
// window's beginning. A refusal shows that more came than flowed in, and the more so the earlier it
// is. The new window is at least least times as large, and at most most times. It is smaller than
// least times only if most is.
func Wider(n, tokens, least, most float64) float64 {
	const guess = 5
	return max(min(least, most)*n, min(guess*tokens/max(Share(n, tokens), 1e-3), most*n))
}
