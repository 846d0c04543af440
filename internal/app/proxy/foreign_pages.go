package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/paceline-go/paceline/internal/secret"
)

// fromPage refuses the request of a foreign web page in a browser on this machine. Such a page
// would spend the secrets that the proxy adds. Pages of this machine may send. Every page may if
// Config.Open is set, or if clients have keys, since a foreign page has none.
func (v *visit) fromPage() *refusal {
	if !v.upstream.spends || v.proxy.servesPages() || !foreignPage(v.in) {
		return nil
	}
	return &refusal{status: http.StatusForbidden, kind: "page-elsewhere", title: "A page elsewhere asks for this",
		pointless: true,
		detail: "a browser says that it asks for a page of another site, which would spend the keys that the proxy has; " +
			"expected a program, a page of this machine, or clients with keys of their own"}
}

// servesPages reports whether pages of every site may send.
func (p *Proxy) servesPages() bool { return p.clients.keyed || p.config.Open }

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

// hasSecret reports whether requests to the upstream have a secret that their clients do not know:
// a key, a fixed field or parameter, a certificate, or a part of the path.
func (u *Upstream) hasSecret() bool {
	for i := range u.Targets {
		if u.at(i).hasSecret() {
			return true
		}
	}
	if len(u.Keys) > 0 || len(u.Secrets()) > 0 || u.TLS != nil &&
		(len(u.TLS.Certificates) > 0 || u.TLS.GetClientCertificate != nil) {
		return true
	}
	for segment := range strings.SplitSeq(u.To.Path, "/") {
		if secret.LooksRandom(segment) {
			return true
		}
	}
	return false
}

// isRandom reports whether a text looks like a key, and not like words.
func isRandom(text string) bool {
	return !strings.ContainsAny(text, " /;,") && !secret.Guessable(text)
}

// mayRead reports whether the page that sent a request may read an answer of the proxy's own.
func (v *visit) mayRead() bool {
	return v.in.Header.Get("Origin") != "" &&
		(v.proxy.servesPages() || !foreignPage(v.in) || v.upstream != nil && !v.upstream.spends)
}

// exposed are the fields of the proxy's own answers that a page may read.
const exposed = FieldWaited + ", Retry-After, Retry-After-Ms, X-Should-Retry"

// forPage adds the fields without which a browser keeps an answer from its page.
func (v *visit) forPage(h http.Header) {
	if !v.mayRead() {
		return
	}
	h.Set("Access-Control-Allow-Origin", v.in.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", exposed)
	h.Set("Vary", "Origin")
}

// preflight answers the question of a browser whether a page may send a request. It reports whether
// it did. Such a question has no key, so it takes no place in a limit. It goes on to the upstream
// only where a foreign page may send without a key of the proxy: there the upstream protects
// itself.
func (v *visit) preflight() bool {
	r := v.in
	method := r.Header.Get("Access-Control-Request-Method")
	if r.Method != http.MethodOptions || method == "" || r.Header.Get("Origin") == "" || !v.proxy.servesPages() &&
		foreignPage(r) {
		return false
	}
	h := v.w.Header()
	v.tellWaited(h)
	v.forPage(h)
	h.Set("Access-Control-Allow-Methods", method)
	if fields := r.Header.Get("Access-Control-Request-Headers"); fields != "" {
		h.Set("Access-Control-Allow-Headers", fields)
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	h.Set("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	v.w.WriteHeader(http.StatusNoContent)
	return true
}
