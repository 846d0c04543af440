package node

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A node whose limit is a limit.Concurrency has places: each request takes one for as long as it lasts.
// The law: the places of all nodes, used or not, are at most the limit. Places are grants, and the book
// has them as it has those of windows. Four things differ:
//
//   - A request that ended leaves its place to its node, which uses it again without a turn. A request
//     of unknown outcome keeps it until it cannot arrive any more.
//   - A node keeps the places that it used lately. While others want some, it keeps no more than its
//     part, and gives up the others as its requests end: see place_parts.go.
//   - A node without turns goes on with its places for placesHold, and its requests may last for
//     placesLast after that. Then the others give it up. A node that was killed looks the same to them,
//     unless one of them can see that its process has ended.
//   - Nothing is reported but places. So a store that lost its state has lost no reports: see toldMost.

const (
	placesHold = time.Minute
	placesLast = 10 * time.Minute
	// PlacesKept is how long after its last turn others leave a node its places.
	PlacesKept = placesHold + placesLast
	// placesUsed is how long, and up to twice as long, a node keeps places that it does not use.
	placesUsed = 500 * time.Millisecond
)

// places is what a node knows of its places. Of two numbers, the second is of requests that leave
// something free.
type places struct {
	flights [2]int64
	peaks   [2][2]int64 // the most flights of each kind since the last mark, and between the two before
	mark    mono.Time
	most    [2]int64 // it gives up places beyond these: of all, and of the second kind
	wanted  bool     // other nodes wanted more at its last turn
	lacks   bool     // the node itself did not have all that it wanted then
	dropped bool     // it has given up a place since
}

// OfPlaces reports whether a book is of places.
func (b *Book) OfPlaces() bool { return strings.HasPrefix(b.Configuration, "Concurrency: ") }

// counted is what a cost counts in the limit.
func (n *Node) counted(cost limit.Cost) limit.Cost {
	if n.places != nil {
		return limit.One
	}
	return cost
}

// holding is how long grants hold after the beginning of a turn.
func (n *Node) holding() time.Duration {
	if n.places != nil {
		return placesHold
	}
	return n.config.TTL
}

// givenUp returns when a node without another turn is given up.
func (n *Node) givenUp(e *Entry) mono.Time {
	switch {
	case n.places == nil, e.At == nobody:
		return e.Until.Add(n.config.Late)
	case n.config.Ended != nil && n.config.Ended(e.ID):
		return e.Until
	}
	return e.Until.Add(PlacesKept - n.config.TTL)
}

// leavesSooner is by how much a node that was closed is given up sooner: once no request of it is in flight but
// those of unknown outcome, after Late.
func (n *Node) leavesSooner() time.Duration {
	if n.places == nil || !n.closed || n.places.flights != [2]int64{} {
		return 0
	}
	return PlacesKept - n.config.Late
}

// moved notes that a request of a kind went, or ended.
func (s *places) moved(yields bool, by int64) {
	if s == nil {
		return
	}
	k := bit(yields)
	s.flights[k] += by
	s.peaks[k][0] = max(s.peaks[k][0], s.flights[k])
}

// age forgets at a turn how many places were used before long.
func (s *places) age(p mono.Time) {
	if s == nil || p.Sub(s.mark) < placesUsed {
		return
	}
	s.mark = p
	for k := range s.peaks {
		s.peaks[k] = [2]int64{s.flights[k], s.peaks[k][0]}
	}
}

// idle is how many places beside those in use were used lately.
func (s *places) idle(yields bool) int64 {
	k := bit(yields)
	return max(s.peaks[k][0], s.peaks[k][1]) - s.flights[k]
}

// hastes reports whether the next turn is to be very soon: others wait for a place that was given up, or
// requests wait since a turn at which there were places for all.
func (n *Node) hastes() bool { return n.places.wanted && n.places.dropped || n.asks && !n.places.lacks }

// hurries reports whether the next turn is to be soon.
func (n *Node) hurries() bool { return n.asks || n.places.wanted && n.hasPlaces() > 0 }

// hasPlaces is how many places the node has.
func (n *Node) hasPlaces() int64 {
	has := n.holds()
	return has[limit.Requests]
}

// leave returns grants that a request did not use up, or the place of one that has ended.
func (n *Node) leave(s *sent) {
	if l := n.places; l != nil {
		if n.hasPlaces() >= l.most[0] || s.yields && l.flights[1]+n.stock(true) >= l.most[1] {
			l.dropped = true
			return
		}
	}
	n.pool.add(part{s.from, s.Cost, s.yields})
}

// dividePlaces is divide for places: it gives up those beyond the node's part, and takes free ones.
func (t *pending) dividePlaces() {
	s := t.places
	s.wanted, s.dropped = t.othersWant(), false
	for _, yields := range []bool{false, true} {
		keeps := s.idle(yields)
		if t.closed {
			keeps = 0
		} else if !yields {
			keeps += t.atHand()
		}
		t.keepPlaces(keeps, yields)
	}
	plain, yielding := t.wantsPlaces(false), t.wantsPlaces(true)
	t.mine.Want, t.wantsNow = plain+yielding, plain+yielding > 0
	s.lacks = t.wantsNow
	t.catchUp()
	t.mine.Served += placeSeconds(t.hasPlaces(), t.elapsed, &t.mine)
	s.most = [2]int64{math.MaxInt64, math.MaxInt64}
	if s.wanted {
		s.most[0] = t.partOfPlaces()
		over := t.hasPlaces() - s.most[0]
		t.keepPlaces(t.stock(true)-over, true)
		t.keepPlaces(t.stock(false)-(t.hasPlaces()-s.most[0]), false)
	}
	t.heirs = len(t.heirsOf(all))
	spare := max(t.atHand()-t.stock(false), 0)
	t.mine.Want += spare
	t.askMost()
	room := min(t.room(t.mine.Want), s.most[0]-t.hasPlaces())
	t.mine.Want -= spare
	t.leavePlaces(yielding)
	if t.now < t.book.Quiet {
		return
	}
	taken := t.takePlaces(min(plain, room), false)
	taken += t.takePlaces(min(yielding, room-taken), true)
	t.mine.Want -= taken
	t.mine.Yielding = min(t.mine.Yielding, t.mine.Want)
	s.lacks = t.mine.Want > 0
	t.takePlaces(min(spare, room-taken), false)
}

// othersWant reports whether other nodes have requests that wait for places.
func (t *pending) othersWant() bool {
	return slices.ContainsFunc(t.others, func(e Entry) bool { return e.Want > 0 && e.Until > t.now })
}

// atHand is how many places a node keeps for requests that will come. Where others want some, there are none.
func (t *pending) atHand() int64 {
	if used := t.places.idle(false) + t.places.flights[0]; used > 0 && !t.places.wanted && !t.closed {
		return 1 + used/4
	}
	return 0
}

// keepPlaces gives up the unused places of a kind beyond a number.
func (t *pending) keepPlaces(most int64, yields bool) {
	t.pool.trim(limit.Cost{limit.Requests: most}, yields)
	held := &t.kept
	if yields {
		held = &t.held
	}
	t.limiter.Settle(t.now, *held, &limit.Outcome{Result: limit.Unsent})
	*held = t.admit(t.now, t.pool.kind(yields))
}

// wantsPlaces returns how many places the waiting requests of a kind need. They may wait for another
// limit, of which the node knows nothing. So beside others it wants no more than it has, or a few.
func (t *pending) wantsPlaces(yields bool) int64 {
	const few = 4
	if !t.asks || t.leaves > 0 != yields {
		return 0
	}
	if _, ok := t.pool.covers(limit.One, yields); ok {
		return 0
	}
	if want := int64(max(t.waiting, 1)); len(t.others) > 0 {
		return min(want, max(t.hasPlaces(), few))
	} else {
		return want
	}
}

// leavePlaces sees to the part that requests leave free. What others hold and do not use belongs to it.
// Where others want more than they get, there is no such part.
func (t *pending) leavePlaces(yielding int64) {
	s, holds := t.places, t.places.flights[1]+t.stock(true)
	t.mine.Yielding, t.mine.Leaves = yielding, 0
	if yielding == 0 && holds == 0 || s.wanted {
		return
	}
	t.mine.Leaves = thousandths(t.yielded)
	whole := wholeOf(t.limiter, t.now)[limit.Requests]
	free := whole - t.hasPlaces() + t.stock(false)
	for i := range t.others {
		free -= t.others[i].Open[limit.Requests] - t.others[i].Keeps[limit.Requests]
	}
	if lack := limit.Leaves(whole, float64(t.mine.Leaves)/1000) - free; lack > 0 {
		s.most[1] = holds - lack
		t.keepPlaces(t.stock(true)-lack, true)
	}
}

// takePlaces grants up to so many places of a kind, and returns how many.
func (t *pending) takePlaces(most int64, yields bool) (n int64) {
	for n < most && t.readyOf(&t.mine, limit.One, yields) <= t.now {
		t.admit(t.now, limit.One)
		t.granted = append(t.granted, part{mono.Min, limit.One, yields})
		n++
	}
	return n
}
