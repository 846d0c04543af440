package rule_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/rule"
)

// From whatever guess, what is left passes and one more does not.
func TestLeft(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		most := 1 + rng.Int64N(1<<uint(1+rng.IntN(20)))
		b, err := rule.NewBucket(rule.BucketConfig{Limit: most, Window: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		now := mono.Time(0)
		for range 20 {
			now = now.Add(time.Duration(rng.Int64N(int64(time.Hour))))
			b.Arrive(now, 1+rng.Int64N(most))
			guess := rng.Int64N(2*most) - most/2
			n := rule.Left(b, now, most, guess)
			if n < 0 || n > most || !b.Fits(now, n) || n < most && b.Fits(now, n+1) {
				t.Fatalf("seed %d: %d of %d left by a guess of %d", seed, n, most, guess)
			}
		}
	}
	if n := rule.Left(rule.All(), 0, 0, 5); n != 0 {
		t.Errorf("%d of 0 left", n)
	}
}
