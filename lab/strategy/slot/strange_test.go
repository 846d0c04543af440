package slot_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/strange"
	"github.com/paceline-go/paceline/lab/strategy/slot"
)

// The laws do what they did whatever is said: a line for all plans of a client.
func TestLawsDoWhatTheyDidWhateverIsSaid(t *testing.T) {
	var b strings.Builder
	for seed := range uint64(120) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := slot.Config{
			Rate:   []float64{1, 1, 10, 0.2}[rng.IntN(4)],
			Burst:  []float64{15, 16, 60, 127, 129, 4500}[rng.IntN(6)],
			Weight: []float64{0, 1, 3, 0.1, 40}[rng.IntN(5)],
			Rng:    rng,
		}
		if rng.IntN(3) == 0 {
			c.MaxWait = time.Duration(1+rng.IntN(40)) * time.Second
		}
		if rng.IntN(4) == 0 {
			c.Start = time.Duration(1+rng.IntN(20_000)) * time.Millisecond
		}
		s := strange.Client{Rng: rng, Burst: c.Burst, Rate: c.Rate}
		law := "slot"
		var err error
		if s.Limiter, err = slot.New(c); seed%4 == 3 {
			law = "headerless"
			s.Limiter, err = slot.NewHeaderless(c)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 400 {
			s.Step()
		}
		fmt.Fprintf(&b, "%3d %s: %d were sent and %d refused in %.6g s, plans %s\n", seed, law, s.Sent, s.Refused, s.Now.Sub(0).Seconds(), golden.Sum(s.Said.String()))
	}
	golden.CompareFloats(t, "strange.golden", b.String())
}
