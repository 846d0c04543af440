package run

import (
	"fmt"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

const (
	// manyDenials in a row are the key's fault, as in package dispatch.
	manyDenials = 3
	// deniedFirst is how long a run goes on if every request is denied from the beginning. deniedLater is how long it does if something was
	// served: forbidden requests may lie together in the input, and then look the same.
	deniedFirst, deniedLater = time.Minute, time.Hour
)

// denials notes since when the server denies every request. Safe for concurrent use.
type denials struct {
	mu     sync.Mutex
	since  time.Time // zero: the last answer that tells was no denial
	served bool      // some request was served
}

// heard takes in an answer.
func (d *denials) heard(now time.Time, ans *pool.Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case ans.Result == limit.Accepted:
		d.since, d.served = time.Time{}, true
	case ans.Denied && d.since.IsZero():
		d.since = now
	}
}

func (d *denials) last() (since time.Time, served bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.since, d.served
}

// deniedItself says whether a denial is the request's own fault: if there is no key and other requests were served, or if the request is
// a dead letter for that already.
func (r *Run) deniedItself(j *job) bool {
	_, served := r.denials.last()
	return r.c.keyless && served || r.tally.wasRefused(j.r.ID)
}

// giveUp ends a run whose requests were all denied for so long that there is no sense in going on. What is left waits for another run.
func (r *Run) giveUp(keys []pool.KeyInfo, reason string) {
	left, last := 0, ""
	for _, k := range keys {
		if k.State == pool.KeyBanned {
			continue
		}
		if k.Denials < manyDenials {
			return
		}
		left, last = left+1, k.Name
	}
	since, served := r.denials.last()
	patience := deniedFirst
	if served {
		patience = deniedLater
	}
	if d := r.c.MaxOutage; d != 0 {
		patience = max(d, 0)
	}
	lasts := time.Since(since)
	if left == 0 || since.IsZero() || lasts < patience {
		return
	}
	who := fmt.Sprintf("key %s denies all", last)
	switch {
	case r.c.keyless:
		who = "the server denies all"
	case left > 1:
		who = fmt.Sprintf("all keys (%d) deny all", left)
	}
	err := exhausted(fmt.Sprintf("%s for %v: %s", who, lasts.Round(time.Second), reason))
	if r.course.first(&r.course.wrong, err) {
		r.Drain()
	}
}

// exhausted is a pool.ErrExhausted with a text of its own.
type exhausted string

func (e exhausted) Error() string { return string(e) }
func (e exhausted) Unwrap() error { return pool.ErrExhausted }
