package node

import (
	"math"
	"strings"
	"testing"
)

// The least and the greatest valid value are valid, and what is beyond is not.
func TestBoundsOfAConfig(t *testing.T) {
	for name, c := range map[string]struct {
		valid, invalid []error
	}{
		"a name": {
			[]error{CheckName("x"), CheckName(strings.Repeat("x", 200)), CheckName("Zürich 20/s")},
			[]error{CheckName(""), CheckName(strings.Repeat("x", 201)), CheckName("\xff"), CheckName("a\x00")},
		},
		"a weight": {
			[]error{CheckWeight(0.001), CheckWeight(1), CheckWeight(1000)},
			[]error{CheckWeight(0), CheckWeight(0.0009), CheckWeight(1000.1), CheckWeight(math.NaN())},
		},
		"a least part": {
			[]error{CheckLeast(0), CheckLeast(0.95)},
			[]error{CheckLeast(-0.01), CheckLeast(0.96), CheckLeast(math.NaN())},
		},
	} {
		for i, err := range c.valid {
			if err != nil {
				t.Errorf("%s, valid %d: %v", name, i, err)
			}
		}
		for i, err := range c.invalid {
			if err == nil {
				t.Errorf("%s, invalid %d is no error", name, i)
			}
		}
	}
}
