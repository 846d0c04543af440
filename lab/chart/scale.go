package chart

import (
	"math"
	"sort"
	"strconv"
	"strings"
)

// scale maps values to 0..1 along an axis, and says where its ticks are.
type scale struct {
	lo, hi float64 // lo < hi
	log    bool
	ticks  []tick
}

type tick struct {
	value float64
	label string
}

// at is the place of v on the axis: 0 at the low end, 1 at the high end.
func (s scale) at(v float64) float64 {
	if s.log {
		return math.Log(v/s.lo) / math.Log(s.hi/s.lo)
	}
	return (v - s.lo) / (s.hi - s.lo)
}

// value is the value whose place is part.
func (s scale) value(part float64) float64 {
	switch {
	case part <= 0:
		return s.lo
	case part >= 1:
		return s.hi
	case s.log:
		return s.lo * math.Pow(s.hi/s.lo, part)
	}
	return s.lo + (s.hi-s.lo)*part
}

// width guesses on the safe side how wide text is, in the unit of size, since readers' fonts differ.
func width(text string, size float64) float64 {
	var em float64
	for _, r := range text {
		switch {
		case strings.ContainsRune("iljtfrI.,:;'|!()[] -", r):
			em += 0.42
		case strings.ContainsRune("mwMW@%&", r):
			em += 1.02
		case r >= 'A' && r <= 'Z':
			em += 0.78
		case r < 0x1100:
			em += 0.64
		default:
			em += 1.1
		}
	}
	return em * size
}

// shorten cuts text to a width, in the unit of size.
func shorten(text string, size, most float64) string {
	return shortenBy(text, most, func(s string) float64 { return width(s, size) })
}

func shortenBy(text string, most float64, measure func(string) float64) string {
	if measure(text) <= most {
		return text
	}
	// Binary search for the longest beginning that fits, since a longer one is never narrower.
	runes := []rune(text)
	short := func(n int) string { return strings.TrimRight(string(runes[:n]), " ") + "…" }
	return short(max(0, sort.Search(len(runes), func(n int) bool { return measure(short(n)) > most })-1))
}

// linear returns a scale over lo..hi with at most n ticks. With grown its ends are at ticks. With clock its steps suit minutes and hours.
func linear(lo, hi float64, n int, grown, clock bool) scale {
	if math.Max(math.Abs(lo), math.Abs(hi)) < smallest { // what rounding leaves of zero; its steps would underflow
		lo, hi = 0, 0
	}
	if lo == hi {
		// Half a unit alone could be lost in the rounding of a large value, and leave no span.
		by := math.Max(0.5, math.Abs(lo)*1e-3)
		if grown && lo == 0 {
			hi = 1
		} else {
			lo, hi = lo-by, hi+by
		}
	}
	if least := math.Max(math.Abs(lo), math.Abs(hi)) * 1e-9; hi-lo < least {
		lo, hi = lo-least/2, hi+least/2
	}
	step := niceStep((hi-lo)/float64(n-1), clock)
	if grown {
		// If the value is a tick itself, rounding must not add an empty step beyond it.
		lo = math.Floor(lo/step+1e-9) * step
		hi = math.Ceil(hi/step-1e-9) * step
	}
	s := scale{lo: lo, hi: hi}
	// Ticks are counted, not added up: adding a step that is lost in the rounding of a large value would never reach the end.
	first, last := math.Ceil(lo/step-1e-9), math.Floor(hi/step+1e-9)
	for i := 0.0; i <= last-first && i < 100; i++ {
		v := (first + i) * step
		s.ticks = append(s.ticks, tick{v, tickLabel(v, step)})
	}
	return s
}

// niceStep is the smallest round number that is not below least.
func niceStep(least float64, clock bool) float64 {
	if clock {
		for _, step := range []float64{1, 2, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440} {
			if step >= least && least > 0.5 {
				return step
			}
		}
	}
	decade := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*decade >= least*(1-1e-9) {
			return m * decade
		}
	}
	return 10 * decade
}

// logarithmic returns a scale with about n ticks, from a tick at or below lo to one at or above hi. Both have to be positive.
func logarithmic(lo, hi float64, n int) scale {
	marks := []float64{1, 2, 5}
	at := func(i int) float64 { // the marks of all decades have numbers: 1 is 0, 2 is 1, 5 is 2, 10 is 3
		d := int(math.Floor(float64(i) / 3))
		return marks[i-3*d] * math.Pow(10, float64(d))
	}
	below := int(math.Floor(math.Log10(lo)))*3 + 2
	for at(below) > lo*(1+1e-9) {
		below--
	}
	above := below
	for at(above) < hi*(1-1e-9) {
		above++
	}
	if above == below {
		below--
		above++
	}
	s := scale{lo: at(below), hi: at(above), log: true}
	// Ticks are marks of 1, 2 and 5, or of each whole decade, or of every so many decades.
	every := 1
	for (above-below)/every+1 > n {
		if every == 1 {
			every = 3
		} else {
			every += 3
		}
	}
	for i := below; i <= above; i++ {
		if (i%every+every)%every == 0 {
			v := at(i)
			s.ticks = append(s.ticks, tick{v, tickLabel(v, v)})
		}
	}
	return s
}

// tickLabel writes v with as many digits as its distance to the next tick needs.
func tickLabel(v, step float64) string {
	if v == 0 || math.Abs(v) < step*1e-6 {
		return "0"
	}
	last := math.Floor(math.Log10(step) + 1e-9) // decimal place of the last digit that a label needs
	for range 2 {                               // a step such as 15 or 1,440 needs more digits than its first
		if r := step / math.Pow(10, last); math.Abs(r-math.Round(r)) > 1e-9 {
			last--
		}
	}
	if math.Abs(v) >= 1e7 || step < 1e-4 {
		digits := int(math.Floor(math.Log10(math.Abs(v)))-last) + 1
		return exponent(strconv.FormatFloat(v, 'e', max(0, min(digits-1, 12)), 64))
	}
	decimals := max(0, int(-last))
	return thousands(strconv.FormatFloat(v, 'f', decimals, 64))
}

// number writes a value for reading: with three significant digits, and with all digits before the point.
func number(v float64) string {
	a := math.Abs(v)
	switch {
	case v == 0:
		return "0"
	case a >= 1e9 || a < 0.001:
		return exponent(strconv.FormatFloat(v, 'e', 2, 64))
	case a >= 99.95:
		return thousands(strconv.FormatFloat(v, 'f', 0, 64))
	}
	decimals := 2 - int(math.Floor(math.Log10(a)))
	s := strconv.FormatFloat(v, 'f', min(decimals, 5), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

func withUnit(v float64, unit string) string {
	if unit == "" {
		return number(v)
	}
	return number(v) + "\u00a0" + unit
}

// exponent shortens "1.50e+07" to "1.5e7".
func exponent(s string) string {
	mantissa, exp, _ := strings.Cut(s, "e")
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	n, err := strconv.Atoi(exp)
	if err != nil {
		return s
	}
	return mantissa + "e" + strconv.Itoa(n)
}

// thousands sets commas between groups of three digits.
func thousands(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, rest := s, ""
	if i := strings.IndexByte(s, '.'); i >= 0 {
		whole, rest = s[:i], s[i:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole + rest
}

// text is the title of an axis: its label, and its unit if there is one.
func (a Axis) text() string {
	if a.Unit == "" || a.Unit == a.Label {
		return a.Label
	}
	return a.Label + " (" + a.Unit + ")"
}
