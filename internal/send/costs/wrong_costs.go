package costs

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// mostLessons is how many routes may have a cost or a resource of their own, as answers have shown.
const mostLessons = 4096

// Notices find out that charges are wrong, by answers:
//
//   - The server states what is used. Between two answers one request was under way, and nothing else
//     that counts there: with its key, or at the host if the limit is of the address. If that took more
//     than its charge says, twice the same, the route costs that.
//   - The answer names another resource than the charge. The route counts there from now on.
//
// Costs only grow by that, and only for the route. The zero Notices are ready. Safe for concurrent use.
type Notices struct {
	taught atomic.Int64 // how often a lesson was new or changed
	read   atomic.Bool  // an answer stated what is used

	mu      sync.Mutex
	keys    map[whose]*steps
	hosts   map[string]*steps
	lessons map[Charged]*lesson
	states  map[string]bool // hosts whose answers state what is used
}

// whose is a key at a host.
type whose struct{ host, key string }

// Charged is requests that have one charge.
type Charged struct {
	Host, Route string
	On          string // of the charge; empty: none fits
}

// lesson is what answers have shown of a charge.
type lesson struct {
	step     limit.Cost // the latest step that was more than the cost
	guess    limit.Cost // the step of the first request of a route that no row names, until a second
	cost     limit.Cost // what it costs at least; 0: as its charge says
	resource string     // where it counts; empty: as its charge says
}

// steps are what a server stated of one key, or of the address.
type steps struct {
	inFlight int
	began    uint64 // how many attempts have begun
	last     map[statement]usedAt
	uses     map[statement]*use
	counted  limit.Cost // of all that began
	open     limit.Cost // of those in flight
}

// statement names what is stated: the usage of one limit.
type statement struct {
	unit           provider.Unit
	name, resource string
}

// usedAt is a usage, and the attempt whose answer stated it.
type usedAt struct {
	n  int64
	at uint64
}

// Seen is an attempt as the Notices see it: among those of its key, and among all at its host.
type Seen [2]struct {
	of    *steps // nil: it is not looked at, or over
	seq   uint64
	alone bool
	cost  limit.Cost
	// What had begun when it began, with its own, and the part of it in flight, without its own.
	counted, open limit.Cost
}

// IsOpen reports whether the attempt began, and did not end. A nil Seen never began.
func (s *Seen) IsOpen() bool { return s != nil && s[0].of != nil }

// Began notes an attempt with a key at a host that has charges. Pass the result to Answered or Ends. most
// bounds the keys, and the hosts, that are kept in mind.
func (n *Notices) Began(host, key string, cost limit.Cost, most int) *Seen {
	seen := &Seen{}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.keys == nil {
		n.keys, n.hosts = map[whose]*steps{}, map[string]*steps{}
	}
	ofHost, ofKey := n.hosts[host], n.keys[whose{host, key}]
	if ofHost == nil {
		ofHost = began(n.hosts, strings.Clone(host), most)
	}
	if ofKey == nil {
		ofKey = began(n.keys, whose{strings.Clone(host), strings.Clone(key)}, most)
	}
	for i, k := range [...]*steps{ofKey, ofHost} {
		k.inFlight++
		k.began++
		seen[i].open = k.open
		for u := range cost {
			k.counted[u], k.open[u] = k.counted[u]+cost[u], k.open[u]+cost[u]
		}
		seen[i].of, seen[i].seq, seen[i].alone, seen[i].cost = k, k.began, k.inFlight == 1, cost
		seen[i].counted = k.counted
	}
	return seen
}

// began makes the steps of one more, and forgets idle ones if there are too many.
func began[K comparable](all map[K]*steps, of K, most int) *steps {
	if len(all) >= most {
		maps.DeleteFunc(all, func(_ K, k *steps) bool { return k.inFlight == 0 })
	}
	k := &steps{last: map[statement]usedAt{}}
	all[of] = k
	return k
}

// Reads reports whether answers of a host state what is used.
func (n *Notices) Reads(host string) bool {
	if !n.read.Load() {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.states[host]
}

// Ends notes the end of an attempt whose answer was not looked at. It does nothing if it was.
func (n *Notices) Ends(seen *Seen) {
	if !seen.IsOpen() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	seen.close()
}

// close notes the end of an attempt.
func (s *Seen) close() {
	for i := range s {
		k := s[i].of
		for u := range s[i].cost {
			k.open[u] -= s[i].cost[u]
		}
		k.inFlight--
		s[i].of = nil
	}
}

// mostStatements bounds what is remembered of a key: servers name their limits as they like.
const mostStatements = 64

// Answered looks at what an answer states of the use of limits, to an attempt that counts with cost. An attempt
// that took more settles with that. first says that it is the first of a route that no row names: it is
// believed until the next. Answered reports whether the charge is wrong, and was not known to be. It does
// nothing to an attempt that is over.
func (n *Notices) Answered(seen *Seen, is Charged, v *classify.Verdict, cost *limit.Cost, first bool) (wrong bool) {
	if !seen.IsOpen() {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	found, step := n.steps(seen, is.Host, v)
	if v.Result != limit.Accepted {
		return false
	}
	for u := range step {
		wrong = n.step(is, limit.Unit(u), found[u], step[u], cost[u], first) || wrong
		if o := &v.Outcome; found[u] && step[u] > cost[u] { // so much is used, whoever used it
			if !o.Metered {
				o.Metered, o.Actual = true, *cost
			}
			o.Actual[u] = step[u]
		}
	}
	return wrong
}

// steps returns by how much the stated use rose, since the answer before, of each unit that is stated. It
// takes in the statements, and the end of the attempt. The lock is held.
func (n *Notices) steps(seen *Seen, host string, v *classify.Verdict) (found [len(limit.Cost{})]bool, step limit.Cost) {
	for i := range v.Said.Limits {
		l := &v.Said.Limits[i]
		u, ok := classify.UnitOf(l.Unit)
		if !ok || u != limit.Weight && u != limit.Orders {
			continue
		}
		n.reads(host)
		used := l.Used.N
		if !l.Used.OK {
			if used = -l.Remaining.N; !l.Remaining.OK {
				continue
			}
		}
		at := &seen[0]
		if l.Scope == provider.IP || provider.OfAddress(l.Resource) {
			at = &seen[1]
		}
		is := statement{l.Unit, strings.Clone(l.Policy), l.Resource}
		was, known := at.of.last[is]
		if len(at.of.last) < mostStatements || known {
			at.of.last[is] = usedAt{used, at.seq}
		}
		if !known || was.at != at.seq-1 || !at.alone || at.of.began != at.seq {
			continue
		}
		if !found[u] || used-was.n < step[u] {
			found[u], step[u] = true, used-was.n
		}
	}
	for i := range seen {
		k := &seen[i]
		if !k.alone || k.of.began != k.seq || v.Result != limit.Accepted {
			clear(k.of.last) // others may have been counted between this answer and the next
		}
	}
	seen.close()
	return found, step
}

// reads notes that answers of a host state what is used, and reports whether that is new. The lock is held.
func (n *Notices) reads(host string) bool {
	if n.states[host] || len(n.states) >= mostLessons {
		return false
	}
	if n.states == nil {
		n.states = map[string]bool{}
	}
	n.states[strings.Clone(host)] = true
	n.read.Store(true)
	return true
}

// step takes in the step of a unit, with the lock held. It reports whether the cost was wrong, and was not
// known to be. The first request of a route that no row names is believed until the next.
func (n *Notices) step(is Charged, u limit.Unit, found bool, step, cost int64, first bool) (wrong bool) {
	if !found {
		return false
	}
	l := n.lessons[is]
	if l != nil && l.guess[u] > 0 {
		same := l.guess[u] == step
		if same {
			l.cost[u] = step
		}
		l.guess[u] = 0
		return same
	}
	if step <= cost {
		if l != nil {
			l.step[u] = 0
		}
		return false
	}
	if l = n.lesson(is); l == nil {
		return false
	}
	if first {
		l.guess[u] = step
		n.taught.Add(1)
		return false
	}
	if l.step[u] != step {
		l.step[u] = step
		return false
	}
	l.cost[u], l.step[u] = step, 0
	n.taught.Add(1)
	return true
}

// Exceeds notes what the answer to a request states that it did cost. Where that is more than the charge
// says, later requests cost as much, unless they learn their cost: see Learns. A number that the body has
// is no lesson for other bodies. It reports whether that is new.
func (n *Notices) Exceeds(is Charged, row *provider.Charge, actual limit.Cost) (wrong bool) {
	for unit, most := range row.Cost {
		u, ok := classify.UnitOf(unit)
		if !ok || row.Answer[unit] == nil || row.Body[unit] != nil || Learns(row, unit) || actual[u] <= most {
			continue
		}
		n.mu.Lock()
		if l := n.lesson(is); l != nil && actual[u] > l.cost[u] {
			l.cost[u], wrong = actual[u], true
			n.taught.Add(1)
		}
		n.mu.Unlock()
	}
	return wrong
}

// lesson returns the lesson of requests, with the lock held; nil: there are too many.
func (n *Notices) lesson(is Charged) *lesson {
	l := n.lessons[is]
	if l == nil && len(n.lessons) < mostLessons {
		if n.lessons == nil {
			n.lessons = map[Charged]*lesson{}
		}
		l = &lesson{}
		is.Host, is.Route = strings.Clone(is.Host), strings.Clone(is.Route)
		n.lessons[is] = l
	}
	return l
}

// Moves lets requests count in another resource, which an answer names. It reports whether that is new.
func (n *Notices) Moves(is Charged, resource string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.lesson(is)
	if l == nil || l.resource == resource {
		return false
	}
	l.resource = strings.Clone(resource)
	n.taught.Add(1)
	return true
}

// HasTaught reports whether there are lessons.
func (n *Notices) HasTaught() bool { return n.taught.Load() > 0 }

// Lessons counts what was learned: two results that differ mean that a cost may have changed in between.
func (n *Notices) Lessons() int64 { return n.taught.Load() }

// Taught returns what requests cost at least, and where they count, by the lessons. The cost is zero, or the
// resource empty, if it is as their charge says.
func (n *Notices) Taught(is Charged) (cost limit.Cost, resource string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.lessons[is]
	if l == nil {
		return limit.Cost{}, ""
	}
	for u := range l.cost {
		cost[u] = max(l.cost[u], l.guess[u])
	}
	return cost, l.resource
}
