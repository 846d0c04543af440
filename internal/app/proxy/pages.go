package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// fromPage refuses what a page of another site has a browser of this machine ask: whoever looks at it would spend the keys that the proxy has.
// Pages of this machine may ask, and so may anybody where that is said (Config.Open), or where clients have keys, of which such a page has none.
func (v *visit) fromPage() *refusal {
	if len(v.upstream.Keys) == 0 || v.proxy.clients.keyed || v.proxy.config.Open || !foreignPage(v.in) {
		return nil
	}
	return &refusal{status: http.StatusForbidden, kind: "page-elsewhere", title: "A page elsewhere asks for this", pointless: true,
		detail: "a browser says that it asks for a page of another site, which would spend the keys that the proxy has; expected a program, a page of this machine, or clients with keys of their own"}
}

// foreignPage tells whether a browser asks, and for a page that is not of this machine. A page whose own name was made to lead here (DNS rebinding)
// is told by the Host. Programs send neither field, and may call this machine what they like.
func foreignPage(r *http.Request) bool {
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	switch {
	case origin == "" && site == "":
		return false
	case !isLoopback(strings.Trim(hostname(r.Host), "[]")):
		return true
	case origin == "":
		return site == "cross-site"
	}
	u, err := url.Parse(origin)
	return err != nil || !isLoopback(u.Hostname()) // "null" is a file, or a page that hides where it is from
}
