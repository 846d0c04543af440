package scheduler

import (
	"testing"

	"github.com/paceline-go/paceline/limit"
)

// Each unit counts in sums and in comparisons, also one that comes later.
func TestCosts(t *testing.T) {
	var sum, want limit.Cost
	for u := range sum {
		var none, one limit.Cost
		one[u] = int64(u) + 1
		if within(&one, &none) || !within(&none, &one) || !within(&one, &one) {
			t.Errorf("within does not compare %v", limit.Unit(u))
		}
		want[u] = one[u]
		if more(&sum, &one); sum != want {
			t.Errorf("more adds %v to %v", one, sum)
		}
	}
	for u := range sum {
		var one limit.Cost
		one[u], want[u] = int64(u)+1, 0
		if less(&sum, &one); sum != want {
			t.Errorf("less takes %v, and leaves %v", one, sum)
		}
	}
}
