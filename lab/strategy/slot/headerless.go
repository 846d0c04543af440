package slot

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/internal/core/contention"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Headerless is the law for servers that say nothing but served or limited (Slot falls back on it where Remaining is
// missing or cannot be true). It shares evenly too, but has to find the end of the quota by being refused: 1.4 % of
// the requests of ten sharers in their first half hour, where Slot has none once settled.
//
// Before it is limited it does not throttle. Then come blind windows, as in Slot, until a request is served. From then on it
// keeps its pace for long and quickens slowly, ever less slowly the longer it was not refused; a refusal takes it a little
// below the pace that it was refused at. All quicken alike in time, and who sends more is refused more, so all come to the same pace.
//
// Not safe for concurrent use.
type Headerless struct {
	pacer
	sense
}

// NewHeaderless checks the configuration and returns a Headerless that has sent nothing.
func NewHeaderless(c Config) (*Headerless, error) {
	c, err := c.filled("Headerless")
	if err != nil {
		return nil, err
	}
	h := &Headerless{pacer: newPacer(c)}
	if c.Start > 0 {
		h.stage = searching
	}
	return h, nil
}

// Settle implements limit.Limiter.
func (h *Headerless) Settle(now mono.Time, l limit.Lease, o limit.Outcome) {
	a := h.book.Close(l)
	now = max(now, h.last)
	h.last = now
	if a.seq > 0 && !o.Elsewhere && (o.Result == limit.Accepted || o.Result == limit.Limited) {
		h.answer(&h.pacer, now, a, o.Result == limit.Limited, o.RetryAfter)
	}
}

// sense is what the header-less law has learned.
type sense struct {
	stage   stage
	heard   uint64 // newest answer heeded
	heardAt mono.Time
	changed uint64 // answers to requests up to this one are of before the last refusal
	blind   float64
	refused mono.Time // sent when it was refused last
	begun   mono.Time // when the wait after that, beyond one interval, was over
	served  int       // since the last refusal
	in      int       // refusals in a row
}

type stage uint8

const (
	unlimited stage = iota // never limited
	blinded                // limited, and not served since
	searching              // served, and not limited since
	settled
)

// Constants of the header-less law. After a refusal n, sent at, is kept for long: it quickens by quicken·(T/plateau)³ in
// all until T tokens after it. In searching it quickens by search with each answer.
const (
	search       = 0.005
	quicken      = 0.03
	quickenMost  = 0.05
	plateau      = 2000.0 // for 10 sharers; it grows with the eighth root of n
	plateauRoot  = 0.125
	slower       = 1.07 // by a refusal
	slowerAgain  = 1.05 // by the next at once: the bucket was still empty
	slowerMore   = 1.2  // by those after that
	averaged     = 8    // answers whose average pace tells what the quota allowed
	spread       = 0.6  // of n, by which the next request after a refusal is later
	jitter       = 0.1
	intervalLess = 0.25 // the least n: the quota may be larger than known
)

// answer heeds the answer to a.
func (s *sense) answer(p *pacer, now mono.Time, a attempt, limited bool, retryAfter time.Duration) {
	if a.seq <= s.changed || a.seq <= s.heard {
		return
	}
	gap := 0.0
	if s.heard > 0 {
		gap = p.tokens(a.at.Sub(s.heardAt))
	}
	s.heard, s.heardAt = a.seq, a.at
	if limited {
		s.limited(p, now, a, retryAfter)
		return
	}
	s.served++
	s.in = 0
	p.open()
	switch s.stage {
	case unlimited:
		p.plan(now, a, 0)
		return
	case blinded:
		s.stage = searching
	case searching:
		p.n *= 1 - search
	case settled:
		long := plateau * math.Pow(p.n*p.Weight/10, plateauRoot)
		t := p.tokens(a.at.Sub(s.refused)) / long
		p.n *= 1 - min(quickenMost, 3*quicken*t*t*min(gap, 2*p.n)/long)
	}
	p.n = min(max(p.n, intervalLess), p.clamp(p.n))
	p.plan(now, a, p.n*(1+jitter*(p.Rng.Float64()-0.5)))
}

func (s *sense) limited(p *pacer, now mono.Time, a attempt, retryAfter time.Duration) {
	s.in++
	switch {
	case s.stage == unlimited:
		s.stage = blinded
		s.blind = contention.Shares / p.Weight
	case s.stage == blinded:
		s.blind *= 2
	case s.in == 1:
		if s.served >= averaged {
			// The bucket was empty then and is now: what all sent between is what flowed in.
			p.n = min(2*p.n, max(p.n, p.tokens(a.at.Sub(s.begun))/float64(s.served+1)))
		}
		p.n *= slower
	case s.in == 2:
		p.n *= slowerAgain
	default:
		p.n *= slowerMore
	}
	s.served = 0
	s.refused = a.at
	if s.stage == blinded {
		s.blind = p.clamp(s.blind)
		p.n = s.blind
		p.hold(now, contention.Wait(p.n, p.Rng.Float64()), retryAfter)
	} else {
		s.stage = settled
		p.n = p.clamp(p.n)
		p.hold(now, p.n*(1+spread*p.Rng.Float64()), retryAfter)
	}
	s.begun = p.next.Add(-p.span(p.n))
	s.changed = p.sent
}
