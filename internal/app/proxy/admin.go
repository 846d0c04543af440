package proxy

import (
	"net"
	"net/http"
	"strings"
)

// Mount serves h at a path of the admin listener, for instance the page and the metrics. Patterns
// are those of http.ServeMux. Only GET and HEAD get there. Call it before Start.
func (p *Proxy) Mount(pattern string, h http.Handler) { p.mounts[pattern] = h }

// MountForms is Mount for a path that also gets POSTs. h decides whether one may change something.
func (p *Proxy) MountForms(path string, h http.Handler) { p.mounts[path], p.forms = h, path }

// plain answers with a line of text.
func plain(status int, s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(s + "\n"))
	}
}

// health mounts /livez and /readyz.
func (p *Proxy) health(mux *http.ServeMux) {
	mux.HandleFunc("/livez", plain(http.StatusOK, "alive"))
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if p.stopping.Load() {
			plain(http.StatusServiceUnavailable, "stopping")(w, r)
			return
		}
		plain(http.StatusOK, "ready")(w, r)
	})
}

// admin is the handler of the admin listener.
func (p *Proxy) admin(at net.Addr) http.Handler {
	mux := http.NewServeMux()
	p.health(mux)
	for pattern, h := range p.mounts {
		mux.Handle(pattern, h)
	}
	names := map[string]bool{"localhost": true}
	if host, _, err := net.SplitHostPort(p.config.Admin); err == nil {
		names[strings.ToLower(host)] = true
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy",
			"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri "+
				"'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		host := strings.Trim(hostname(r.Host), "[]")
		switch {
		case !names[host] && !isLoopback(host): // a foreign page, whose host name resolves to this machine
			plain(http.StatusMisdirectedRequest,
				"this is asked for under a name that is not this machine's; expected 127.0.0.1 or localhost")(w, r)
		case r.Header.Get("Sec-Fetch-Site") == "cross-site":
			plain(http.StatusForbidden, "another site asks for this")(w, r)
		case r.Method != http.MethodGet && r.Method != http.MethodHead &&
			(r.Method != http.MethodPost || p.forms == "" || r.URL.Path != p.forms):
			h.Set("Allow", "GET, HEAD")
			plain(http.StatusMethodNotAllowed, "this can only be looked at")(w, r)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}
