package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// Apply has requests that come from now on go by another configuration, whole or, with a *ConfigError, not at all. It needs Config.Live.
//
// Requests under way end as they began: also those that wait for an upstream that is there no more. Where only limits of an upstream change, or
// what is set on its requests, all go by the new limits at once and stay in line, and what was sent before still counts. A limit that is
// new counts what is in flight and what comes. Where another server is behind the name (see route), its limits begin anew. What is bound to
// the listeners cannot change: see fixed.
func (p *Proxy) Apply(c Config) error {
	p.applying.Lock()
	defer p.applying.Unlock()
	was := p.latest.Load()
	if !was.config.Live {
		return errors.New("this proxy is not Live: its configuration cannot be changed")
	}
	c.Live, c.Log, c.Access, c.Dial, c.Shared = true, was.config.Log, was.config.Access, was.config.Dial, was.config.Shared
	c, err := c.Checked()
	if err == nil {
		err = was.config.fixed(&c)
	}
	if err != nil {
		return err
	}
	for i := range c.Upstreams { // once it has begun, nothing stops it
		if _, err := transport.New(c.Upstreams[i].settings(&c)); err != nil {
			return &ConfigError{Field: fmt.Sprintf("Upstreams[%d]", i), Err: err}
		}
	}
	next := &Proxy{config: c, clients: newClients(&c, p.clientele), common: p.common}
	if err := next.build(was.routes); err != nil {
		return err
	}
	p.keepable.Add(c.Bounds.KeptInAll - was.config.Bounds.KeptInAll)
	for _, u := range next.routes {
		u.now.Store(&u.Upstream)
	}
	p.clientele.now.Store(&c.Clients)
	if p.state != nil {
		p.state.keepFor(c.kept())
	}
	p.latest.Store(next)
	for _, u := range next.routes {
		u.change()
	}
	p.clientele.change()
	for _, u := range was.routes {
		if !slices.ContainsFunc(next.routes, func(n *upstream) bool { return n.governed == u.governed }) {
			u.transport.Retire()
			u.closeIdle()
		}
	}
	return nil
}

// fixed returns an error if something differs that cannot change while the proxy runs.
func (c *Config) fixed(next *Config) error {
	const restart = "it changes from %v to %v, for which the proxy has to be started again; the rest is not applied either"
	for _, f := range []struct {
		field    string
		was, now any
	}{
		{"Listen", c.Listen, next.Listen}, {"Admin", c.Admin, next.Admin}, {"State", c.State, next.State}, {"TLS", c.TLS != nil, next.TLS != nil},
		{"Bounds.Header", c.Bounds.Header, next.Bounds.Header}, {"Bounds.Connections", c.Bounds.Connections, next.Bounds.Connections},
		{"Bounds.HeaderTimeout", c.Bounds.HeaderTimeout, next.Bounds.HeaderTimeout}, {"Bounds.IdleTimeout", c.Bounds.IdleTimeout, next.Bounds.IdleTimeout},
		{"Bounds.Stall", c.Bounds.Stall, next.Bounds.Stall},
	} {
		if f.was != f.now {
			return wrong(f.field, restart, f.was, f.now)
		}
	}
	if err := c.sameShared(next); err != nil {
		return &ConfigError{Field: "Share", Err: err}
	}
	return nil
}

// latestTLS is what the listener does: connections that come go by the certificates that are configured then. nil: it speaks plain HTTP.
func (p *Proxy) latestTLS() *tls.Config {
	if p.config.TLS == nil || !p.config.Live {
		return p.config.TLS
	}
	t := p.config.TLS.Clone()
	t.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := p.latest.Load().config.TLS.Clone()
		now.NextProtos = []string{"h2", "http/1.1"}
		return now, nil
	}
	return t
}

// way is a way to a server, with the lines and limits before it. Where only its settings change, those of the next way are the same.
type way struct {
	route
	transport *transport.Transport
	base      *http.Transport
	tokens    *tokens.Estimator // nil: nothing asks for tokens
	*governed
}

// governed is what ways have in common that have the same limits.
type governed struct {
	now atomic.Pointer[Upstream] // whose limits hold
}

// route is all that makes another way, whose limits begin anew: another server, or limits of another kind.
type route struct {
	to, preset                    string
	h2c, perSecond, limited, auto bool
	arrivals                      limit.Arrivals
	keys                          KeyHash // and what they are set in: transport has each from its beginning
}

func (u *Upstream) route() route {
	var keys strings.Builder
	for _, k := range u.Keys {
		keys.WriteString(k.Name + "\n" + string(k.Secret) + "\n")
	}
	for _, f := range slices.Concat(u.Header, u.Query) {
		if f.usesKey() {
			keys.WriteString(f.Name + "\n" + string(f.Value) + "\n")
		}
	}
	return route{
		to: u.To.Scheme + "://" + u.To.Host, preset: u.Preset, h2c: u.H2C, perSecond: u.PerSecond,
		limited: u.limited(), auto: u.Auto, arrivals: u.Arrivals, keys: HashKey(keys.String()),
	}
}

// limited tells whether the server's limits are configured, but for a Preset.
func (u *Upstream) limited() bool {
	return len(u.Limits) > 0 || u.InFlight > 0 || u.Auto || slices.ContainsFunc(u.Keys, func(k Key) bool { return len(k.Limits) > 0 })
}

// wayOf returns the way to the server of an upstream, with the lines and limits of the one before it that was called the same and led to the
// same server.
func (all routes) wayOf(u *Upstream, c *Config, common *common) (w *way, err error) {
	w = &way{route: u.route()}
	var was *way
	for _, each := range all {
		if each.Name == u.Name && each.way.route == w.route {
			was = each.way
			if sameTLS(each.TLS, u.TLS) && each.ConnectTimeout == u.ConnectTimeout {
				w.base = was.base
			}
			w.governed, w.tokens = was.governed, was.tokens
		}
	}
	if w.base == nil {
		w.base = u.base(c)
	}
	if w.tokens == nil && u.countsTokens(c) {
		w.tokens = estimator()
	}
	if w.governed == nil {
		w.governed = &governed{}
		w.now.Store(u)
	}
	t := u.settings(c)
	t.Base, t.Tokens, t.Clients = w.base, w.tokens, common.clientele.Clients
	if w.limited {
		t.Limit = func(p transport.Partition) limit.Limiter { return w.now.Load().of(p).held(c.Live) }
	}
	if kept := common.state; kept != nil {
		l := ledger{kept, u.Name}
		t.Recorder, t.Partition = l, kept.partition
		if w.auto {
			t.Limit = func(p transport.Partition) limit.Limiter {
				all := w.now.Load().of(p)
				all.kept = func(a *fairshare.Auto) limit.Limiter { return l.finds(p, a) }
				return all.held(c.Live)
			}
		}
	}
	if was == nil {
		w.transport, err = transport.New(t)
	} else {
		w.transport, err = was.transport.With(t)
	}
	return w, err
}

// change has the limits hold that are configured now, also for who waits.
func (w *way) change() {
	u := w.now.Load()
	w.transport.Change(func(now mono.Time, p transport.Partition, l limit.Limiter) {
		if v := limit.VaryingIn(l); v != nil {
			u.of(p).change(now, v)
		}
	})
}

func sameTLS(a, b *tls.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ServerName == b.ServerName && a.RootCAs.Equal(b.RootCAs) && slices.EqualFunc(a.Certificates, b.Certificates, func(x, y tls.Certificate) bool {
		return reflect.DeepEqual(x.Certificate, y.Certificate)
	})
}
