package node

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// arrival says what is known, while a book is gathered, of a node that is in it.
type arrival uint8

const (
	awaited      arrival = iota
	gone                 // it was away for so long that it is not waited for: see absent
	back                 // whatever it told is in the book
	backDoubting         // and it may have had a turn since the one that it knows of
	backBriskly          // it had none, and all others had seen that it had turns that are not far apart, and what it may hold
	arrivals
)

// nobody is Entry.At of what is in the book for those who cannot come.
const nobody = math.MaxUint64

func (b *Book) toldID() string { return fmt.Sprint("told ", b.Base) }

// gathering is for how long those who were there are waited for when a store has forgotten. While it is away they come each TTL/16: see again.
func (c *Config) gathering() time.Duration { return c.TTL / 9 }

// wasThere tells whether others wait for this node, so that it knows what they may hold.
func (n *Node) wasThere(p mono.Time) bool {
	late := n.config.presence()
	return p < n.put.Add(late-late/8)
}

// vouches tells whether the node was there when the store that is gathered had what is known of it.
func (n *Node) vouches(b *Book, p mono.Time) bool {
	return n.in && n.knows != nil && n.knows.Incarnation == b.From && n.knows.Era == b.Era && n.wasThere(p)
}

// gathers tells whether the book was gathered at its last turn.
func (n *Node) gathers() bool { return n.view.Book != nil && n.view.Book.From != "" }

// gather ends the gathering of a book if all have come who are in it, or were waited for long enough. Until then nothing is granted, nor told, and
// who does not know what the store had has to wait.
//
// When it ends, the book has all that was told by those who came: it is the latest that any of them knows. What others told after that is no more than
// each of them may hold, if there are not too many: see mayTell.
func (n *Node) gather(b *Book, now, p mono.Time) error {
	if b.From == "" {
		return nil
	}
	vouches := false
	if e := b.entry(n.config.ID); e != nil {
		if e.Came == awaited && n.vouches(b, p) {
			e.Came = back
			if n.doubts {
				e.Came = backDoubting
			} else if own := n.knows.entry(n.config.ID); own != nil && own.brisk() {
				e.Came = backBriskly
			}
		}
		vouches = e.Came >= back
	}
	all := attendance{}
	for i := range b.Nodes {
		all.count(&b.Nodes[i])
	}
	switch {
	case len(all.missing) == 0, now >= b.Gather:
		n.gathered(b, &all)
	case !vouches:
		return ErrWait
	}
	return nil
}

// attendance is who came while a book was gathered.
type attendance struct {
	missing         []*Entry // of those who are waited for
	doubting, brisk int
}

func (a *attendance) count(e *Entry) {
	switch {
	case e.At == nobody:
	case e.Came == awaited:
		a.missing = append(a.missing, e)
	case e.Came == backDoubting:
		a.doubting++
	case e.Came == backBriskly:
		a.brisk++
	}
}

// bounds tells whether what the missing told is bounded by mayTell: those who may have had turns since the last that is known are few.
func (a *attendance) bounds() bool {
	return a.brisk > 0 && len(a.missing)+a.doubting <= enough(a.brisk)
}

// gathered ends it.
func (n *Node) gathered(b *Book, all *attendance) {
	if told := b.entry(b.toldID()); told != nil {
		told.Until = told.Until.Add(-n.config.gathering())
		if all.bounds() {
			most := n.mayHaveTold(all.missing)
			for u := range told.Open {
				told.Open[u] = min(told.Open[u], most[u])
			}
		}
	}
	b.From, b.Base, b.Gather = "", 0, 0
}

// mayHaveTold is what the missing told at most since the last turn that anybody knows: as much as they may hold, those whom not all had seen as well.
func (n *Node) mayHaveTold(missing []*Entry) (most limit.Cost) {
	unseen := unseenMost(wholeOf(n.fresh, n.last))
	for _, e := range missing {
		hold := e.Open
		if e.Most == (limit.Cost{}) {
			for u := range hold {
				hold[u] = max(hold[u], unseen[u])
			}
		}
		plus(&most, &hold)
	}
	return most
}

func (b *Book) entry(id string) *Entry {
	if i := slices.IndexFunc(b.Nodes, func(e Entry) bool { return e.ID == id }); i >= 0 {
		return &b.Nodes[i]
	}
	return nil
}

// enough is after the turns of how many others a node may tell more, of so many.
func enough(others int) int { return others * 2 / 3 }

// brisk tells whether a node had turns that are not far apart, and all others have seen what it may hold.
func (e *Entry) brisk() bool { return e.At != nobody && e.Brisk && e.Most != (limit.Cost{}) }

// said is how much a node told in a turn of the book.
type said struct {
	in   uint64
	at   mono.Time // by the node's clock
	cost limit.Cost
}

// note notes what was told.
func (n *Node) note(in uint64, cost limit.Cost) {
	n.said = slices.DeleteFunc(n.said, func(s said) bool { return n.began.Sub(s.at) > 2*n.config.presence() })
	if cost != (limit.Cost{}) {
		n.said = append(n.said, said{in, n.began, cost})
	}
}

// mayTell is how much a node may tell in this turn, if that is bounded: no more than it may hold, with what it told since two thirds of those others had
// turns whose turns are not far apart. So if the store forgets, and no more than that are missing, what each of these told since the last turn that
// anybody knows is bounded. Who has just come tells nothing before more than that have seen it.
func (t *pending) mayTell() (left limit.Cost, bounded bool) {
	var turns []uint64
	seen := 0
	for i := range t.others {
		if e := &t.others[i]; e.brisk() && t.config.present(e, t.now) {
			turns = append(turns, e.At)
			if e.At > t.came {
				seen++
			}
		}
	}
	many, whole := enough(len(turns)), wholeOf(t.fresh, t.now)
	if left = t.mine.Most; left == (limit.Cost{}) {
		if len(turns) > 0 && seen <= many && whole != left {
			return left, true
		}
		left = unseenMost(whole)
	}
	if many == 0 {
		return left, false
	}
	slices.Sort(turns)
	for i := range t.said {
		if s := &t.said[i]; s.in > turns[len(turns)-many] {
			minus(&left, &s.cost)
		}
	}
	for u := range left {
		if whole[u] == 0 {
			left[u] = limit.MaxCost
		}
	}
	return left, true
}
