package fairshare_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/golden"
)

// Processes of two versions share a quota that nobody knows, too, and whoever quickens sooner or is away for longer gets more or less than
// the other: so the search is to do what it did, at every kind of server. Who changes it on purpose writes the file anew, and reads what
// became of each minute.
func TestAutoDoesWhatItDid(t *testing.T) {
	var b strings.Builder
	for _, w := range autoWorlds {
		for _, c := range []struct{ clients, minutes int }{{1, 30}, {3, 10}} {
			each, _, auto := w.try(c.clients, c.minutes, 17)
			fmt.Fprintf(&b, "\n%s, shared by %d\n", w.name, c.clients)
			for i, m := range each {
				fmt.Fprintf(&b, "%3d: %7.6g %% used, %d refused\n", i+1, m.percent, m.refused)
			}
			fmt.Fprintf(&b, "  the last sleeps for %v and found %v\n", auto.Sleep(), auto.Found())
		}
	}
	golden.CompareFloats(t, "auto.golden", b.String())
}
