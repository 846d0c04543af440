package proxy

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// patience is how long a request may wait for its turn.
type patience struct {
	most time.Duration // 0: no wait
	// own is the client's own bound; stated reports whether there is one.
	own    time.Duration
	stated bool
}

// patienceOf returns the wait of a request, at most most; negative: no wait. An error is about the
// proxy's own field.
func patienceOf(h http.Header, most time.Duration) (patience, error) {
	p := patience{most: max(most, 0)}
	say := func(d time.Duration) {
		if !p.stated || d < p.own {
			p.own = d
		}
		p.stated, p.most = true, min(p.most, d)
	}
	for _, v := range h[FieldMaxWait] {
		d, ok := parseWait(v)
		if !ok {
			return p, fmt.Errorf("%s: %q, expected seconds, or a duration such as 1m30s", FieldMaxWait, shortened(v))
		}
		say(d)
	}
	// SDKs state timeouts for a whole attempt: that of Node the first field, those of Python also
	// the second.
	for _, name := range [...]string{"X-Stainless-Timeout", "X-Stainless-Read-Timeout"} {
		for _, v := range h[name] {
			if d, ok := parseSeconds(v); ok && d > 0 {
				say(d)
			}
		}
	}
	for _, v := range h["Grpc-Timeout"] {
		if d, ok := parseGRPCTimeout(v); ok {
			say(d)
		}
	}
	return p, nil
}

// parseWait reads seconds or a duration.
func parseWait(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if d, ok := parseSeconds(s); ok {
		return d, true
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0
}

// longest is longer than any wait.
const longest = 100 * 365 * 24 * time.Hour

// parseSeconds reads a number of seconds.
func parseSeconds(s string) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.Trim(s, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(n, 1) {
		return 0, false
	}
	return time.Duration(min(n*float64(time.Second), float64(longest))), true
}

// parseGRPCTimeout reads a Timeout of gRPC over HTTP/2: up to 8 digits and a unit.
func parseGRPCTimeout(s string) (time.Duration, bool) {
	const digits = 8
	if len(s) < 2 || len(s) > digits+1 {
		return 0, false
	}
	unit, known := map[byte]time.Duration{'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond,
		'u': time.Microsecond, 'n': time.Nanosecond}[s[len(s)-1]]
	n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	if !known || err != nil {
		return 0, false
	}
	if time.Duration(n) > longest/unit {
		return longest, true
	}
	return time.Duration(n) * unit, true
}
