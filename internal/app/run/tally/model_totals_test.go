package tally

import "testing"

// What an attempt cost is of its model. An attempt without a model, or one that cost nothing, is of none.
func TestSpend(t *testing.T) {
	n := New(0, figures{})
	n.Spend("m", 3)
	n.Spend("m", 4)
	n.Spend("", 5)
	n.Spend("free", 0)
	if len(n.Models) != 1 || n.Models["m"] == nil || n.Models["m"].Spent != 7 {
		t.Errorf("%v, want 7 of m alone", n.Models)
	}
}
