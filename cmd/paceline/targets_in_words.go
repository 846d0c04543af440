package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/secret"
)

// targets describes the targets of an upstream, and the order between them.
func (w *proxyWords) targets(c *proxy.Config, u *proxy.Upstream) {
	for i, x := range u.Servers() {
		g := &u.Targets[i]
		w.line("  target %s: %s/…", g.Name, strings.TrimSuffix(secret.SanitizeAddress(g.To.String()), "/"))
		if g.Path != "" {
			w.line("    its path is %s", g.Path)
		}
		for _, asked := range slices.Sorted(maps.Keys(g.Models)) {
			w.line("    its name of the model %s is %s", asked, g.Models[asked])
		}
		if g.Models != nil || strings.Contains(g.Path, "{model}") {
			w.line("    only requests whose model is known go there")
		}
		w.limits(x)
		w.prices(c, x)
		w.keys(x)
	}
	w.line("  a request goes to the target that may take it soonest%s", equals(u))
	for i := range u.Targets {
		w.spare(c, u, i)
	}
	w.apart(u)
	if a := u.Affinity; a.By != "" {
		w.line("    requests of a session, by %s, go to one target; they wait %s for it", strings.TrimSpace(a.By+" "+a.Header),
			plain(cmp.Or(a.Hold, 2*time.Second)))
	}
}

// equals says of which targets that holds, if some are spare.
func equals(u *proxy.Upstream) string {
	first := before(u, 1)
	if len(first) == len(u.Targets) {
		return ""
	}
	return ", of " + and(first)
}

// before are the targets that open before a time.
func before(u *proxy.Upstream, after int64) (names []string) {
	for _, g := range u.Targets {
		if int64(g.After) < after {
			names = append(names, g.Name)
		}
	}
	return names
}

// spare says when a spare target is used, and what that costs.
func (w *proxyWords) spare(c *proxy.Config, u *proxy.Upstream, i int) {
	g := &u.Targets[i]
	first := before(u, int64(g.After))
	shut := fmt.Sprintf("%s %s shut: away, without a key, or without room before its longest wait ends", and(first),
		map[bool]string{true: "is", false: "are"}[len(first) == 1])
	switch {
	case len(first) == 0:
	case g.After == proxy.Never:
		w.line("    %s takes a request where %s", g.Name, shut)
	case g.After >= c.MaxWait:
		w.line("    %s takes a request where %s; no request waits for %s, which is its after", g.Name, shut, plain(g.After))
	default:
		w.line("    %s takes a request %s after it came, and at once where %s", g.Name, plain(g.After), shut)
		w.line("    beware: above the limits of %s every request waits %s; a smaller after lets the surplus go sooner",
			and(first), plain(g.After))
	}
}

// apart says which targets have one key at one host.
func (w *proxyWords) apart(u *proxy.Upstream) {
	type place struct {
		host string
		key  proxy.Secret
	}
	names := map[place]string{}
	for _, g := range u.Targets {
		for _, k := range g.Keys {
			at := place{g.To.Host, k.Secret}
			if who := names[at]; who != "" {
				w.line("    beware: %s and %s have one key at one host, and each counts by itself", who, g.Name)
			}
			names[at] = g.Name
		}
	}
}

// limitsOf are the limits of an upstream, or of all its targets.
func limitsOf(u *proxy.Upstream) (all []proxy.Limit) {
	for _, x := range u.Servers() {
		all = append(all, x.Limits...)
	}
	return all
}

// and joins a list for a sentence: a, b and c.
func and(all []string) string { return joined(all, " and ") }
