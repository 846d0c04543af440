package fairshare

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
)

// Beside known limits, the first answer lets as many requests be in flight as the fastest limit
// needs, twice over. A limit of another unit counts only alone.
func TestAutoBesideKnownLimits(t *testing.T) {
	fast, slow := limit.Rule{N: 100, Per: time.Second}, limit.Rule{N: 5000, Per: 24 * time.Hour}
	tokens := limit.Rule{Unit: limit.Tokens, N: 30_000, Per: time.Minute}
	for _, c := range []struct {
		name  string
		known []limit.Rule
		least int
		most  int
	}{
		{"nothing", nil, 2, 20},
		{"no limits", []limit.Rule{{Per: time.Second}, {N: 1000}}, 2, 20},
		{"one", []limit.Rule{fast}, 400, 400},
		{"a slower one", []limit.Rule{slow, fast}, 400, 400},
		{"tokens, too", []limit.Rule{tokens, slow}, 2, 20},
		{"tokens", []limit.Rule{tokens}, 2000, 2000},
	} {
		a := autoOf(t, AutoConfig{Alone: true, Known: c.known})
		first := limittest.Admit(a, 0, limit.One)
		if a.Ready(0, limit.One) <= 0 {
			t.Errorf("%s: the first does not go alone", c.name)
		}
		now := second(2)
		a.Settle(now, first, &limit.Outcome{Result: limit.Accepted})
		n := 0
		for ; n < 5000 && a.Ready(now, limit.One) <= now; n++ {
			limittest.Admit(a, now, limit.One)
		}
		if n < c.least || n > c.most {
			t.Errorf("%s: %d are in flight at once, want %d to %d", c.name, n, c.least, c.most)
		}
	}
}
