package strategy

import (
	"math/rand/v2"

	"github.com/paceline-go/paceline/limit/mono"
)

// Moment is the knowledge of a Law when an answer comes. Times are in seconds.
type Moment struct {
	Limited   bool    // the answer is a refusal
	Sleep     float64 // the sleep before the try, without jitter
	Tries     float64 // refusals of this call before the answer
	Remaining float64 // by the answer; 0: the answer does not say
	// RetryAfter and Reset are of the answer; 0: the answer does not say.
	RetryAfter, Reset float64
	Now               float64 // since the run began
	Limit             float64 // Params.Divisor
	MinSleep          float64 // Params.MinSleep
	Rng               *rand.Rand
}

// Law returns the next sleep in seconds. It may change the Moment. A sleep below 0 is 0, and one above a year is a
// year. NaN leaves the sleep as it was.
type Law func(*Moment) float64

// ByLaw returns a strategy that sleeps before each try, as those of the gem do, with a law of one's own. Jitter and
// Sharing are as in the gem.
func ByLaw(name, text string, next Law) Strategy {
	return Strategy{Name: name, Text: text,
		New: func(p Params) (Process, error) {
			g, err := newGem(name, proportionalRemainingDecrease, p)
			if err != nil {
				return nil, err
			}
			g.own = next
			return g, nil
		}}
}

// obey is an answer by a Law.
func (t *gemThread) obey(now mono.Time, a Answer) {
	k := &t.known
	if !t.limited {
		k.Tries = 0
	}
	k.Limited, k.Sleep, k.Remaining, k.Now = a.Limited, t.s, remaining(a), now.Sub(0).Seconds()
	k.RetryAfter, k.Reset = a.RetryAfter.Seconds(), a.Reset.Seconds()
	k.Limit, k.MinSleep, k.Rng = t.p.divisor, t.p.min, t.rng
	if s := t.p.own(k); s == s {
		t.s = min(max(s, 0), longest)
	}
	if t.limited, t.calling = a.Limited, a.Limited; a.Limited {
		k.Tries++
	}
}
