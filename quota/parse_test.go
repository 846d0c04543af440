package quota

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestParsers(t *testing.T) {
	for _, c := range []struct {
		name  string
		parse func(string) (time.Duration, error)
		in    string
		want  time.Duration
		ok    bool
	}{
		{"seconds", seconds, "20", 20 * time.Second, true},
		{"seconds", seconds, "64.57", 64570 * time.Millisecond, true},
		{"seconds", seconds, "0.75", 750 * time.Millisecond, true},
		{"seconds", seconds, "1.0000000001", time.Second + 1, true}, // up
		{"seconds", seconds, "-1", 0, false},
		{"seconds", seconds, "1e99", MaxWait + 1, true},
		{"seconds", seconds, "Inf", MaxWait + 1, true},
		{"seconds", seconds, "NaN", 0, false},
		{"seconds", seconds, "", 0, false},
		{"span", span, "6m0s", 6 * time.Minute, true},
		{"span", span, "12ms", 12 * time.Millisecond, true},
		{"span", span, "23h47m36.648s", 23*time.Hour + 47*time.Minute + 36648*time.Millisecond, true},
		{"span", span, "1.559999999s", 1559999999, true},
		{"span", span, "1d2h", 26 * time.Hour, true},
		{"span", span, "65535d999999h", MaxWait + 1, true},
		{"span", span, "55", 0, false}, // a unit is what says which
		{"span", span, "0", 0, false},
		{"span", span, "0s", 0, true},
		{"span", span, "-8ms", 0, false},
		{"span", span, "d", 0, false},
	} {
		got, err := c.parse(c.in)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%s(%q) = %v, %v; want %v, %v", c.name, c.in, got, err, c.want, c.ok)
		}
	}
	for _, c := range []struct {
		name  string
		parse func(string) (time.Time, error)
		in    string
		want  string // in RFC 3339; "" is an error
	}{
		{"epoch", epoch, "1470173023.123", "2016-08-02T21:23:43.123Z"},
		{"epoch", epoch, "0", "1970-01-01T00:00:00Z"},
		{"epoch", epoch, "-1", ""},
		{"epoch", epoch, "1e9", ""},
		{"epoch", epoch, "99999999999999999999", ""},
		{"epochMS", epochMS, "1672738134824", "2023-01-03T09:28:54.824Z"},
		{"rfc3339", rfc3339, "2025-08-21T12:40:59Z", "2025-08-21T12:40:59Z"},
		{"rfc3339", rfc3339, "2025-08-21T14:40:59+02:00", "2025-08-21T12:40:59Z"},
		{"rfc3339", rfc3339, "2026-03-26T16:00Z", "2026-03-26T16:00:00Z"},
		{"rfc3339", rfc3339, "2026-03-26", ""},
	} {
		got, err := c.parse(c.in)
		if (err == nil) != (c.want != "") || err == nil && got.UTC().Format(time.RFC3339Nano) != c.want {
			t.Errorf("%s(%q) = %v, %v; want %s", c.name, c.in, got, err, c.want)
		}
	}
	for _, c := range []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"1M", time.Minute, true}, {"10S", 10 * time.Second, true}, {"1d", 24 * time.Hour, true}, {"5h", 5 * time.Hour, true},
		{"0M", 0, false}, {"M", 0, false}, {"", 0, false}, {"1x", 0, false}, {"99D", 0, false}, {"-1M", 0, false},
	} {
		if got, ok := interval(c.in); ok != c.ok || ok && got != c.want {
			t.Errorf("interval(%q) = %v, %v", c.in, got, ok)
		}
	}
}

// TestRefillWindow: figures that servers sent.
func TestRefillWindow(t *testing.T) {
	for _, c := range []struct {
		limit, remaining int64
		reset, want      time.Duration
	}{
		{500, 499, 120 * time.Millisecond, time.Minute},
		{30000, 29996, 8 * time.Millisecond, time.Minute},
		{160000, 159976, 9 * time.Millisecond, time.Minute}, // 60 s
		{14400, 14370, 179560 * time.Millisecond, 24 * time.Hour},
		{14400, 14399, 6 * time.Second, 24 * time.Hour},
		{7000, 6818, 1559999999, time.Minute},
		{150000, 149984, 6 * time.Minute, 0}, // of a documentation that made it up
		{60, 60, time.Second, 0},
		{60, 59, 0, 0},
		{0, 0, time.Second, 0},
	} {
		if got := refillWindow(Count{c.limit, true}, Count{c.remaining, true}, c.reset); got != c.want {
			t.Errorf("%d of %d, full in %v: a window of %v, want %v", c.remaining, c.limit, c.reset, got, c.want)
		}
	}
}

// FuzzParsers: waits are between 0 and a nanosecond more than MaxWait, instants are after 1970 where they count from it, and
// text that is clipped is short and fit to print.
func FuzzParsers(f *testing.F) {
	for _, s := range []string{"1", "1.5", "6m0s", "1d2h", "1470173023.123", "2026-03-26T16:00Z", "10S", "Used 5", "\x1b[2J", "\xff\xfe", "é\u202e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, parse := range map[string]func(string) (time.Duration, error){
			"seconds": seconds, "span": span, "ms": func(s string) (time.Duration, error) { return scaled(s, time.Millisecond) },
		} {
			if d, err := parse(s); d < 0 || d > MaxWait+1 || err != nil && d != 0 {
				t.Errorf("%s(%q) = %v, %v", name, s, d, err)
			}
		}
		for name, parse := range map[string]func(string) (time.Time, error){"epoch": epoch, "epochMS": epochMS} {
			if at, err := parse(s); err == nil && at.Unix() < 0 {
				t.Errorf("%s(%q) = %v", name, s, at)
			}
		}
		_, _ = rfc3339(s)
		if d, ok := interval(s); ok && (d <= 0 || d > MaxWait) {
			t.Errorf("interval(%q) = %v", s, d)
		}
		if c := wordNumber(s, "Used "); c.N < 0 || c.N > MaxCount {
			t.Errorf("wordNumber(%q) = %v", s, c)
		}
		c := clip(s)
		if !utf8.ValidString(c) || utf8.RuneCountInString(c) > 81 || strings.ContainsAny(c, "\x00\x1b\r\n\u202e") {
			t.Errorf("clip(%q) = %q", s, c)
		}
	})
}
