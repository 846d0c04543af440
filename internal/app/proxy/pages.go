package proxy

import (
	"net/http"
	"net/url"
	"strings"
)

// fromPage refuses the request of a foreign web page in a browser on this machine. Such a page
// would spend the proxy's keys. Pages of this machine may send. Every page may if Config.Open is
// set, or if clients have keys, since a foreign page has none.
func (v *visit) fromPage() *refusal {
	if len(v.upstream.Keys) == 0 || v.proxy.clients.keyed || v.proxy.config.Open || !foreignPage(v.in) {
		return nil
	}
	return &refusal{status: http.StatusForbidden, kind: "page-elsewhere", title: "A page elsewhere asks for this", pointless: true,
		detail: "a browser says that it asks for a page of another site, which would spend the keys that the proxy has; expected a program, a page of this machine, or clients with keys of their own"}
}

// foreignPage reports whether the request comes from a browser, for a page of another machine. A
// page whose own name resolves to this machine (DNS rebinding) shows in the Host. Programs send
// neither field, and may use any Host.
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
	return err != nil || !isLoopback(u.Hostname()) // "null" is a file, or a page that hides its origin
}
