package node

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Each node announces the most that it may hold before it holds it. So any node knows how much
// counts at most when the store has lost its state: see recall. A node asks for more in one turn.
// It has it in a turn that follows turns of all others that are there. So a node that comes back to
// such a store has seen the most of each. Nodes that came since its last turn together hold no more
// than a small part of the whole: unseenMost.
//
// A store whose clock nobody can set keeps its state while a node runs. There no node asks.

// unseenPart is one in so many of the whole. Of a small whole it is unseenFew, or a quarter.
const (
	unseenPart = 32
	unseenFew  = 4
)

// presence is how long after its last turn a node is awaited, by nodes that would hold more and by
// newcomers. Until somewhat before that it knows how much the others held.
func (c *Config) presence() time.Duration { return c.TTL * 3 / 2 }

func (c *Config) present(e *Entry, now mono.Time) bool { return e.Until.Add(c.presence()-c.TTL) > now }

// warned is how long nodes are careful after a store lost its state, since it may do so again. An
// absent node then returns as a newcomer sooner, and nodes ask for less.
const warned = 30 * time.Second

func (b *Book) warns(now mono.Time) bool { return now.Sub(b.Forgot) < warned }

// away is the time without a turn after which a node is bounded as a newcomer when it comes back.
// It is TTL if soon, since other nodes count the lost grants for that long. Otherwise it is twice
// TTL, so that a store that is away for some seconds costs nothing more.
func (c *Config) away(soon bool) time.Duration {
	if soon {
		return c.TTL
	}
	return c.TTL * 2
}

// absent reports whether a node was away for long at the last turn of a book. Such a node is
// bounded as a newcomer if it has come since: see returned. The node itself assumes that a little
// earlier than others do.
func (b *Book) absent(e *Entry, c *Config) bool {
	away := c.away(b.warns(b.Latest)) + c.TTL/4
	return e.Until.Add(away-c.TTL) < b.Latest
}

// returned bounds this node as a newcomer if it had no turn for long and nobody waited for it. It
// gives back its unsent grants. Beside its requests in flight it holds no more than newcomers may,
// until all present nodes have seen it. So if the store forgets that it came, its new requests are
// among those of newcomers. Its earlier requests have arrived at the end in the book.
//
// The time counts to the return of the call, since the store may have been read just before. Other
// nodes may have found it absent while they were still warned. Then it was away for longer than
// TTL. So for TTL more the rule is as if all were warned.
func (t *pending) returned(read mono.Time) {
	soon := t.book.warns(t.now.Add(-t.config.TTL))
	if t.steady || read.Sub(t.put) <= t.config.away(soon) {
		return
	}
	t.pieces++
	t.pool.parts, t.came = nil, nobody
	t.mine.Most, t.mine.Asks, t.mine.Asked = limit.Cost{}, limit.Cost{}, 0
}

// askMost sets how much the node may hold at most. It asks for a quarter more than it would hold
// after this turn. It asks for an even part of the whole where that is more, or half of that if the
// store lost its state lately.
func (t *pending) askMost() {
	if t.steady {
		return
	}
	t.whole = wholeOf(t.limiter, t.now)
	e, need := &t.mine, t.has()
	turn := min(t.mine.Want, t.mayTake())
	for u, n := range t.mean() {
		need[u] = min(need[u]+min(n, limit.MaxCost/(turn+1))*turn, limit.MaxCost)
	}
	if t.mine.Want > 0 && t.asksNow() {
		plus(&need, &t.head)
	}
	even := int64(len(t.others) + 1)
	if t.book.warns(t.now) {
		even *= 2
	}
	more, pending := false, e.Asks != e.Most
	asks := e.Most
	for u, whole := range t.whole {
		n := min(max(need[u]+need[u]/4, whole/even, 1), whole)
		if e.Most[u] > 2*n {
			e.Most[u], asks[u] = n, n
		}
		more = more || n > e.Most[u]
		asks[u] = max(asks[u], n)
	}
	switch {
	case pending: // a new request each turn would never be seen
	case more:
		e.Asks, e.Asked = asks, t.book.Turn+1
	default:
		e.Asks = e.Most
	}
	if t.seen(e.Asked) {
		e.Most = e.Asks
	}
}

// mayTake returns how many requests the node may take in a turn. Normally that is twice the number
// that it sends in one turn. It is once that number if the store lost its state lately, and the
// node wanted more for some seconds.
func (t *pending) mayTake() int64 {
	if t.book.warns(t.now) && t.wanted && t.began.Sub(t.wantedFrom) > 3*t.config.TTL {
		return max(4, t.twoTurns(t.rivals+1)/2)
	}
	return t.most(t.rivals + 1)
}

// seen reports whether all other present nodes had a turn since that turn of the book.
func (t *pending) seen(turn uint64) bool {
	for i := range t.others {
		if e := &t.others[i]; e.At <= turn && t.config.present(e, t.now) {
			return false
		}
	}
	return true
}

// has returns the cost of the node that counts, as it reports it in this turn.
func (t *pending) has() limit.Cost {
	has, all := t.keeps, t.pool.sum()
	plus(&has, &all)
	return has
}

// room returns how many requests, up to want, the node may be granted so that it holds no more than
// it may.
func (t *pending) room(want int64) int64 {
	most := t.mine.Most
	if t.steady {
		return want
	}
	if most == (limit.Cost{}) {
		most = unseenMost(t.whole)
		for i := range t.others {
			if e := &t.others[i]; e.Most == (limit.Cost{}) {
				minus(&most, &e.Open)
			}
		}
		for u, n := range most { // half of that, so that the next newcomer has some
			most[u] = min(n, max(n/2, 1))
		}
	}
	has, first, mean := t.has(), t.next(true), t.mean()
	for u, whole := range t.whole {
		left := most[u] - has[u] - first[u]
		switch {
		case whole == 0 || first[u] == 0 && mean[u] == 0:
		case left < 0:
			return 0
		case mean[u] > 0:
			want = min(want, 1+left/mean[u])
		}
	}
	return want
}

// unseenMost returns the most that all nodes hold together that not all others have seen.
func unseenMost(whole limit.Cost) (most limit.Cost) {
	for u, n := range whole {
		most[u] = max((n+unseenPart-1)/unseenPart, min(unseenFew, (n+3)/4))
	}
	return most
}

// wholeOf returns how much of each unit may go at once where nothing is used. 0: it is not limited.
func wholeOf(l limit.Limiter, now mono.Time) (whole limit.Cost) {
	for _, u := range limit.AppendUsage(nil, l, now) {
		if whole[u.Unit] == 0 || u.Allowed < whole[u.Unit] {
			whole[u.Unit] = max(u.Allowed, 1)
		}
	}
	return whole
}

// ahead is the most by which the arrival of a request may be later than the turn that reports it.
// Requests that are possibly still on their way are reported later. If they were reported now and
// the store lost that, they would count for too short a time.
func (n *Node) ahead() time.Duration { return 100*time.Millisecond + n.grain }

// ripe puts the answers that may be reported in this turn first, and returns their number.
func (t *pending) ripe() int {
	if t.book.Blank && t.now < t.book.Quiet {
		return 0 // a node that knows the lost state may still come, and does not know of these
	}
	if t.book.From != 0 {
		return 0
	}
	if t.steady && t.places == nil {
		return len(t.answers)
	}
	left, bounded := t.mayTell()
	ripe, rest := t.answers[:0], []answer(nil) // ripe is written where it was read
	for _, a := range t.answers {
		o := t.outcome(&a)
		switch {
		case -o.ArrivedAgo > t.ahead():
			rest = append(rest, a)
		case a.told > 0: // reported in a turn that may have been put
			minus(&left, &a.cost)
			ripe = append(ripe, a)
		case bounded && t.places == nil && !within(&a.cost, &left):
			rest, t.holdsBack = append(rest, a), true
		default:
			minus(&left, &a.cost)
			ripe = append(ripe, a)
		}
	}
	copy(t.answers[len(ripe):], rest)
	return len(ripe)
}

func within(c, most *limit.Cost) bool {
	for u, n := range c {
		if n > most[u] {
			return false
		}
	}
	return true
}
