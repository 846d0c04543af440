package permit

import (
	"container/heap"
	"encoding/base64"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// permitID names a permit. Its 128 random bits are from the caller.
type permitID [16]byte

// String writes an ID as parseID reads it.
func (id permitID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

var strictBase64 = base64.RawURLEncoding.Strict()

// parseID reads an ID. ok is false for a text that String never writes.
func parseID[T string | []byte](s T) (id permitID, ok bool) {
	var all [18]byte // no buffer is too small for a text of this length
	if len(s) != base64.RawURLEncoding.EncodedLen(len(id)) {
		return id, false
	}
	n, err := strictBase64.Decode(all[:], []byte(s))
	if err != nil || n != len(id) {
		return id, false
	}
	return permitID(all[:len(id)]), true
}

// lifeSpans has the spans of a permit's life. Both are positive.
type lifeSpans struct {
	// SendWithin is how long after its grant a permit may be used.
	SendWithin time.Duration
	// TTL is how long after its grant, or after its latest renewal, a permit lapses. It is at least
	// SendWithin.
	TTL time.Duration
}

// holderLine is a connection of a holder, by a number of the caller.
type holderLine uint64

// heldPermits has the permits that are not over, each with a V of the caller.
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
// It is arithmetic on the now of its caller, without clock or lock. newHeldPermits makes it. Not safe
// for concurrent use.
type heldPermits[V any] struct {
	c     lifeSpans
	byID  map[permitID]*heldPermit[V]
	lines map[holderLine]*heldPermit[V] // the first of a list
	due   lapseHeap[V]                  // all permits; the first to lapse in front
}

type heldPermit[V any] struct {
	id             permitID
	holder         string
	line           holderLine
	sendBy, lapses mono.Time
	gone           bool           // its connection is
	before, after  *heldPermit[V] // in the list of its connection
	v              V
	index          int // in due
}

// newHeldPermits returns a heldPermits without permits.
func newHeldPermits[V any](c lifeSpans) *heldPermits[V] {
	return &heldPermits[V]{c: c, byID: map[permitID]*heldPermit[V]{}, lines: map[holderLine]*heldPermit[V]{}}
}

// Len is how many permits are not over.
func (b *heldPermits[V]) Len() int { return len(b.byID) }

// Grant begins the lives of permits with different ids, each with its V. It returns false, and changes nothing, if an ID is
// in use.
func (b *heldPermits[V]) Grant(now mono.Time, ids []permitID, holder string, line holderLine, all []V) bool {
	for _, id := range ids {
		if b.byID[id] != nil {
			return false
		}
	}
	sendBy, lapses := b.SendBy(now), now.Add(b.c.TTL)
	made := make([]heldPermit[V], len(ids)) // at once: they end at about the same time
	for i, id := range ids {
		p := &made[i]
		*p = heldPermit[V]{id: id, holder: holder, sendBy: sendBy, lapses: lapses, v: all[i]}
		b.byID[id] = p
		b.tie(p, line)
		heap.Push(&b.due, p)
	}
	return true
}

// SendBy is the last instant at which the holder of a permit granted now may use it.
func (b *heldPermits[V]) SendBy(now mono.Time) mono.Time { return now.Add(b.c.SendWithin) }

// Renew lets a permit lapse a TTL after now, and not before. From then on it is of this connection.
// It returns false if the holder has no such permit.
func (b *heldPermits[V]) Renew(now mono.Time, id permitID, holder string, line holderLine) bool {
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
func (b *heldPermits[V]) Settle(id permitID, holder string) (v V, ok bool) {
	p := b.of(id, holder)
	if p == nil {
		return v, false
	}
	heap.Remove(&b.due, p.index)
	b.end(p)
	return p.v, true
}

// Gone notes that a connection is gone. Its permits lapse now, or at their SendBy if that is later.
func (b *heldPermits[V]) Gone(now mono.Time, line holderLine) {
	for p := b.lines[line]; p != nil; p = p.after {
		p.gone = true
		p.lapses = min(p.lapses, max(now, p.sendBy))
		heap.Fix(&b.due, p.index)
	}
	delete(b.lines, line)
}

// Lapsed ends one permit that has lapsed, and returns its V. It returns false if there is none.
func (b *heldPermits[V]) Lapsed(now mono.Time) (v V, ok bool) {
	if len(b.due) == 0 || b.due[0].lapses > now {
		return v, false
	}
	p := heap.Pop(&b.due).(*heldPermit[V])
	b.end(p)
	return p.v, true
}

// Next is when the next permit lapses. It returns false if there is no permit.
func (b *heldPermits[V]) Next() (at mono.Time, ok bool) {
	if len(b.due) == 0 {
		return 0, false
	}
	return b.due[0].lapses, true
}

func (b *heldPermits[V]) of(id permitID, holder string) *heldPermit[V] {
	if p := b.byID[id]; p != nil && p.holder == holder {
		return p
	}
	return nil
}

// tie makes a permit one of a connection.
func (b *heldPermits[V]) tie(p *heldPermit[V], line holderLine) {
	first := b.lines[line]
	p.line, p.before, p.after = line, nil, first
	if first != nil {
		first.before = p
	}
	b.lines[line] = p
}

func (b *heldPermits[V]) untie(p *heldPermit[V]) {
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
func (b *heldPermits[V]) end(p *heldPermit[V]) {
	b.untie(p)
	delete(b.byID, p.id)
}

// lapseHeap is a heap of permits, by lapses.
type lapseHeap[V any] []*heldPermit[V]

func (q lapseHeap[V]) Len() int           { return len(q) }
func (q lapseHeap[V]) Less(i, j int) bool { return q[i].lapses < q[j].lapses }
func (q lapseHeap[V]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *lapseHeap[V]) Push(x any) {
	p := x.(*heldPermit[V])
	p.index = len(*q)
	*q = append(*q, p)
}

func (q *lapseHeap[V]) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last], *q = nil, (*q)[:last]
	return p
}
