package node

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Where nodes want more places than there are, each has a part by its weight, as of windows. Places do
// not come again by themselves, so a part is a number of places, and not a sequence of grants. A node
// that wants less than its part leaves the rest to the others.
//
// Parts are whole numbers. The places that remain go to the nodes that had the fewest place-seconds for
// their weight: that is their virtual time. Such a place moves on once its node is placesAhead ahead.
// So one place between two nodes is with each for some seconds, and none starves.

// placesAhead is how many seconds of a place that is.
const placesAhead = time.Second

// claim is a node that has places, or wants some.
type claim struct {
	entry Entry
	has   int64
	wants int64 // in all
	gets  int64
}

// placeSeconds is the virtual time of so many places in that time.
func placeSeconds(n int64, d time.Duration, e *Entry) uint64 {
	return uint64(float64(n) * d.Seconds() * 1e6 / float64(max(e.Counts, 1)))
}

// partOfPlaces returns the number of places that are this node's part.
func (t *pending) partOfPlaces() int64 {
	rest := wholeOf(t.limiter, t.now)[limit.Requests]
	own := t.hasPlaces()
	claims := []*claim{{entry: t.mine, has: own, wants: own + t.mine.Want}}
	for i := range t.others {
		e := &t.others[i]
		has := e.Open[limit.Requests]
		if e.Until <= t.now || e.At == nobody { // its places are nobody's
			rest -= has
			continue
		}
		claims = append(claims, &claim{entry: *e, has: has, wants: has + e.Want})
	}
	entries := make([]*Entry, len(claims))
	for i, c := range claims {
		entries[i] = &c.entry
	}
	weigh(entries)
	mine := claims[0]
	t.mine.Counts = mine.entry.Counts
	divideWhole(claims, max(rest, 0))
	return mine.gets
}

// divideWhole divides so many places among claims.
func divideWhole(claims []*claim, rest int64) {
	open := slices.Clone(claims)
	part := func(c *claim) float64 {
		weights := 0.0
		for _, o := range open {
			weights += float64(o.entry.Counts)
		}
		return float64(rest) * float64(c.entry.Counts) / weights
	}
	for {
		i := slices.IndexFunc(open, func(c *claim) bool { return float64(c.wants) <= part(c) })
		if i < 0 {
			break
		}
		open[i].gets = open[i].wants
		rest -= open[i].wants
		open = slices.Delete(open, i, i+1)
	}
	left := rest
	for _, c := range open {
		c.gets = int64(math.Floor(part(c)))
		left -= c.gets
	}
	behind := func(c *claim) uint64 {
		if c.has > c.gets { // it has one of these places
			return c.entry.Served
		}
		return c.entry.Served + placeSeconds(1, placesAhead, &c.entry)
	}
	slices.SortFunc(open, func(a, b *claim) int {
		return cmp.Or(cmp.Compare(behind(a), behind(b)), cmp.Compare(a.entry.ID, b.entry.ID))
	})
	for _, c := range open[:min(max(left, 0), int64(len(open)))] {
		c.gets++
	}
}
