// Package held has the lives of permits that other processes hold.
//
//	          Grant                  Settle
//	(none) ──────────▶ granted ─────────────────▶ settled: as the holder reports
//	                      │    ◀──┐ Renew
//	                      │ ──────┘
//	                      ▼ Lapsed
//	                   unknown: the holder may have sent it, and may not have
//
// A permit counts in full from its grant until its end. Its holder may write the request until
// SendBy. A permit ends as unknown when its TTL has passed since its grant or its latest renewal. It
// also ends so when its connection is gone, but not before SendBy: the holder may outlive a
// connection. The limiter then counts the request as arriving for Late more.
//
// A Book is arithmetic on the now of its caller. It owns no clock and no lock.
package held

import (
	"container/heap"
	"encoding/base64"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// ID names a permit. Its 128 random bits are from the caller.
type ID [16]byte

// String writes an ID as ParseID reads it.
func (id ID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

var strict = base64.RawURLEncoding.Strict()

// ParseID reads an ID. ok is false for a text that String never writes.
func ParseID[T string | []byte](s T) (id ID, ok bool) {
	var all [18]byte // no buffer is too small for a text of this length
	if len(s) != base64.RawURLEncoding.EncodedLen(len(id)) {
		return id, false
	}
	n, err := strict.Decode(all[:], []byte(s))
	if err != nil || n != len(id) {
		return id, false
	}
	return ID(all[:len(id)]), true
}

// Config has the spans of a permit's life. Both are positive.
type Config struct {
	// SendWithin is how long after its grant a permit may be used.
	SendWithin time.Duration
	// TTL is how long after its grant, or after its latest renewal, a permit lapses. It is at least
	// SendWithin.
	TTL time.Duration
}

// Line is a connection of a holder, by a number of the caller.
type Line uint64

// Book has the permits that are not over, each with a V of the caller. New makes it. Not safe for
// concurrent use.
type Book[V any] struct {
	c     Config
	byID  map[ID]*permit[V]
	lines map[Line]*permit[V] // the first of a list
	due   queue[V]            // all permits; the first to lapse in front
}

type permit[V any] struct {
	id             ID
	holder         string
	line           Line
	sendBy, lapses mono.Time
	gone           bool       // its connection is
	before, after  *permit[V] // in the list of its connection
	v              V
	index          int // in due
}

// New returns an empty Book.
func New[V any](c Config) *Book[V] {
	return &Book[V]{c: c, byID: map[ID]*permit[V]{}, lines: map[Line]*permit[V]{}}
}

// Len is how many permits are not over.
func (b *Book[V]) Len() int { return len(b.byID) }

// Grant begins the lives of permits with different ids, each with its V. It returns false, and changes nothing, if an ID is
// in use.
func (b *Book[V]) Grant(now mono.Time, ids []ID, holder string, line Line, all []V) bool {
	for _, id := range ids {
		if b.byID[id] != nil {
			return false
		}
	}
	sendBy, lapses := b.SendBy(now), now.Add(b.c.TTL)
	made := make([]permit[V], len(ids)) // at once: they end at about the same time
	for i, id := range ids {
		p := &made[i]
		*p = permit[V]{id: id, holder: holder, sendBy: sendBy, lapses: lapses, v: all[i]}
		b.byID[id] = p
		b.tie(p, line)
		heap.Push(&b.due, p)
	}
	return true
}

// SendBy is the last instant at which the holder of a permit granted now may use it.
func (b *Book[V]) SendBy(now mono.Time) mono.Time { return now.Add(b.c.SendWithin) }

// Renew lets a permit lapse a TTL after now, and not before. From then on it is of this connection.
// It returns false if the holder has no such permit.
func (b *Book[V]) Renew(now mono.Time, id ID, holder string, line Line) bool {
	p := b.of(id, holder)
	if p == nil {
		return false
	}
	b.untie(p)
	b.tie(p, line)
	p.gone, p.lapses = false, now.Add(b.c.TTL)
	heap.Fix(&b.due, p.index)
	return true
}

// Settle ends a permit by the report of its holder, and returns its V. It returns false if the holder
// has no such permit: it is over, or another's.
func (b *Book[V]) Settle(id ID, holder string) (v V, ok bool) {
	p := b.of(id, holder)
	if p == nil {
		return v, false
	}
	heap.Remove(&b.due, p.index)
	b.end(p)
	return p.v, true
}

// Gone notes that a connection is gone. Its permits lapse now, or at their SendBy if that is later.
func (b *Book[V]) Gone(now mono.Time, line Line) {
	for p := b.lines[line]; p != nil; p = p.after {
		p.gone = true
		p.lapses = min(p.lapses, max(now, p.sendBy))
		heap.Fix(&b.due, p.index)
	}
	delete(b.lines, line)
}

// Lapsed ends one permit that has lapsed, and returns its V. It returns false if there is none.
func (b *Book[V]) Lapsed(now mono.Time) (v V, ok bool) {
	if len(b.due) == 0 || b.due[0].lapses > now {
		return v, false
	}
	p := heap.Pop(&b.due).(*permit[V])
	b.end(p)
	return p.v, true
}

// Next is when the next permit lapses. It returns false if there is no permit.
func (b *Book[V]) Next() (at mono.Time, ok bool) {
	if len(b.due) == 0 {
		return 0, false
	}
	return b.due[0].lapses, true
}

func (b *Book[V]) of(id ID, holder string) *permit[V] {
	if p := b.byID[id]; p != nil && p.holder == holder {
		return p
	}
	return nil
}

// tie makes a permit one of a connection.
func (b *Book[V]) tie(p *permit[V], line Line) {
	first := b.lines[line]
	p.line, p.before, p.after = line, nil, first
	if first != nil {
		first.before = p
	}
	b.lines[line] = p
}

func (b *Book[V]) untie(p *permit[V]) {
	switch {
	case p.gone:
		return
	case p.before != nil:
		p.before.after = p.after
	case p.after != nil:
		b.lines[p.line] = p.after
	default:
		delete(b.lines, p.line)
	}
	if p.after != nil {
		p.after.before = p.before
	}
}

// end forgets a permit that is in due no more.
func (b *Book[V]) end(p *permit[V]) {
	b.untie(p)
	delete(b.byID, p.id)
}

// queue is a heap of permits, by lapses.
type queue[V any] []*permit[V]

func (q queue[V]) Len() int           { return len(q) }
func (q queue[V]) Less(i, j int) bool { return q[i].lapses < q[j].lapses }
func (q queue[V]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue[V]) Push(x any) {
	p := x.(*permit[V])
	p.index = len(*q)
	*q = append(*q, p)
}

func (q *queue[V]) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last], *q = nil, (*q)[:last]
	return p
}
