package rule_test

import (
	"math"
	"testing"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// asked is a rule with a fixed rest. It counts the calls.
type asked struct {
	rule.Rule
	left      int64
	questions int
}

func (a *asked) Fits(_ mono.Time, cost int64) bool {
	a.questions++
	return cost <= a.left
}

// Left finds the rest from any guess. The number of calls is about twice the logarithm of the
// guess's error.
func TestLeftFromAnyGuess(t *testing.T) {
	for most := int64(-1); most <= 40; most++ {
		for left := int64(0); left <= 45; left++ {
			for guess := int64(-3); guess <= 50; guess++ {
				a := &asked{left: left}
				if got, want := rule.Left(a, 0, most, guess), max(min(left, most), 0); got != want {
					t.Fatalf("of %d at most, with a guess of %d, %d are left, want %d", most, guess, got, want)
				}
			}
		}
	}
	const most = 1 << 40
	for _, left := range []int64{0, 5, 1 << 20, most - 1000, most} {
		for _, off := range []int64{0, 1, -1, 100, -100, 1 << 30, -1 << 30} {
			guess := min(max(left+off, 0), most)
			a := &asked{left: left}
			rule.Left(a, 0, most, guess)
			if bound := 2*math.Log2(math.Abs(float64(guess-left))+1) + 4; float64(a.questions) > bound {
				t.Errorf("with %d left and a guess of %d, it asked %d times, want %.0f at most", left, guess, a.questions, bound)
			}
		}
	}
}
