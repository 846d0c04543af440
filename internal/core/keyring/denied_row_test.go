package keyring_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit/mono"
)

// A server denies requests with every key, at instants in seconds. The first are at fault themselves. Then all keys stay
// away, longer each time. A denial of a request that was in flight when that began is no further evidence. After a row
// that was the requests' own fault, a longer one is.
func TestRow(t *testing.T) {
	type step struct {
		at, sent float64
		served   bool
		away     time.Duration // 0: none
	}
	times := func(n int, s step) (all []step) {
		for range n {
			all = append(all, s)
		}
		return all
	}
	for name, steps := range map[string][]step{
		"nothing was ever served": {{1, 1, false, 0}, {1, 1, false, 0}, {2, 1, false, time.Second}, {2.1, 1.9, false, 0}, {2.2, 2, false, 0},
			{4, 3, false, 2 * time.Second}, {7, 6.5, false, 4 * time.Second}},
		"served before": append(append([]step{{0, 0, true, 0}}, times(20, step{1, 1, false, 0})...),
			step{1, 1, false, time.Second}, step{3, 2, false, 2 * time.Second}, step{6, 6, false, 4 * time.Second},
			step{11, 11, false, 8 * time.Second}, step{20, 20, false, 10 * time.Second}, step{31, 31, false, 10 * time.Second}),
		"requests at fault": append(append(append(append([]step{{0, 0, true, 0}}, times(20, step{1, 1, false, 0})...),
			step{1, 1, false, time.Second}, step{3, 3, true, 0}), times(22, step{4, 4, false, 0})...), step{4, 4, false, time.Second}),
		"a row that something served ends": {{1, 1, false, 0}, {1, 1, false, 0}, {1, 1, true, 0}, {1, 1, false, 0}, {1, 1, false, 0}, {1, 1, false, 0}},
	} {
		var r keyring.Row
		at := func(s float64) mono.Time { return mono.Time(s * float64(time.Second)) }
		away := time.Duration(0)
		for n, s := range steps {
			if s.served {
				if ended := r.Served(); ended != (away > 0) {
					t.Errorf("%s, step %d: Served says %v", name, n, ended)
				}
				away = 0
			} else if got := r.Denied(at(s.at), at(s.sent)); got != s.away {
				t.Errorf("%s, step %d: away for %v, want %v", name, n, got, s.away)
			} else if got > 0 {
				away = got
				if until, on := r.Away(); !on || until != at(s.at).Add(got) {
					t.Errorf("%s, step %d: away until %v, %v", name, n, until, on)
				}
			}
		}
		if ended := r.Return(); ended != (away > 0) || r.Return() {
			t.Errorf("%s: Return says %v", name, ended)
		}
		if _, on := r.Away(); on {
			t.Errorf("%s: away after Return", name)
		}
	}
}
