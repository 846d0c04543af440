package proxy

import (
	"sync/atomic"
	"time"
)

// neverUsedAfter is how long after the start, or after a changed file, the log names the clients and limits of
// the configuration that no request was of.
const neverUsedAfter = time.Hour

// usage is which limits of an upstream that are for one model, resource or route have had a request.
type usage struct {
	used   []atomic.Bool // by Limits
	unused atomic.Int32
}

func (u *usage) begin(all []Limit) {
	u.used = make([]atomic.Bool, len(all))
	for i := range all {
		if all[i].Only != "" {
			u.unused.Add(1)
		}
	}
}

// note takes in a request.
func (u *upstream) note(applies func(*Limit) bool) {
	if u.usage.unused.Load() == 0 {
		return
	}
	for i := range u.Limits {
		l := &u.Limits[i]
		if l.Only != "" && !u.usage.used[i].Load() && applies(l) && u.usage.used[i].CompareAndSwap(false, true) {
			u.usage.unused.Add(-1)
		}
	}
}

// tellNeverUsed writes once what nothing was of, at a request that comes late enough.
func (p *Proxy) tellNeverUsed(now time.Time) {
	k := p.clients
	if now.Sub(k.began) < neverUsedAfter || k.told.Load() || !k.told.CompareAndSwap(false, true) {
		return
	}
	for _, who := range k.listed {
		told := k.Header != "" || len(who.Keys) > 0 || len(who.Addresses) > 0 // and not a program of exec
		if told && !who.seen.Load() {
			p.config.Log.Warn("no request was of this client in an hour", "client", who.Name)
		}
	}
	for _, u := range p.routes {
		for i := range u.Limits {
			if l := &u.Limits[i]; l.Only != "" && !u.usage.used[i].Load() {
				p.config.Log.Warn("no request counted in this limit in an hour", "upstream", u.Name, "limit", l.Text,
					"of", string(l.Scope)+" "+l.Only, "helps", "paceline proxy check FILE --route 'GET /path' names the limits of a request")
			}
		}
	}
}
