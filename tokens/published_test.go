package tokens

import (
	"testing"

	"github.com/paceline-go/paceline/quota"
)

// What this package takes for the most output of a model is what its provider's row says.
func TestMostOutputIsThePublished(t *testing.T) {
	n := 0
	for _, provider := range []string{"openai", "groq"} {
		p, _ := quota.LookupProvider(provider)
		for _, m := range p.Models {
			f := familyOf(m.Name)
			if f == nil || m.MaxOutput == 0 {
				continue
			}
			n++
			if f.maxOutput != m.MaxOutput {
				t.Errorf("%s, %s: %d, published are %d", provider, m.Name, f.maxOutput, m.MaxOutput)
			}
		}
	}
	if n < 15 {
		t.Errorf("%d models are in both: some were lost", n)
	}
}
