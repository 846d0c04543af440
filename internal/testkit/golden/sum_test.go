package golden

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
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

// The fields that are left out are those of a regular expression.
func TestEmptyFields(t *testing.T) {
	empty := regexp.MustCompile(`(?:[A-Z]\w*:(?:\[\]|map\[\]|0s?|false|<nil>)?|"\w+":(?:0|""|null|\[\]|\{\}|false))([ ,}])`)
	parts := []string{"A", "b", "_", "9", "é", `"`, ":", ":", " ", ",", "}", "{}", "[]", "map[]", "0", "s", "false", "<nil>", "null", `""`, `"x":`, "Name:", "aName:0 "}
	rng, left := rand.New(rand.NewPCG(1, 1)), 0
	for range 20000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		text := b.String()
		want := empty.ReplaceAllString(text, "$1")
		if got := withoutEmpty(text); got != want {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
		if want != text {
			left++
		}
	}
	if left < 1000 {
		t.Errorf("%d texts have an empty field", left)
	}
}
