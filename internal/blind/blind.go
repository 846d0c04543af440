// Package blind places requests of sharers who know nothing of each other yet, after a refusal: in a window of as many tokens as
// there may be sharers, each at random, so that none comes before there is a token for it.
package blind

import "math"

// Shares is how many sharers there are taken to be, to begin with.
const Shares = 9.5

// The slack that a number of arrivals needs which is binomial, in tokens: of a hundred windows of ten sharers, one has a refusal.
const (
	first = 1.5
	slack = 2.4
	tail  = 0.22
)

// Wait is how many tokens after a refusal a request goes in a window of n tokens: u of the sharers, if they are n, have sent by then.
func Wait(n, u float64) float64 {
	spread := math.Sqrt(u * (1 - u))
	if u > 0.5 {
		spread = 0.5 - tail*(2*u-1)
	}
	return first + n*u + slack*math.Sqrt(n)*spread
}

// Share is the inverse of Wait: which part of the sharers has sent when so many tokens have come.
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

// Wider is the next window, after one of n in which a request was refused so many tokens after the window's beginning: a refusal shows
// that more came than flowed in, the earlier the more. It is at least a half more, and at most times as wide.
func Wider(n, tokens, least, most float64) float64 {
	const guess = 5
	return max(min(least, most)*n, min(guess*tokens/max(Share(n, tokens), 1e-3), most*n))
}
