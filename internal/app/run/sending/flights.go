package sending

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/core/ceiling"
)

// Flights bounds the attempts in flight. Its methods are safe for concurrent use, except Follow.
type Flights struct {
	bounds ceiling.InFlight
	why    string // why there are no more than bounds.Most, as the end of "is the most"
	bound  atomic.Int64
	fixed  atomic.Int64  // a user's own bound, in place of one that follows the answers; 0: none
	slots  chan struct{} // for several groups, one for each attempt in flight; nil: the Pool of the one group counts
	mu     sync.Mutex    // over held
	held   int           // how many slots are not for attempts
	bans   []atomic.Bool // whether each key is banned, for all groups
}

// NewFlights returns the bound of the attempts in flight with keys keys. why is why there are no more than bounds.Most,
// as the end of "is the most". ever is how many there may be at most, whatever a user wants, over several Pools; 0: the
// one Pool counts by itself.
func NewFlights(bounds ceiling.InFlight, why string, keys, ever int) *Flights {
	f := &Flights{bounds: bounds, why: why, bans: make([]atomic.Bool, keys)}
	f.bound.Store(int64(bounds.Least))
	if ever > 0 {
		f.slots = make(chan struct{}, ever)
		f.hold()
	}
	return f
}

// Most is how many attempts may be in flight now.
func (f *Flights) Most() int {
	if n := f.fixed.Load(); n > 0 {
		return int(n)
	}
	return int(f.bound.Load())
}

// Reason says why no more than n are in flight.
func (f *Flights) Reason(n int) string {
	switch {
	case f.fixed.Load() > 0:
		return fmt.Sprintf("answers: %d in flight is the most that paceline ctl allows", n)
	case f.Most() < f.bounds.Most:
		return fmt.Sprintf("answers: no more than %d in flight are needed so far", n)
	}
	return fmt.Sprintf("answers: %d in flight is the most %s", n, f.why)
}

// Fix bounds the attempts in flight by a user's number; 0: by the answers.
func (f *Flights) Fix(n int) {
	f.fixed.Store(int64(n))
	f.hold()
}

// Ban lets no attempt with a key take off any more.
func (f *Flights) Ban(key int) { f.bans[key].Store(true) }

// Follow lets as many attempts be in flight as needs asks for. It reports whether that is another number. One goroutine
// calls it.
func (f *Flights) Follow(needs func() (perSecond float64, answer time.Duration)) (changed bool) {
	if f.bounds.Least != f.bounds.Most && f.fixed.Load() == 0 {
		perSecond, answer := needs()
		was := f.bound.Load()
		f.bound.Store(int64(f.bounds.Follow(int(was), perSecond, answer)))
		changed = f.bound.Load() != was
	}
	f.hold()
	return changed
}

// hold fills the slots that are not for attempts, as far as these have left them. It is called again for the rest.
func (f *Flights) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.slots != nil {
		switch beyond := cap(f.slots) - f.Most(); {
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

// TakeOff waits until one more attempt may be in flight, over all groups. The caller must call land
// when the attempt has ended. ok is false if the attempt may no longer go.
func (f *Flights) TakeOff(ctx context.Context, key int) (land func(), ok bool) {
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
