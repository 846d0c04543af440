package ceiling_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/ceiling"
)

func TestInFlight(t *testing.T) {
	bounds := ceiling.InFlight{Least: 64, Most: 1000}
	for _, c := range []struct {
		name      string
		now       int
		perSecond float64
		answer    time.Duration
		want      int
	}{
		{"before the first answer", 64, 100, 0, 64},
		{"fast answers", 64, 100, 50 * time.Millisecond, 64},
		{"slow answers", 64, 100, 2 * time.Second, 400},
		{"answers that take longer and longer", 400, 100, 3 * time.Second, 600},
		{"a little faster", 400, 100, 1500 * time.Millisecond, 400},
		{"exactly the half", 400, 100, time.Second, 200},
		{"fast again", 400, 100, 10 * time.Millisecond, 64},
		{"more than fits", 64, 100, time.Minute, 1000},
		{"more than any number has", 64, math.MaxFloat64, time.Hour, 1000},
		{"no limit", 64, math.Inf(1), time.Minute, 64},
		{"no limit, no answer", 64, math.Inf(1), 0, 64},
		{"a part of a request", 64, 16.1, 2 * time.Second, 65},
	} {
		if got := bounds.Follow(c.now, c.perSecond, c.answer); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	one := ceiling.InFlight{Least: 3, Most: 3}
	if got := one.Follow(3, 1000, time.Minute); got != 3 {
		t.Errorf("a fixed bound became %d", got)
	}
}

// The bound is never outside its bounds, is enough for Little's law where these allow it, and does not depend
// on how often it is asked.
func TestInFlightIsEnough(t *testing.T) {
	rng := rand.New(rand.NewPCG(37, 4))
	for range 100_000 {
		least := 1 + rng.IntN(100)
		f := ceiling.InFlight{Least: least, Most: least + rng.IntN(5000)}
		now := f.Least + rng.IntN(f.Most-f.Least+1)
		perSecond := math.Exp(rng.Float64()*12 - 3)
		answer := time.Duration(math.Exp(rng.Float64() * math.Log(float64(time.Minute))))
		got := f.Follow(now, perSecond, answer)
		if got < f.Least || got > f.Most {
			t.Fatalf("%d is not within %+v", got, f)
		}
		if float64(got) < min(perSecond*answer.Seconds(), float64(f.Most)) {
			t.Fatalf("%d for %v/s × %v of %+v", got, perSecond, answer, f)
		}
		if again := f.Follow(got, perSecond, answer); again != got {
			t.Fatalf("%d, and asked again %d", got, again)
		}
	}
}
