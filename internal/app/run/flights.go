package run

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/core/ceiling"
	"github.com/paceline-go/paceline/internal/text/rate"
)

const (
	// AtFirst is how many attempts may be in flight before it is known how long answers take.
	AtFirst = 64
	// mostInFlight bounds the memory: the buffers and goroutines of an attempt take up to 64 KiB, and 256 MiB
	// hold so many. Bodies of answers have a bound of their own.
	mostInFlight = 256 << 20 / (64 << 10)
)

// mostEver is how many attempts may be in flight at most, whatever a user wants while the run goes on.
func (c *Config) mostEver() int {
	free := *c
	free.Concurrency, free.MostInFlight, free.Backlog, free.Limits = 0, 0, nil, []format.Rate{{}}
	own, _ := free.bounds()
	return max(own.Most, c.inFlight.Most)
}

// bounds returns the bounds of the attempts in flight, and what the larger one is for.
func (c *Config) bounds() (bounds ceiling.InFlight, for_ string) {
	if c.Concurrency > 0 {
		return ceiling.InFlight{Least: c.Concurrency, Most: c.Concurrency}, "that --concurrency allows"
	}
	most, for_ := mostInFlight, "that is kept in memory; --concurrency allows more"
	each := 1
	if c.OutDir != "" {
		each = 2 // the connection, and the file of the answer
	}
	if files, known := sending.OpenFiles(); known && files/each < most {
		most, for_ = max(files/each, 1), "for which this process may open files (ulimit -n)"
	}
	if most > AtFirst && (len(c.Limits)+len(c.Servers) == 0 || c.Backlog != nil) {
		// Without a limit, no rate is to be reached. Other workers of a backlog are there for what is slow.
		most, for_ = AtFirst, "unless --concurrency allows more"
	}
	if c.MostInFlight > 0 && c.MostInFlight <= most {
		most, for_ = c.MostInFlight, "that the server's limits allow"
	}
	return ceiling.InFlight{Least: min(AtFirst, most), Most: most}, for_
}

// flights bounds the attempts in flight. Its methods are safe for concurrent use, except follow.
type flights struct {
	bounds ceiling.InFlight
	why    string // why there are no more than bounds.Most, as the end of "is the most"
	bound  atomic.Int64
	fixed  atomic.Int64  // a user's own bound, in place of one that follows the answers; 0: none
	slots  chan struct{} // for several groups, one for each attempt in flight; nil: the Pool of the one group counts
	mu     sync.Mutex    // over held
	held   int           // how many slots are not for attempts
	bans   []atomic.Bool // whether each key is banned, for all groups
}

func newFlights(c *Config, groups int) *flights {
	bounds, keys := c.inFlight, len(c.Keys)
	f := &flights{bounds: bounds, why: c.inFlightFor, bans: make([]atomic.Bool, keys)}
	f.bound.Store(int64(bounds.Least))
	if groups > 1 {
		f.slots = make(chan struct{}, c.mostEver())
		f.hold()
	}
	return f
}

// most is how many attempts may be in flight now.
func (f *flights) most() int {
	if n := f.fixed.Load(); n > 0 {
		return int(n)
	}
	return int(f.bound.Load())
}

// reason says why no more than n are in flight.
func (f *flights) reason(n int) string {
	switch {
	case f.fixed.Load() > 0:
		return fmt.Sprintf("answers: %d in flight is the most that paceline ctl allows", n)
	case f.most() < f.bounds.Most:
		return fmt.Sprintf("answers: no more than %d in flight are needed so far", n)
	}
	return fmt.Sprintf("answers: %d in flight is the most %s", n, f.why)
}

// hold fills the slots that are not for attempts, as far as these have left them. It is called again for the rest.
func (f *flights) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.slots != nil {
		switch beyond := cap(f.slots) - f.most(); {
		case f.held > beyond:
			<-f.slots
			f.held--
		case f.held == beyond:
			return
		default:
			select {
			case f.slots <- struct{}{}:
				f.held++
			default:
				return
			}
		}
	}
}

// takeOff waits until one more attempt may be in flight, over all groups. The caller must call land
// when the attempt has ended. ok is false if the attempt may no longer go.
func (f *flights) takeOff(ctx context.Context, key int) (land func(), ok bool) {
	if f.slots == nil {
		return func() {}, true
	}
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	if f.bans[key].Load() { // the key may have been banned during the wait
		<-f.slots
		return nil, false
	}
	return func() { <-f.slots }, true
}

// follow lets as many attempts be in flight as the limits and the latest answers need. Only watch calls it.
func (r *Run) follow() {
	f := r.flights
	if f.bounds.Least == f.bounds.Most || f.fixed.Load() > 0 {
		f.hold()
		return
	}
	was := f.most()
	perSecond, answer := r.gauge.needs()
	f.bound.Store(int64(f.bounds.Follow(int(f.bound.Load()), perSecond, answer)))
	f.hold()
	if f.most() != was {
		r.flies()
	}
}

// flies tells the groups how many attempts may be in flight.
func (r *Run) flies() {
	bound := r.flights.most()
	r.course.ahead(len(r.groups)*r.c.Queue, len(r.groups)*bound)
	for _, g := range r.groups {
		g.pool.SetInFlight(bound)
	}
}

// needs returns how many requests per second the limits allow, infinite if there are none, and how long the latest
// answers took.
func (s *gauge) needs() (perSecond float64, answer time.Duration) {
	s.tally.Mu.Lock()
	defer s.tally.Mu.Unlock()
	perSecond = s.allowed(0, true) / s.tally.CostOfOne()
	if len(s.c.Servers) > 0 {
		perSecond = rate.SpeedAtServers(s.costOf(1000), s.c.Servers)
	}
	return perSecond, rate.Lasting(s.tally.Took.Seconds())
}
