package fairshare

import (
	"math"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// kindOf returns the kind of a quota by the description of a server or its provider.
func kindOf(c limit.Counting) Kind {
	switch c {
	case limit.CountsBucket:
		return TokenBucket
	case limit.CountsWindow:
		return FixedWindow
	case limit.CountsRolling:
		return RollingWindow
	}
	return UnknownKind
}

// hearKind reads how the server counts from the stated limits of this quota alone, where Kind is
// unknown. Only resets in answers overrule it. They cannot overrule a rolling window, which they
// cannot show.
func (f *Fair) hearKind(all []limit.Rule) {
	k := &f.finder
	if f.config.Kind != UnknownKind || k.stated != UnknownKind {
		return
	}
	for i := range all {
		q := &all[i]
		kind := kindOf(q.Counts)
		switch {
		case kind == UnknownKind || q.Unit != f.config.Unit || q.N != f.config.Limit || q.Per != f.config.Window:
			continue
		case k.stated != UnknownKind && k.stated != kind: // two of its limits differ in that only
			k.stated = UnknownKind
			return
		}
		k.stated = kind
	}
	switch k.stated {
	case TokenBucket:
		f.be(&f.bucket)
	case FixedWindow:
		f.be(&f.window)
	case RollingWindow:
		f.config.Kind = RollingWindow
		f.be(&f.rolling)
	}
}

// finder finds out the kind of a quota. Resets in answers decide it. The instant at which a bucket
// is full again follows from what remains, and moves with each request. The instant at which a
// window ends stands still, and then leaps. Without resets a quota is a window once more has come
// back than any bucket refills.
type finder struct {
	before sighting // seq 0: none
	full   mono.Time
	stated Kind
	votes  int // for a window; if negative, for a bucket
	rises  int
	emptied
}

const (
	// Two instants this close may be the same one: servers state whole seconds, and a path may be
	// slow.
	kindSeconds = 2.0
	kindVotes   = 2
	leapLeast   = 8.0
	leapKind    = 1.0 / 8 // of the capacity
	leapRate    = 16.0    // no quota is larger than assumed by this factor
	risesBucket = 8       // so many small rises show a bucket: no window has them
)

// find reads every answer before the law does.
func (f *Fair) find(s *sighting) {
	if f.config.Kind != UnknownKind {
		return
	}
	k := &f.finder
	documented := k.stated != UnknownKind
	if !documented {
		k.emptied.look(f, s)
	}
	if s.limited || documented && s.ends == mono.Min {
		return
	}
	if s.ends == mono.Min && k.before.ends != mono.Min && k.before.seq > 0 {
		return // the reset is at this very instant, or was left out this time
	}
	full := s.mid.Add(Seconds((f.bucket.capacity - s.left) / f.rate))
	if s.ends == mono.Min || k.before.seq == 0 || k.before.ends == mono.Min {
		if s.ends == mono.Min {
			k.untold(f, k.before, s)
		} else if math.Abs(s.ends.Sub(full).Seconds()) > f.sameReset() { // otherwise it may be a bucket
			f.be(&f.window)
		}
		k.before, k.full = *s, full
		return
	}
	moved := s.ends.Sub(k.before.ends).Seconds()
	leapt, stands := moved > f.window.length/2, math.Abs(moved) <= kindSeconds
	switch {
	case !leapt && math.Abs(full.Sub(k.full).Seconds()) <= 2*kindSeconds:
		return // too little has happened since
	case leapt || stands:
		k.votes = min(k.votes+1, kindVotes)
	default:
		k.votes = max(k.votes-1, -kindVotes)
	}
	k.before, k.full = *s, full
	switch k.votes {
	case kindVotes:
		f.be(&f.window)
	case -kindVotes:
		f.be(&f.bucket)
	}
}

// sameReset is the largest difference, in seconds, between a stated reset and the instant at which
// a bucket would be full.
func (f *Fair) sameReset() float64 { return kindSeconds + 2/f.rate }

// untold judges by the units that came back, where answers carry no reset.
func (k *finder) untold(f *Fair, before sighting, s *sighting) {
	if before.seq == 0 {
		return
	}
	rose := s.left - before.left
	refill := leapRate * f.tokens(s.mid.Sub(before.mid))
	switch {
	case rose > max(leapLeast, leapKind*f.bucket.capacity)+refill:
		k.rises = 0
		f.be(&f.window)
		f.window.phase.leap(before.mid, s.mid, s.mid, f.config.Window)
	case rose > 1 && f.level == &f.window:
		if k.rises++; k.rises >= risesBucket {
			k.rises = 0
			if k.stage == cameBack {
				f.be(&f.rolling)
			} else {
				f.be(&f.bucket)
			}
		}
	}
}

// be changes the kind, and forgets the measurements under the other kind.
func (f *Fair) be(l level) {
	if f.level == l {
		return
	}
	f.level = l
	f.base, f.blind, f.known = sighting{}, 0, false
}
