package provider

import (
	"testing"
	"unicode"
)

// A server's text neither steers a terminal nor turns the line around. Every control character
// becomes a space, and so does each one that ends a line or opens, overrides or isolates a
// direction. Nothing else changes.
func TestClipIsPrintable(t *testing.T) {
	steers := &unicode.RangeTable{R16: []unicode.Range16{{0x2028, 0x202e, 1}, {0x2066, 0x2069, 1}}}
	for r := rune(1); r <= 0xffff; r++ {
		if r >= 0xd800 && r < 0xe000 {
			continue // no characters
		}
		want := string(r)
		if unicode.IsControl(r) || unicode.Is(steers, r) {
			want = " "
		}
		if got := clip(string(r)); got != want {
			t.Errorf("clip(%q) = %q", r, got)
		}
	}
}
