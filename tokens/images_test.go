package tokens

import (
	"strings"
	"testing"
)

// Images by their size, as on the providers' pages. OpenAI has tiles of 512 px after two scalings,
// or patches of 32 px. Claude has patches of 28 px, and Gemini tiles of 768 px. An image of unknown
// size has the highest cost.
func TestImagesBySize(t *testing.T) {
	for _, c := range []struct {
		width, height                 int
		tiles, claude, opus45, gemini int64
	}{
		{0, 0, 85 + 8*170, 4784, 1568, 16 * 258},
		{1, 1, 85 + 170, 1, 1, 258},
		{28, 28, 85 + 170, 1, 1, 258},
		{29, 28, 85 + 170, 2, 2, 258},
		{384, 384, 85 + 170, 14 * 14, 14 * 14, 258},
		{385, 384, 85 + 170, 14 * 14, 14 * 14, 258},
		{512, 512, 85 + 170, 19 * 19, 19 * 19, 258},
		{513, 512, 85 + 2*170, 19 * 19, 19 * 19, 258},
		{768, 769, 85 + 4*170, 28 * 28, 28 * 28, 2 * 258},
		{1024, 1024, 85 + 4*170, 37 * 37, 37 * 37, 4 * 258},
		{2048, 4096, 85 + 6*170, 46 * 92, 28 * 56, 3 * 6 * 258},
		{4096, 512, 85 + 4*170, 92 * 12, 56 * 7, 6 * 258},
		{8192, 64, 85 + 4*170, 92, 56, 11 * 258},
		{9000, 9000, 85 + 4*170, 4784, 1568, 12 * 12 * 258},
	} {
		if got := defaultImage.tokens(c.width, c.height, false); got != c.tiles {
			t.Errorf("%d × %d are %d tokens of OpenAI's, want %d", c.width, c.height, got, c.tiles)
		}
		if got := defaultImage.tokens(c.width, c.height, true); got != 85 {
			t.Errorf("%d × %d are %d tokens in low detail", c.width, c.height, got)
		}
		if got := claudeImage("claude-opus-4-7", c.width, c.height); got != c.claude {
			t.Errorf("%d × %d are %d tokens of Claude's, want %d", c.width, c.height, got, c.claude)
		}
		if got := claudeImage("claude-opus-4-5", c.width, c.height); got != c.opus45 {
			t.Errorf("%d × %d are %d tokens of an older Claude's, want %d", c.width, c.height, got, c.opus45)
		}
		for model, want := range map[string]int64{"gemini-2.5-flash": c.gemini, "gemini-1.5-pro": c.gemini, "gemini-3-pro": 1120} {
			if got := geminiImage(model, c.width, c.height); got != want {
				t.Errorf("%d × %d are %d tokens of %s, want %d", c.width, c.height, got, model, want)
			}
		}
	}
}

// A name in pieces is the same as in one. A name that is too long matches none, however it ends.
func TestNamesInPieces(t *testing.T) {
	for _, text := range []string{"", "usage", strings.Repeat("x", 39), strings.Repeat("x", 40), strings.Repeat("x", 41), strings.Repeat("x", 50) + "usage", strings.Repeat("x", 200)} {
		want := text
		if len(text) > 40 {
			want = ""
		}
		for i := range len(text) + 1 {
			for j := i; j <= len(text); j++ {
				var n name
				for _, piece := range []string{text[:i], text[i:j], text[j:]} {
					n.add([]byte(piece))
				}
				if got := string(n.text()); got != want {
					t.Fatalf("%q, %q and %q are %q, want %q", text[:i], text[i:j], text[j:], got, want)
				}
			}
		}
	}
}
