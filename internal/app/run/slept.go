package run

import (
	"time"

	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// midnights keeps the days of a place where they are while the machine sleeps. Go's clock may stand
// still then, and midnight would come later by that. The zero value is for limits without a zone.
// Only watch uses it.
type midnights struct {
	read  func() boottime.Reading // nil: no limit has a zone
	since boottime.Reading
	seen  time.Duration // what the look before read
	slept time.Duration // what the limiters know
}

func (r *Run) newMidnights() (m midnights) {
	for _, l := range r.c.Limits {
		if l.Zone != "" {
			m.read = boottime.Read
		}
	}
	if m.read != nil && r.c.clock != nil {
		m.read = func() boottime.Reading { _, reading := r.c.clock(); return reading }
	}
	if m.read != nil {
		m.since = m.read()
	}
	return m
}

// look reports whether the machine has slept since the last look that reported it. Two looks in a
// row have to agree: a process that is stopped in the midst of a reading seems to have slept.
func (m *midnights) look() bool {
	if m.read == nil {
		return false
	}
	const much = 10 * time.Millisecond
	slept := m.read().Slept(m.since)
	agreed := min(slept, m.seen)
	m.seen = slept
	if agreed <= m.slept+much {
		return false
	}
	m.slept = agreed
	return true
}

// moveMidnights moves the scale of all limiters on by what was slept through. What was sent before
// counts as long as it would have without sleep, or longer.
func (r *Run) moveMidnights(slept time.Duration) {
	for _, g := range r.groups {
		g.pool.Update(func(mono.Time, *pool.Queue, *pool.Dispatcher) {
			for _, f := range g.fitted {
				limit.SetEpoch(f, r.epoch.Add(slept))
			}
		})
	}
}
