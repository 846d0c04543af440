package node

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// arrival is the state of a node in a book that is being gathered.
type arrival uint8

const (
	awaited      arrival = iota
	gone                 // it was away for so long that nobody waits for it: see absent
	back                 // the book has all of its reports
	backDoubting         // and it may have had a turn since the last that it knows of
	// And it had none. All others had seen that its turns are not far apart, and how much it may
	// hold.
	backBriskly
	arrivals
)

// nobody is Entry.At of the entries for nodes that cannot come.
const nobody = math.MaxUint64

func (b *Book) toldID() string { return fmt.Sprint("told ", b.Base) }

// gathering is how long nodes are awaited after a store lost its state. While the store is away
// they try each TTL/16: see again.
func (c *Config) gathering() time.Duration { return c.TTL / 9 }

// wasThere reports whether others wait for this node, so that it knows how much they may hold.
func (n *Node) wasThere(p mono.Time) bool {
	late := n.config.presence()
	return p < n.put.Add(late-late/8)
}

// vouches reports whether the node was there when the store had the gathered book.
func (n *Node) vouches(b *Book, p mono.Time) bool {
	return n.in && n.knows != nil && n.knows.Life == b.From && n.knows.Era == b.Era && n.wasThere(p)
}

// gathers reports whether the book was gathered at its last turn.
func (n *Node) gathers() bool { return n.view.Book != nil && n.view.Book.From != 0 }

// gather ends the gathering of a book if all nodes in it have come, or enough time has passed.
// Until then nothing is granted or reported, and a node that does not know the store's earlier
// state has to wait.
//
// When it ends, the book has all reports of the nodes that came: it is the latest that any of them
// knows. The other nodes' reports after that are bounded by the amounts that each may hold, if
// there are not too many: see mayTell.
func (n *Node) gather(b *Book, now, p mono.Time) error {
	if b.From == 0 {
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

// attendance lists the nodes that came while a book was gathered.
type attendance struct {
	missing         []*Entry // those that are awaited
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

// bounds reports whether mayTell bounds the missing nodes' reports. It does if few nodes may have
// had turns since the last known one.
func (a *attendance) bounds() bool {
	return a.brisk > 0 && len(a.missing)+a.doubting <= enough(a.brisk)
}

// gathered ends the gathering.
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
	b.From, b.Base, b.Gather = 0, 0, 0
}

// mayHaveTold returns the most that the missing nodes reported since the last known turn. That is
// the amount they may hold, also for nodes that not all others had seen.
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

// enough is the number of other nodes' turns, of so many nodes, after which a node may report more.
func enough(others int) int { return others * 2 / 3 }

// brisk reports whether a node's turns are not far apart, and all others have seen how much it may
// hold.
func (e *Entry) brisk() bool { return e.At != nobody && e.Brisk && e.Most != (limit.Cost{}) }

// said is the amount that a node reported in a turn of the book.
type said struct {
	in   uint64
	at   mono.Time // by the node's clock
	cost limit.Cost
}

// note notes a report.
func (n *Node) note(in uint64, cost limit.Cost) {
	n.said = slices.DeleteFunc(n.said, func(s said) bool { return n.began.Sub(s.at) > 2*n.config.presence() })
	if cost != (limit.Cost{}) {
		n.said = append(n.said, said{in, n.began, cost})
	}
}

// mayTell returns how much a node may report in this turn, if that is bounded. The bound is the
// amount it may hold, less its reports since two thirds of the brisk other nodes had turns. So if
// the store loses its state, and no more than that are missing, the reports of each since the last
// known turn are bounded. A new node reports nothing before more than that have seen it.
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
			return limit.Cost{}, true
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
