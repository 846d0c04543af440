package tokens

import "testing"

// The cost of an image for each family of models, as on OpenAI's page on vision. It is a base and
// an amount for each tile of 512 px, or an amount for each patch of 32 px. A family has a most
// number of patches.
func TestImagesByFamily(t *testing.T) {
	// The costs are in low detail, and at 512, 1024 and 9000 px square.
	for model, c := range map[string]struct{ low, one, four, largest int64 }{
		"gpt-5.6":           {308, 308, 1229, 36000},
		"gpt-5-pro":         {70, 210, 630, 630},
		"gpt-5-nano":        {630, 630, 2520, 3779},
		"gpt-5-mini":        {415, 415, 1659, 2489},
		"gpt-5":             {70, 210, 630, 630},
		"gpt-5.1":           {70, 210, 630, 630},
		"gpt-4.1-nano":      {630, 630, 2520, 3779},
		"gpt-4.1-mini":      {415, 415, 1659, 2489},
		"gpt-4.1":           {85, 255, 765, 765},
		"gpt-4.5":           {85, 255, 765, 765},
		"gpt-4o-2024-05-13": {85, 255, 765, 765},
		"gpt-4o-mini":       {2833, 8500, 25501, 25501},
		"gpt-4o":            {85, 255, 765, 765},
		"chatgpt-4o-latest": {85, 255, 765, 765},
		"o1":                {75, 225, 675, 675},
		"o3":                {75, 225, 675, 675},
		"o4-mini":           {441, 441, 1762, 2642},
		"gpt-4-turbo":       {85, 255, 765, 765},
		"gpt-4":             {85, 255, 765, 765},
	} {
		f := familyOf(model)
		if f == nil {
			t.Errorf("%s is not known", model)
			continue
		}
		for side, want := range map[int]int64{512: c.one, 1024: c.four, 9000: c.largest} {
			if got := f.image.tokens(side, side, false); got != want {
				t.Errorf("%s: %d × %d are %d tokens, want %d", model, side, side, got, want)
			}
		}
		if got := f.image.tokens(512, 512, true); got != c.low {
			t.Errorf("%s: in low detail %d tokens, want %d", model, got, c.low)
		}
	}
}
