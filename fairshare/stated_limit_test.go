package fairshare

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// A changed limit counts once the configured one was stated. A limit of another unit, another
// window or a bucket does not count, nor one of two that differ.
func TestFairHearsItsLimit(t *testing.T) {
	other := limit.Rule{N: 7200}
	for name, c := range map[string]struct {
		before, now []limit.Rule
		want        float64
	}{
		"never stated as it is known":  {nil, []limit.Rule{other}, 3600},
		"stated, with its window":      {[]limit.Rule{{N: 3600, Per: time.Hour}}, []limit.Rule{{N: 7200, Per: time.Hour}}, 7200},
		"stated, without":              {[]limit.Rule{{N: 3600}}, []limit.Rule{other}, 7200},
		"only documented":              {[]limit.Rule{{N: 3600, Per: time.Hour, Documented: true}}, []limit.Rule{other}, 3600},
		"another one in a day, too":    {[]limit.Rule{{N: 3600}}, []limit.Rule{other, {N: 9, Per: 24 * time.Hour}}, 7200},
		"another unit's":               {[]limit.Rule{{N: 3600}}, []limit.Rule{{N: 7200, Unit: limit.Tokens}}, 3600},
		"two that differ":              {[]limit.Rule{{N: 3600}}, []limit.Rule{other, {N: 100}}, 3600},
		"a bucket's":                   {[]limit.Rule{{N: 3600}}, []limit.Rule{{N: 7200, Burst: 100}}, 3600},
		"as it was, after another one": {[]limit.Rule{{N: 3600}}, []limit.Rule{{N: 3600}}, 3600},
	} {
		f := fairOf(t, hourly)
		f.State(0, c.before)
		f.State(0, c.now)
		if w := &f.window; w.limit != c.want || w.known != 3600 || w.slope != w.whole() {
			t.Errorf("%s: it is %v", name, w.limit)
		}
	}
	f := fairOf(t, hourly)
	f.State(0, []limit.Rule{{N: 3600}})
	f.window.owe(100, 1800)
	slope := f.window.slope
	if f.State(0, []limit.Rule{other}); f.window.slope != slope || f.window.limit != 7200 {
		t.Error("in debt, it begins a new line before the window is over")
	}
}
