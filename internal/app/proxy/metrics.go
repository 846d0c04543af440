package proxy

import (
	"crypto/subtle"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"

	"github.com/paceline-go/paceline/observe"
)

// Metrics is an address for the numbers alone, which other machines may reach: /metrics, /livez and
// /readyz. It has no page and changes nothing. Its zero value: there is none.
type Metrics struct {
	// Listen is HOST:PORT.
	Listen string
	// Names lets labels name clients, keys, hosts and upstreams. If false, the numbers are sums.
	Names bool
	// Token is the hash of the token that readers of /metrics send: Authorization: Bearer TOKEN. If nil,
	// they need none. /livez and /readyz need none in any case.
	Token *KeyHash
	// TLS is for Listen, and may ask for certificates of readers. If nil, Listen speaks plain HTTP.
	TLS *tls.Config
}

func (c *Config) checkMetrics() error {
	m := &c.Metrics
	if m.Listen == "" {
		if *m != (Metrics{}) {
			return wrong("Metrics.Listen", "none, expected HOST:PORT such as 0.0.0.0:9090")
		}
		return nil
	}
	_, port, err := net.SplitHostPort(m.Listen)
	switch {
	case err != nil:
		return wrong("Metrics.Listen", "%q, expected HOST:PORT such as 0.0.0.0:9090", m.Listen)
	case port != "0" && (m.Listen == c.Listen || m.Listen == c.Admin || m.Listen == c.Forward.Listen):
		return wrong("Metrics.Listen", "%s is another address of this proxy; expected another port", m.Listen)
	}
	return nil
}

// NumberedSources are Sources, and no host is in their names: an upstream without a name of its own has
// its number.
func (p *Proxy) NumberedSources() (all []observe.Source) {
	for i, u := range p.latest.Load().routes {
		name := u.Name
		if name == u.To.Host {
			name = strconv.Itoa(i + 1)
		}
		all = append(all, observe.NameSource(name, u.transport))
	}
	return all
}

// ServeMetrics serves the numbers at l: /metrics by h. Call it once, after Start and before Wait.
func (s *Server) ServeMetrics(l net.Listener, h http.Handler) {
	m := &s.proxy.config.Metrics
	s.metrics = s.server(s.proxy.readings(h))
	s.metrics.TLSConfig = s.proxy.latestTLS(func(c *Config) *tls.Config { return c.Metrics.TLS })
	own := newListener(l, &Bounds{Connections: adminConnections, Stall: s.proxy.config.Bounds.Stall})
	s.run(func() error {
		if m.TLS != nil {
			return s.metrics.ServeTLS(own, "", "")
		}
		return s.metrics.Serve(own)
	})
}

// readings is the handler of the address for numbers.
func (p *Proxy) readings(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	p.health(mux)
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		if token := p.latest.Load().config.Metrics.Token; token != nil {
			if h := HashKey(keyIn(r.Header.Get("Authorization"))); subtle.ConstantTimeCompare(h[:], token[:]) != 1 {
				w.Header().Set("WWW-Authenticate", `Bearer realm="paceline metrics"`)
				plain(http.StatusUnauthorized, "expected the token, as Authorization: Bearer TOKEN")(w, r)
				return
			}
		}
		metrics.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			plain(http.StatusMethodNotAllowed, "this can only be looked at")(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Sources are the present upstreams, by name, each with its snapshots. Apply may change the list.
func (p *Proxy) Sources() (all []observe.Source) {
	for _, u := range p.latest.Load().routes {
		all = append(all, observe.NameSource(u.Name, u.transport))
	}
	return all
}
