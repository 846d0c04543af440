package dispatch

import (
	"time"

	"github.com/paceline-go/paceline/backoff"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

const (
	manyRefusals = 2   // so many in a row are the fault of the key or the server, not of the requests
	manyReturns  = 100 // after so many attempts of one request that were not counted, they are counted
	manyDenials  = 3   // after so many denials of different requests in a row the key stays away
	manyBelieved = 2   // so many requests in a row may die of denials; after that the keys are to blame
	mostBelieved = 100 // what manyBelieved may grow to, where it was the requests time and again
	manyAgain    = 5   // how often one key is asked again about one request where no other can be asked
	fewDenied    = 64  // of so many denied requests it is remembered whether they still live or not

	// longestDenied is the longest pause of a key that has served. What it denies may be a stretch of requests that are at fault.
	longestDenied = 10 * time.Second
	// longestProbing is for how long a request that all keys denied waits for others to go first.
	longestProbing = time.Hour
)

// blame finds out who is at fault for how an attempt ended.
type blame struct {
	denied map[queue.Ticket]denial
	most   int    // when more are denied, those that have ended otherwise are forgotten
	row    int    // how many requests in a row all keys denied, with nothing served between
	own    int    // how many requests were given another chance lately and turned out to be at fault themselves
	served uint64 // how many requests all keys have served
}

// believes tells whether the requests are taken to be at fault, after so many denied in a row.
func (b *blame) believes() bool { return b.row < min(manyBelieved+2*b.own, mostBelieved) }

// denial is which key denied a request, and how often; it begins anew with another key.
type denial struct {
	key, times int
	served     uint64 // blame.served when the request was denied first
}

// isToBlame tells whether the key or the server is at fault, and not the request: if the key has refused twice in a row, or denies what no
// other key has denied, or denies everything.
func (d *Dispatcher) isToBlame(now mono.Time, a *Attempt, ans *Answer) bool {
	k := &d.keys[a.Key]
	switch {
	case ans.Result == limit.Accepted:
		k.denials, k.misnumbered = 0, 0
		b := &d.blame
		b.served++
		b.row = 0
		if _, was := b.denied[a.Ticket]; was {
			b.own = 0 // this time a key was at fault
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

// mayAnother tells whether a request whose key is to blame may go again at once: if that key stays away, and another serves. It may not do
// so without end, since the wait for the other keys could last longer than the pauses.
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

// misorders takes in that a key refused a nonce. The request goes again with a new one. If nothing was sent after it, the nonce was in
// order, and after three such refusals in a row the key stays away for a while.
func (d *Dispatcher) misorders(now mono.Time, a *Attempt) {
	k := &d.keys[a.Key]
	if k.nonce.Last() != a.Nonce {
		return
	}
	if k.misnumbered++; k.misnumbered >= manyDenials {
		d.stayAway(now, a.Key, k.misnumbered)
	}
}

// stayAway holds a key after so many denials or bad nonces in a row.
func (d *Dispatcher) stayAway(now mono.Time, key, row int) {
	d.Hold(now, key, now.Add(d.keys[key].away(row)))
}

// away is how long a key stays away after so many denials or bad nonces in a row.
func (k *key) away(row int) time.Duration {
	pause := backoff.Policy{Base: time.Second, Max: longestPause, Jitter: -1}
	if k.denials >= manyDenials && k.tally.Accepted > 0 {
		pause.Max = longestDenied
	}
	return pause.Delay(row-manyDenials+1, nil)
}

// isDenied takes in that a key denied a request, and tells whether the request goes on. It is at fault itself if all keys that can be
// asked deny it. But where they serve nothing any more, that is believed of two requests only, and of the others once something was served.
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

// together tells whether an attempt was in flight when its key was sent away. Then its denial is nothing new.
func (d *Dispatcher) together(a *Attempt) bool {
	k := &d.keys[a.Key]
	return k.denials >= manyDenials && a.At <= k.stayed
}

// denies counts a denial by a key. After many in a row the key stays away, and after that one request goes first.
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

// othersFirst is how long a denied request waits where a key denies everything, so that requests that were not denied yet go first, for
// several probes: they tell more. Otherwise a stretch of forbidden requests would be every probe.
func (d *Dispatcher) othersFirst(a *Attempt) time.Duration {
	k := &d.keys[a.Key]
	if k.denials < manyDenials || d.queue.Counts().Waiting < len(d.blame.denied) {
		return 0
	}
	wait := backoff.Policy{Base: 16 * k.away(k.denials), Max: longestProbing, Jitter: -1}
	return wait.Delay(d.queue.Info(a.Ticket).Returned+1, nil)
}

// forget makes room for one more denied request. Nobody tells blame of requests that expire or are killed, so it looks at a few each time.
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
