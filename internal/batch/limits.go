package batch

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/quota"
)

// Rate is a limit: N of cost in any span of Per. Text is how it was written.
type Rate struct {
	N    int64
	Per  time.Duration
	Text string
	// Unit is what is counted. If zero, requests.
	Unit limit.Unit
	// Bucket: the server has a bucket that holds Burst and is refilled N per Per, evenly. Otherwise no span of Per holds
	// more than N, which is also right where the server's rule is not known.
	Bucket bool
	// Burst is what the bucket holds. If zero, N.
	Burst int64
	// Produced: the bucket is drawn on as answers are produced, and a request may come to more than it holds.
	Produced bool
	// Alone: a request may come to more than the bucket holds. It goes when that is full.
	Alone bool
	// EachModel: each model has it for itself, where the provider documents that its limits are of each model.
	EachModel bool
	// Model is the one whose limit it is, and of the names that share limits with it; those of no model are not its then.
	Model string
}

// PerSecond is the share of a second of a limit per minute, as quota.Policy has it.
func (l Rate) PerSecond() (Rate, bool) {
	p, ok := quota.Policy{Rule: quota.Bucket, Limit: l.N, Window: l.Per}.PerSecond()
	return Rate{N: p.Limit, Per: p.Window, Unit: l.Unit, Bucket: true, Alone: p.Alone, EachModel: l.EachModel, Model: l.Model, Text: fmt.Sprintf("%d/s %v", p.Limit, l.Unit)}, ok && l.Bucket && !l.Produced
}

// fits tells whether a request of n fits, if it is alone.
func (l Rate) fits(n int64) bool { return n <= l.most() || l.Produced || l.Alone }

// most is what may go at once.
func (l Rate) most() int64 {
	if l.Bucket && l.Burst > 0 {
		return l.Burst
	}
	return l.N
}

func (l Rate) perSecond() float64 { return float64(l.N) / l.Per.Seconds() }

// within is the most that may go within d from a standing start. While a run goes on only whole windows count, and one
// that has just begun does not; a bucket has no windows.
func (l Rate) within(d time.Duration, goesOn bool) float64 {
	windows := d.Seconds() / l.Per.Seconds()
	if goesOn && !l.Bucket {
		windows = math.Floor(max(windows-0.02, 0))
	}
	return float64(l.most()) + float64(l.N)*windows
}

// takes is how long the limit alone takes to let cost go, to keys that have it for themselves each, and room in their
// buckets now, all together.
func (l Rate) takes(cost int64, keys int, room int64) time.Duration {
	n := float64(cost) / float64(keys)
	if l.Bucket {
		return time.Duration(float64(max(cost-room, 0)) / float64(keys) / l.perSecond() * float64(time.Second))
	}
	return time.Duration(max(math.Ceil(n/float64(l.N))-1, 0)) * l.Per
}

// room is the most that may go at at.
func (l Rate) room(made limit.Limiter, at mono.Time) int64 {
	return int64(sort.Search(int(l.most()), func(n int) bool {
		var c limit.Cost
		c[l.Unit] = int64(n) + 1
		return made.Ready(at, c) > at
	}))
}

// remembers is how far back a send can matter: a window; for a bucket twice the time it takes to fill, since after one of
// them without its history nothing is known of it but that it was not below empty.
func (l Rate) remembers() time.Duration {
	if l.Bucket {
		return 2 * time.Duration(float64(l.most())/l.perSecond()*float64(time.Second))
	}
	return l.Per
}

func (l Rate) limiter(a limit.Arrivals) (limit.Limiter, error) {
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
