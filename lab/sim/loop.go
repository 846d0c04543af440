package sim

import "github.com/paceline-go/paceline/limit/mono"

// Loop is virtual time: it hands out events in the order of their instants, and where those are
// equal in the order of scheduling. The zero Loop is at instant 0 and has no events.
type Loop[E any] struct {
	now  mono.Time
	seq  uint64
	heap []event[E]
}

type event[E any] struct {
	at  mono.Time
	seq uint64
	e   E
}

// Now returns the instant of the event handed out last.
func (l *Loop[E]) Now() mono.Time { return l.now }

// At schedules an event. An instant in the past counts as now.
func (l *Loop[E]) At(t mono.Time, e E) {
	l.seq++
	ev := event[E]{max(t, l.now), l.seq, e}
	l.heap = append(l.heap, ev)
	h, i := l.heap, len(l.heap)-1
	for i > 0 { // a heap with four children per node is half as deep as one with two
		up := (i - 1) / 4
		if !ev.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = ev
}

// Next moves time to the next event and returns it, unless that is after until.
func (l *Loop[E]) Next(until mono.Time) (e E, ok bool) {
	h := l.heap
	if len(h) == 0 || h[0].at > until {
		return e, false
	}
	first := h[0]
	l.now = first.at
	last := h[len(h)-1]
	h = h[:len(h)-1]
	l.heap = h
	for i := 0; len(h) > 0; {
		least := 4*i + 1
		if least >= len(h) {
			h[i] = last
			break
		}
		for c := least + 1; c < min(4*i+5, len(h)); c++ {
			if h[c].before(&h[least]) {
				least = c
			}
		}
		if !h[least].before(&last) {
			h[i] = last
			break
		}
		h[i] = h[least]
		i = least
	}
	return first.e, true
}

func (a *event[E]) before(b *event[E]) bool {
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

// place puts a value at a free place among all, or at their end, and returns its index.
func place[T any](all *[]T, free *[]int32, v T) int32 {
	if n := len(*free); n > 0 {
		i := (*free)[n-1]
		*free, (*all)[i] = (*free)[:n-1], v
		return i
	}
	*all = append(*all, v)
	return int32(len(*all) - 1)
}
