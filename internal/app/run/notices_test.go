package run

import (
	"testing"
	"testing/synctest"
	"time"
)

// A pause is reported if it is at least half a minute. It is reported again if its end has moved by
// ten more seconds. Each key counts for itself.
func TestTellHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		r := &Run{c: Config{Notice: func(string) { told++ }}}
		r.notices.told = map[string]time.Time{}
		for i, c := range []struct {
			key  string
			hold time.Duration // from now
			want int           // notices in all
		}{
			{"A", 30*time.Second - 1, 0}, {"A", 30 * time.Second, 1}, {"A", 30 * time.Second, 1}, {"A", 40 * time.Second, 1}, {"A", 40*time.Second + 1, 2},
			{"A", 45 * time.Second, 2}, {"B", 45 * time.Second, 3}, {"A", 51 * time.Second, 4},
		} {
			if r.tellHold(c.key, time.Now().Add(c.hold), "rate limited"); told != c.want {
				t.Errorf("%d, %s for %v: told %d times, want %d", i, c.key, c.hold, told, c.want)
			}
		}
	})
}
