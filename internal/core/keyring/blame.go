package keyring

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

const (
	// A key that has denied manyDenials different requests in a row stays away for a while, or is
	// out if others were served.
	manyDenials = 3
	// Of the requests that every key denies, the first manyBelieved in a row are at fault
	// themselves. After them the keys are to blame. Each request that proves to be at fault after
	// all raises that number, up to mostBelieved.
	manyBelieved = 2
	mostBelieved = 100
	// If only one key can be asked, a request that it denies goes to it manyAgain times more.
	manyAgain = 5
)

// Denials is the record of one request that keys denied. The zero value: none has.
type Denials struct {
	by     []Key  // each once, the latest last
	times  int    // how many times in a row the latest did
	served uint64 // Ring.served at the first denial
}

// Any reports whether a key has denied the request.
func (d *Denials) Any() bool { return len(d.by) > 0 }

func (d *Denials) latest() Key { return d.by[len(d.by)-1] }

// Noted takes in that a key denied a request, for Served to judge: see Away.
func (r *Ring) Noted(k Key, d *Denials) {
	if !d.Any() {
		d.served = r.served
	} else if d.latest() == k {
		d.times++
		return
	}
	d.by, d.times = append(slices.DeleteFunc(d.by, func(by Key) bool { return by == k }), k), 1
}

// Denied takes in that a key denied a request which was sent at that instant. again means that the
// request is not at fault as far as is known, and may go on. If away is not 0, the key is at fault,
// and stays away for that long; then one request goes alone first.
//
// A request that two keys deny is at fault itself. But if the keys no longer serve anything, only
// the first two such requests are taken to be at fault. Each further one goes on until it is denied
// again after something was served.
func (r *Ring) Denied(now mono.Time, k Key, sent mono.Time, d *Denials) (again bool, away time.Duration) {
	y := &r.keys[k]
	before := d.Any()
	same := before && d.latest() == k
	agreed := before && !same || same && d.times >= manyAgain || r.in < 2 || y.out
	news := before && r.served > d.served
	if agreed && (news || r.believes()) {
		if r.row++; before {
			y.denials, r.keys[d.latest()].denials = 0, 0
		}
		if news {
			r.own++
		}
		return false, 0
	}
	// An attempt that was already in flight when its key's pause began is no further evidence, and a second
	// denial of one request is no new one.
	late := y.denials >= manyDenials && sent <= y.stayed
	if !late && (agreed || !before || y.denials >= manyDenials) {
		if agreed {
			r.row++
			y.denials = max(y.denials, manyDenials-1) // the requests that died of denials count for this key too
		}
		y.denials, y.stayed = y.denials+1, now
		away = r.away(y, y.denials)
	}
	r.Noted(k, d)
	return true, away
}

// Banned takes in that a key denied a request which was sent at that instant, and reports whether that is a ban
// of the key. It is if a limit had refused the key, with nothing served since: such a ban may have an end, and the
// request is not at fault. The key stays away for the time, if that is not 0, and then one request goes alone.
// Each denial makes that longer, but none of a request in flight when the time began.
func (r *Ring) Banned(now mono.Time, k Key, sent mono.Time, refused bool) (away time.Duration, ban bool) {
	y := &r.keys[k]
	switch y.refused = y.refused || refused; {
	case !y.refused:
		return 0, false
	case y.denials >= manyDenials && sent <= y.stayed:
		return 0, true
	}
	y.denials, y.stayed = max(y.denials+1, manyDenials), now
	return r.pause(y.denials-manyDenials+1, false), true
}

// Outdated reports whether an answer proves nothing of a key that is banned: its request was sent before.
func (r *Ring) Outdated(k Key, sent mono.Time) bool {
	return r.keys[k].refused && sent <= r.keys[k].stayed
}

// believes reports whether a request that all keys deny is taken to be at fault. It is not if too
// many in a row were denied.
func (r *Ring) believes() bool { return r.row < believed(manyBelieved, r.own) }

func (r *Ring) away(y *key, row int) time.Duration {
	if row < manyDenials {
		return 0
	}
	return r.pause(row-manyDenials+1, y.denials >= manyDenials && y.proven)
}

// Away returns for how long a key would stay away now because of its denials; 0: it would not.
func (r *Ring) Away(k Key) time.Duration { return r.away(&r.keys[k], r.keys[k].denials) }

// Misordered takes in that a key refused a nonce that was in order, and returns how long the key
// stays away for that.
func (r *Ring) Misordered(k Key) time.Duration {
	r.keys[k].misordered++
	return r.away(&r.keys[k], r.keys[k].misordered)
}

// Served takes in that a key served a request. Keys that denied the request before may be at fault.
// If requests cannot wait, Served returns those that are to be out: each denied three requests in a
// row that another key served.
func (r *Ring) Served(k Key, d *Denials) (blamed []Key) {
	y := &r.keys[k]
	y.denials, y.misordered, y.proven, y.refused = 0, 0, true, false
	r.served++
	r.row = 0
	if !d.Any() {
		return nil
	}
	r.own = 0 // this request was denied before and is served now, so a key was at fault
	for _, by := range d.by {
		if other := &r.keys[by]; r.pause == nil && by != k {
			if other.denials++; !other.out && other.denials >= manyDenials {
				blamed = append(blamed, by)
			}
		}
	}
	*d = Denials{}
	return blamed
}

// Trusted reports whether a key is in use, and not known to deny everything.
func (r *Ring) Trusted(k Key) bool { return !r.keys[k].out && r.keys[k].denials < manyDenials }

// InARow returns how many requests in a row a key denied, and how many nonces that were in order it
// refused.
func (r *Ring) InARow(k Key) (denials, misordered int) {
	return r.keys[k].denials, r.keys[k].misordered
}
