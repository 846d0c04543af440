package batch

import (
	"fmt"
	"sync"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
)

const (
	// manyDenials in a row are the key's fault, as dispatch has it.
	manyDenials = 3
	// deniedFirst is how long a run goes on in which all is denied from the beginning, deniedLater one in which something was served:
	// what lies together and is forbidden looks alike.
	deniedFirst, deniedLater = time.Minute, time.Hour
)

// denials is since when the keys of a run deny all. Safe for concurrent use.
type denials struct {
	mu     sync.Mutex
	since  time.Time // zero: they do not
	served bool      // something ever
}

// heard takes in an answer.
func (d *denials) heard(now time.Time, ans *dispatch.Answer) {
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

// deniedItself has a denial be the request's own fault where nobody else can be: there is no key, and others were served, or it is a
// dead letter of that already.
func (r *Run) deniedItself(j *job) bool {
	_, served := r.denials.last()
	return r.c.keyless && served || r.tally.wasRefused(j.r.ID)
}

// giveUp ends a run whose keys do nothing but deny, for so long that nobody needs to wait for more: what is left waits for another.
func (r *Run) giveUp(keys []dispatch.KeyInfo, reason string) {
	left, last := 0, ""
	for _, k := range keys {
		if k.State == dispatch.Banned {
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

// exhausted is a dispatch.ErrExhausted that says it for itself.
type exhausted string

func (e exhausted) Error() string { return string(e) }
func (e exhausted) Unwrap() error { return dispatch.ErrExhausted }
