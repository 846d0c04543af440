package telling

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A pause is reported if it is at least half a minute. It is reported again if its end has moved by
// ten more seconds. Each key counts for itself.
func TestTellHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		r := New(func(string) { told++ }, false, false)
		for i, c := range []struct {
			key  string
			hold time.Duration // from now
			want int           // notices in all
		}{
			{"A", 30*time.Second - 1, 0}, {"A", 30 * time.Second, 1}, {"A", 30 * time.Second, 1}, {"A", 40 * time.Second, 1}, {"A", 40*time.Second + 1, 2},
			{"A", 45 * time.Second, 2}, {"B", 45 * time.Second, 3}, {"A", 51 * time.Second, 4},
		} {
			if r.TellHold(c.key, time.Now().Add(c.hold), "rate limited"); told != c.want {
				t.Errorf("%d, %s for %v: told %d times, want %d", i, c.key, c.hold, told, c.want)
			}
		}
	})
}

// Of many unanswered requests the notice names a hundred, and counts the others.
func TestTellsOfAHundredOpen(t *testing.T) {
	for _, n := range []int{1, 100, 101, 250} {
		var told []string
		r := New(func(s string) { told = append(told, s) }, false, false)
		open := map[string]struct{}{}
		for i := range n {
			open[fmt.Sprintf("id-%03d", i)] = struct{}{}
		}
		r.TellDoubts(open, nil, "")
		more, all := fmt.Sprintf("and %d more", n-100), strings.Join(told, "\n")
		if named := strings.Count(all, "id-"); named != min(n, 100) || strings.Contains(all, more) != (n > 100) || !strings.Contains(all, fmt.Sprintf("id-%03d", min(n, 100)-1)) {
			t.Errorf("of %d, %d are named: %s", n, named, all)
		}
	}
}
