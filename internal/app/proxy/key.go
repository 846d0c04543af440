package proxy

import (
	"net/http"
	"slices"

	"github.com/paceline-go/paceline/transport"
)

// keys are the keys in transport's form. Transport chooses the key of a request when the request
// goes.
func (u *Upstream) keys() (all []transport.Key) {
	for i, g := range u.Targets {
		for _, k := range u.at(i).keys() {
			k.Target = g.Name
			all = append(all, k)
		}
	}
	for _, k := range u.Keys {
		all = append(all, transport.Key{Name: k.Name, Apply: func(r *http.Request) { u.apply(r, k) }})
	}
	return all
}

// hasKeys reports whether the upstream, or one of its targets, has keys in place of those of clients.
func (u *Upstream) hasKeys() bool {
	return len(u.Keys) > 0 || slices.ContainsFunc(u.Targets, func(g Target) bool { return len(g.Keys) > 0 })
}

// apply puts a key into a request.
func (u *Upstream) apply(r *http.Request, k Key) {
	for _, f := range u.Header {
		if f.usesKey() {
			r.Header.Set(f.Name, f.fill(k.Secret))
		}
	}
	r.URL.RawQuery = setQuery(r.URL.RawQuery, u.Query, k.Secret, true)
}

// Readmit puts all excluded keys back into use, for instance after a payment or the end of a ban.
// It returns their names, each with its upstream's. A key that is still bad is excluded again at
// its first request.
func (p *Proxy) Readmit() (again []string) {
	p.applying.Lock() // so that no transport is replaced meanwhile
	defer p.applying.Unlock()
	for _, u := range p.latest.Load().routes {
		for _, k := range u.keys() {
			if u.transport.Readmit(k.Name) {
				again = append(again, k.Name+" of "+u.Name)
			}
		}
	}
	return again
}
