package provider

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
		{"goDuration", goDuration, "6m0s", 6 * time.Minute, true},
		{"goDuration", goDuration, "12ms", 12 * time.Millisecond, true},
		{"goDuration", goDuration, "23h47m36.648s", 23*time.Hour + 47*time.Minute + 36648*time.Millisecond, true},
		{"goDuration", goDuration, "1.559999999s", 1559999999, true},
		{"goDuration", goDuration, "1d2h", 26 * time.Hour, true},
		{"goDuration", goDuration, "65535d999999h", MaxWait + 1, true},
		{"goDuration", goDuration, "55", 0, false}, // a unit is what says which
		{"goDuration", goDuration, "0", 0, false},
		{"goDuration", goDuration, "0s", 0, true},
		{"goDuration", goDuration, "-8ms", 0, false},
		{"goDuration", goDuration, "d", 0, false},
	} {
		got, err := c.parse(c.in)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("%s(%q) = %v, %v; want %v, %v", c.name, c.in, got, err, c.want, c.ok)
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

// Commas are between thousands, or between numbers.
func TestThousands(t *testing.T) {
	for v, want := range map[string]bool{
		"30,000": true, "100,000": true, "1,000": true, "1,234,567": true, "1000,000": false, "30,00": false, "30,0000": false, ",000": false, "30,": false, "30000": false, "3x,000": false, "": false, "10,200,3000": false,
	} {
		if got := thousands(v); got != want {
			t.Errorf("%q: %v", v, got)
		}
	}
}

// The magnitude of a number decides the kind of reset, and the form of a text does.
func TestReset(t *testing.T) {
	now := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC) // 1768478400
	for _, c := range []struct {
		in   string
		unit time.Duration
		want string // how long until then; "" for what says nothing
	}{
		{"3", 0, "3s"}, {"0", 0, "0s"}, {"0.25", 0, "250ms"}, {"59999", time.Millisecond, "59.999s"}, {"86400", 0, "24h0m0s"},
		{"1768478430", 0, "30s"}, {"1768478430.5", 0, "30.5s"}, {"1.76847843e9", 0, "30s"}, {"1768478430000", 0, "30s"},
		{"1768478430250", time.Second, "30.25s"}, {"1768478430000000", 0, "30s"}, {"1768478430000000000", 0, "30s"},
		{"1768478430", time.Millisecond, "30s"}, {"1470173023", 0, "0s"}, {"100000000", 0, "0s"}, {"99999999", 0, "744h0m0s"},
		{"1m30s", 0, "1m30s"}, {"250ms", 0, "250ms"}, {"6m0s", 0, "6m0s"}, {"1d2h", 0, "26h0m0s"},
		{"2026-01-15T12:00:30Z", 0, "30s"}, {"2026-01-15T14:00:30+02:00", 0, "30s"}, {"2026-01-15T12:01Z", 0, "1m0s"}, {"2026-01-15 12:00:30", 0, "30s"},
		{"Thu, 15 Jan 2026 12:00:30 GMT", 0, "30s"},
		{"-1", 0, ""}, {"", 0, ""}, {"soon", 0, ""}, {"NaN", 0, ""}, {"2026-01-15", 0, ""}, {"99999999999999999999", 0, "744h0m0s"},
	} {
		r := &reading{now: now, clock: now}
		r.Header = map[string][]string{"X": {c.in}}
		got := ""
		if at := r.reset("X", c.unit); !at.IsZero() {
			got = at.Sub(now).String()
		}
		if got != c.want {
			t.Errorf("%q in %v: in %q, want %q (%q)", c.in, c.unit, got, c.want, r.Problems)
		}
	}
}

// A number or a duration costs no attempt to read it as a date. Each attempt allocates an error.
func TestNumbersAreNoDates(t *testing.T) {
	for _, v := range []string{"", "0", "450", "0.25", "1768478430", "1ms", "6m0s", "23h47m36.648s"} {
		if n := testing.AllocsPerRun(10, func() {
			if at, is := date(v); is {
				t.Errorf("%q is read as %v", v, at)
			}
		}); n > 0 {
			t.Errorf("%q: %v allocations", v, n)
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

// FuzzParsers: waits are between 0 and a nanosecond more than MaxWait. Instants are after 1970
// where they count from it. Clipped text is short and fit to print.
func FuzzParsers(f *testing.F) {
	for _, s := range []string{"1", "1.5", "6m0s", "1d2h", "1470173023.123", "2026-03-26T16:00Z", "10S", "Used 5", "\x1b[2J", "\xff\xfe", "é\u202e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for name, parse := range map[string]func(string) (time.Duration, error){
			"seconds": seconds, "goDuration": goDuration, "ms": func(s string) (time.Duration, error) { return scaled(s, time.Millisecond) },
		} {
			if d, err := parse(s); d < 0 || d > MaxWait+1 || err != nil && d != 0 {
				t.Errorf("%s(%q) = %v, %v", name, s, d, err)
			}
		}
		now := time.Unix(1768478400, 0)
		r := &reading{now: now, clock: now}
		if at := r.moment("X", s, 0); !at.IsZero() && (at.Before(now) || at.After(now.Add(MaxWait))) {
			t.Errorf("moment(%q) = %v", s, at)
		}
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
