package proxy

import (
	"net/http"

	"github.com/paceline-go/paceline/transport"
)

// keys are the keys as transport has them: which one a request goes with is decided when it goes.
func (u *Upstream) keys() (all []transport.Key) {
	for _, k := range u.Keys {
		all = append(all, transport.Key{Name: k.Name, Apply: func(r *http.Request) { u.apply(r, k) }})
	}
	return all
}

// apply gives a request a key.
func (u *Upstream) apply(r *http.Request, k Key) {
	for _, f := range u.Header {
		if f.usesKey() {
			r.Header.Set(f.Name, f.fill(k.Secret))
		}
	}
	r.URL.RawQuery = setQuery(r.URL.RawQuery, u.Query, k.Secret, true)
}

// Readmit has keys that are out of use tried again, as when one was paid for or its ban is over, and returns their names, each with its
// upstream's. What is still wrong with one takes it out again at the first request.
func (p *Proxy) Readmit() (again []string) {
	p.applying.Lock() // so that none is of a transport that has just gone
	defer p.applying.Unlock()
	for _, u := range p.latest.Load().routes {
		for _, k := range u.Keys {
			if u.transport.Readmit(k.Name) {
				again = append(again, k.Name+" of "+u.Name)
			}
		}
	}
	return again
}
