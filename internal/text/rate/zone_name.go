package rate

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// ZoneForm is an example of a limit by the clock of a place, for errors and help.
const ZoneForm = "100/d@America/Los_Angeles"

// meant are zones for abbreviations. Some of them are known, too, but without summer time.
var meant = map[string]string{
	"PT": "America/Los_Angeles", "PST": "America/Los_Angeles", "PDT": "America/Los_Angeles",
	"PACIFIC": "America/Los_Angeles", "PST8PDT": "America/Los_Angeles",
	"MT": "America/Denver", "MST": "America/Denver", "MDT": "America/Denver", "CT": "America/Chicago",
	"CST": "America/Chicago", "CDT": "America/Chicago",
	"ET": "America/New_York", "EST": "America/New_York", "EDT": "America/New_York", "BST": "Europe/London",
	"CEST": "Europe/Berlin", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo",
}

// loaded has a zone for each name, as a limiter for each of a hundred thousand partitions needs it.
var loaded sync.Map

// location finds a zone by its name.
func location(name string) (*time.Location, error) {
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), nil
	}
	if zone := meant[strings.ToUpper(name)]; zone != "" {
		return nil, fmt.Errorf("%q is no place, and may have no summer time, expected the zone of one, such as %s", name,
			zone)
	}
	zone, err := time.LoadLocation(name)
	switch {
	case name == "":
		err = errors.New("no zone after the @, expected one such as America/Los_Angeles, Europe/Berlin or UTC")
	case name == "Local":
		err = fmt.Errorf("%q is another zone on each machine, expected one such as America/Los_Angeles, Europe/Berlin or UTC", name)
	case err != nil:
		err = fmt.Errorf("%q is no time zone, expected one such as America/Los_Angeles, Europe/Berlin or UTC", name)
		if usual := capitals(name); usual != name {
			if _, no := time.LoadLocation(usual); no == nil {
				err = fmt.Errorf("%q is no time zone, expected %s", name, usual)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	first, _ := loaded.LoadOrStore(name, zone)
	return first.(*time.Location), nil
}

// capitals writes the name of a zone as most are written: America/Los_Angeles.
func capitals(name string) string {
	if strings.EqualFold(name, "UTC") {
		return "UTC"
	}
	b, begins := []byte(strings.ToLower(strings.ReplaceAll(name, " ", "_"))), true
	for i, c := range b {
		if begins && c >= 'a' && c <= 'z' {
			b[i] -= 'a' - 'A'
		}
		begins = c == '/' || c == '_' || c == '-'
	}
	return string(b)
}

// months are words for months, which only a place has.
var months = map[string]bool{"month": true, "months": true, "mo": true, "1month": true, "1 month": true}

// parseZoned reads a rate that may end with a zone. The rate of a zone has intervals of its clock.
func parseZoned(s string) (r Rate, zone string, err error) {
	head, zone, found := strings.Cut(s, "@")
	if !found {
		r, err = Parse(s)
		return r, "", err
	}
	zone = strings.TrimSpace(zone)
	if _, err := location(zone); err != nil {
		return Rate{}, "", fmt.Errorf("%q: %w", s, err)
	}
	count, unit, ok := split(head)
	isMonth := ok && months[strings.ToLower(unit)]
	if isMonth {
		head = count + "/d"
	}
	if r, err = Parse(head); err != nil {
		return Rate{}, "", err
	}
	if isMonth {
		return Rate{r.N, limit.Month}, zone, nil
	}
	if r.Per == limit.Month || limit.CheckZone(r.Per) != nil {
		return Rate{}, "", fmt.Errorf("%q: %q has no beginning by the clock of a place, expected d, w, month, or a part of "+
			"a day such as h or 6h", s, unit)
	}
	return r, zone, nil
}

// in writes a rate with its zone.
func (r Rate) in(zone string) string {
	if zone == "" {
		return r.String()
	}
	switch r.Per {
	case limit.Month:
		return fmt.Sprintf("%d/month@%s", r.N, zone)
	case 7 * 24 * time.Hour:
		return fmt.Sprintf("%d/w@%s", r.N, zone)
	}
	return r.String() + "@" + zone
}

// location returns the zone of the limit; nil: it has none.
func (l Limit) location() *time.Location {
	if l.Zone == "" {
		return nil
	}
	zone, err := location(l.Zone)
	if err != nil {
		return time.UTC // Limiter has the error
	}
	return zone
}

// ends returns when the n-th interval from the one on that t is in ends, of a limit with a zone. n
// is 0 or more. Intervals of less than a day are taken to be of one length.
func (l Limit) ends(t time.Time, n int64) time.Time {
	zone := l.location()
	_, end := limit.IntervalIn(zone, l.Per, t)
	if l.Per < 24*time.Hour || n > farAway {
		return end.Add(time.Duration(min(n, int64(100*365*24*time.Hour/l.Per))) * l.Per)
	}
	for range n {
		_, end = limit.IntervalIn(zone, l.Per, end)
	}
	return end
}

// farAway is a number of days for which nobody knows how clocks will be set.
const farAway = 5000

// touches returns how many intervals of a limit with a zone there are from one instant to another.
func (l Limit) touches(from, to time.Time) int64 {
	if l.Per < 24*time.Hour {
		_, end := limit.IntervalIn(l.location(), l.Per, from)
		return 1 + int64((to.Sub(end)+l.Per)/l.Per)
	}
	n := int64(1)
	for end := l.ends(from, 0); !end.After(to) && n < farAway; end = l.ends(end, 0) {
		n++
	}
	return n
}
