package rate

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Limit is a server's limit: a cost of at most N in any span of Per. Text is how the user wrote
// it.
type Limit struct {
	N    int64
	Per  time.Duration
	Text string
	// Unit is the unit of N. If zero, requests.
	Unit limit.Unit
	// Bucket means that the server has a bucket of size Burst, refilled evenly, N per Per.
	// Otherwise no span of Per holds more than N. That is also safe if the server's rule is not
	// known.
	Bucket bool
	// Counts says how the server counts without a Bucket, if that is known. A limit shared with
	// strangers can then use more.
	Counts limit.Counting
	// Burst is the size of the bucket. If zero, N.
	Burst int64
	// Produced means that the bucket is drawn on while the server produces answers. A request may
	// then cost more than the bucket holds.
	Produced bool
	// Alone means that a request may cost more than the bucket holds. It goes when the bucket is
	// full.
	Alone bool
	// Zone is the name of a place, as in the tz database. The server's windows are then those of its
	// clock: days from midnight to midnight, weeks from Monday on, months (limit.Month), or parts of
	// a day. If empty, no span of Per holds more than N.
	Zone string
	// EachModel means that each model has the limit for itself, as its provider documents.
	EachModel bool
	// Model is the model of this limit, with all names that share it. Limits without a Model then
	// do not apply to that model.
	Model string
}

// Fits reports whether a request of cost n can ever go, if it goes alone.
func (l Limit) Fits(n int64) bool { return n <= l.Most() || l.Produced || l.Alone }

// Most is the largest cost that may go at once from a standing start.
func (l Limit) Most() int64 {
	if l.Bucket && l.Burst > 0 {
		return l.Burst
	}
	return l.N
}

// Part is the limit as far as that part of it is used; 0: all. Its Text stays.
func (l Limit) Part(use float64) Limit {
	if use == 0 || use == 1 {
		return l
	}
	most := max(int64(float64(l.Most())*use*(1+1e-12)), 1)
	if l.Bucket {
		l.Burst, l.Per = most, time.Duration(float64(l.Per)/use)
		return l
	}
	l.N = most
	return l
}

// Speed is the long-run rate, in units a second.
func (l Limit) Speed() float64 { return float64(l.N) / l.Per.Seconds() }

// unsure is the part of a window that has to be over before the window counts while a run goes on.
const unsure = 0.02

// Within is the largest cost that may go within d from a standing start. While a run goes on, only
// whole windows count, and one that has just begun does not. A bucket has no windows. Those of a
// Zone have beginnings, so it matters when d begins.
func (l Limit) Within(from time.Time, d time.Duration, goesOn bool) float64 {
	if l.Zone != "" {
		return float64(l.N * l.touches(from, from.Add(d)))
	}
	windows := d.Seconds() / l.Per.Seconds()
	if goesOn && !l.Bucket {
		windows = math.Floor(max(windows-unsure, 0))
	}
	return float64(l.Most()) + float64(l.N)*windows
}

// Lasting returns a duration of so many seconds, at most the longest one, which is 292 years.
func Lasting(seconds float64) time.Duration {
	if ns := seconds * float64(time.Second); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}

// Takes is how long the limit alone needs from now on for the given cost, over so many keys, each
// with the limit for itself: at most 292 years. room is the present content of all keys' buckets.
func (l Limit) Takes(now time.Time, cost int64, keys int, room int64) time.Duration {
	n := float64(cost) / float64(keys)
	if l.Bucket {
		return Lasting(float64(max(cost-room, 0)) / float64(keys) / l.Speed())
	}
	windows := max(math.Ceil(n/float64(l.N))-1, 0)
	if windows*l.Per.Seconds() >= longest.Seconds() {
		return longest
	}
	if l.Zone != "" && windows > 0 {
		return l.ends(now, int64(windows)-1).Sub(now)
	}
	return time.Duration(windows) * l.Per
}

const longest = time.Duration(math.MaxInt64)

// Room is how much a limiter made from this limit lets go at the instant at.
func (l Limit) Room(made limit.Limiter, at mono.Time) int64 {
	return int64(sort.Search(int(l.Most()), func(n int) bool {
		var c limit.Cost
		c[l.Unit] = int64(n) + 1
		return made.Ready(at, c) > at
	}))
}

// Remembers is how far back a send can matter: a window, or twice the fill time of a bucket. A
// bucket needs it twice: all that is known of the beginning of its history is that it was not below
// empty.
func (l Limit) Remembers() time.Duration {
	if l.Zone != "" {
		if made, err := l.calendar(limit.Arrivals{}); err == nil {
			return limit.Span(made)
		}
	}
	if l.Bucket {
		return 2 * time.Duration(float64(l.Most())/l.Speed()*float64(time.Second))
	}
	return l.Per
}

// Limiter makes its limiter. An error begins with its Text.
func (l Limit) Limiter(a limit.Arrivals) (limit.Limiter, error) {
	var made limit.Limiter
	var err error
	if l.Zone != "" {
		made, err = l.calendar(a)
	} else if l.Produced {
		made, err = limit.NewProduced(limit.ProducedConfig{Limit: l.N, Window: l.Per, Burst: l.Burst, Unit: l.Unit})
	} else if l.Bucket {
		made, err = limit.NewBucket(limit.BucketConfig{Limit: l.N, Window: l.Per, Burst: l.Burst, Unit: l.Unit,
			Alone: l.Alone, Arrivals: a})
	} else {
		made, err = limit.NewRolling(limit.RollingConfig{Limit: l.N, Window: l.Per, Unit: l.Unit, Arrivals: a})
	}
	if err != nil {
		return nil, fmt.Errorf("limit %s: %w", l.Text, err)
	}
	return made, nil
}

// calendar makes the limiter of a limit with a zone.
func (l Limit) calendar(a limit.Arrivals) (*limit.Calendar, error) {
	if l.Bucket || l.Produced {
		return nil, fmt.Errorf("a bucket beside the zone %s: a bucket has no days", l.Zone)
	}
	zone, err := location(l.Zone)
	if err != nil {
		return nil, err
	}
	return limit.NewCalendar(limit.CalendarConfig{Limit: l.N, Window: l.Per, Unit: l.Unit, Zone: zone, Arrivals: a})
}

// Rule is the name of the limit in files that outlive a restart. It is the same for every way to
// write the limit, and differs from that of every other limit.
func (l Limit) Rule() string {
	r := limit.Rule{Unit: l.Unit, N: l.N, Per: l.Per}.String()
	if l.Bucket {
		r += fmt.Sprintf(", a bucket of %d", l.Most())
	}
	if l.Zone != "" {
		r += ", by the clock of " + l.Zone
	}
	return r
}

// ParseLimit reads a limit of requests, in the forms of Parse. A zone may follow, as in ZoneForm.
// Its Text can be typed on a command line without quotes.
func ParseLimit(s string) (Limit, error) {
	r, zone, err := parseZoned(s)
	if err != nil {
		return Limit{}, err
	}
	text := s
	if strings.Contains(s, " ") || !strings.Contains(s, "/") || zone != "" {
		text = r.in(zone)
	}
	return Limit{N: r.N, Per: r.Per, Zone: zone, Text: text}, nil
}
