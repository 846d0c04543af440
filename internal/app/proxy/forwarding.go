package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/app/forward"
)

// Values of Forward.Tunnels.
const (
	TunnelsPublic = "public"
	TunnelsNone   = "none"
)

// forwardDays is how long a Server can be a forward proxy. Its certificates are made at the start.
const forwardDays = 366

func (c *Config) checkForward() error {
	f := &c.Forward
	if f.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(f.Listen)
	switch {
	case err != nil:
		return wrong("Forward.Listen", "%q, expected HOST:PORT such as 127.0.0.1:7880", f.Listen)
	case port != "0" && (f.Listen == c.Listen || f.Listen == c.Admin):
		return wrong("Forward.Listen", "%s is another address of this proxy; expected another port", f.Listen)
	case !isLoopback(host) && (c.Open || !c.Clients.HasKeys()):
		return wrong("Forward.Listen", "%s can be reached from other machines, and whoever reaches it would send with your "+
			"limits and your keys: expected clients with keys and no open proxy, or an address such as 127.0.0.1:7880", f.Listen)
	case f.Bundle == "":
		return wrong("Forward.Bundle", "none, expected a file to write: the certificates that programs are to trust")
	}
	switch f.Tunnels {
	case "":
		if f.Tunnels = TunnelsNone; isLoopback(host) {
			f.Tunnels = TunnelsPublic
		}
	case TunnelsNone, TunnelsPublic:
	default:
		return wrong("Forward.Tunnels", "%q, expected %s or %s", f.Tunnels, TunnelsPublic, TunnelsNone)
	}
	return nil
}

// Forwarding is what a forward proxy needs.
type Forwarding struct {
	Listener net.Listener
	// Bundle is the file to write. Getenv has the environment.
	Bundle  string
	Getenv  func(string) string
	Tunnels forward.Tunnels
	// Admits reports whether a client may connect. If nil, its key for the proxy decides.
	Admits func(*http.Request) bool
	// Days is how long it can run. If zero, a year.
	Days int
	// Upstreams are the addresses of those that are named. If nil, all are.
	Upstreams []*url.URL
	// Key is the key for the proxy of each client. If empty, a client has its own.
	Key string
	// Log gets what goes wrong. If nil, that of the Config.
	Log *slog.Logger
}

// Forward makes the Server a forward proxy, too, and writes the bundle. Call it before Wait. Named
// are the hosts of the upstreams that the Proxy has now.
func (s *Server) Forward(f Forwarding) (*forward.Door, error) {
	d, err := s.doorway(f)
	if err != nil {
		return nil, err
	}
	s.door, s.forward = d.Door, d.server
	l := s.listener(f.Listener, &s.proxy.config.Bounds)
	s.run(func() error { return d.server.Serve(l) })
	return d.Door, nil
}

// Doorway is a forward proxy of a Server that ends before it.
type Doorway struct {
	*forward.Door
	Answers
	server *http.Server
	serve  func(net.Listener) error
	ended  chan struct{}
}

// Answers are figures of the answers to the programs of a Doorway.
type Answers struct{ denied, bans, longest atomic.Int64 }

// take counts a visit that has ended.
func (a *Answers) take(v *visit) {
	if v.attempts > 0 && (v.w.status == http.StatusUnauthorized || v.w.status == http.StatusForbidden) {
		a.denied.Add(1)
	}
	if v.banned {
		a.bans.Add(1)
	}
	for longest := a.longest.Load(); int64(v.waited()) > longest; longest = a.longest.Load() {
		a.longest.CompareAndSwap(longest, int64(v.waited()))
	}
}

// Denied is how many answers had status 401 or 403, and Banned how many were bans by the provider's rules.
// LongestWait is that of a request for its turn.
func (a *Answers) Denied() int64              { return a.denied.Load() }
func (a *Answers) Banned() int64              { return a.bans.Load() }
func (a *Answers) LongestWait() time.Duration { return time.Duration(a.longest.Load()) }

// ForwardBeside makes a forward proxy beside others of the Server, and writes the bundle. Close it
// before the Server stops.
func (s *Server) ForwardBeside(f Forwarding) (*Doorway, error) {
	d, err := s.doorway(f)
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(d.ended)
		if err := d.serve(f.Listener); !errors.Is(err, http.ErrServerClosed) {
			s.proxy.config.Log.Error("a forward proxy ended", "err", err)
		}
	}()
	return d, nil
}

// Close accepts nothing more, and breaks off at the end of ctx what is still under way.
func (d *Doorway) Close(ctx context.Context) {
	if d.server.Shutdown(ctx) != nil {
		d.server.Close()
	}
	d.Shutdown(ctx)
	<-d.ended
}

func (s *Server) doorway(f Forwarding) (*Doorway, error) {
	p := s.proxy
	var hosts []string
	named := p.named
	if f.Upstreams == nil {
		for _, u := range p.routes {
			hosts = append(hosts, forward.CanonicalHost(u.To.Hostname()))
		}
	} else {
		for _, u := range f.Upstreams {
			hosts = append(hosts, forward.CanonicalHost(u.Hostname()))
		}
		named = func(host, port string) bool {
			return slices.ContainsFunc(f.Upstreams, func(u *url.URL) bool { return isAt(u, host, port) })
		}
	}
	slices.Sort(hosts)
	a, err := forward.NewAuthority(slices.Compact(hosts), cmp.Or(f.Days, forwardDays), time.Now())
	if err != nil {
		return nil, err
	}
	if err := a.WriteBundle(f.Bundle, f.Getenv); err != nil {
		return nil, fmt.Errorf("the bundle: %w", err)
	}
	if f.Admits == nil {
		f.Admits = p.admits
	}
	d := &Doorway{ended: make(chan struct{})}
	d.Door = forward.New(forward.Config{
		Authority: a, Named: named, Serve: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			d.Answers.take(p.visited(w, r, true))
		}), Server: s.server, Admits: f.Admits,
		Credential: f.Key, Tunnels: f.Tunnels, Proxies: p.config.proxies, Log: cmp.Or(f.Log, p.config.Log),
	})
	d.server = s.server(d.Door)
	d.server.ConnContext = forward.Connected
	d.server.Protocols.SetHTTP2(false)
	d.serve = func(l net.Listener) error { return d.server.Serve(newListener(l, &p.config.Bounds)) }
	return d, nil
}

// admits reports whether a client may use the forward proxy, by its key.
func (p *Proxy) admits(r *http.Request) bool {
	c := p.latest.Load().clients
	return !c.keyed || c.open || c.owner(keyIn(r.Header.Get("Proxy-Authorization"))) >= 0
}

// named reports whether an upstream is at a host and a port.
func (p *Proxy) named(host, port string) bool { return p.latest.Load().routes.at(host, port) != nil }

// at returns the upstreams at a host and a port. Those of http and https are one, where a URL names
// no port.
func (all routes) at(host, port string) (there routes) {
	for _, u := range all {
		if isAt(u.To, host, port) {
			there = append(there, u)
		}
	}
	return there
}

func isAt(u *url.URL, host, port string) bool {
	return forward.CanonicalHost(u.Hostname()) == host &&
		(portOf(u) == port || isStandard(u) && (port == "80" || port == "443"))
}

// of returns the upstream of a whole URL: of those at its host, the one with the longest path that
// the URL's path begins with, as servers read paths. If there is none, it returns the first, and
// reports that the URL is outside of its folder.
func (all routes) of(u *url.URL) (found *upstream, inside bool) {
	longest, path := -1, folded(u.Path)
	for _, x := range all.at(forward.CanonicalHost(u.Hostname()), portOf(u)) {
		folder := strings.TrimSuffix(folded(x.To.Path), "/")
		rest, ok := strings.CutPrefix(path, folder)
		if ok = ok && (rest == "" || rest[0] == '/'); ok && len(folder) > longest {
			found, longest, inside = x, len(folder), true
		}
		if found == nil {
			found = x
		}
	}
	return found, inside
}

func isStandard(u *url.URL) bool { return portOf(u) == standardPort[u.Scheme] }

var standardPort = map[string]string{"http": "80", "https": "443"}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return standardPort[u.Scheme]
}

// whole is the URL at the server of a request with a whole URL: that one.
func wholeOf(in *url.URL) *url.URL {
	out := *in
	out.User, out.Fragment = nil, ""
	return &out
}

// inTheClear refuses a request by http to an upstream of https whose keys it would get.
func (v *visit) inTheClear() *refusal {
	if !v.whole || !v.upstream.spends || v.in.URL.Scheme != "http" || v.upstream.To.Scheme != "https" {
		return nil
	}
	return &refusal{status: http.StatusForbidden, kind: "in-the-clear", title: "The upstream's keys go over https alone",
		pointless: true,
		detail:    "an http URL is asked for, and the upstream's keys would go in the clear; expected https"}
}
