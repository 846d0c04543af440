package text

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// Thousands writes 30000 as 30,000.
func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Dollars writes dollars and cents. Amounts below ten cents have four digits, or as many as show
// two behind the leading zeros: $0.0040, $0.000025.
func Dollars(usd float64) string {
	digits := 2
	if usd > 0 && usd < 0.1 {
		digits = min(max(4, 1-int(math.Floor(math.Log10(usd)))), 12)
	}
	return fmt.Sprintf("$%.*f", digits, usd)
}

// Window writes a duration for use after "per".
func Window(d time.Duration) string {
	switch d {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	}
	return Span(d)
}

// Span writes a duration by its two largest units: 120 ms, 7.66 s, 2 min 59.6 s, 23 h 47 min, 6
// days 2 h. It rounds up, so that a client that waits for the written time has waited long enough.
func Span(d time.Duration) string {
	type unit struct {
		name string
		d    time.Duration
	}
	units := []unit{{"days", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}}
	up := func(step time.Duration) {
		if r := d % step; r > 0 {
			d += step - r
		}
	}
	switch {
	case d < time.Second:
		up(time.Microsecond)
		return strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64) + " ms"
	case d < time.Minute:
		up(time.Millisecond)
	case d < time.Hour:
		up(100 * time.Millisecond)
	case d < 24*time.Hour:
		up(time.Minute)
	default:
		up(time.Hour)
	}
	if d < time.Minute {
		return seconds(d)
	}
	i := slices.IndexFunc(units, func(u unit) bool { return d >= u.d })
	s := fmt.Sprintf("%d %s", d/units[i].d, units[i].name)
	if d/units[i].d == 1 && i == 0 {
		s = "1 day"
	}
	rest := d % units[i].d
	switch {
	case rest == 0:
		return s
	case i == len(units)-1:
		return s + " " + seconds(rest)
	}
	if n := rest / units[i+1].d; n > 0 {
		s += fmt.Sprintf(" %d %s", n, units[i+1].name)
	}
	return s
}

// seconds divides once. The standard library's Seconds adds two rounded numbers, so that 1.14
// becomes 1.1400000000000001.
func seconds(d time.Duration) string { return strconv.FormatFloat(float64(d)/1e9, 'f', -1, 64) + " s" }

// Date writes an instant by the clock of its place, to the second: Mon 2 Jan 15:04:05. It has its
// year if that is not clear from now, which is eleven months off.
func Date(t, now time.Time) string {
	const clear = 334 * 24 * time.Hour
	if d := t.Sub(now); d > clear || d < -clear {
		return t.Format("Mon 2 Jan 2006 15:04:05")
	}
	return t.Format("Mon 2 Jan 15:04:05")
}
