package permit

import (
	"container/heap"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// permitID names a permit. Its first eight bytes name the batch, and the next two are the place within it. The other
// eight are of the permit alone. All but the place is random: with 128 random bits, nobody guesses an ID.
type permitID [18]byte

const (
	batchBytes = 8
	placeBytes = 2
)

func (id *permitID) batch() uint64 { return binary.BigEndian.Uint64(id[:batchBytes]) }
func (id *permitID) place() int    { return int(binary.BigEndian.Uint16(id[batchBytes:])) }

// String writes an ID as parseID reads it.
func (id permitID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

var strictBase64 = base64.RawURLEncoding.Strict()

// parseID reads an ID. ok is false for a text that String never writes.
func parseID[T string | []byte](s T) (id permitID, ok bool) {
	if len(s) != base64.RawURLEncoding.EncodedLen(len(id)) {
		return id, false
	}
	n, err := strictBase64.Decode(id[:], []byte(s))
	if err != nil || n != len(id) {
		return permitID{}, false
	}
	return id, true
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
	c       lifeSpans
	open    int
	batches map[uint64]*heldBatch[V]
	lines   map[holderLine]map[*heldBatch[V]]struct{} // that have, or had, permits of a connection
	due     lapseHeap[V]                              // all batches; the first with a permit to lapse in front
}

// heldBatch is the permits of one Grant. Most end together, so there is little to do for each.
type heldBatch[V any] struct {
	ids    []permitID
	all    []V
	lives  []life
	holder string
	sendBy mono.Time
	open   int
	lapses mono.Time // no permit lapses earlier
	lines  []holderLine
	index  int // in due
}

// life is what a permit of a batch has of its own.
type life struct {
	lapses     mono.Time
	line       holderLine
	gone, over bool // gone: its connection is
}

// newHeldPermits returns a heldPermits without permits.
func newHeldPermits[V any](c lifeSpans) *heldPermits[V] {
	return &heldPermits[V]{c: c, batches: map[uint64]*heldBatch[V]{}, lines: map[holderLine]map[*heldBatch[V]]struct{}{}}
}

// Len is how many permits are not over.
func (b *heldPermits[V]) Len() int { return b.open }

// Grant begins the lives of permits, each with its V: one at least, and no more than a place can count. It
// makes their IDs of random ones, and keeps both slices. It returns false, and keeps nothing, if the random
// bits are in use.
func (b *heldPermits[V]) Grant(now mono.Time, random []permitID, holder string, line holderLine, all []V) bool {
	name := random[0].batch()
	if b.batches[name] != nil {
		return false
	}
	g := &heldBatch[V]{ids: random, all: all, lives: make([]life, len(all)), holder: holder, sendBy: b.SendBy(now),
		open: len(all), lapses: now.Add(b.c.TTL)}
	for i := range g.lives {
		binary.BigEndian.PutUint64(g.ids[i][:], name)
		binary.BigEndian.PutUint16(g.ids[i][batchBytes:batchBytes+placeBytes], uint16(i))
		g.lives[i] = life{lapses: g.lapses, line: line}
	}
	b.open += len(all)
	b.batches[name] = g
	b.tie(g, line)
	heap.Push(&b.due, g)
	return true
}

// SendBy is the last instant at which the holder of a permit granted now may use it.
func (b *heldPermits[V]) SendBy(now mono.Time) mono.Time { return now.Add(b.c.SendWithin) }

// Renew lets a permit lapse a TTL after now, and not before. From then on it is of this connection.
// It returns false if the holder has no such permit.
func (b *heldPermits[V]) Renew(now mono.Time, id permitID, holder string, line holderLine) bool {
	g, i := b.of(id, holder)
	if g == nil {
		return false
	}
	b.tie(g, line)
	g.lives[i] = life{lapses: now.Add(b.c.TTL), line: line}
	return true
}

// Settle ends a permit by the report of its holder, and returns its V. It returns false if the holder
// has no such permit: it is over, or another's.
func (b *heldPermits[V]) Settle(id permitID, holder string) (v V, ok bool) {
	g, i := b.of(id, holder)
	if g == nil {
		return v, false
	}
	return b.end(g, i), true
}

// Gone notes that a connection is gone. Its permits lapse now, or at their SendBy if that is later.
func (b *heldPermits[V]) Gone(now mono.Time, line holderLine) {
	for g := range b.lines[line] {
		for i := range g.lives {
			if l := &g.lives[i]; l.line == line && !l.gone && !l.over {
				l.gone, l.lapses = true, min(l.lapses, max(now, g.sendBy))
				g.lapses = min(g.lapses, l.lapses)
			}
		}
		heap.Fix(&b.due, g.index)
	}
	delete(b.lines, line)
}

// Lapsed ends the permits that have lapsed, and returns the V of each.
func (b *heldPermits[V]) Lapsed(now mono.Time) (all []V) {
	for len(b.due) > 0 && b.due[0].lapses <= now {
		g, next := b.due[0], mono.Max
		for i := range g.lives {
			switch l := &g.lives[i]; {
			case l.over:
			case l.lapses <= now:
				all = append(all, b.end(g, i))
			default:
				next = min(next, l.lapses)
			}
		}
		if g.open > 0 {
			g.lapses = next
			heap.Fix(&b.due, g.index)
		}
	}
	return all
}

// Next is an instant before which no permit lapses. After Lapsed, it is later than that now. It returns false if there is
// no permit.
func (b *heldPermits[V]) Next() (at mono.Time, ok bool) {
	if len(b.due) == 0 {
		return 0, false
	}
	return b.due[0].lapses, true
}

// of finds an open permit of a holder; nil: there is none.
func (b *heldPermits[V]) of(id permitID, holder string) (*heldBatch[V], int) {
	g, i := b.batches[id.batch()], id.place()
	if g == nil || i >= len(g.ids) || g.ids[i] != id || g.lives[i].over || g.holder != holder {
		return nil, 0
	}
	return g, i
}

// tie notes that a batch has permits of a connection.
func (b *heldPermits[V]) tie(g *heldBatch[V], line holderLine) {
	all := b.lines[line]
	if all == nil {
		all = map[*heldBatch[V]]struct{}{}
		b.lines[line] = all
	}
	if _, ok := all[g]; !ok {
		all[g] = struct{}{}
		g.lines = append(g.lines, line)
	}
}

// end ends a permit, and forgets a batch without one.
func (b *heldPermits[V]) end(g *heldBatch[V], i int) (v V) {
	v, g.all[i] = g.all[i], v
	g.lives[i].over = true
	b.open--
	if g.open--; g.open == 0 {
		heap.Remove(&b.due, g.index)
		delete(b.batches, g.ids[0].batch())
		for _, line := range g.lines {
			delete(b.lines[line], g)
		}
	}
	return v
}

// lapseHeap is a heap of batches, by lapses.
type lapseHeap[V any] []*heldBatch[V]

func (q lapseHeap[V]) Len() int           { return len(q) }
func (q lapseHeap[V]) Less(i, j int) bool { return q[i].lapses < q[j].lapses }
func (q lapseHeap[V]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *lapseHeap[V]) Push(x any) {
	g := x.(*heldBatch[V])
	g.index = len(*q)
	*q = append(*q, g)
}

func (q *lapseHeap[V]) Pop() any {
	last := len(*q) - 1
	g := (*q)[last]
	(*q)[last], *q = nil, (*q)[:last]
	return g
}
