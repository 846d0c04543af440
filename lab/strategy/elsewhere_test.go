package strategy_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// A refusal by another limit is none here: the same requests are through sooner.
func TestRefusedElsewhere(t *testing.T) {
	for _, name := range []string{"aimd", "cubic", "fair"} {
		s := must(strategy.Named(name))
		through := func(elsewhere bool) (now mono.Time) {
			l := must(s.NewLimiter(strategy.Params{Rate: 10, Burst: 20}, rand.New(rand.NewPCG(1, 1))))
			o := limit.Outcome{Result: limit.Accepted}
			for i := range 30 {
				if i == 20 {
					o = limit.Outcome{Result: limit.Limited, Elsewhere: elsewhere}
				}
				now = max(l.Ready(now, limit.One), now.Add(300*time.Millisecond))
				l.Settle(now.Add(time.Millisecond), limittest.Admit(l, now, limit.One), &o)
			}
			return now
		}
		if here, there := through(false), through(true); 3*there > 2*here {
			t.Errorf("%s: refused here it is through at %v, elsewhere at %v", name, here, there)
		}
	}
}
