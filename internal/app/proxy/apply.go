package proxy

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// Apply changes the configuration for all requests from now on. It takes effect as a whole or, with
// a *ConfigError, not at all. It needs Config.Live.
//
// Requests under way end as they began, also those that wait for a removed upstream. If only limits
// or fields of an upstream change, all its requests go by the new limits at once. They keep their
// turns, and earlier requests still count. A new limit counts the requests in flight and the later
// ones. If another server is behind the name (see route), its limits begin anew; with Config.State,
// they count what was sent to the same host with the same key. An upstream that is
// taken out and comes back goes on where it was. Settings of the listeners cannot change: see fixed.
//
// Changes by Turn go on, where the configuration states the same as before.
func (p *Proxy) Apply(c Config) error {
	p.applying.Lock()
	defer p.applying.Unlock()
	c, err := p.checked(c)
	if err != nil {
		return err
	}
	next, held, ended := p.turns.base.keep(p.latest.Load().config, c, p.turns.made)
	if err := p.applyLocked(next); err != nil {
		return err
	}
	p.tellEnded(ended)
	p.turns.mu.Lock()
	defer p.turns.mu.Unlock()
	p.turns.base, p.turns.made = c, held
	return nil
}

// checked is a configuration for the place of the present one, with its defaults.
func (p *Proxy) checked(c Config) (Config, error) {
	was := p.latest.Load()
	if !was.config.Live {
		return c, errors.New("this proxy is not Live: its configuration cannot be changed")
	}
	c.Live, c.Flags, c.Log, c.Access = true, was.config.Flags, was.config.Log, was.config.Access
	c.Dial, c.Shared, c.SentOfClients = was.config.Dial, was.config.Shared, was.config.SentOfClients
	c, err := c.Checked()
	if err == nil {
		err = was.config.fixed(&c)
	}
	return c, err
}

// applyLocked changes to a checked configuration.
func (p *Proxy) applyLocked(c Config) error {
	was := p.latest.Load()
	for i := range c.Upstreams { // from here on Apply cannot fail
		if _, err := transport.New(c.Upstreams[i].settings(&c)); err != nil {
			return &ConfigError{Field: fmt.Sprintf("Upstreams[%d]", i), Err: err}
		}
	}
	next := &Proxy{config: c, clients: newClients(&c, p.clientele), common: p.common}
	if err := next.build(slices.Concat(p.formerRoutes(), was.routes)); err != nil {
		return err
	}
	p.keepable.Add(c.Bounds.KeptInAll - was.config.Bounds.KeptInAll)
	p.clientele.now.Store(&c.Clients)
	if p.state != nil {
		p.state.keepFor(c.kept())
	}
	p.latest.Store(next)
	for _, u := range next.routes {
		u.change()
	}
	p.clientele.change()
	p.restAgainLocked(was.routes, next.routes)
	p.part(was, next)
	return nil
}

// former is an upstream that is not in the configuration any more. What was sent there still counts,
// so it is kept for that long: it may come back, as after a mistake in the file.
type former struct {
	*upstream
	until time.Time
}

func (c *common) formerRoutes() (all routes) {
	for _, f := range c.former {
		all = append(all, f.upstream)
	}
	return all
}

// part takes leave of the upstreams of was that are not in next.
func (c *common) part(was, next *Proxy) {
	now := time.Now()
	in := func(all routes, u *upstream) bool {
		return slices.ContainsFunc(all, func(n *upstream) bool { return n.governed == u.governed })
	}
	c.former = slices.DeleteFunc(c.former, func(f former) bool {
		over := now.After(f.until) && !in(next.routes, f.upstream)
		if over {
			f.transport.Retire()
		}
		return over || in(next.routes, f.upstream)
	})
	for _, u := range was.routes {
		if !in(next.routes, u) {
			u.closeIdle()
			c.former = append(c.former, former{u, now.Add(was.config.kept())})
		}
	}
}

// fixed returns an error if next changes a setting that cannot change while the proxy runs.
func (c *Config) fixed(next *Config) error {
	const restart = "it changes from %v to %v, for which the proxy has to be started again; the rest is not applied either"
	for _, f := range []struct {
		field    string
		was, now any
	}{
		{"Listen", c.Listen, next.Listen}, {"Admin", c.Admin, next.Admin}, {"State", c.State, next.State},
		{"Sent", c.Sent, next.Sent},
		{"Handover", c.Handover, next.Handover},
		{"Forward", c.Forward, next.Forward},
		{"Metrics.Listen", c.Metrics.Listen, next.Metrics.Listen}, {"Metrics.Names", c.Metrics.Names, next.Metrics.Names},
		{"TLS", c.TLS != nil, next.TLS != nil}, {"Metrics.TLS", c.Metrics.TLS != nil, next.Metrics.TLS != nil},
		{"Bounds.Header", c.Bounds.Header, next.Bounds.Header},
		{"Bounds.Connections", c.Bounds.Connections, next.Bounds.Connections},
		{"Bounds.HeaderTimeout", c.Bounds.HeaderTimeout, next.Bounds.HeaderTimeout},
		{"Bounds.IdleTimeout", c.Bounds.IdleTimeout, next.Bounds.IdleTimeout},
		{"Bounds.Stall", c.Bounds.Stall, next.Bounds.Stall}, {"Bounds.Frozen", c.Bounds.Frozen, next.Bounds.Frozen},
	} {
		if f.was != f.now {
			return wrong(f.field, restart, f.was, f.now)
		}
	}
	if err := c.sameBatches(next); err != nil {
		return err
	}
	if err := c.sameShared(next); err != nil {
		return &ConfigError{Field: "Share", Err: err}
	}
	return nil
}

// latestTLS is for a listener: new connections get the certificates of the latest configuration, as of
// returns them. nil: the listener speaks plain HTTP.
func (p *Proxy) latestTLS(of func(*Config) *tls.Config) *tls.Config {
	t := of(&p.config)
	if t == nil || !p.config.Live {
		return t
	}
	t = t.Clone()
	t.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		now := of(&p.latest.Load().config).Clone()
		now.NextProtos = []string{"h2", "http/1.1"}
		now.VerifyConnection = func(tls.ConnectionState) error { // before the last message of the client's handshake
			forward.AckNow(h.Conn)
			return nil
		}
		return now, nil
	}
	return t
}

// way is a way to a server, with its limits and lanes. If only settings change, the next way has
// the same limits and lanes.
type way struct {
	route
	transport *transport.Transport
	base      *http.Transport
	tokens    *tokens.Estimator // nil: no limit counts tokens
	*governed
}

// governed is shared by all ways that have the same limits.
type governed struct {
	now  atomic.Pointer[Upstream] // the configuration of the limits, also of keys that are away
	keys heldKeys                 // under common.applying
}

// route is all that identifies a way. A change of one of its fields makes a new way, whose limits
// begin anew: another server, or limits of another kind.
type route struct {
	to, preset                    string
	h2c, perSecond, limited, auto bool
	arrivals                      limit.Arrivals
	keyed, numbers                bool // requests get a key of the configuration, and a number
	nonceGap, nonceUnit           time.Duration
	targets                       KeyHash // and all of them but their limits
}

func (u *Upstream) route() route {
	return route{
		to: u.To.Scheme + "://" + u.To.Host, preset: u.Preset, h2c: u.H2C, perSecond: u.PerSecond,
		limited: u.limited(), auto: u.Auto, arrivals: u.Arrivals, keyed: len(u.Keys) > 0, numbers: u.Numbers(),
		nonceGap: u.NonceGap, nonceUnit: u.NonceUnit, targets: u.routeOfTargets(),
	}
}

// limited reports whether limits other than those of a Preset are configured.
func (u *Upstream) limited() bool {
	return len(u.Limits) > 0 || u.InFlight > 0 || u.Auto ||
		slices.ContainsFunc(u.Keys, func(k Key) bool { return len(k.Limits) > 0 })
}

// wayOf returns the way to the server of u. It keeps the limits and lanes of an earlier way with
// the same name to the same server.
func (all routes) wayOf(u *Upstream, c *Config, common *common) (w *way, err error) {
	w = &way{route: u.route()}
	var was *way
	var latest *upstream // of this name
	for _, each := range all {
		if each.Name == u.Name {
			latest = each
		}
	}
	if latest != nil && common.state != nil && latest.way.route != w.route { // what was sent by any of its ways counts
		common.state.recall(u.Name)
		all = nil
	}
	for _, each := range all {
		if each.Name == u.Name && each.way.route == w.route {
			was = each.way
			if SameTLS(each.TLS, u.TLS) && each.ConnectTimeout == u.ConnectTimeout {
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
		w.governed = &governed{keys: u.holds()}
		w.now.Store(u)
	}
	t := u.settings(c)
	keys, names, fresh := w.keys.after(u, c.Shared != nil, time.Now(), u.remembered(c))
	keys.apply(&t, names)
	t.Base, t.Tokens, t.Clients = send.Direct{Transport: w.base}, w.tokens, common.clientele.Clients
	limits := func(p transport.Partition) limit.Limiter { return w.now.Load().of(p).held(c.Live) }
	if w.limited {
		t.Limit = limits
	}
	for i := range t.Targets {
		if u.at(i).limited() {
			t.Targets[i].Limit = limits
		}
	}
	if kept := common.state; kept != nil {
		kept.beside.knows(u)
		l := ledger{kept, u.Name}
		t.Recorder, t.Partition = limitedLedger{l, w.governed}, kept.partition
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
		return w, err
	}
	w.now.Store(keys.withAway(u)) // a new key's limits are made from here on
	common.rename(u, names, keys)
	if w.transport, err = was.transport.With(t); err != nil {
		return nil, err
	}
	w.keys = keys
	for _, name := range fresh {
		w.transport.Readmit(name)
	}
	return w, nil
}

// change applies the configured limits at once, also to waiting requests.
func (w *way) change() {
	u := w.now.Load()
	w.transport.Change(func(now mono.Time, p transport.Partition, l limit.Limiter) {
		if v := limit.VaryingIn(l); v != nil {
			u.of(p).change(now, v)
		}
	})
}

// SameTLS reports whether two configurations are of the same certificates and authorities.
func SameTLS(a, b *tls.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ServerName == b.ServerName && a.RootCAs.Equal(b.RootCAs) &&
		slices.EqualFunc(a.Certificates, b.Certificates, func(x, y tls.Certificate) bool {
			return reflect.DeepEqual(x.Certificate, y.Certificate)
		})
}
