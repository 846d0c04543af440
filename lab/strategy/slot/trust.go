package slot

import (
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit/mono"
)

// trust decides whether what a server says remains can be used.
//
// It cannot where it is missing, negative or more than the capacity; where the bucket was said to be full enough and the
// request was limited all the same, twice; where it never changes although one sends a fourth as often; or where it rises
// faster than any quota is refilled, which a window that begins anew may do once in a while, but not twice in a row.
type trust struct {
	missing int  // answers in a row without it
	said    bool // it was there once
	strikes int
	good    int // answers since the last strike
	until   mono.Time
	penalty time.Duration // of the last time it was not trusted
	value   int64         // what it said last
	same    int           // how often in a row
	sameN   float64       // n when it first said so
	soundN  float64       // n before the first strike
	away    bool          // the last answers were for the header-less law
}

type verdict uint8

const (
	heeded verdict = iota
	ignored
	headerless
)

const (
	strikesMost  = 2
	goodEnough   = 16
	sameMost     = 6
	sameGrowth   = 4
	missingMost  = 3
	burstLeast   = 16 // in a smaller bucket what remains says too little
	drainedShare = 8  // strangers may take this many times their share unseen
)

func (t *trust) judge(s *Slot, now mono.Time, a attempt, limited, says bool, remaining int64) verdict {
	if limited {
		if t.away || !t.said && s.sense.stage > unlimited {
			return headerless
		}
		if s.base.seq > 0 {
			own := float64(a.seq - s.base.seq)
			taken := s.tokens(a.at.Sub(s.base.at)) + s.level
			if s.level > drainedShare && taken > drainedShare*s.n*own+drainedShare {
				t.strike(s, now)
			}
		}
		t.same = 0
		if t.away {
			return headerless
		}
		return heeded
	}
	if says && s.Burst < burstLeast {
		says = false
	}
	if !says {
		t.missing++
		if !t.said || t.missing >= missingMost {
			t.leave(s)
		}
		if t.away {
			return headerless
		}
		return ignored
	}
	t.missing = 0
	valid := remaining >= 0 && float64(remaining) <= s.Burst
	if t.away {
		if now < t.until || !valid {
			return headerless
		}
		// Start again from what is known: the first answer is no measure.
		t.away, t.strikes, t.good, t.same, t.soundN = false, 0, 0, 0, 0
		s.base, s.empty, s.drift, s.plenty = attempt{}, 0, 0, 0
		s.n = s.clamp(s.n)
	}
	t.said = true
	switch {
	case !valid:
		t.strikes = strikesMost
		t.strike(s, now)
	case s.base.seq > 0 && t.leapt(s, a, now, remaining):
		s.base, s.blind = attempt{}, 0 // no measure
		t.strike(s, now)
	default:
		t.steady(s, now, remaining)
	}
	if t.away {
		return headerless
	}
	return heeded
}

// leapt says whether more came back than any refill brings.
func (t *trust) leapt(s *Slot, a attempt, now mono.Time, remaining int64) bool {
	rose := float64(remaining) + 0.5 - s.level - 1 + float64(a.seq-s.base.seq)
	return rose > 3 && rose > scaleMost*s.Rate*now.Sub(s.base.at).Seconds()
}

// steady counts good answers, and finds one that never changes.
func (t *trust) steady(s *Slot, now mono.Time, remaining int64) {
	if t.good++; t.good >= goodEnough {
		t.strikes, t.soundN = 0, 0
	}
	if t.same == 0 || remaining != t.value {
		t.value, t.same, t.sameN = remaining, 1, s.n
		return
	}
	if t.same++; t.same >= sameMost && s.n >= sameGrowth*t.sameN {
		t.soundN = t.sameN
		t.strikes = strikesMost
		t.strike(s, now)
	}
}

// strike notes an answer that cannot be true. At the second it is trusted no more for a while, each time for longer.
func (t *trust) strike(s *Slot, now mono.Time) {
	t.good = 0
	if t.soundN == 0 {
		t.soundN = s.n
	}
	if t.strikes++; t.strikes < strikesMost {
		return
	}
	s.n = min(s.n, t.soundN)
	shortest := min(fairshare.Seconds(s.Burst/s.Rate/12), s.MaxWait)
	if t.penalty == 0 || now.Sub(t.until) > 4*t.penalty {
		t.penalty = shortest
	} else {
		t.penalty = min(2*t.penalty, 16*max(shortest, s.MaxWait))
	}
	t.until = now.Add(t.penalty)
	t.leave(s)
}

// leave hands over to the header-less law, with the pace there is.
func (t *trust) leave(s *Slot) {
	if t.away {
		return
	}
	t.away, t.same = true, 0
	s.scale = 1
	s.window = 1
	s.n = s.clamp(s.n)
	s.sense = sense{heard: s.heard, heardAt: s.sentAt, changed: s.changed, refused: s.last, begun: s.last}
	switch {
	case s.blind > 0:
		s.sense.stage, s.sense.blind = blinded, s.blind
	case s.known:
		s.sense.stage = searching
	}
}
