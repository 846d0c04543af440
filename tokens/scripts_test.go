package tokens

import "testing"

// Blocks of characters as Unicode names them ("Blocks.txt"), with the feature of each. The training
// text decides how a vocabulary treats a script. A character in the feature of a neighbouring
// script is guessed wrongly by up to three times.
func TestScriptsByTheirBlocks(t *testing.T) {
	for _, b := range []struct {
		name        string
		first, last rune
		feature     int
	}{
		{"Latin-1 Supplement to Latin Extended-B", 0x80, 0x24F, latin},
		{"IPA Extensions to Combining Diacritical Marks", 0x250, 0x36F, symbol},
		{"Greek and Coptic", 0x370, 0x3FF, greek},
		{"Cyrillic, and its Supplement", 0x400, 0x52F, cyrillic},
		{"Armenian", 0x530, 0x58F, georgian},
		{"Hebrew", 0x590, 0x5FF, hebrew},
		{"Arabic to Arabic Supplement", 0x600, 0x77F, arabic},
		{"Thaana to Arabic Extended-A", 0x780, 0x8FF, rare},
		{"Devanagari to Sinhala", 0x900, 0xDFF, indic},
		{"Thai", 0xE00, 0xE7F, thai},
		{"Lao and Tibetan", 0xE80, 0xFFF, rare},
		{"Myanmar and Georgian", 0x1000, 0x10FF, georgian},
		{"Hangul Jamo", 0x1100, 0x11FF, hangul},
		{"Ethiopic to Tagbanwa", 0x1200, 0x177F, rare},
		{"Khmer", 0x1780, 0x17FF, georgian},
		{"Mongolian to Combining Diacritical Marks Supplement", 0x1800, 0x1DFF, rare},
		{"Latin Extended Additional", 0x1E00, 0x1EFF, latin},
		{"Greek Extended", 0x1F00, 0x1FFF, greek},
		{"spaces of General Punctuation", 0x2000, 0x200C, symbol},
		{"the joiner of emoji", 0x200D, 0x200D, modifier},
		{"General Punctuation to Cyrillic Extended-A", 0x200E, 0x2DFF, symbol},
		{"Supplemental Punctuation to Ideographic Description", 0x2E00, 0x2FFF, han},
		{"CJK Symbols and Punctuation", 0x3000, 0x303F, symbol},
		{"Hiragana and Katakana", 0x3040, 0x30FF, kana},
		{"Bopomofo", 0x3100, 0x312F, symbol},
		{"Hangul Compatibility Jamo", 0x3130, 0x318F, hangul},
		{"Kanbun to CJK Compatibility", 0x3190, 0x33FF, symbol},
		{"CJK Unified Ideographs, and Extension A", 0x3400, 0x9FFF, han},
		{"Yi to Meetei Mayek", 0xA000, 0xABFF, rare},
		{"Hangul Syllables and Jamo Extended-B", 0xAC00, 0xD7FF, hangul},
		{"Private Use Area", 0xE000, 0xF8FF, rare},
		{"CJK Compatibility Ideographs", 0xF900, 0xFAFF, han},
		{"Presentation Forms", 0xFB00, 0xFDFF, arabic},
		{"Variation Selectors", 0xFE00, 0xFE0F, modifier},
		{"Vertical Forms to Specials", 0xFE10, 0xFFFF, symbol},
		{"Linear B to Enclosed Alphanumerics", 0x10000, 0x1F1E5, emoji},
		{"Regional Indicator Symbols", 0x1F1E6, 0x1F1FF, rare},
		{"Enclosed Ideographs and beyond", 0x1F200, 0x10FFFF, emoji},
	} {
		for _, r := range []rune{b.first, b.last} {
			if got := script(r); got != b.feature {
				t.Errorf("%s: %U counts as feature %d, want %d", b.name, r, got, b.feature)
			}
		}
	}
}
