package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var byteUnits = []struct {
	name string
	size int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// ParseBytes reads a number of bytes of 1 or more, of something that is in memory.
func ParseBytes(s string) (int64, error) {
	if n, ok := parseBytes(s, math.MaxInt32); ok {
		return n, nil
	}
	return 0, fmt.Errorf("%q, expected a whole number of bytes below 2 GiB such as 65536, 64KiB or 16MiB", s)
}

// ParseDiskBytes reads a number of bytes of 1 or more, of something that is on a disk.
func ParseDiskBytes(s string) (int64, error) {
	if n, ok := parseBytes(s, math.MaxInt64); ok {
		return n, nil
	}
	return 0, fmt.Errorf("%q, expected a whole number of bytes such as 500MB or 10GiB", s)
}

func parseBytes(s string, most int64) (n int64, ok bool) {
	for _, u := range byteUnits {
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

// Bytes writes a number of bytes as ParseBytes reads it.
func Bytes(n int64) string {
	for i := 2; i >= 0; i-- {
		if u := byteUnits[i]; n > 0 && n%u.size == 0 {
			return strconv.FormatInt(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
