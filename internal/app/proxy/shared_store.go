package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// ShareBy says how limits are shared with other proxies, and with runs. Its zero value: they are
// not.
type ShareBy struct {
	// Store is the address of the store, which may include a password: sqlite:FILE, postgres://…,
	// redis://….
	Store Secret
	// Name is the beginning of the limits' names in the store. If empty, sharestore.DefaultName.
	Name string
	// Fallback is wait or split. If empty, wait.
	Fallback string
	// Weight and Least are this proxy's part when demand exceeds a limit: see share.Config.
	Weight, Least float64
}

// checkShare finds settings that do not go with a store.
func (c *Config) checkShare() error {
	if c.Share == (ShareBy{}) {
		return nil
	}
	switch {
	case c.Share.Store == "":
		return wrong("Share", "there is no store, expected sqlite:FILE, postgres://… or redis://…")
	case c.State != "":
		return wrong("State", "beside a store that limits are shared by, which has what was sent: expected one of the two")
	}
	if field, err := sharestore.WrongPart(c.Share.Weight, c.Share.Least); err != nil {
		return &ConfigError{Field: "Share." + field, Err: err}
	}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		field := fmt.Sprintf("Upstreams[%d]", i)
		switch {
		case len(u.Targets) > 0:
			return wrong(field+".Targets", "limits of targets cannot be shared by a store, expected an upstream for each")
		case u.Numbers():
			return wrong(field+".Header", "%s beside a store that limits are shared by: several processes number the same keys, "+
				"and their numbers cannot arrive in order; expected one process", nonceWord)
		case u.Auto:
			return wrong(field+".Auto", "limits that are to be found out cannot be shared by a store, expected limits")
		case u.Arrivals.OneWayMax > 0:
			return wrong(field+".Arrivals", "what a promise of latencies gains cannot be shared by a store")
		}
		made, err := u.limitsOf()
		if err != nil {
			return &ConfigError{Field: field, Err: err}
		}
		for _, p := range u.samples() {
			if l := made(p); l != nil {
				if err := sharestore.Shareable(l); err != nil {
					return &ConfigError{Field: field + ".Limits", Err: err}
				}
				if err := sharestore.CheckPart(l, u.Use); err != nil {
					return &ConfigError{Field: field + ".Use", Err: err}
				}
			}
		}
	}
	return nil
}

// limitsOf returns a function that makes all limits of a partition: the published and the
// configured ones.
func (u *Upstream) limitsOf() (func(transport.Partition) limit.Limiter, error) {
	published := func(transport.Partition) limit.Limiter { return nil }
	if u.Preset != "" {
		var variants []transport.Variant
		if u.PerSecond {
			variants = append(variants, transport.PerSecond)
		}
		var err error
		if published, err = transport.Published(u.Preset, variants...); err != nil {
			return nil, err
		}
	}
	return func(p transport.Partition) limit.Limiter {
		a, b := published(p), u.of(p).limiter()
		switch {
		case a == nil:
			return b
		case b == nil:
			return a
		}
		return limit.NewAll(a, b)
	}, nil
}

// samples are partitions of each scope, for each known key.
func (u *Upstream) samples() (all []transport.Partition) {
	keys := []string{""}
	for _, k := range u.Keys {
		keys = append(keys, k.Name)
	}
	host := u.To.Host
	for _, key := range keys {
		all = append(all, transport.Partition{Scope: provider.Key, Host: host, Key: key},
			transport.Partition{Scope: provider.Model, Host: host, Key: key, Model: "m"},
			transport.Partition{Scope: provider.Route, Host: host, Key: key, Route: "GET /"})
	}
	return append(all, transport.Partition{Scope: provider.IP, Host: host})
}

// placeOf is the name in the store of a partition's limits. several means that the proxy has other
// upstreams, too. A client's own limits are over all of them.
func (u *Upstream) placeOf(l *sharestore.Limits, p transport.Partition, several bool) sharestore.Place {
	place := sharestore.Place{Model: p.Model, Resource: p.Resource, Route: p.Route, Client: p.Client, All: p.Scope == provider.IP, Key: p.Key}
	if i := slices.IndexFunc(u.Keys, func(k Key) bool { return k.Name == p.Key }); i >= 0 {
		place.Key = l.Key(string(u.Keys[i].Secret))
	}
	if p.Resource == provider.ChargesOf(u.Seller()).Usual() { // as earlier versions name the key's
		place.Resource = ""
	}
	if several && p.Scope != transport.ScopeClient {
		place.Upstream = u.Name
	}
	return place
}

// share makes the limits of the transport shared.
func (u *Upstream) share(c *Config, t *transport.Config) {
	l := c.Shared
	t.Fill, t.Ramp = 0, 0 // a Fill needs limits with forecasts, and the ramp is in the store
	t.Share = func(p transport.Partition, made func() limit.Limiter) limit.Limiter {
		if p.Scope != transport.ScopeClient { // a client's own limits are no part of others'
			made = u.part(made)
		}
		own, err := l.Of(l.Name(u.placeOf(l, p, len(c.Upstreams) > 1)), made)
		if err != nil { // cannot fail: checkShare has made the same
			panic(err)
		}
		return own
	}
	t.Partition = func(r *http.Request) transport.Partition {
		p := partitionBy(r, "")
		p.Key = l.KeyBy(r.Header, credentialOf(r))
		return p
	}
}

// part returns a function that makes limits as far as they are used, and with the ramp.
func (u *Upstream) part(made func() limit.Limiter) func() limit.Limiter {
	return sharestore.Rising(sharestore.Part(made, u.Use), u.Ramp)
}

// CheckShared reads the store. It checks that the limits that are known beforehand are the ones
// that other processes have there. Those that the store does not have begin at once if that was stated
// (sharestore.StateNew). Limits of clients' keys, models, routes and resources are not known beforehand, and
// of clients those in the list are.
func (c *Config) CheckShared(ctx context.Context) error {
	l := c.Shared
	if l == nil {
		return nil
	}
	for _, k := range c.Clients.List {
		made := c.Clients.of(k.Name).limiter
		if made() == nil {
			continue
		}
		p := transport.Partition{Scope: transport.ScopeClient, Client: k.Name}
		if err := l.Begin(ctx, l.Name(c.Upstreams[0].placeOf(l, p, false)), made); err != nil {
			return err
		}
	}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		made, err := u.limitsOf()
		if err != nil {
			return err
		}
		for _, p := range u.samples() {
			if p.Scope != provider.Key && p.Scope != provider.IP || made(p) == nil {
				continue
			}
			begins := l.Begin
			if p.Scope == provider.Key && p.Key == "" && len(u.Keys) > 0 {
				begins = l.Check // no request counts there
			}
			if err := begins(ctx, l.Name(u.placeOf(l, p, len(c.Upstreams) > 1)),
				u.part(func() limit.Limiter { return made(p) })); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameShared returns an error if next changes a shared limit.
func (c *Config) sameShared(next *Config) error {
	if c.Share != next.Share {
		return errors.New("where limits are shared changes, for which the proxy has to be started again; the rest is not " +
			"applied either")
	}
	if c.Shared == nil {
		return nil
	}
	limits := func(k Client) any { return limits{rates: k.Limits, inFlight: k.InFlight} }
	for i := range next.Upstreams {
		n := &next.Upstreams[i]
		for j := range c.Upstreams {
			was := &c.Upstreams[j]
			if was.Name == n.Name &&
				!(reflect.DeepEqual(was.Limits, n.Limits) && was.Preset == n.Preset && was.PerSecond == n.PerSecond &&
					reflect.DeepEqual(keyLimits(was), keyLimits(n)) && was.InFlight == n.InFlight && was.Use == n.Use &&
					was.Ramp == n.Ramp) {
				return fmt.Errorf("limits of %s change, which others share: they have to be changed everywhere, and proxies "+
					"started again (paceline share forget); the rest is not applied either", n.Name)
			}
		}
	}
	if len(next.Upstreams) > 1 != (len(c.Upstreams) > 1) {
		return errors.New("limits that others share are called otherwise where there are several upstreams: the proxy has " +
			"to be started again; the rest is not applied either")
	}
	if !reflect.DeepEqual(limits(c.Clients.Default), limits(next.Clients.Default)) {
		return errors.New("limits of clients change, which others share: proxies have to be started again; the rest is not " +
			"applied either")
	}
	for _, k := range next.Clients.List {
		if i := slices.IndexFunc(c.Clients.List, func(o Client) bool { return o.Name == k.Name }); i >= 0 &&
			!reflect.DeepEqual(limits(c.Clients.List[i]), limits(k)) {
			return fmt.Errorf("limits of client %s change, which others share: proxies have to be started again; the rest is "+
				"not applied either", k.Name)
		}
	}
	return nil
}

func keyLimits(u *Upstream) map[string]any {
	all := map[string]any{}
	for _, k := range u.Keys {
		if len(k.Limits) > 0 {
			all[k.Name] = k.Limits
		}
	}
	return all
}
