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

// Limit is what a server allows: a cost of at most N in any span of Per. Text is how the user wrote it.
type Limit struct {
	N    int64
	Per  time.Duration
	Text string
	// Unit is what is counted. If zero, requests.
	Unit limit.Unit
	// Bucket says that the server has a bucket that holds Burst and is refilled evenly, N per Per. Otherwise no span of Per holds more
	// than N, which is also right if the server's rule is not known.
	Bucket bool
	// Counts says how the server counts what is in no Bucket, if that is known: who shares the limit with strangers can use more.
	Counts limit.Counting
	// Burst is what the bucket holds. If zero, N.
	Burst int64
	// Produced says that the bucket is drawn on while answers are produced. A request may then cost more than the bucket holds.
	Produced bool
	// Alone says that a request may cost more than the bucket holds. It goes when the bucket is full.
	Alone bool
	// EachModel says that each model has the limit for itself, if the provider documents that.
	EachModel bool
	// Model is the model whose limit this is, with all names that share its limits. Limits without a Model do not apply to it then.
	Model string
}

// Fits tells whether a request that costs n can go at all, if it goes alone.
func (l Limit) Fits(n int64) bool { return n <= l.Most() || l.Produced || l.Alone }

// Most is how much may go at once from a standing start.
func (l Limit) Most() int64 {
	if l.Bucket && l.Burst > 0 {
		return l.Burst
	}
	return l.N
}

// Speed is how much a second it comes to in the long run.
func (l Limit) Speed() float64 { return float64(l.N) / l.Per.Seconds() }

// Within is the most that may go within d from a standing start. While a run goes on, only whole windows count, and one
// that has just begun does not. A bucket has no windows.
func (l Limit) Within(d time.Duration, goesOn bool) float64 {
	windows := d.Seconds() / l.Per.Seconds()
	if goesOn && !l.Bucket {
		windows = math.Floor(max(windows-0.02, 0))
	}
	return float64(l.Most()) + float64(l.N)*windows
}

// Takes is how long the limit alone takes to let the given cost go, over so many keys, each of which has the limit for itself.
// Room is what the buckets of all keys hold now.
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

// Remembers is how far back a send can matter: a window, or twice the time that a bucket takes to fill. A bucket needs it twice
// since at the beginning of its history nothing is known but that it was not below empty.
func (l Limit) Remembers() time.Duration {
	if l.Bucket {
		return 2 * time.Duration(float64(l.Most())/l.Speed()*float64(time.Second))
	}
	return l.Per
}

// Limiter makes the limiter of it. An error begins with its Text.
func (l Limit) Limiter(a limit.Arrivals) (limit.Limiter, error) {
	var made limit.Limiter
	var err error
	if l.Produced {
		made, err = limit.NewProduced(limit.ProducedConfig{Limit: l.N, Window: l.Per, Burst: l.Burst, Unit: l.Unit})
	} else if l.Bucket {
		made, err = limit.NewBucket(limit.BucketConfig{Limit: l.N, Window: l.Per, Burst: l.Burst, Unit: l.Unit, Alone: l.Alone, Arrivals: a})
	} else {
		made, err = limit.NewRolling(limit.RollingConfig{Limit: l.N, Window: l.Per, Unit: l.Unit, Arrivals: a})
	}
	if err != nil {
		return nil, fmt.Errorf("limit %s: %w", l.Text, err)
	}
	return made, nil
}

// Rule names the limit where it is kept over restarts: the same limit has the same name however the user wrote it, and no other limit has
// that name.
func (l Limit) Rule() string {
	r := limit.Rate{Unit: l.Unit, N: l.N, Per: l.Per}.String()
	if l.Bucket {
		r += fmt.Sprintf(", a bucket of %d", l.Most())
	}
	return r
}

// ParseLimit reads a limit of requests as people write it, as Parse does. Its Text can be typed on a command line without quotes.
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
