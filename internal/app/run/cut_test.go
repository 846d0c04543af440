package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/output"
)

// Of many unanswered requests the notice names a hundred, and counts the others.
func TestTellsOfAHundredOpen(t *testing.T) {
	for _, n := range []int{1, 100, 101, 250} {
		var told []string
		r := &Run{c: Config{Notice: func(s string) { told = append(told, s) }}, store: &output.Store{Journal: new(journal.Journal)}}
		open := map[string]struct{}{}
		for i := range n {
			open[fmt.Sprintf("id-%03d", i)] = struct{}{}
		}
		r.tellOpen(open)
		more, all := fmt.Sprintf("and %d more", n-100), strings.Join(told, "\n")
		if named := strings.Count(all, "id-"); named != min(n, 100) || strings.Contains(all, more) != (n > 100) || !strings.Contains(all, fmt.Sprintf("id-%03d", min(n, 100)-1)) {
			t.Errorf("of %d, %d are named: %s", n, named, all)
		}
	}
}
