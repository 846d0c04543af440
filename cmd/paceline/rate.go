package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit"
)

const rateForms = "20/s, 500/m, 4500/h, 100000/d, 300/10s or 5/1.5s"

// parseRate reads a limit: N/U, with U a unit (s, m, h, d, ms) or a duration.
func parseRate(s string) (n int64, per time.Duration, err error) {
	count, unit, ok := strings.Cut(s, "/")
	if !ok {
		return 0, 0, fmt.Errorf("%q does not say per what time, expected %s", s, rateForms)
	}
	n, err = strconv.ParseInt(strings.TrimSpace(count), 10, 64)
	if err != nil || n < 1 || n > limit.MaxCost {
		return 0, 0, fmt.Errorf("%q: %q is not a whole number from 1 to %d, expected %s", s, count, int64(limit.MaxCost), rateForms)
	}
	unit = strings.TrimSpace(unit)
	one := unit
	if unit != "" && (unit[0] < '0' || unit[0] > '9') && unit[0] != '.' {
		one = "1" + unit
	}
	if number, isDays := strings.CutSuffix(one, "d"); isDays {
		var days float64
		days, err = strconv.ParseFloat(number, 64)
		per = time.Duration(min(days*24*float64(time.Hour), math.MaxInt64/2))
	} else {
		per, err = time.ParseDuration(one)
	}
	if err != nil || per <= 0 || per > 366*24*time.Hour {
		return 0, 0, fmt.Errorf("%q: %q is not a time up to a year, expected %s", s, unit, rateForms)
	}
	return n, per, nil
}

// byteSize is a flag for a number of bytes.
type byteSize int64

var byteUnits = []struct {
	name string
	size int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

func (b *byteSize) Set(s string) error {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 1 || n > math.MaxInt32/u.size {
			break
		}
		*b = byteSize(n * u.size)
		return nil
	}
	return fmt.Errorf("%q, expected a whole number of bytes below 2 GiB such as 65536, 64KiB or 16MiB", s)
}

func (b *byteSize) String() string {
	for i := 2; i >= 0; i-- {
		if u := byteUnits[i]; *b > 0 && int64(*b)%u.size == 0 {
			return strconv.FormatInt(int64(*b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

func (b *byteSize) Type() string { return "size" }
