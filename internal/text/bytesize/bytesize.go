// Package bytesize reads and writes numbers of bytes in people's form: 64KiB, 16MiB. It is
// arithmetic on text.
package bytesize

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var units = []struct {
	name string
	size int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// Parse reads a number of bytes of 1 or more, of something that is in memory.
func Parse(s string) (int64, error) {
	if n, ok := parse(s, math.MaxInt32); ok {
		return n, nil
	}
	return 0, fmt.Errorf("%q, expected a whole number of bytes below 2 GiB such as 65536, 64KiB or 16MiB", s)
}

// ParseLarge reads a number of bytes of 1 or more, of something that is on a disk.
func ParseLarge(s string) (int64, error) {
	if n, ok := parse(s, math.MaxInt64); ok {
		return n, nil
	}
	return 0, fmt.Errorf("%q, expected a whole number of bytes such as 500MB or 10GiB", s)
}

func parse(s string, most int64) (n int64, ok bool) {
	for _, u := range units {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 1 || n > most/u.size {
			break
		}
		return n * u.size, true
	}
	return 0, false
}

// String writes a number of bytes as Parse reads it.
func String(n int64) string {
	for i := 2; i >= 0; i-- {
		if u := units[i]; n > 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
