package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// A slow request of the interval before may begin the next interval at the very end of the first. A
// request answered one interval later may then begin the one after that. So it counts until the end
// of that interval, and not until that of the witness.
func TestAnchoredToTheInstant(t *testing.T) {
	sec := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	for answered, want := range map[time.Duration]time.Duration{sec(20) - 1: sec(22), sec(20): sec(30), sec(21): sec(31)} {
		l := must(limit.NewAnchored(limit.AnchoredConfig{Limit: 3, Window: 10 * time.Second, Margin: -1}))
		accepted := limit.Outcome{Result: limit.Accepted}
		slow, b := limittest.Admit(l, 0, limit.One), limittest.Admit(l, 0, limit.One) // the server sees b at 0, and slow at 10 s
		l.Settle(at(sec(1)), b, &accepted)
		c := limittest.Admit(l, at(sec(11)), limit.One)
		l.Settle(at(sec(12)), c, &accepted)
		d := limittest.Admit(l, at(sec(12)), limit.One) // the server counts it when it is answered
		l.Settle(at(sec(13)), slow, &accepted)
		l.Settle(at(answered), d, &accepted)
		if got := l.Ready(at(answered), limit.Cost{3}); got != at(want) {
			t.Errorf("answered at %v, all three are free at %v, want %v", answered, got, want)
		}
	}
}
