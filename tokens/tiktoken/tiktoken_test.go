package tiktoken_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/tokens/tiktoken"
)

// Counts as in OpenAI's cookbook, "How to count tokens with tiktoken".
func TestCounts(t *testing.T) {
	for name, want := range map[string][3]int64{
		"r50k_base":   {5, 5, 14},
		"p50k_base":   {5, 5, 14},
		"cl100k_base": {6, 7, 9},
		"o200k_base":  {6, 7, 8},
	} {
		v := tiktoken.Vocabulary(name)
		for i, text := range []string{"antidisestablishmentarianism", "2 + 2 = 4", "お誕生日おめでとう"} {
			if got := v.Count(text); got != want[i] {
				t.Errorf("%s: %q is %d tokens, want %d", name, text, got, want[i])
			}
		}
		if v.Count("") != 0 || v.Count(strings.Repeat("\xff", 100)) < 1 {
			t.Errorf("%s: nothing and no UTF-8", name)
		}
	}
}

func TestUnknownName(t *testing.T) {
	if v := tiktoken.Vocabulary("p51k_base"); v != nil {
		t.Errorf("%v", v)
	}
}

func TestConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if n := tiktoken.Vocabulary("o200k_base").Count("2 + 2 = 4"); n != 7 {
				t.Errorf("%d", n)
			}
		})
	}
	wg.Wait()
}
