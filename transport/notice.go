package transport

import (
	"fmt"
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

// notices find out that charges are wrong, by answers:
//
//   - The server states what is used. Between two answers one request was under way, and nothing else
//     that counts there: with its key, or at the host if the limit is of the address. If that took more
//     than its charge says, twice the same, the route costs that.
//   - The answer names another resource than the charge. The route counts there from now on.
//
// Costs only grow by that, and only for the route. Each lesson is logged once, with the line of a file
// that mends it. The zero notices are ready. Safe for concurrent use.
type notices struct {
	taught atomic.Bool // there are lessons
	read   atomic.Bool // an answer stated what is used

	mu      sync.Mutex
	keys    map[Partition]*steps // by host and key
	hosts   map[string]*steps
	lessons map[charged]*lesson
	states  map[string]bool // hosts whose answers state what is used
}

// charged is requests that have one charge.
type charged struct {
	host, route string
	on          string // of the charge; empty: none fits
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

// seen is an attempt as the notices see it: among those of its key, and among all at its host.
type seen [2]struct {
	of    *steps // nil: it is not looked at, or over
	seq   uint64
	alone bool
}

// began notes an attempt whose host has charges.
func (n *notices) began(s *sent) {
	p, _ := s.partition()
	p = Partition{Host: p.Host, Key: p.Key}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.keys == nil {
		n.keys, n.hosts = map[Partition]*steps{}, map[string]*steps{}
	}
	key, host := n.keys[p], n.hosts[p.Host]
	if host == nil {
		host = began(n.hosts, strings.Clone(p.Host), s.t.config.MaxPartitions)
	}
	if key == nil {
		key = began(n.keys, p.own(), s.t.config.MaxPartitions)
	}
	for i, k := range [...]*steps{key, host} {
		k.inFlight++
		k.began++
		s.seen[i].of, s.seen[i].seq, s.seen[i].alone = k, k.began, k.inFlight == 1
	}
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

// reads reports whether answers of a host state what is used.
func (n *notices) reads(host string) bool {
	if !n.read.Load() {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.states[host]
}

// ends notes the end of an attempt that began, and whose answer was not looked at.
func (n *notices) ends(s *sent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range s.seen {
		s.seen[i].of.inFlight--
		s.seen[i].of = nil
	}
}

// mostStatements bounds what is remembered of a key: servers name their limits as they like.
const mostStatements = 64

// answered looks at what an answer states of the use of limits. An attempt that took more than its cost
// settles with that.
func (n *notices) answered(s *sent) {
	route := routeOf(s.req)
	if s.first && s.verdict.Result == limit.Accepted {
		s.t.shapes.learn(s.finds, s.cost)
	}
	n.mu.Lock()
	found, step := n.steps(s)
	if s.verdict.Result != limit.Accepted {
		n.mu.Unlock()
		return
	}
	is, wrong := charged{s.leaf.partition.Host, route, s.on()}, false
	for u := range step {
		wrong = n.step(is, limit.Unit(u), found[u], step[u], s.cost[u], s.first) || wrong
		if o := &s.verdict.Outcome; found[u] && step[u] > s.cost[u] { // so much is used, whoever used it
			if !o.Metered {
				o.Metered, o.Actual = true, s.cost
			}
			o.Actual[u] = step[u]
		}
	}
	n.mu.Unlock()
	if wrong {
		s.tellCost(route)
	}
}

// steps returns by how much the stated use rose, since the answer before, of each unit that is stated. It
// takes in the statements, and the end of the attempt. The lock is held.
func (n *notices) steps(s *sent) (found [len(limit.Cost{})]bool, step limit.Cost) {
	for i := range s.verdict.Said.Limits {
		l := &s.verdict.Said.Limits[i]
		u, ok := classify.UnitOf(l.Unit)
		if !ok || u != limit.Weight && u != limit.Orders {
			continue
		}
		if host := s.leaf.partition.Host; !n.states[host] && len(n.states) < mostLessons {
			if n.states == nil {
				n.states = map[string]bool{}
			}
			n.states[strings.Clone(host)] = true
			n.read.Store(true)
		}
		used := l.Used.N
		if !l.Used.OK {
			if used = -l.Remaining.N; !l.Remaining.OK {
				continue
			}
		}
		seen := &s.seen[0]
		if l.Scope == provider.IP || provider.OfAddress(l.Resource) {
			seen = &s.seen[1]
		}
		is := statement{l.Unit, strings.Clone(l.Policy), l.Resource}
		was, known := seen.of.last[is]
		if len(seen.of.last) < mostStatements || known {
			seen.of.last[is] = usedAt{used, seen.seq}
		}
		if !known || was.at != seen.seq-1 || !seen.alone || seen.of.began != seen.seq {
			continue
		}
		if !found[u] || used-was.n < step[u] {
			found[u], step[u] = true, used-was.n
		}
	}
	for i := range s.seen {
		k := &s.seen[i]
		if !k.alone || k.of.began != k.seq || s.verdict.Result != limit.Accepted {
			clear(k.of.last) // others may have been counted between this answer and the next
		}
		k.of.inFlight--
		k.of = nil
	}
	return found, step
}

// step takes in the step of a unit, with the lock held. It reports whether the cost was wrong, and was not
// known to be. The first request of a route that no row names is believed until the next.
func (n *notices) step(is charged, u limit.Unit, found bool, step, cost int64, first bool) (wrong bool) {
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
		n.taught.Store(true)
		return false
	}
	if l.step[u] != step {
		l.step[u] = step
		return false
	}
	l.cost[u], l.step[u] = step, 0
	n.taught.Store(true)
	return true
}

// lesson returns the lesson of requests, with the lock held; nil: there are too many.
func (n *notices) lesson(is charged) *lesson {
	l := n.lessons[is]
	if l == nil && len(n.lessons) < mostLessons {
		if n.lessons == nil {
			n.lessons = map[charged]*lesson{}
		}
		l = &lesson{}
		is.host, is.route = strings.Clone(is.host), strings.Clone(is.route)
		n.lessons[is] = l
	}
	return l
}

// moves lets requests count in another resource, which an answer names. It reports whether that is new.
func (n *notices) moves(is charged, resource string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.lesson(is)
	if l == nil || l.resource == resource {
		return false
	}
	l.resource = strings.Clone(resource)
	n.taught.Store(true)
	return true
}

// apply changes what a request costs, and where it counts, by the lessons.
func (n *notices) apply(c *call, p *Partition, resource *string) {
	is := charged{p.Host, routeOf(c.req), c.on()}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.lessons[is]
	if l == nil {
		return
	}
	for u, cost := range l.cost {
		c.worth[u] = max(c.worth[u], cost, l.guess[u])
	}
	switch {
	case l.resource == "":
	case provider.OfAddress(*resource): // there it has this name, as answers do not say
		*resource = ofAddress + l.resource
	default:
		*resource = l.resource
	}
}

// on is the requests of the charge; empty: none fits.
func (p *priced) on() string {
	if p.row == nil {
		return ""
	}
	return p.row.On
}

// tellCost logs what a route costs by its lesson.
func (s *sent) tellCost(route string) {
	var cost limit.Cost
	s.t.notices.mu.Lock()
	if l := s.t.notices.lessons[charged{s.leaf.partition.Host, route, s.on()}]; l != nil {
		cost = l.cost
	}
	s.t.notices.mu.Unlock()
	var worth limit.Cost
	if s.row != nil {
		worth = classify.CostOf(s.row.Cost)
	}
	s.tell(s.mends(route), worth, cost)
}

// tell logs what requests cost that their charge says wrong, and the line that mends it. worth is what
// the charge says, and cost what was found.
func (s *sent) tell(on string, worth, cost limit.Cost) {
	var is, not []string
	for u := range cost {
		unit := limit.Unit(u)
		if unit == limit.Requests {
			continue
		}
		if cost[u] > worth[u] {
			not = append(not, fmt.Sprintf("%d %v", worth[u], unit))
			worth[u] = cost[u]
		}
		if worth[u] > 0 {
			is = append(is, fmt.Sprintf("%d %v", worth[u], unit))
		}
	}
	line := fmt.Sprintf("{on: %q, cost: %q", on, strings.Join(is, ", "))
	if s.row != nil && s.row.Resource != "" {
		line += fmt.Sprintf(", resource: %q", s.row.Resource)
	}
	s.t.log.Warn("a request costs more than its charge says", "request", on, "costs", strings.Join(is, ", "), "not",
		strings.Join(not, ", "), "put into charges", line+"}")
}

// mends is the on of the charge that mends a wrong one: the same, if that has conditions.
func (s *sent) mends(route string) string {
	if on := s.on(); strings.Contains(on, "?") {
		return on
	}
	return route
}

// elsewhere moves the route to the resource that its answer names in place of its own.
func (s *sent) elsewhere(resource string) {
	route := routeOf(s.req)
	if !s.rows || s.stated || !s.t.notices.moves(charged{s.leaf.partition.Host, route, s.on()}, resource) {
		return
	}
	s.t.log.Warn("a request counts in another resource than its charge says", "request", route, "counts in", resource, "not",
		s.leaf.partition.Resource, "put into charges", fmt.Sprintf("{on: %q, resource: %q}", s.mends(route), resource))
}
