package node

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// What each node may hold at most others know before it does, so that one of them can say how much counts at most when the store has
// forgotten: see recall. A node asks for more in one turn, and has it in one that follows turns of all others that are there. So whoever comes
// back to a store that forgot has seen what any of them held at most. Those that have come since the last turn of one that is there hold no
// more than a small part of the whole together: unseenMost.
//
// A store whose clock nobody can set is one that does not forget while a node runs, and there nobody asks.

// unseenPart is one in so many of the whole; of a small whole it is unseenFew, or a quarter.
const (
	unseenPart = 32
	unseenFew  = 4
)

// presence is how long after its last turn a node is waited for, by those who would hold more and by newcomers. Until somewhat before that it can
// say what the others held.
func (c *Config) presence() time.Duration { return c.TTL * 3 / 2 }

func (c *Config) present(e *Entry, now mono.Time) bool { return e.Until.Add(c.presence()-c.TTL) > now }

// warned is for how long nodes are careful after a store forgot, which may do so again: who was away returns as a newcomer sooner, and they ask
// for less.
const warned = 30 * time.Second

func (b *Book) warns(now mono.Time) bool { return now.Sub(b.Forgot) < warned }

// away is for how long a node had no turn that is bounded as a newcomer when it comes back: for as long as grants hold where that is soon what a store
// that forgets makes others keep, and for twice that otherwise, so that a store which is away for some seconds costs nothing more.
func (c *Config) away(soon bool) time.Duration {
	if soon {
		return c.TTL
	}
	return c.TTL * 2
}

// absent tells whether a node was away for so long at the last turn of a book that it is bounded as a newcomer if it has come since: see returned. It
// takes itself for that a little earlier than others do.
func (b *Book) absent(e *Entry, c *Config) bool {
	away := c.away(b.warns(b.Latest)) + c.TTL/4
	return e.Until.Add(away-c.TTL) < b.Latest
}

// returned has a node that was not waited for, as it had no turn for long, be bounded as a newcomer: it gives back what it was granted and has
// not sent, and holds no more than newcomers may, beside what is in flight, until all that are there have seen it. So what it sends from now on is
// among what newcomers do if the store forgets that it came, and what it had sent before has arrived at the end that the book has. It counts to
// the return of the call, since the store may have been read just before. Others may have found it absent when they were still warned, and then it was
// away for longer than TTL; so for TTL more it is as if all were.
func (t *pending) returned(read mono.Time) {
	soon := t.book.warns(t.now.Add(-t.config.TTL))
	if t.steady || read.Sub(t.put) <= t.config.away(soon) {
		return
	}
	t.pieces++
	t.pool.parts, t.came = nil, nobody
	t.mine.Most, t.mine.Asks, t.mine.Asked = limit.Cost{}, limit.Cost{}, 0
}

// askMost sees to what the node may hold at most. It asks for a quarter more than it would hold after this turn, and for an even part
// of the whole where that is more, or half of that where the store forgot lately.
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
	case pending: // it is not asked for anew each turn, or it would be seen never
	case more:
		e.Asks, e.Asked = asks, t.book.Turn+1
	default:
		e.Asks = e.Most
	}
	if t.seen(e.Asked) {
		e.Most = e.Asks
	}
}

// mayTake is how much it may take in a turn: where the store forgot lately, and it is known what it takes, since it wanted more for some seconds, what it
// sends in one, and not twice that.
func (t *pending) mayTake() int64 {
	if t.book.warns(t.now) && t.wanted && t.began.Sub(t.wantedFrom) > 3*t.config.TTL {
		return max(4, t.twoTurns(t.rivals+1)/2)
	}
	return t.most(t.rivals + 1)
}

// seen tells whether all others that are there had a turn since that one of the book.
func (t *pending) seen(turn uint64) bool {
	for i := range t.others {
		if e := &t.others[i]; e.At <= turn && t.config.present(e, t.now) {
			return false
		}
	}
	return true
}

// has is what the node has that counts, as it tells in this turn.
func (t *pending) has() limit.Cost {
	has, all := t.keeps, t.pool.sum()
	plus(&has, &all)
	return has
}

// room is how many requests it may be granted so that it holds no more than it may, up to want.
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
		for u, n := range most { // half of that, so that whoever comes next has some
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

// unseenMost is what those hold at most together whom not all others have seen.
func unseenMost(whole limit.Cost) (most limit.Cost) {
	for u, n := range whole {
		most[u] = max((n+unseenPart-1)/unseenPart, min(unseenFew, (n+3)/4))
	}
	return most
}

// wholeOf is how much of each unit may go at once where nothing is used. 0: it is not limited.
func wholeOf(l limit.Limiter, now mono.Time) (whole limit.Cost) {
	for _, u := range limit.AppendUsage(nil, l, now) {
		if whole[u.Unit] == 0 || u.Allowed < whole[u.Unit] {
			whole[u.Unit] = max(u.Allowed, 1)
		}
	}
	return whole
}

// ahead is by how much the arrival of a request may be later than the turn that tells of it. Others are told later: those that are on their
// way for all that anybody knows, and were they told now, and the store forgot that, they would count for too short a time.
func (n *Node) ahead() time.Duration { return 100*time.Millisecond + n.grain }

// ripe puts the answers that may be told in this turn first, and returns how many those are.
func (t *pending) ripe() int {
	if t.book.Blank && t.now < t.book.Quiet {
		return 0 // whoever knows what was lost comes yet, and does not know of these
	}
	if t.book.From != "" {
		return 0
	}
	if t.steady {
		return len(t.answers)
	}
	left, bounded := t.mayTell()
	var ripe, rest []answer
	for _, a := range t.answers {
		o := t.outcome(&a)
		switch {
		case -o.ArrivedAgo > t.ahead():
			rest = append(rest, a)
		case a.told > 0: // in a turn of which nobody knows whether it was put
			minus(&left, &a.cost)
			ripe = append(ripe, a)
		case bounded && !within(&a.cost, &left):
			rest, t.holdsBack = append(rest, a), true
		default:
			minus(&left, &a.cost)
			ripe = append(ripe, a)
		}
	}
	copy(t.answers[copy(t.answers, ripe):], rest)
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
