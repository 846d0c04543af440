package screen

import "testing"

func TestWidth(t *testing.T) {
	for s, want := range map[string]int{
		"": 0, "plain": 5, "ünï": 3, "日本": 4, "ｱｲ": 2, "Ａ": 2, "é": 1, "👍": 2, "12 × 503": 8, "…": 1, "한글": 4, "a\u200db": 2, "\x1b[31mred\x1b[0m m": 5, "\x1b[1;31": 0, "a\x1b[1mb": 2, "m\x1b[0mm": 2,
	} {
		if got := Width(s); got != want {
			t.Errorf("%q takes %d, want %d", s, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"plain", 5, "plain"}, {"plain", 4, "pla…"}, {"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"a bc", 3, "a…"}, {"ab", 1, "…"}, {"ab", 0, ""},
		{"ee\u0301e", 3, "ee\u0301e"}, {"ee\u0301ee", 3, "ee\u0301…"},
	} {
		if got := Cut(c.s, c.most); got != c.want || Width(got) > c.most {
			t.Errorf("%q in %d: %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func TestTail(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{
		{"plain", 5, "plain"}, {"plain", 4, "…ain"}, {"日本語", 6, "日本語"}, {"日本語", 5, "…本語"}, {"日本語", 4, "…語"}, {"ab c", 3, "…c"}, {"ab", 1, "…"}, {"ab", 0, ""}, {"日", 1, "…"},
	} {
		if got := Tail(c.s, c.most); got != c.want || Width(got) > c.most {
			t.Errorf("%q in %d: %q, want %q", c.s, c.most, got, c.want)
		}
	}
}

func TestPad(t *testing.T) {
	if got := Pad("日本", 6, false) + "|" + Pad("é", 3, true) + "|" + Pad("long", 2, true); got != "日本  |  é|long" {
		t.Errorf("%q", got)
	}
}
