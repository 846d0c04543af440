package dispatch

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/pool/queue"
)

const (
	// From the manyRefusals-th refusal in a row on, the key or the server is to blame, and not the request.
	manyRefusals = 2
	// A request may have manyReturns attempts that are not counted. The attempts after those are counted.
	manyReturns = 100
	// A key that has denied manyDenials different requests in a row stays away for a while.
	manyDenials = 3
	// Of the requests that every key denies, the first manyBelieved in a row become dead letters. From the next one on the keys are to
	// blame. Each time that a request turns out to be at fault after all, more are believed in a row, up to mostBelieved.
	manyBelieved = 2
	mostBelieved = 100
	// Where only one key can be asked, a request that it denies is sent to it manyAgain times more.
	manyAgain = 5
	// blame.denied may grow to fewDenied requests before those that have ended are looked for and forgotten.
	fewDenied = 64

	// longestDenied is the longest pause of a key that denies, if the key has ever served anything: it may be in order, and a long row of
	// requests at fault.
	longestDenied = 10 * time.Second
	// longestProbing is the longest time that a request which all keys denied lets other requests go first.
	longestProbing = time.Hour
)

// blame finds out who is at fault for how an attempt ended.
type blame struct {
	denied map[queue.Ticket]denial // the requests that were denied and go on
	most   int                     // when denied has so many, those that have ended meanwhile are removed from it
	row    int                     // how many requests in a row were denied by all keys, since something was served
	own    int                     // how many requests were denied again after others were served, since a denial was a key's fault
	served uint64                  // how many requests all keys together have served
}

// believes tells whether a request that all keys deny is taken to be at fault. It is not if too many in a row were denied.
func (b *blame) believes() bool { return b.row < min(manyBelieved+2*b.own, mostBelieved) }

// denial is the latest key that denied a request, and how many times in a row that key did.
type denial struct {
	key, times int
	served     uint64 // blame.served when the request was denied for the first time
}

// isToBlame tells whether the key or the server is at fault, and not the request. That is so if the key has refused twice in a row, if it
// denies a request that no other key has denied, or if it denies everything.
func (d *Dispatcher) isToBlame(now mono.Time, a *Attempt, ans *Answer) bool {
	k := &d.keys[a.Key]
	switch {
	case ans.Result == limit.Accepted:
		k.denials, k.misnumbered = 0, 0
		b := &d.blame
		b.served++
		b.row = 0
		if _, was := b.denied[a.Ticket]; was {
			b.own = 0 // this request was denied before and is served now, so a key was at fault
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
		return k.pauses && k.stack.Refusals() >= manyRefusals && d.queue.Info(a.Ticket).Returned < manyReturns
	}
	if len(d.blame.denied) > 0 && d.lives(a) && (ans.Result == limit.Accepted || ans.Invalid) {
		delete(d.blame.denied, a.Ticket)
	}
	return false
}

// mayAnother tells whether a request whose key is to blame may go again at once. It may if that key stays away and another key serves, but
// only manyAgain times: it could have to wait for the other key for longer than the first one stays away.
func (d *Dispatcher) mayAnother(now mono.Time, a *Attempt) bool {
	if _, away := d.keys[a.Key].paused(now); !away || d.queue.Info(a.Ticket).Returned >= manyAgain {
		return false
	}
	for i := range d.keys {
		k := &d.keys[i]
		if _, away := k.paused(now); i != a.Key && !away && !k.isBanned && k.stack.Refusals() == 0 && k.denials < manyDenials {
			return true
		}
	}
	return false
}

// misorders takes in that a key refused a nonce. The request goes again with a new nonce. If no request with a later nonce was sent
// meanwhile, the refused one was in order, and after three such refusals in a row the key stays away for a while.
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

// isDenied takes in that a key denied a request, and tells whether the request goes on. A request that all keys deny is at fault itself. But
// if the keys serve nothing any more, only the first two such requests are taken to be at fault; each of the others goes on until it is
// denied again after something was served.
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
		k.denials = max(k.denials, manyDenials-1) // the requests that have died of denials count for this key, too
		d.denies(now, a)
	case !agreed && !again, k.denials >= manyDenials: // a request that this key has denied before says nothing new of the key
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

// together tells whether an attempt was already in flight when its key was told to stay away. Such a denial is no further evidence.
func (d *Dispatcher) together(a *Attempt) bool {
	k := &d.keys[a.Key]
	return k.denials >= manyDenials && a.At <= k.stayed
}

// denies counts a denial by a key. After manyDenials in a row the key stays away, and when it is back, one request goes alone first.
func (d *Dispatcher) denies(now mono.Time, a *Attempt) {
	if d.together(a) {
		return
	}
	k := &d.keys[a.Key]
	if k.denials++; k.denials >= manyDenials {
		k.stayed = now
		k.stack.Begin(now)
		d.stayAway(now, a.Key, k.denials)
	}
}

// othersFirst is how long a denied request waits while its key denies everything. Meanwhile requests that nobody has denied are sent to try
// the key, as they tell more: otherwise the key could be tried with nothing but requests that are at fault.
func (d *Dispatcher) othersFirst(a *Attempt) time.Duration {
	k := &d.keys[a.Key]
	if k.denials < manyDenials || d.queue.Counts().Waiting < len(d.blame.denied) {
		return 0
	}
	wait := backoff.Policy{Base: 16 * k.away(k.denials), Max: longestProbing, Jitter: -1}
	return wait.Delay(d.queue.Info(a.Ticket).Returned+1, nil)
}

// forget makes room for one more denied request. Nobody tells blame that a request has expired or was killed, so forget looks for those
// whenever their number has doubled.
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
