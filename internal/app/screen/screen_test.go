package screen

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFit(t *testing.T) {
	l := Line{
		{Forms: []string{"first, the longest", "first", "1"}, Rank: 0, Keep: true},
		{Forms: []string{"a detail that is long"}, Rank: 3, Least: 8},
		{Forms: []string{"second", "2"}, Rank: 1, Keep: true, Color: Red},
		{Forms: []string{"short"}, Rank: 2},
	}
	for _, c := range []struct {
		columns int
		want    string
	}{
		{0, "first, the longest  a detail that is long  <second>  short"},
		{56, "first, the longest  a detail that is long  <second>  short"},
		{55, "first, the longest  a detail that is long  <2>  short"},
		{43, "first  a detail that is long  <second>  short"},
		{41, "first  a detail that is long  <2>  short"}, // to say it at all is worth more than to say another at length
		{28, "first  a detail t…  <2>  short"},
		{25, "first  a detai…  <2>  short"}, // no fewer columns than Least
		{24, "first  <second>  short"},
		{20, "first  <second>  short"}, // what was shortened before grows again
		{13, "first  <second>"},
		{12, "first  <2>"},
		{4, "1  <2>"},
		{3, "1"},
		{1, "1"},
	} {
		got := l.Fit(c.columns, func(color, text string) string {
			if color != Red {
				t.Errorf("painted in %s", color)
			}
			return "\x1b[31m" + text + "\x1b[0m"
		})
		if shownAs := strings.NewReplacer("\x1b[31m", "<", "\x1b[0m", ">").Replace(got); shownAs != c.want {
			t.Errorf("%d: %s, want %s", c.columns, shownAs, c.want)
		}
		if n := Width(got); c.columns > 0 && n > c.columns {
			t.Errorf("%d columns take %d: %q", c.columns, n, got)
		}
	}
	// What matters more is cut before what matters less is said at all, even to one column.
	cut := Line{{Forms: []string{"keep"}, Keep: true}, {Forms: []string{"detail"}, Rank: 1, Least: 1}, {Forms: []string{"x"}, Rank: 2}}
	for most, want := range map[int]string{12: "keep  detail", 9: "keep  de…", 7: "keep  …", 6: "keep"} {
		if got := cut.Fit(most, nil); got != want {
			t.Errorf("%d: %s, want %s", most, got, want)
		}
	}
	if got := l[1:2].Fit(5, nil); got != "" {
		t.Errorf("what has no room: %q", got)
	}
	wide := Line{{Forms: []string{"日本語"}, Keep: true}}
	if got := wide.Fit(5, nil); got != "日本…" {
		t.Errorf("wide characters in 5 columns: %q", got)
	}
}

func TestLength(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond: "1s", 61 * time.Second: "1m1s", 90 * time.Minute: "1h30m0s", 5*time.Hour + 29*time.Second: "5h0m", 2*time.Hour + 30*time.Minute: "2h30m",
		23*time.Hour + 59*time.Minute + 40*time.Second: "24h0m", 26*time.Hour + 40*time.Minute: "1d3h", 240 * time.Hour: "10d", 2410 * time.Hour: "100d",
	} {
		if got := Length(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func TestCounter(t *testing.T) {
	c := Counter{What: "runs"}
	line := func(elapsed time.Duration) string {
		return c.At(elapsed).Line().Fit(0, func(_, text string) string { return text })
	}
	if got, want := line(time.Second), "beginning  0 %  ETA not known yet  1s so far"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.Set(5, 20, Part{Forms: []string{"none rejected"}})
	if got, want := line(10*time.Second), "5 of 20 runs  25 %  ETA 30s  none rejected  10s so far"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.Count(20, 20)
	if got, want := line(40*time.Second), "20 of 20 runs  100 %  40s so far"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.Count(0, 7) // another one
	if got, want := line(40*time.Second), "0 of 7 runs  0 %  ETA not known yet  1s so far"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	c.Count(1, 7)
	if got, want := line(50*time.Second), "1 of 7 runs  14 %  ETA 1m0s  10s so far"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// terminal is what a terminal shows of what is written to it: as much of ECMA-48 as a Screen uses. Rows that are too long go on in the
// next, and again when it gets narrower.
type terminal struct {
	columns int
	rows    []string // as written, each as long as it is
	row     int
}

func (v *terminal) Write(b []byte) (int, error) {
	if v.rows == nil {
		v.rows = []string{""}
	}
	for s := string(b); s != ""; {
		switch {
		case strings.HasPrefix(s, "\x1b[J"):
			v.rows, s = v.rows[:v.row+1], s[3:]
			v.rows[v.row] = ""
		case strings.HasPrefix(s, "\x1b[A"):
			v.row, s = v.row-1, s[3:]
		case s[0] == '\r':
			s = s[1:]
		case s[0] == '\n':
			if v.row++; v.row == len(v.rows) {
				v.rows = append(v.rows, "")
			}
			s = s[1:]
		default:
			v.rows[v.row] += s[:1]
			s = s[1:]
		}
	}
	return len(b), nil
}

// narrow is a terminal that has become narrower and lays its rows out anew.
func (v *terminal) narrow(columns int) {
	var rows []string
	for _, r := range v.rows {
		for len(r) > columns {
			rows, r = append(rows, r[:columns]), r[columns:]
		}
		rows = append(rows, r)
	}
	v.columns, v.rows, v.row = columns, rows, len(rows)-1
}

func onTerminal(v *terminal) *Screen {
	return &Screen{w: v, pause: always(rewriteEvery), rewrites: true, size: func() (int, int) { return v.columns, 24 }}
}

// Lines of a log stay above, what is rewritten is there once, also after the terminal has become narrower, and is gone at the end.
func TestScreenRewrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &terminal{columns: 40}
		s := onTerminal(v)
		stop := s.Follow(func() []Line {
			return []Line{{{Forms: []string{strings.Repeat("p", 30)}, Keep: true}}, {{Forms: []string{strings.Repeat("e", 25)}, Keep: true}}}
		})
		want := func(rows ...string) {
			t.Helper()
			time.Sleep(rewriteEvery)
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if got := strings.Join(v.rows, "\n"); got != strings.Join(rows, "\n") {
				t.Errorf("the terminal shows\n%s\nwant\n%s", got, strings.Join(rows, "\n"))
			}
		}
		want(strings.Repeat("p", 30), strings.Repeat("e", 25))
		s.Line("a notice")
		want("a notice", strings.Repeat("p", 30), strings.Repeat("e", 25))
		s.mu.Lock()
		v.narrow(20)
		s.mu.Unlock()
		want("a notice", strings.Repeat("p", 18)+"…", strings.Repeat("e", 18)+"…")
		stop()
		stop() // again is harmless
		if got := strings.Join(v.rows, "\n"); got != "a notice\n" {
			t.Errorf("the terminal shows at the end\n%q", got)
		}
	})
}

// Notices and the summary are broken at spaces on a terminal, and nowhere else. What programs read stays whole everywhere.
func TestScreenBreaksLines(t *testing.T) {
	text := "a notice that is longer than this terminal"
	v := &terminal{columns: 20}
	s := onTerminal(v)
	s.Line(text)
	s.Ours("\x1b[31m1 rejected\x1b[0m, 2 done, " + "and more")
	_, _ = s.Write([]byte(text + "\n"))
	if got, want := strings.Join(v.rows, "\n"), "a notice that is\n  longer than this\n  terminal\n\x1b[31m1 rejected\x1b[0m, 2 done,\n  and more\n"+text+"\n"; got != want {
		t.Errorf("the terminal shows\n%s\nwant\n%s", got, want)
	}
	var piped strings.Builder
	New(&piped, Config{}).Line(text)
	if piped.String() != text+"\n" {
		t.Errorf("a pipe has %q", piped.String())
	}
}

// Where no line is rewritten there is one so often, without a character that moves anything, and what failed is told when it changes.
func TestScreenPiped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		s := New(&b, Config{Every: 5 * time.Second, After: 6 * time.Second, Color: "never"})
		errs := []string{"last errors: 1", "last errors: 1", "last errors: 2", ""}
		n := 0
		stop := s.Follow(func() []Line {
			n++
			return []Line{{{Forms: []string{strings.Repeat("x", 300)}}, {Forms: []string{"n"}, Color: Red}}, {{Forms: errs[n-1 : n]}}}
		})
		time.Sleep(26 * time.Second)
		stop()
		line := strings.Repeat("x", 300) + "  n\n"
		if got, want := b.String(), line+"last errors: 1\n"+line+line+"last errors: 2\n"+line; n != 4 || got != want {
			t.Errorf("%d times: %q, want %q", n, got, want)
		}
	})
}

// A log of hours has a line soon, and fewer and fewer.
func TestScreenRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		began := time.Now()
		var at []time.Duration
		stop := New(&b, Config{Every: Rarely}).Follow(func() []Line {
			at = append(at, time.Since(began))
			return []Line{{{Forms: []string{"x"}}}}
		})
		time.Sleep(2*time.Hour + time.Second)
		stop()
		const early, middle, late = 10, 55, 12 // lines of 5 minutes, of the rest of the hour, of the second hour
		if len(at) != early+middle+late || at[0] != 30*time.Second || at[early] != 6*time.Minute ||
			at[early+middle] != 65*time.Minute || b.String() != strings.Repeat("x\n", len(at)) {
			t.Errorf("%d lines: %v", len(at), at)
		}
	})
}

func TestScreenSaysNothing(t *testing.T) {
	var b strings.Builder
	stop := New(&b, Config{}).Follow(func() []Line { panic("asked") })
	stop()
	if b.Len() > 0 {
		t.Errorf("%q", b.String())
	}
}
