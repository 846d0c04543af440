package limit

import (
	"slices"
	"testing"

	"github.com/paceline-go/paceline/limit/mono"
)

// A level stays until the last one is the margin later, however the list moves in its memory.
func TestLevelsStayForTheMargin(t *testing.T) {
	const margin = 10
	var v levels
	var want []mono.Time
	for n := range 60 {
		u := mono.Time(3*n + n%2)
		v.fold(u, 1, 0, margin)
		want = append(want, u)
		for want[0].Add(margin) <= u {
			want = want[1:]
		}
		var got []mono.Time
		for i := range v.len() {
			got = append(got, v.full(i))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after %d costs the levels are %v, want %v", n+1, got, want)
		}
	}
}
