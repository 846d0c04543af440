package stack

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Idle says what a Stack with no request in flight remembers.
type Idle struct {
	// Counts is the instant from which nothing counts any more and no answer keeps a request away.
	// Then a new Stack like this one lets requests go as this one does.
	Counts mono.Time
	// Said is the same without the configured Limiter: the end of a pause, and of what the server
	// said is left.
	Said mono.Time
	// Knows means that the Stack has learned something that is useful later, too.
	Knows bool
	// State is all of that, for Revive. nil: it cannot be written, so the Stack itself has to be
	// kept.
	State []byte
}

// unknownSpan is for how long a limiter is taken to count that does not know it.
const unknownSpan = 24 * time.Hour

// Idle returns what the Stack remembers. ok is false if a request is in flight.
func (g *Stack) Idle(now mono.Time) (i Idle, ok bool) {
	g.catchUp()
	if g.book.Len() > 0 {
		return i, false
	}
	now = max(now, g.last)
	i.Said = max(now, g.pause.until, g.rests)
	if g.told != nil {
		i.Said = max(i.Said, g.told.HoldsUntil(now))
	}
	i.Counts = i.Said
	if g.own != nil {
		until, known := limit.CountsUntil(g.own, now)
		if !known {
			until = g.last.Add(unknownSpan)
		}
		i.Counts = max(i.Counts, until)
	}
	lessons := g.Lessons()
	for k := range lessons {
		i.Counts = max(i.Counts, lessons[k].Until, lessons[k].Deaf)
	}
	i.Knows = g.told != nil || g.pause.strikes > 0 || g.begin.On() || len(lessons) > 0 || g.capacity != limit.Cost{}
	if len(lessons) == 0 && !g.begin.On() && !g.trial.on() && g.rests <= now {
		i.State = g.appendIdle(now)
	}
	return i, true
}

// What a state has besides the memory of the configured limit.
const (
	hasPause = 1 << iota
	hasHints
	hasCapacity
)

// appendIdle returns nil if the memory of a part cannot be written.
func (g *Stack) appendIdle(now mono.Time) (b []byte) {
	p, flags := &g.pause, byte(0)
	if !p.over(now) || p.strikes > 0 {
		flags |= hasPause
	}
	if g.told != nil {
		flags |= hasHints
	}
	if g.capacity != (limit.Cost{}) {
		flags |= hasCapacity
	}
	b = append(make([]byte, 0, 64), flags)
	if flags&hasPause != 0 {
		for _, n := range [...]int64{int64(p.until), int64(p.since), int64(p.next), int64(p.why), int64(p.refusal),
			int64(p.strikes)} {
			b = binary.AppendVarint(b, n)
		}
	}
	if flags&hasCapacity != 0 {
		for _, n := range g.capacity {
			b = binary.AppendVarint(b, n)
		}
	}
	if flags&hasHints != 0 {
		b = g.told.AppendIdle(b)
	}
	if g.under == nil {
		return b
	}
	b, ok := limit.AppendIdle(b, g.under, now)
	if !ok {
		return nil
	}
	return b
}

var errIdle = errors.New("stack: the state is damaged")

// Withhold stops all requests until t, without a probe before. It is for a Stack of which something
// counts that it does not know.
func (g *Stack) Withhold(now, t mono.Time) {
	g.Hold(now, t)
	g.pause.next = max(g.pause.next, t)
}

// Revive makes a Stack that has sent nothing continue from the State of an idle one with the same
// Config. It is then ready at the same instants. fits is false if the limits are others now, and
// something that counts has no place in them: see limit.RestoreIdle. After an error, do not use the
// Stack.
func (g *Stack) Revive(state []byte) (fits bool, err error) {
	number := func() (n int64) {
		n, size := binary.Varint(state)
		if size <= 0 {
			state, err = nil, errIdle
			return 0
		}
		state = state[size:]
		return n
	}
	if len(state) == 0 {
		return false, errIdle
	}
	flags := state[0]
	state = state[1:]
	p := &g.pause
	if flags&hasPause != 0 {
		p.until, p.since, p.next = mono.Time(number()), mono.Time(number()), mono.Time(number())
		p.why, p.refusal, p.strikes = Why(number()), int(number()), int(number())
		if p.refusal < 0 || p.strikes < 0 {
			return false, errIdle
		}
	}
	if flags&hasCapacity != 0 {
		for u := range g.capacity {
			g.capacity[u] = number()
		}
	}
	if err != nil {
		return false, err
	}
	if flags&hasHints != 0 {
		if err := g.newHints(); err != nil {
			return false, err
		}
		if state, err = g.told.RestoreIdle(state); err != nil {
			return false, err
		}
	}
	fits = true
	if g.under != nil {
		fits, err = limit.RestoreIdle(g.under, state)
	}
	g.compose()
	return fits, err
}
