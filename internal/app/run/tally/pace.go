package tally

import (
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// paceSlots is how many slots are counted.
const paceSlots = 30

// pace counts the requests that ended lately. The tally's lock guards it.
type pace struct {
	slot  time.Duration // the length of a slot; the latest paceSlots slots are counted
	least time.Duration // what ended in a shorter time says nothing of the rate: a window of a limit may begin full
	began time.Time
	Last  time.Time // when the last request ended
	ends  [paceSlots + 1]int
	at    int64 // the latest slot up to which the ring is up to date
}

// Begin starts the count. It looks back over 30 s. If a limit has a longer period it looks back
// over twice that, so that bursts even out.
func (p *pace) Begin(now time.Time, limits []format.Rate) {
	span, least := paceSlots*time.Second, time.Second
	for _, l := range limits {
		if l.Bucket {
			span = max(span, 2*l.Per/time.Duration(l.N))
		} else {
			span = max(span, 2*l.Per)
		}
		least = max(least, min(l.Per, time.Minute))
	}
	*p = pace{slot: span / paceSlots, least: least, began: now, Last: now}
}

func (p *pace) turn(now time.Time) {
	for n := int64(now.Sub(p.began) / p.slot); p.at < n; {
		p.at = max(p.at+1, n-paceSlots)
		p.ends[p.at%(paceSlots+1)] = 0
	}
}

func (p *pace) ended(now time.Time) {
	p.turn(now)
	p.ends[p.at%(paceSlots+1)]++
	p.Last = now
}

// PerSecond returns how many requests ended per second within the latest complete slots. It returns
// false until there are enough slots.
func (p *pace) PerSecond(now time.Time) (float64, bool) {
	p.turn(now)
	n := 0
	for i, ends := range p.ends {
		if int64(i) != p.at%(paceSlots+1) {
			n += ends
		}
	}
	return float64(n) / (paceSlots * p.slot).Seconds(), p.at >= paceSlots
}

// ForPeople returns the rate to write: that of PerSecond, or until it is known the average since first,
// of n ended requests. The burst with which a window may begin does not look like a rate.
func (p *pace) ForPeople(now, first time.Time, n int) float64 {
	if perSecond, known := p.PerSecond(now); known {
		return perSecond
	}
	return float64(n) / max(now.Sub(first), p.least).Seconds()
}

// lately is the average of the latest durations: of all, while they are few.
type lately struct {
	mean float64 // in seconds
	n    int
}

func (l *lately) add(d time.Duration) {
	const few = 256
	l.n = min(l.n+1, few)
	l.mean += (d.Seconds() - l.mean) / float64(l.n)
}

// Seconds is the average; 0: there is none.
func (l *lately) Seconds() float64 { return l.mean }
