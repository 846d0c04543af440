package targets

import (
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// The law of ours reaches every aim that is not said to be open: by five seeds that it was tuned on, or with PACELINE_LONG=1 by the twenty
// that it was not. `./check` has every second scenario of those that begin with the same word.
func TestFairReaches(t *testing.T) {
	long, met := need.Long(), map[string]int{}
	for _, a := range Table() {
		name := a.Scenario.Name
		if !long && (strings.HasPrefix(name, "day-") || testing.Short() && !strings.HasPrefix(name, "cold-10")) {
			continue
		}
		word, _, _ := strings.Cut(name, "-")
		if met[word]++; need.Fewer(met[word]%2 == 0, false) {
			continue
		}
		c := named(t, "fair")
		c.Only = name
		if !long {
			c.First, c.Last = 1, 5
		}
		r, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.Missed {
			for _, f := range r.Rows[0].Figures {
				if name+": "+f.Name == m {
					t.Errorf("%s: %.4g / %.4g", m, *f.Median, *f.Worst)
				}
			}
		}
	}
}
