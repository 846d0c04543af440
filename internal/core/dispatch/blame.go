package dispatch

import (
	"time"

	"github.com/paceline-go/paceline/internal/core/keyring"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

const (
	// After manyRefusals refusals in a row, the key or the server is to blame, and not the request.
	manyRefusals = 2
	// A request may have manyReturns attempts that are not counted. Later ones are counted.
	manyReturns = 100
	// A request whose key is to blame goes to another key at once, but only manyAgain times.
	manyAgain = 5
	// Dispatcher.denied may grow to fewDenied requests, or twice as many as have not ended. Most of them have
	// then expired, or were killed, of which there is no notice here. All are forgotten, and the others begin anew.
	fewDenied = 64

	// longestProbing is the longest time for which a request that all keys denied lets others go
	// first.
	longestProbing = time.Hour
)

// isToBlame reports whether the key or the server is at fault, and not the request. That is so if
// the key has refused twice in a row, denies a request that no other key has denied, or denies
// everything.
func (d *Dispatcher) isToBlame(now mono.Time, a *Attempt, ans *Answer) bool {
	k := &d.keys[a.Key]
	switch {
	case ans.Result == limit.Accepted && d.ring.Outdated(keyring.Key(a.Key), a.At):
	case ans.Result == limit.Accepted:
		before := d.denied[a.Ticket]
		d.ring.Served(keyring.Key(a.Key), &before)
	case ans.Misordered && !ans.Invalid && k.nonce != nil:
		// The request goes again with a new nonce. If no request with a later nonce was sent
		// meanwhile, the refused nonce was in order.
		if k.nonce.Last() == a.Nonce {
			if pause := d.ring.Misordered(keyring.Key(a.Key)); pause > 0 {
				d.Hold(now, a.Key, now.Add(pause))
			}
		}
		return d.queue.Info(a.Ticket).Returned < manyReturns
	case ans.Banned || ans.Returned:
	case ans.Invalid && ans.Denied && d.isDenied(now, a):
		return true
	case ans.Invalid:
	case ans.Result == limit.Limited:
		return k.pauses && d.refusals(a, ans) >= manyRefusals && d.queue.Info(a.Ticket).Returned < manyReturns
	}
	if len(d.denied) > 0 && d.lives(a) && (ans.Result == limit.Accepted || ans.Invalid) {
		delete(d.denied, a.Ticket)
	}
	return false
}

// isDenied handles a denial, and reports whether the request goes on.
func (d *Dispatcher) isDenied(now mono.Time, a *Attempt) bool {
	if !d.lives(a) || d.queue.Info(a.Ticket).Returned >= manyReturns {
		return false
	}
	record := d.denied[a.Ticket]
	again, pause := d.ring.Denied(now, keyring.Key(a.Key), a.At, &record)
	d.staysAway(now, a.Key, pause)
	if again {
		if waiting, inFlight := d.queue.Open(); len(d.denied) >= max(fewDenied, 2*(waiting+inFlight)) {
			clear(d.denied)
		}
		d.denied[a.Ticket] = record
	}
	return again
}

// staysAway keeps a key away that denies, if pause is not 0. One request goes alone after it.
func (d *Dispatcher) staysAway(now mono.Time, key int, pause time.Duration) {
	if pause > 0 {
		d.keys[key].stack.Begin(now)
		d.Hold(now, key, now.Add(pause))
	}
}

// culprit is whom the end of an attempt speaks of, beside its request.
type culprit uint8

const (
	nobody  culprit = iota
	theKey          // or the server: the attempt does not count
	theBan          // of the key: the request was its test, and does not count
	thatBan         // the same, and the request went before the ban was known: it need not wait for longer than others
)

// blames decides who is at fault. refused means that limits had refused the key last.
func (d *Dispatcher) blames(now mono.Time, a *Attempt, ans *Answer, refused bool) culprit {
	if ans.Denied && !ans.Banned && !ans.Returned {
		pause, ban := d.ring.Banned(now, keyring.Key(a.Key), a.At, refused)
		d.staysAway(now, a.Key, pause)
		switch {
		case !ban || d.queue.Info(a.Ticket).Returned >= manyReturns:
		case pause == 0:
			return thatBan
		default:
			return theBan
		}
	}
	if d.isToBlame(now, a, ans) {
		return theKey
	}
	return nobody
}

// mayAnother reports whether a request may go again at once if its key is to blame. It may if that
// key stays away and another key serves, but only manyAgain times. Its wait for the other key could
// be longer than the first key's pause.
func (d *Dispatcher) mayAnother(now mono.Time, a *Attempt) bool {
	if _, away := d.keys[a.Key].paused(now); !away || d.queue.Info(a.Ticket).Returned >= manyAgain {
		return false
	}
	for i := range d.keys {
		k := &d.keys[i]
		if _, away := k.paused(now); i != a.Key && !away && k.stack.Refusals() == 0 && d.ring.Trusted(keyring.Key(i)) {
			return true
		}
	}
	return false
}

// othersFirst returns how long a denied request waits while its key denies everything. Meanwhile
// requests without a denial try the key, since they are better evidence. Otherwise only requests at
// fault might try it.
func (d *Dispatcher) othersFirst(a *Attempt) time.Duration {
	pause := d.ring.Away(keyring.Key(a.Key))
	if pause == 0 || d.queue.Counts().Waiting < len(d.denied) {
		return 0
	}
	wait := backoff.Policy{Base: 16 * pause, Max: longestProbing, Jitter: -1}
	return wait.Delay(d.queue.Info(a.Ticket).Returned+1, nil)
}
