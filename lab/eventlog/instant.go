package eventlog

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Units are the units of Unix time, by name. An empty name stands for the size of each number: below
// 10¹¹ are seconds, below 10¹⁴ milliseconds, below 10¹⁷ microseconds, and others nanoseconds. So
// numbers are read as instants since March of 1973, and smaller ones are an error: they may count since
// the start of a program, in any unit.
var Units = []string{"s", "ms", "us", "ns"}

const forms = "want RFC 3339 such as 2026-11-22T21:39:00.1Z, or Unix time such as 1795383540.1"

// clock reads instants. All numbers of a log must have one unit.
type clock struct {
	unit    string // that of all numbers so far; empty: not known yet
	guessed bool   // the size of the first number has shown the unit
}

// ParseInstant reads an instant as a log has it, in nanoseconds of Unix time. unit is that of a number; empty: its
// size shows it.
func ParseInstant(s, unit string) (int64, error) { return (&clock{unit: unit}).read(s) }

// read returns an instant in nanoseconds of Unix time. Digits below a nanosecond are dropped.
func (c *clock) read(s string) (int64, error) {
	if strings.Trim(s, "0123456789.+-") == "" && s != "" && strings.LastIndexAny(s, "+-") < 1 {
		return c.number(s)
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, fmt.Errorf("%s is no instant: %s", shown(s), forms)
	}
	if t.Before(time.Unix(0, math.MinInt64)) || t.After(time.Unix(0, math.MaxInt64)) {
		return 0, fmt.Errorf("%s is not from 1678 to 2262", shown(s))
	}
	return t.UnixNano(), nil
}

func (c *clock) number(s string) (int64, error) {
	whole, part, dot := strings.Cut(strings.TrimLeft(s, "+-"), ".")
	n, fits := digits(whole)
	if whole == "" || dot && part == "" || strings.Contains(part, ".") {
		return 0, fmt.Errorf("%s is no instant: %s", shown(s), forms)
	}
	unit := c.unit
	if own := unitOf(n); unit == "" {
		if n < 1e8 {
			return 0, fmt.Errorf("%s is no Unix time since 1973, and its size does not show its unit: expected --unit %s",
				shown(s), strings.Join(Units, ", "))
		}
		unit = own
		c.unit, c.guessed = own, true
	} else if c.guessed && own != unit {
		return 0, fmt.Errorf("%s has the size of Unix time in %s, and earlier numbers that in %s: expected one unit "+
			"(--unit names it)", shown(s), own, unit)
	}
	nanos := nanosOf(unit)
	if !fits || n >= math.MaxInt64/nanos {
		return 0, fmt.Errorf("%s %s of Unix time is not from 1678 to 2262", shown(s), unit)
	}
	n *= nanos
	for _, digit := range part {
		nanos /= 10
		n += int64(digit-'0') * nanos
	}
	if s[0] == '-' {
		n = -n
	}
	return n, nil
}

// digits reads a number of digits alone. It reports false if the number does not fit.
func digits(s string) (n int64, fits bool) {
	for _, digit := range s {
		if n > (math.MaxInt64-9)/10 {
			return math.MaxInt64, false
		}
		n = 10*n + int64(digit-'0')
	}
	return n, true
}

func unitOf(n int64) string {
	switch {
	case n < 1e11:
		return "s"
	case n < 1e14:
		return "ms"
	case n < 1e17:
		return "us"
	}
	return "ns"
}

// unitIn returns the unit at the end of a name such as checked_ns; empty: it has none.
func unitIn(name string) string {
	i := strings.LastIndexByte(name, '_')
	if unit := name[i+1:]; i > 0 && unit != "s" && slices.Contains(Units, unit) {
		return unit
	}
	return ""
}

func nanosOf(unit string) int64 {
	switch unit {
	case "s":
		return 1e9
	case "ms":
		return 1e6
	case "us":
		return 1e3
	}
	return 1
}

// shown quotes the beginning of a text.
func shown(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%q…", s[:60])
	}
	return fmt.Sprintf("%q", s)
}
