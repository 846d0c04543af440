package dispatch

import (
	"time"

	"github.com/paceline-go/paceline/backoff"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

const (
	manyRefusals = 2   // in a row are the key's or the server's fault, not the request's
	manyReturns  = 100 // of one request without a count: then it is counted all the same
	manyDenials  = 3   // of different requests, in a row
	manyAgain    = 5   // of one request by one key: no other was there to ask
	fewDenied    = 64  // requests that are kept in mind whether they live or not
)

// blame finds out who is at fault for how an attempt ended.
type blame struct {
	denied map[queue.Ticket]denial
	most   int // of denied, until those that have ended otherwise are forgotten
}

// denial is the key that denied a request, and how often, until another does.
type denial struct{ key, times int }

// isToBlame tells whether not a request, but its key or its server, is at fault: a key that has refused twice in a row, or one that
// denies what no other key has denied.
func (d *Dispatcher) isToBlame(now mono.Time, a *Attempt, ans *Answer) bool {
	k := &d.keys[a.Key]
	switch {
	case ans.Result == limit.Accepted:
		k.denials, k.misnumbered = 0, 0
	case ans.Misordered && !ans.Invalid && k.nonce != nil:
		d.misorders(now, a)
		return d.queue.Info(a.Ticket).Returned < manyReturns
	case ans.Banned || ans.Returned:
	case ans.Invalid:
		if ans.Denied && d.isDenied(now, a) {
			return true
		}
	case ans.Result == limit.Limited:
		return k.pauses && k.guard.Refusals() >= manyRefusals && d.queue.Info(a.Ticket).Returned < manyReturns
	}
	if len(d.blame.denied) > 0 && d.lives(a) && (ans.Result == limit.Accepted || ans.Invalid) {
		delete(d.blame.denied, a.Ticket)
	}
	return false
}

// mayAnother tells whether a request for which its key is to blame may go at once: that key stays away, and another serves. Not
// without end, in case that the others let it wait for longer than the pauses last.
func (d *Dispatcher) mayAnother(now mono.Time, a *Attempt) bool {
	if _, away := d.keys[a.Key].guard.Paused(now); !away || d.queue.Info(a.Ticket).Returned >= manyAgain {
		return false
	}
	for i := range d.keys {
		k := &d.keys[i]
		if _, away := k.guard.Paused(now); i != a.Key && !away && !k.isBanned && k.guard.Refusals() == 0 && k.denials < manyDenials {
			return true
		}
	}
	return false
}

// misorders takes in that a key refuses a nonce: the request goes again with another. Where nothing was sent later than that, it was
// in order, and after the third in a row the next may take a while.
func (d *Dispatcher) misorders(now mono.Time, a *Attempt) {
	k := &d.keys[a.Key]
	if k.nonce.Last() != a.Nonce {
		return
	}
	if k.misnumbered++; k.misnumbered >= manyDenials {
		d.stayAway(now, a.Key, k.misnumbered)
	}
}

// stayAway holds a key after so many in a row.
func (d *Dispatcher) stayAway(now mono.Time, key, row int) {
	pause := backoff.Policy{Base: time.Second, Max: longestPause, Jitter: -1}
	d.Hold(now, key, now.Add(pause.Delay(row-manyDenials+1, nil)))
}

// isDenied takes in that a key denies a request, and tells whether another may be asked.
func (d *Dispatcher) isDenied(now mono.Time, a *Attempt) bool {
	k := &d.keys[a.Key]
	before, again := d.blame.denied[a.Ticket]
	switch {
	case !d.lives(a):
		return false
	case again && (before.key != a.Key || before.times == manyAgain): // it is the request
		k.denials, d.keys[before.key].denials = 0, 0
		return false
	case d.alive < 2 || k.isBanned:
		return false
	}
	d.forget()
	d.blame.denied[a.Ticket] = denial{a.Key, before.times + 1}
	if again {
		return true // no news
	}
	if k.denials++; k.denials >= manyDenials {
		d.stayAway(now, a.Key, k.denials)
	}
	return true
}

// forget makes room for one more among the denied, at a bounded price for each: what expired or was killed is told nobody here.
func (d *Dispatcher) forget() {
	b := &d.blame
	if len(b.denied) < b.most {
		return
	}
	for t := range b.denied {
		if s := d.queue.Info(t).State; s != queue.Waiting && s != queue.InFlight {
			delete(b.denied, t)
		}
	}
	b.most = max(fewDenied, 2*len(b.denied))
}
