package tokens

import (
	"testing"

	"github.com/paceline-go/paceline/provider"
)

// The most output of a model in this package equals that in its provider's row.
func TestMostOutputIsThePublished(t *testing.T) {
	n := 0
	for _, vendor := range []string{"openai", "groq"} {
		p, _ := provider.LookupProvider(vendor)
		for _, m := range p.Models {
			f := familyOf(m.Name)
			if f == nil || m.MaxOutput == 0 {
				continue
			}
			n++
			if f.maxOutput != m.MaxOutput {
				t.Errorf("%s, %s: %d, published are %d", vendor, m.Name, f.maxOutput, m.MaxOutput)
			}
		}
	}
	if n < 15 {
		t.Errorf("%d models are in both: some were lost", n)
	}
}
