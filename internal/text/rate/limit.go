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

// Speed is the long-run rate, in units a second.
func (l Limit) Speed() float64 { return float64(l.N) / l.Per.Seconds() }

// Within is the largest cost that may go within d from a standing start. While a run goes on, only
// whole windows count, and one that has just begun does not. A bucket has no windows.
func (l Limit) Within(d time.Duration, goesOn bool) float64 {
	windows := d.Seconds() / l.Per.Seconds()
	if goesOn && !l.Bucket {
		windows = math.Floor(max(windows-0.02, 0))
	}
	return float64(l.Most()) + float64(l.N)*windows
}

// Takes is how long the limit alone needs for the given cost, over so many keys, each with the
// limit for itself. room is the present content of all keys' buckets.
func (l Limit) Takes(cost int64, keys int, room int64) time.Duration {
	n := float64(cost) / float64(keys)
	if l.Bucket {
		return time.Duration(float64(max(cost-room, 0)) / float64(keys) / l.Speed() * float64(time.Second))
	}
	return time.Duration(max(math.Ceil(n/float64(l.N))-1, 0)) * l.Per
}

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
	if l.Bucket {
		return 2 * time.Duration(float64(l.Most())/l.Speed()*float64(time.Second))
	}
	return l.Per
}

// Limiter makes its limiter. An error begins with its Text.
func (l Limit) Limiter(a limit.Arrivals) (limit.Limiter, error) {
	var made limit.Limiter
	var err error
	if l.Produced {
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

// Rule is the name of the limit in files that outlive a restart. It is the same for every way to
// write the limit, and differs from that of every other limit.
func (l Limit) Rule() string {
	r := limit.Rate{Unit: l.Unit, N: l.N, Per: l.Per}.String()
	if l.Bucket {
		r += fmt.Sprintf(", a bucket of %d", l.Most())
	}
	return r
}

// ParseLimit reads a limit of requests, in the forms of Parse. Its Text can be typed on a command
// line without quotes.
func ParseLimit(s string) (Limit, error) {
	r, err := Parse(s)
	if err != nil {
		return Limit{}, err
	}
	text := s
	if strings.Contains(s, " ") || !strings.Contains(s, "/") {
		text = r.String()
	}
	return Limit{N: r.N, Per: r.Per, Text: text}, nil
}
