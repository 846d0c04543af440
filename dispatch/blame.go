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
	manyBelieved = 2   // requests that are dead of denials, in a row: from the next on it is the keys
	mostBelieved = 100 // however often it was the requests
	manyAgain    = 5   // of one request by one key: no other was there to ask
	fewDenied    = 64  // requests that are kept in mind whether they live or not

	// longestDenied is the longest pause of a key that has served: what it denies may be requests that lie together.
	longestDenied = 10 * time.Second
	// longestProbing is the longest that others go first.
	longestProbing = time.Hour
)

// blame finds out who is at fault for how an attempt ended.
type blame struct {
	denied map[queue.Ticket]denial
	most   int    // of denied, until those that have ended otherwise are forgotten
	row    int    // requests that all keys denied, with nothing served between
	own    int    // requests lately that were given another chance, and it was them
	served uint64 // by all keys
}

// believes tells whether it is the requests, as the row is.
func (b *blame) believes() bool { return b.row < min(manyBelieved+2*b.own, mostBelieved) }

// denial is the key that denied a request, and how often, until another does.
type denial struct {
	key, times int
	served     uint64 // when it was denied first
}

// isToBlame tells whether not a request, but its key or its server, is at fault: a key that has refused twice in a row, or one that
// denies what no other key has denied, or all.
func (d *Dispatcher) isToBlame(now mono.Time, a *Attempt, ans *Answer) bool {
	k := &d.keys[a.Key]
	switch {
	case ans.Result == limit.Accepted:
		k.denials, k.misnumbered = 0, 0
		b := &d.blame
		b.served++
		b.row = 0
		if _, was := b.denied[a.Ticket]; was {
			b.own = 0 // it was a key
		}
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
	d.Hold(now, key, now.Add(d.keys[key].away(row)))
}

// away is how long a key stays away after so many in a row.
func (k *key) away(row int) time.Duration {
	pause := backoff.Policy{Base: time.Second, Max: longestPause, Jitter: -1}
	if k.denials >= manyDenials && k.tally.Accepted > 0 {
		pause.Max = longestDenied
	}
	return pause.Delay(row-manyDenials+1, nil)
}

// isDenied takes in that a key denies a request, and tells whether it may be asked again. It is the request's own fault if all that can
// be asked agree: but where they serve nothing any more that is believed of two, and of others once something was served.
func (d *Dispatcher) isDenied(now mono.Time, a *Attempt) bool {
	b, k := &d.blame, &d.keys[a.Key]
	if !d.lives(a) || d.queue.Info(a.Ticket).Returned >= manyReturns {
		return false
	}
	before, again := b.denied[a.Ticket]
	same := again && before.key == a.Key
	agreed := again && !same || before.times >= manyAgain || d.alive < 2 || k.isBanned
	switch news := again && b.served > before.served; {
	case agreed && (news || b.believes()):
		if b.row++; again {
			k.denials, d.keys[before.key].denials = 0, 0
		}
		if news {
			b.own++
		}
		return false
	case agreed && !d.together(a):
		b.row++
		k.denials = max(k.denials, manyDenials-1) // two are dead of it already
		d.denies(now, a)
	case !agreed && !again, k.denials >= manyDenials: // else it is no news
		d.denies(now, a)
	}
	if !again {
		before.served = b.served
	}
	if !same {
		before.times = 0
	}
	d.forget()
	b.denied[a.Ticket] = denial{a.Key, before.times + 1, before.served}
	return true
}

// together tells whether an attempt was in flight when its key was sent away: it finds out nothing new.
func (d *Dispatcher) together(a *Attempt) bool {
	k := &d.keys[a.Key]
	return k.denials >= manyDenials && a.At <= k.stayed
}

// denies counts a denial by a key, which stays away after many. After that one goes first.
func (d *Dispatcher) denies(now mono.Time, a *Attempt) {
	if d.together(a) {
		return
	}
	k := &d.keys[a.Key]
	if k.denials++; k.denials >= manyDenials {
		k.stayed = now
		k.guard.Begin(now)
		d.stayAway(now, a.Key, k.denials)
	}
}

// othersFirst is how long what a key denied waits that denies all: as long as there are requests that were not denied yet these tell more,
// for several probes. Those that lie together and are forbidden would else be every probe.
func (d *Dispatcher) othersFirst(a *Attempt) time.Duration {
	k := &d.keys[a.Key]
	if k.denials < manyDenials || d.queue.Counts().Waiting < len(d.blame.denied) {
		return 0
	}
	wait := backoff.Policy{Base: 16 * k.away(k.denials), Max: longestProbing, Jitter: -1}
	return wait.Delay(d.queue.Info(a.Ticket).Returned+1, nil)
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
