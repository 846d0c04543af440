package rate

import (
	"strings"
	"testing"
)

func TestParsePart(t *testing.T) {
	for text, want := range map[string]float64{"75%": 0.75, "0.75": 0.75, "0": 0, "100 %": 1, "1": 1} {
		if got, err := ParsePart(text); got != want || err != nil {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "75", "101%", "-1%", "NaN", "three"} {
		if got, err := ParsePart(text); err == nil || got != 0 || !strings.Contains(err.Error(), "75% or 0.75") {
			t.Errorf("%q: %v, %v, want an error that names both forms", text, got, err)
		}
	}
}
