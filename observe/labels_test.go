package observe_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/paceline-go/paceline/observe"
)

// Only a bounded number of names have their own value, for good.
func TestNames(t *testing.T) {
	n := observe.LabelNames{Most: 2}
	for i, c := range []struct{ name, want string }{{"a", "a"}, {"b", "b"}, {"c", observe.OtherLabel}, {"a", "a"}, {"c", observe.OtherLabel}, {"", observe.OtherLabel}} {
		if got := n.Of(c.name); got != c.want {
			t.Errorf("%d: %q is %q, want %q", i, c.name, got, c.want)
		}
	}
}

func TestBounded(t *testing.T) {
	for s, want := range map[string]string{"": "", "a b": "a b", "a\nb": "a\uFFFDb", "a\xffb": "a\uFFFDb", strings.Repeat("x", 64): strings.Repeat("x", 64)} {
		if got := observe.LabelValue(s); got != want {
			t.Errorf("%q is %q, want %q", s, got, want)
		}
	}
	if observe.LabelValue(strings.Repeat("x", 65)) == observe.LabelValue(strings.Repeat("x", 66)) {
		t.Error("two long names are one")
	}
}

func FuzzBounded(f *testing.F) {
	f.Add("a")
	f.Add(strings.Repeat("é", 40) + "\xff")
	f.Fuzz(func(t *testing.T, s string) {
		if got := observe.LabelValue(s); !utf8.ValidString(got) || len(got) > 3*64+20 || strings.ContainsAny(got, "\n\r") {
			t.Errorf("%q is %q", s, got)
		}
	})
}
