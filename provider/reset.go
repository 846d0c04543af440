package provider

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// reset reads when there will be more, in any form. The form is a wait ("1m30s", "250ms"), an
// instant (RFC 3339, an HTTP date), or a number, whose magnitude decides its meaning. unit is the
// unit of a small number; 0: seconds. The zero Time: the field is missing, or states nothing.
//
//	     … 1e8    from now: three years of seconds, and no epoch in seconds since 1973
//	1e8  … 1e11   seconds since 1970
//	1e11 … 1e14   milliseconds since 1970
//	1e14 … 1e17   microseconds since 1970
//	1e17 …        nanoseconds since 1970
func (r *reading) reset(name string, unit time.Duration) time.Time {
	v, ok := r.field(name)
	if !ok || name == "" {
		return time.Time{}
	}
	return r.moment(name, v, unit)
}

// moment is reset for a value that is not a field's.
func (r *reading) moment(name, v string, unit time.Duration) time.Time {
	if t, ok := date(v); ok {
		return r.instant(name, v, t)
	}
	if unit == 0 {
		unit = time.Second
	}
	f, err := strconv.ParseFloat(v, 64)
	number := err == nil || errors.Is(err, strconv.ErrRange)
	var d time.Duration
	switch {
	case !number:
		if d, err = goDuration(v); err != nil && err != errNegative {
			w := written(v)
			w.cut("in ", "after ")
			if long, ok := w.span(); ok && w == "" {
				d, err = min(long, MaxWait+1), nil
				break
			}
			err = errors.New("is neither a number, a duration nor an instant")
		}
	case f >= 1e8:
		if t, err := sinceEpoch(v, f); err == nil {
			return r.instant(name, v, t)
		}
		r.problem("%s: %q is no instant since 1970; ignored", name, clip(v))
		return time.Time{}
	default:
		d, err = scaled(v, unit)
	}
	if d, ok := r.bound(name, v, d, err); ok {
		return r.now.Add(d)
	}
	return time.Time{}
}

// date reads an instant that is written as one. All dates in header fields are read here.
func date(v string) (time.Time, bool) {
	// Most values are numbers or durations, and no instant consists of their characters alone. Each layout
	// would refuse them with an error that it allocates.
	if strings.Trim(v, "0123456789.hmsnu") == "" {
		return time.Time{}, false
	}
	if v[0] >= '0' && v[0] <= '9' {
		for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
			if t, err := time.Parse(layout, v); err == nil {
				return t, true
			}
		}
	} else if t, err := http.ParseTime(v); err == nil {
		return t, true
	}
	browsers, _, _ := strings.Cut(v, " (") // as JavaScript writes a Date: with the name of its zone
	if t, err := time.Parse("Mon Jan 02 2006 15:04:05 GMT-0700", browsers); err == nil {
		return t, true
	}
	// Others, as mail has them: with a zone, without a weekday, with one digit.
	w := written(strings.TrimSpace(v))
	t, zoned, ok := w.instant(time.Time{})
	return t, ok && zoned && w == "" && t.Year() > 1
}

// sinceEpoch reads an instant since 1970, to the microsecond; f is its magnitude.
func sinceEpoch(v string, f float64) (time.Time, error) {
	unit := time.Second
	switch {
	case f >= 1e17:
		unit = time.Nanosecond
	case f >= 1e14:
		unit = time.Microsecond
	case f >= 1e11:
		unit = time.Millisecond
	}
	whole, frac, _ := strings.Cut(strings.TrimSpace(v), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(frac, "0123456789") != "" { // 1.7E9 is a number too
		n, frac = int64(min(f, math.MaxInt64/2)), ""
	}
	var ns float64
	if frac != "" {
		if ns, err = strconv.ParseFloat("0."+frac, 64); err != nil {
			return time.Time{}, err
		}
		ns = math.Round(ns*1e6) / 1e6 * float64(unit) // no server counts finer than a microsecond
	}
	per := int64(time.Second / unit)
	return time.Unix(n/per, n%per*int64(unit)+int64(math.Round(ns))), nil
}

// pacificTime is the zone of Google's quotas of a day.
const pacificTime = "America/Los_Angeles"

// pacificMidnight returns the next midnight of the Pacific time of the United States. A machine may
// have no table of zones, so it computes.
func pacificMidnight(t time.Time) time.Time {
	midnight := t.UTC().Add(pacific(t)).Truncate(24 * time.Hour).Add(24 * time.Hour)
	return midnight.Add(-pacific(midnight.Add(-pacific(t))))
}

// pacific returns the distance of Pacific time from UTC at t. Summer time is from the second Sunday
// of March, at 2 in the morning, to the first Sunday of November.
func pacific(t time.Time) time.Duration {
	sunday := func(m time.Month, nth, hour int) time.Time {
		first := time.Date(t.UTC().Year(), m, 1, hour, 0, 0, 0, time.UTC)
		return first.AddDate(0, 0, (7-int(first.Weekday()))%7+7*(nth-1))
	}
	if !t.Before(sunday(time.March, 2, 10)) && t.Before(sunday(time.November, 1, 9)) {
		return -7 * time.Hour
	}
	return -8 * time.Hour
}
