package fairshare

import "math"

// After a refusal sharers know nothing of each other. Each sends at a random time in a window of as many
// tokens as there may be sharers. So no request comes before there is a token for it.

// assumedSharers is the number of sharers that is assumed at first.
const assumedSharers = 9.5

// These are the tokens of slack for a binomial number of arrivals. With ten sharers, one window in
// a hundred then has a refusal.
const (
	firstTokens = 1.5
	slackTokens = 2.4
	tailSlack   = 0.22
)

// waitTokens returns how many tokens after a refusal a request goes, in a window of n tokens. By then the
// fraction u of the sharers has sent, if there are n.
func waitTokens(n, u float64) float64 {
	spread := math.Sqrt(u * (1 - u))
	if u > 0.5 {
		spread = 0.5 - tailSlack*(2*u-1)
	}
	return firstTokens + n*u + slackTokens*math.Sqrt(n)*spread
}

// shareSent is the inverse of waitTokens: it returns the fraction of the sharers that has sent when this many
// tokens have come.
func shareSent(n, tokens float64) float64 {
	low, high := 0.0, 1.0
	for range 30 {
		if m := (low + high) / 2; waitTokens(n, m) <= tokens {
			low = m
		} else {
			high = m
		}
	}
	return low
}

// widerWindow returns the window that follows one of n in which a request was refused, tokens after the
// window's beginning. A refusal shows that more came than flowed in, and the more so the earlier it
// is. The new window is at least least times as large, and at most most times. It is smaller than
// least times only if most is.
func widerWindow(n, tokens, least, most float64) float64 {
	const guess = 5
	return max(min(least, most)*n, min(guess*tokens/max(shareSent(n, tokens), 1e-3), most*n))
}
