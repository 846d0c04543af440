package golden

import (
	"encoding/json"
	"fmt"
	"testing"
)

// A field more that is empty changes no sum; one that has a value, or has lost it, does.
func TestSumIsOfWhatIsSaid(t *testing.T) {
	type before struct {
		Name string
		N    int
	}
	type after struct {
		Name  string
		More  []int
		N     int
		Other bool
		Why   string
	}
	sum := func(v any) string {
		b, err := json.Marshal(v)
		return Sum(fmt.Sprintf("%+v", v)) + Sum(fmt.Sprintln(string(b), err))
	}
	for _, n := range []int{0, 1, 10} {
		was := sum(before{"a", n})
		for _, c := range []struct {
			after after
			same  bool
		}{{after{Name: "a", N: n}, true}, {after{Name: "a", N: n, Why: "b"}, false}, {after{Name: "a", N: n, More: []int{0}}, false}, {after{N: n}, false}, {after{Name: "a", N: n + 1}, false}} {
			if (sum(c.after) == was) != c.same {
				t.Errorf("%+v beside %d: the same is not %t", c.after, n, c.same)
			}
		}
	}
}
