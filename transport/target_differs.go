package transport

import (
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
)

// atTarget is what a request costs at a Target, and the part of it that surely counts.
type atTarget struct {
	priced
	least limit.Cost
}

// findCosts finds the cost of a request at each Target. By each way it waits with the cost there. The
// cost of the call is the largest of each unit.
func (c *call) findCosts(body tokens.Body) (err error) {
	l, base, least, unknown, read := c.leaf, c.priced, c.least, c.unknown, body
	c.at = make([]atTarget, len(c.t.targets))
	last := -1
	for k := range l.ways() {
		w := l.by(k)
		if w.target.in == last {
			continue
		}
		last = w.target.in
		c.priced, c.least, c.unknown, body = base, least, unknown, read
		if name := w.target.renames(c.model); c.api != tokens.NoAPI && name != body.Model &&
			(tokens.Known(name) || !tokens.Known(body.Model)) { // a name of one's own tells less
			body.Model = name
			c.est = c.t.config.Tokens.Of(body)
		}
		c.costBy(w, body)
		c.at[last] = atTarget{c.priced, c.least}
		if c.unknown != "" {
			if e := c.unpriced(w); e != nil {
				err = e
				c.barred |= 1 << last
			}
		}
	}
	c.largest()
	for k := range l.ways() {
		if c.affords(l.by(k)) {
			return nil
		}
	}
	return err
}

// largest sets the cost of a call to the largest of its ways, and its costs by Target if those differ.
func (c *call) largest() {
	var cost, least limit.Cost
	differ, first := false, -1
	for k := range c.leaf.ways() {
		w := c.leaf.by(k)
		if !c.affords(w) {
			continue
		}
		a := &c.at[w.target.in]
		if first < 0 {
			first = w.target.in
		}
		differ = differ || a.cost != c.at[first].cost
		for u, n := range a.cost {
			cost[u], least[u] = max(cost[u], n), max(least[u], a.least[u])
		}
	}
	c.cost, c.least, c.costs = cost, least, nil
	if !differ {
		return
	}
	c.costs = make([]limit.Cost, len(c.at))
	for i := range c.costs {
		c.costs[i] = cost // of a Target to which it cannot go
	}
	for k := range c.leaf.ways() {
		if w := c.leaf.by(k); c.affords(w) {
			c.costs[w.target.in] = c.at[w.target.in].cost
		}
	}
}

// asks returns the cost with which a call waits for a Target; nil: there are none.
func (c *call) asks(g *target) *limit.Cost {
	if c.costs == nil || g == nil {
		return &c.cost
	}
	return &c.costs[g.in]
}

// asksOf returns the cost with which a call waits at a node.
func (c *call) asksOf(n *node) *limit.Cost {
	for k := range c.leaf.ways() {
		if w := c.leaf.by(k); c.costs != nil && slices.Contains(w.nodes[:w.count], n) {
			return c.asks(w.target)
		}
	}
	return &c.cost
}

// shrinkEach is shrink for the Targets whose requests count at a node.
func (c *call) shrinkEach(n *node) (changed bool) {
	c.at = slices.Clone(c.at) // a copy of the request may read the old one
	last := -1
	for k := range c.leaf.ways() {
		w := c.leaf.by(k)
		if w.target.in == last || !c.affords(w) || !slices.Contains(w.nodes[:w.count], n) {
			continue
		}
		last = w.target.in
		changed = c.shrinks(n, &c.at[last].cost, &c.at[last].least) || changed
	}
	if changed {
		c.largest()
	}
	return changed
}

// narrow is for a call with several ways. It returns the node that never lets it go by one of the open
// ways; nil: there is none, or no way is open.
func (c *call) narrow() *node {
	for k := range c.leaf.ways() {
		w := c.leaf.by(k)
		if w.look() != nil {
			continue
		}
		for _, n := range w.nodes[:w.count] {
			if _, _, found := n.most(*c.asks(w.target)); found {
				return n
			}
		}
	}
	return nil
}

// classesOf returns the classes of ways of a leaf, by which costs differ; nil: there are no Targets.
func classesOf(ways []*way) (all []int) {
	if len(ways) == 1 || ways[0].target == nil {
		return nil
	}
	for _, w := range ways {
		all = append(all, w.target.in)
	}
	return all
}

// inPaths are how paths name a model, as tokens.ModelOf reads them: what is before it, and what after.
var inPaths = [...][2]string{{"/deployments/", "/"}, {"/models/", ":"}, {"/model/", "/"}}

// renamePath gives the model in a path another name.
func renamePath(u *url.URL, model, name string) {
	for _, at := range inPaths {
		if before, rest, ok := strings.Cut(u.Path, at[0]+model+at[1]); ok {
			u.RawPath = renamedRaw(u.RawPath, at, model, name)
			u.Path = before + at[0] + name + at[1] + rest
			return
		}
	}
}

// renamedRaw is renamePath for an encoded path. An empty result means that Path says all.
func renamedRaw(raw string, at [2]string, model, name string) string {
	for _, end := range [...]string{at[1], url.QueryEscape(at[1])} {
		for _, m := range [...]string{model, url.PathEscape(model), strings.ReplaceAll(url.PathEscape(model), ":", "%3A")} {
			if before, rest, ok := strings.Cut(raw, at[0]+m+end); ok {
				return before + at[0] + url.PathEscape(name) + end + rest
			}
		}
	}
	return ""
}
