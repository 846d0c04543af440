package rate

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Forms are rates as Parse reads them, for errors and help.
const Forms = "20/s, 100/min, 4500/h, 300/5m, 5/1.5s, '5 per second' or 10rps"

// Longest is the longest Per of a rate.
const Longest = 366 * 24 * time.Hour

// Rate is N in any span of Per.
type Rate struct {
	N   int64
	Per time.Duration
}

// String writes a rate as Parse reads it.
func (r Rate) String() string {
	for _, u := range []struct {
		per  time.Duration
		name string
	}{{time.Second, "s"}, {time.Minute, "m"}, {time.Hour, "h"}, {24 * time.Hour, "d"}} {
		if r.Per == u.per {
			return fmt.Sprintf("%d/%s", r.N, u.name)
		}
	}
	return fmt.Sprintf("%d/%v", r.N, r.Per)
}

// Parse reads a rate. Errors begin with the text and end with the expected form. It refuses
// fractions of a request, since a longer time says the same (1/2s). It refuses a bare number, since
// its time is not known.
func Parse(s string) (Rate, error) {
	fail := func(format string, args ...any) (Rate, error) {
		return Rate{}, fmt.Errorf("%q"+format+", expected %s", append(append([]any{s}, args...), Forms)...)
	}
	count, unit, ok := split(s)
	if !ok {
		return fail(" does not say per what time")
	}
	n, err := ParseCount(count)
	if err != nil {
		return fail(": %q is not a whole number from 1 to %d%s", count, int64(limit.MaxCost), longer(count, unit))
	}
	per, err := span(unit)
	if err != nil || per <= 0 || per > Longest {
		return fail(": %q is not a time up to a year%s", unit, placed(unit))
	}
	return Rate{n, per}, nil
}

// short are abbreviations with their unit of time: 10rps.
var short = map[string]string{"rps": "s", "qps": "s", "rpm": "m", "qpm": "m", "rph": "h", "rpd": "d"}

// split splits a rate into its count and its time.
func split(s string) (count, unit string, ok bool) {
	if count, unit, ok = strings.Cut(s, "/"); ok {
		return strings.TrimSpace(count), strings.TrimSpace(unit), true
	}
	words := strings.Fields(s)
	for i, w := range words {
		switch strings.ToLower(w) {
		case "per", "every", "each", "in", "a", "an":
			return strings.Join(words[:i], " "), strings.Join(words[i+1:], " "), true
		}
	}
	all := strings.ToLower(strings.TrimSpace(s))
	for name, unit := range short {
		if count, ok := strings.CutSuffix(all, name); ok {
			return strings.TrimSpace(count), unit, true
		}
	}
	return "", "", false
}

// things are the words for requests.
var things = map[string]bool{"requests": true, "request": true, "reqs": true, "req": true, "calls": true,
	"call": true, "queries": true, "query": true}

var errNumber = errors.New("no whole number")

// ParseCount reads 20, 1,000, 1_000, 5k, 30M, 1.5M, and 20 requests. 30m is 30 million, too.
func ParseCount(s string) (int64, error) {
	if head, thing, ok := strings.Cut(s, " "); ok && things[strings.ToLower(strings.TrimSpace(thing))] {
		s = head
	}
	times := int64(1)
	for suffix, factor := range map[string]int64{"k": 1000, "m": 1_000_000} {
		if digits, ok := strings.CutSuffix(strings.ToLower(s), suffix); ok {
			s, times = digits, factor
		}
	}
	if whole, part, ok := strings.Cut(s, "."); ok && times > 1 {
		for range part {
			times /= 10
		}
		if s = whole + part; times == 0 || part == "" {
			return 0, errNumber
		}
	}
	for _, separator := range []string{",", "_"} {
		groups := strings.Split(s, separator)
		for i, g := range groups {
			if len(groups) > 1 && (i > 0 && len(g) != 3 || len(g) == 0 || len(g) > 3) {
				return 0, errNumber // 1,5 is not 15
			}
		}
		s = strings.Join(groups, "")
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > limit.MaxCost/times || s[0] == '+' {
		return 0, errNumber
	}
	return n * times, nil
}

// longer says how to write a fraction of a request: as whole ones in a longer time, 3/2s for 1.5/s.
// Where no time up to 100 units does, the rate is rounded down.
func longer(count, unit string) string {
	f, err := strconv.ParseFloat(strings.Replace(count, ",", ".", 1), 64)
	if err != nil || !(f > 0 && f < 1e9) || f == math.Trunc(f) {
		return ""
	}
	const most = 100
	n, of, near := int64(1), int64(math.Ceil(min(1/f, 1e6))), 0.0
	for k := int64(1); k <= most; k++ {
		whole := math.Floor(f*float64(k) + 1e-9)
		if at := whole / float64(k); at > near+1e-9 {
			n, of, near = int64(whole), k, at
		}
	}
	hint := fmt.Sprintf("%d/%d%s", n, of, unit)
	if per, err := span(unit); err == nil && unit[0] >= '0' && unit[0] <= '9' { // it has a number of its own
		hint = Rate{n, time.Duration(min(float64(of)*float64(per), float64(2*Longest)))}.String()
	}
	if _, err := Parse(hint); err != nil {
		return ""
	}
	return fmt.Sprintf(" (a fraction is whole ones in a longer time, such as %s)", hint)
}

// placed says where months are.
func placed(unit string) string {
	if months[strings.ToLower(unit)] {
		return " (30 days are 30d; months are those of a place, such as 100/month@America/Los_Angeles)"
	}
	return ""
}

// units are the words for times, beside those of time.ParseDuration.
var units = map[string]time.Duration{
	"ms": time.Millisecond, "msec": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
	"w": 7 * 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
}

// span reads s, second, 5m, 5 minutes, 1.5s, 1h30m, 2d. It refuses a capital M alone, which may be
// a minute or a month.
func span(s string) (time.Duration, error) {
	at := 0
	for at < len(s) && (s[at] >= '0' && s[at] <= '9' || s[at] == '.') {
		at++
	}
	word := strings.TrimSpace(s[at:])
	if len(word) > 1 {
		word = strings.ToLower(word)
	}
	unit, known := units[word]
	if !known {
		return time.ParseDuration(s)
	}
	if at == 0 {
		return unit, nil
	}
	n, err := strconv.ParseFloat(s[:at], 64)
	if err != nil || n > float64(Longest)/float64(unit)+1 {
		return 0, errNumber
	}
	return time.Duration(math.Round(n * float64(unit))), nil
}
