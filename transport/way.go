package transport

import (
	"errors"
	"slices"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/send/costs"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
)

// The scopes of a request, narrowest first: those of provider.Scopes but All, since a request goes to
// one server.
var scopes = [...]provider.Scope{provider.Route, provider.Model, provider.Resource, provider.Key, provider.IP}

const maxNodes = len(scopes) + 2 // besides the scopes, the client's own limit and the one for all requests

// way is the limits of a request that goes to one server with one key. A leaf has one, or with
// Config.Targets and Config.Keys one per target and account.
type way struct {
	nodes  [maxNodes]*node // narrowest first
	count  int
	taught bool  // a limiter of a node learns from the server's statements
	server *node // one of the host's nodes
	room   *room // how many requests the host takes at once, with Config.Adaptive; otherwise nil
	path
	whole Partition // with a target: what its requests count in
	// Where an answer speaks of a resource or an endpoint, whom that concerns: see apart.
	plain, endpoint bool
}

// at returns the index of the node of a scope, or that of the key if the request has no such scope.
func (w *way) at(s provider.Scope) int {
	switch {
	case s == provider.All:
		s = provider.IP // an answer speaks for its own server alone
	case s == provider.Resource && w.plain:
		s = provider.Key
	case s == provider.Route && w.endpoint:
		s = provider.Resource
	}
	key := 0
	for i, n := range w.nodes[:w.count] {
		switch n.in().Scope {
		case s:
			return i
		case provider.Key:
			key = i
		}
	}
	return key
}

// apart finds out whom statements about a resource and about an endpoint concern. A limit that is
// configured for the key, where most requests count in one resource, is that resource's. A provider
// that limits endpoints means by them what its charges name.
func (w *way) apart(usual bool) {
	var own, there [len(scopes)]bool
	for _, n := range w.nodes[:w.count] {
		if i := slices.Index(scopes[:], n.in().Scope); i >= 0 {
			own[i], there[i] = n.stack.Own() != nil, true
		}
	}
	route, resource, key := 0, slices.Index(scopes[:], provider.Resource), slices.Index(scopes[:], provider.Key)
	w.plain = usual && !own[resource] && own[key]
	w.endpoint = !usual && there[resource] && (own[resource] || !own[route])
}

// has returns a function that reports whether a scope is that of node i.
func (w *way) has(i int) func(provider.Scope) bool {
	return func(s provider.Scope) bool { return w.at(s) == i }
}

// index returns the index of the node with a limit, -1 for the way to the host.
func (w *way) index(m *paceline.Limit) int {
	for i, n := range w.nodes[:w.count] {
		if n.limit == m {
			return i
		}
	}
	return -1
}

// look returns why no request may wait to go this way; nil: it may.
func (w *way) look() *Error {
	for _, n := range w.nodes[:w.count] {
		if n.shut.Load() {
			if err := n.look(); err != nil {
				return err
			}
		}
	}
	return nil
}

// ways is the number of ways.
func (l *leaf) ways() int { return 1 + len(l.more) }

// by returns one of the ways.
func (l *leaf) by(i int) *way {
	if i == 0 {
		return &l.way
	}
	return &l.more[i-1]
}

// node returns the node whose limit stood in the way.
func (l *leaf) node(err error) *node {
	if w, ok := errors.AsType[*paceline.WaitError](err); ok && w.Limit != nil {
		for k := range l.ways() {
			if i := l.by(k).index(w.Limit); i >= 0 {
				return l.by(k).nodes[i]
			}
		}
		for k := range l.ways() {
			if s := l.by(k).server; s.way == w.Limit {
				return s
			}
		}
		return l.server
	}
	return l.nodes[0]
}

// others names the ways past a node, which stood in the way; empty: there is none.
func (l *leaf) others(n *node) string {
	count, keys, targets := 0, true, true
	for k := range l.ways() {
		if w := l.by(k); !slices.Contains(w.nodes[:w.count], n) {
			count++
			keys, targets = keys && w.target == nil, targets && w.account == nil
		}
	}
	switch {
	case count == 0:
		return ""
	case keys:
		return text.Count(count, "other key", "other keys")
	case targets:
		return text.Count(count, "other target", "other targets")
	}
	return text.Count(count, "other target or key", "other targets or keys")
}

// look returns why no request may wait in line here; nil: it may. Of several ways, the first to
// open counts.
func (l *leaf) look() *Error {
	first := l.way.look()
	if len(l.more) == 0 {
		return first
	}
	open := first == nil
	out := !open && errors.Is(first, ErrKeys)
	for k := range l.more { // all of them, since a look opens what is not shut any more
		err := l.more[k].look()
		if open = open || err == nil; open {
			continue
		}
		// A key may go out meanwhile: the last text of ErrKeys names all that are out.
		if over := errors.Is(err, ErrKeys); out || !over && err.Ready.Before(first.Ready) {
			first, out = err, over
		}
	}
	if open {
		return nil
	}
	return first
}

// partitions yields the nodes of all ways, each once. It leaves out the nodes that leaves of other
// partitions have too: that of a client, and that of all requests.
func (l *leaf) partitions(yield func(*node) bool) {
	for n := range l.distinct {
		if s := n.in().Scope; s != ScopeClient && s != provider.All && !yield(n) {
			return
		}
	}
}

// distinct yields the nodes of all ways, each once.
func (l *leaf) distinct(yield func(*node) bool) {
	for _, n := range l.nodes[:l.count] {
		if !yield(n) {
			return
		}
	}
	for k := range l.more {
		for _, n := range l.more[k].nodes[:l.more[k].count] {
			if !slices.Contains(l.nodes[:l.count], n) && !yield(n) { // nodes that ways share are in all of them
				return
			}
		}
	}
}

// configured returns the configured limits of the server, by their scopes.
func (w *way) configured() (all []costs.Configured) {
	w.server.t.group.Update(func(mono.Time) {
		for _, n := range w.nodes[:w.count] {
			if own := n.stack.Own(); own != nil && n.in().Scope != ScopeClient {
				rules, _ := limit.Rates(own)
				all = append(all, costs.Configured{Scope: n.in().Scope, Rules: rules})
			}
		}
	})
	return all
}
