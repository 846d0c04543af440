package tokens

import (
	"math"
	"slices"
	"strings"
)

// likeness has the lessons about a model's vocabulary, while there are too few answers to state a
// chance. There are guesses for two vocabularies. likeness finds the mix of both that the model's
// vocabulary resembles, and the factor by which that guess falls short. It takes at most 2.4 kB.
// The zero value has learned from no answer.
type likeness struct {
	off    [mixes]float64 // the error of each mix: the sum of the absolute logarithms
	recent []heard        // a ring once it is full
	n      int
}

// heard is one answer: the guesses, and the true count.
type heard struct {
	guesses [2]float64
	actual  float64
}

const (
	mixes  = 5  // from only today's vocabulary to only the older one
	recall = 99 // after so many answers the chance of an overrun can be stated
	// With fewer than few answers, the worst of them counts. With more answers, it is the ratio
	// that 19 of 20 do not exceed, and more than that if the answers differ.
	few      = 10
	usual    = 0.95
	spare    = 0.8
	settling = 0.01 // a larger guess is still taken if its average error is larger by no more than this
)

// mixed returns the guess of a mix of the two vocabularies.
func mixed(guesses [2]float64, mix int) float64 {
	share := float64(mix) / (mixes - 1)
	return guesses[0]*(1-share) + guesses[1]*share
}

// mix returns the mix that fits best, and the largest of equally good ones. A text with the same
// guess in both vocabularies shows nothing about other texts.
func (l *likeness) mix() int {
	best := slices.Min(l.off[:])
	for mix := mixes - 1; mix > 0; mix-- {
		if l.off[mix] <= best+settling*float64(l.n) {
			return mix
		}
	}
	return 0
}

func (l *likeness) learn(guesses [2]float64, actual int64) {
	if mixed(guesses, 0) <= 0 || mixed(guesses, mixes-1) <= 0 || actual <= 0 {
		return
	}
	for mix := range l.off {
		l.off[mix] += min(math.Abs(math.Log(float64(actual)/mixed(guesses, mix))), 2)
	}
	h := heard{guesses, float64(actual)}
	if len(l.recent) < recall {
		l.recent = append(l.recent, h)
	} else {
		l.recent[l.n%recall] = h
	}
	l.n++
}

// factor returns the factor on a guess of a mix. Before any answer it is first.
func (l *likeness) factor(mix int, first float64) float64 {
	var room [recall]float64
	ratios := room[:0]
	for _, h := range l.recent {
		ratios = append(ratios, h.actual/mixed(h.guesses, mix))
	}
	slices.Sort(ratios)
	switch n := len(ratios); {
	case n == 0:
		return first
	case n < few:
		return max(first, ratios[n-1])
	default:
		q := ratios[int(math.Ceil(usual*float64(n)))-1]
		return q + spare*(q-ratios[n/2])
	}
}

// firstFactor returns the factor on the guess of a plain text before any answer. Anthropic
// publishes no vocabulary; its newer ones make about a third more tokens.
func firstFactor(b *Body) float64 {
	if b.API == Messages || strings.Contains(b.Model, "claude") {
		return 1.5
	}
	return 1.12
}
