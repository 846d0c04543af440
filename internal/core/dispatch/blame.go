package dispatch

import (
	"time"

	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
)

const (
	// After manyRefusals refusals in a row, the key or the server is to blame, and not the request.
	manyRefusals = 2
	// A request may have manyReturns attempts that are not counted. Later ones are counted.
	manyReturns = 100
	// A key that has denied manyDenials different requests in a row stays away for a while.
	manyDenials = 3
	// Of the requests that every key denies, the first manyBelieved in a row become dead letters.
	// After them the keys are to blame. Each request that proves to be at fault after all raises
	// that number, up to mostBelieved.
	manyBelieved = 2
	mostBelieved = 100
	// If only one key can be asked, a request that it denies goes to it manyAgain times more.
	manyAgain = 5
	// blame.denied may grow to fewDenied requests before ended ones are looked for and forgotten.
	fewDenied = 64

	// longestDenied is the longest pause of a denying key that has ever served anything. The key
	// may be in order, with a long row of requests at fault.
	longestDenied = 10 * time.Second
	// longestProbing is the longest time for which a request that all keys denied lets others go
	// first.
	longestProbing = time.Hour
)

// blame finds the culprit for the end of an attempt: key, server or request.
type blame struct {
	denied map[queue.Ticket]denial // denied requests that go on
	most   int                     // the size of denied at which ended requests are removed from it
	row    int                     // requests in a row that all keys denied, with nothing served between
	// own counts requests that were denied again after others were served, since a denial was a
	// key's fault.
	own    int
	served uint64 // requests that all keys together have served
}

// believes reports whether a request that all keys deny is taken to be at fault. It is not if too
// many in a row were denied.
func (b *blame) believes() bool { return b.row < min(manyBelieved+2*b.own, mostBelieved) }

// denial is the latest key that denied a request, and how many times in a row it did.
type denial struct {
	key, times int
	served     uint64 // blame.served at the request's first denial
}

// isToBlame reports whether the key or the server is at fault, and not the request. That is so if
// the key has refused twice in a row, denies a request that no other key has denied, or denies
// everything.
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

// mayAnother reports whether a request may go again at once if its key is to blame. It may if that
// key stays away and another key serves, but only manyAgain times. Its wait for the other key could
// be longer than the first key's pause.
func (d *Dispatcher) mayAnother(now mono.Time, a *Attempt) bool {
	if _, away := d.keys[a.Key].paused(now); !away || d.queue.Info(a.Ticket).Returned >= manyAgain {
		return false
	}
	for i := range d.keys {
		k := &d.keys[i]
		if _, away := k.paused(now); i != a.Key && !away && !k.isBanned && k.stack.Refusals() == 0 &&
			k.denials < manyDenials {
			return true
		}
	}
	return false
}

// misorders handles a refused nonce. The request goes again with a new nonce. If no request with a
// later nonce was sent meanwhile, the refused nonce was in order. After three such refusals in a
// row the key stays away for a while.
func (d *Dispatcher) misorders(now mono.Time, a *Attempt) {
	k := &d.keys[a.Key]
	if k.nonce.Last() != a.Nonce {
		return
	}
	if k.misnumbered++; k.misnumbered >= manyDenials {
		d.stayAway(now, a.Key, k.misnumbered)
	}
}

// stayAway holds a key after that many denials or bad nonces in a row.
func (d *Dispatcher) stayAway(now mono.Time, key, row int) {
	d.Hold(now, key, now.Add(d.keys[key].away(row)))
}

// away returns how long a key stays away after that many denials or bad nonces in a row.
func (k *key) away(row int) time.Duration {
	pause := backoff.Policy{Base: time.Second, Max: longestPause, Jitter: -1}
	if k.denials >= manyDenials && k.tally.Accepted > 0 {
		pause.Max = longestDenied
	}
	return pause.Delay(row-manyDenials+1, nil)
}

// isDenied handles a denial, and reports whether the request goes on. A request that all keys deny
// is at fault itself. But if the keys no longer serve anything, only the first two such requests
// are taken to be at fault. Each further one goes on until it is denied again after something was
// served.
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
		k.denials = max(k.denials, manyDenials-1) // the requests that died of denials count for this key too
		d.denies(now, a)
	case !agreed && !again, k.denials >= manyDenials: // a second denial of one request is no new evidence
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

// together reports whether an attempt was already in flight when its key's pause began. Its denial
// is then no further evidence.
func (d *Dispatcher) together(a *Attempt) bool {
	k := &d.keys[a.Key]
	return k.denials >= manyDenials && a.At <= k.stayed
}

// denies counts a denial by a key. After manyDenials in a row the key stays away; after that, one
// request goes alone first.
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

// othersFirst returns how long a denied request waits while its key denies everything. Meanwhile
// requests without a denial try the key, since they are better evidence. Otherwise only requests at
// fault might try it.
func (d *Dispatcher) othersFirst(a *Attempt) time.Duration {
	k := &d.keys[a.Key]
	if k.denials < manyDenials || d.queue.Counts().Waiting < len(d.blame.denied) {
		return 0
	}
	wait := backoff.Policy{Base: 16 * k.away(k.denials), Max: longestProbing, Jitter: -1}
	return wait.Delay(d.queue.Info(a.Ticket).Returned+1, nil)
}

// forget makes room for one more denied request. blame gets no notice of an expired or killed
// request, so forget looks for those whenever their number has doubled.
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
