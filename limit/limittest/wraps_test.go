package limittest

import (
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/limit"
)

// embeds is a wrapper without any optional method.
type embeds struct{ limit.Limiter }

// A wrapper that merely embeds a Limiter hides all optional methods. It does not claim to be a
// Keeper, so that is no fault.
func TestHides(t *testing.T) {
	want := slices.DeleteFunc(Asked(), func(name string) bool { return name == "Keeper" })
	var got []string
	for _, what := range hides(func(l limit.Limiter) limit.Limiter { return embeds{l} }) {
		name, _, _ := strings.Cut(what, ":")
		got = append(got, name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("a wrapper that embeds hides %v, want %v", got, want)
	}
}
