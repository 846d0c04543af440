package run

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/telling"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

const (
	// deniedFirst bounds a run that is denied every request from the beginning. deniedLater bounds
	// one that was served before. It is longer since forbidden requests may lie together in the
	// input, and then look the same.
	deniedFirst, deniedLater = time.Minute, time.Hour
)

// denials keeps since when the server denies every request. Safe for concurrent use.
type denials struct {
	c       *Config
	teller  *telling.Teller
	course  *course
	epoch   time.Time
	trouble atomic.Int64 // until when refusals are evaluated, since the epoch: see troubled

	mu     sync.Mutex
	since  time.Time // zero: the last answer with evidence was no denial
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

// deniedItself reports whether a denial is the request's own fault. It is if there is no key and
// other requests were served, or if the request is already a dead letter for a denial.
func (r *judge) deniedItself(j *job) bool {
	_, served := r.denials.last()
	return r.c.keyless && served || r.tally.WasRefused(j.r.ID)
}

// isForAll reports whether the account without credit, or the key out of use, of which an answer speaks, is that of
// all requests. Where the run knows no key, it is if the requests carry a credential and go to one host. Otherwise the
// answer is about one page or one host, and others may be served.
func (r *judge) isForAll(j *job) bool {
	if !r.c.keyless {
		return true
	}
	private := slices.ContainsFunc(r.c.Header, func(t format.Template) bool { return secret.PrivateField(t.Name()) }) ||
		slices.ContainsFunc(r.c.Query, func(t format.Template) bool { return secret.PrivateParameter(t.Name(), "") })
	for name := range j.r.Header {
		private = private || secret.PrivateField(name)
	}
	return private && r.hosts.count() == 1
}

// excluded judges an answer that says that the key's limit for the model is 0. It is as if there was
// no such model. Where there are several keys, another may have one.
func (c *Config) excluded(j *job, ans *pool.Answer) {
	ans.Outcome = limit.Outcome{Result: limit.Failed, Link: ans.Link, ArrivedAgo: ans.ArrivedAgo, RTT: ans.RTT}
	ans.Invalid, ans.Returned = true, false
	ans.Denied = len(c.Keys) > 1 || j.r.Estimate.Model == ""
	j.noModel = !ans.Denied
}

// giveUp ends a run whose requests were all denied for too long. The rest waits for another run.
func (d *denials) giveUp(keys []pool.KeyInfo, reason string) {
	left, last := 0, ""
	for _, k := range keys {
		if k.Banned() {
			continue
		}
		if k.Denials < telling.ManyDenials {
			return
		}
		left, last = left+1, k.Name
	}
	since, served := d.last()
	patience := deniedFirst
	if served {
		patience = deniedLater
	}
	if most := d.c.MaxOutage; most != 0 {
		patience = max(most, 0)
	}
	lasts := time.Since(since)
	if left == 0 || since.IsZero() || lasts < patience {
		return
	}
	who := fmt.Sprintf("key %s denies all", last)
	switch {
	case d.c.keyless:
		who = "the server denies all"
	case left > 1:
		who = fmt.Sprintf("all keys (%d) deny all", left)
	}
	d.course.goesWrong(exhausted(fmt.Sprintf("%s for %v: %s", who, lasts.Round(time.Second), reason)))
}

// exhausted is a pool.ErrExhausted with a text of its own.
type exhausted string

func (e exhausted) Error() string { return string(e) }
func (e exhausted) Unwrap() error { return pool.ErrExhausted }

// troubled is how long after a refusal tell still evaluates refusals.
const troubled = time.Minute

// tell reports what the refusals so far prove: an option of the user is wrong, or a key gets
// nothing but refusals.
func (d *denials) tell(of *pool.Pool, key int, ans *pool.Answer) {
	now := time.Since(d.epoch)
	if ans.Result == limit.Limited || ans.Misordered || ans.Denied {
		d.trouble.Store(int64(now + troubled))
	} else if int64(now) > d.trouble.Load() {
		return
	}
	keys := of.Keys()
	if ans.Denied {
		d.giveUp(keys, ans.Reason)
	}
	for i, k := range keys {
		reason := ""
		if i == key {
			reason = ans.Reason
		}
		d.teller.TellRow(&k, reason)
		for _, retreat := range k.Retreats {
			at := d.epoch.Add(time.Duration(retreat.Until))
			if d.teller.IsNews(retreat.Option+retreat.Limit+k.Name, at, 0) {
				d.teller.Tell(d.c.retreatText(k.Name, &retreat, at.Format("15:04:05")))
			}
		}
	}
}

// retreatText says that a promise of the user proved wrong, what follows until then, and what to change.
func (c *Config) retreatText(key string, of *limit.Retreat, until string) string {
	whose := " of key " + key
	if c.keyless {
		whose = ""
	}
	if of.Option == "Gap" {
		return fmt.Sprintf("--nonce-gap %v is too short: a request%s overtook the one before it, and a nonce was refused. "+
			"Until %s one request%s is in flight at a time; expected a longer --nonce-gap, or none", c.Gap, whose, until, whose)
	}
	return fmt.Sprintf("--latency-max %v is too short: requests%s were refused that keep to it and to the limit. "+
		"Until %s the limit counts without it; expected a longer --latency-max, or none", c.Arrivals.OneWayMax, whose, until)
}

// outOfUse are the names of the keys that the server refused for good.
func (r *Run) outOfUse() (names []string) {
	if r.c.keyless {
		return nil
	}
	for _, k := range r.groups[0].pool.Keys() {
		if k.Banned() {
			names = append(names, k.Name)
		}
	}
	return names
}
