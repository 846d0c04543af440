//go:build unix

package launch

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/paceline-go/paceline/internal/app/forward"
)

// Made is what the keeper made for the program. A command gets it as JSON.
type Made struct {
	forward.At
	Folder *Folder `json:"-"`
	// Named are the upstreams' hosts with their ports, and for each a port of this machine at which
	// connections to it may begin without CONNECT.
	Named map[string]int
}

// Environment returns the variables that lead a program to the keeper, as NAME=VALUE, and writes
// the files that some of them name. It is was, with these variables set. Variables that the keeper
// alone needs are in hidden, and taken out.
func Environment(was []string, m Made, hidden []string) ([]string, error) {
	set := map[string]string{}
	for _, v := range forward.Variables {
		set[v.Name] = v.Of(m.At)
	}
	get := func(name string) string { return valueOf(was, name) }
	for _, v := range files {
		value, err := v.make(m, get)
		if err != nil {
			return nil, err
		}
		set[v.name] = value
	}
	all := slices.DeleteFunc(slices.Clone(was), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		_, ours := set[name]
		return ours || slices.Contains(hidden, name)
	})
	for name, value := range set {
		all = append(all, name+"="+value)
	}
	return all, nil
}

// valueOf returns the value of a variable in an environment. The last one counts.
func valueOf(env []string, name string) (value string) {
	for _, v := range env {
		if n, x, _ := strings.Cut(v, "="); n == name {
			value = x
		}
	}
	return value
}

// TakenOut returns the first URL that NO_PROXY keeps from a proxy; empty: none. A program that heeds
// it would go past the limits.
func TakenOut(env []string, urls []*url.URL) string {
	of := httpproxy.Config{HTTPProxy: "http://proxy", HTTPSProxy: "http://proxy"}
	free := of.ProxyFunc()
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		of.NoProxy = valueOf(env, name)
		if of.NoProxy == "" {
			continue
		}
		by := of.ProxyFunc()
		for _, u := range urls {
			// Go passes over a proxy for this machine in any case; other programs do not.
			if without, _ := free(u); without == nil {
				if of.NoProxy == "*" || slices.Contains(strings.Split(of.NoProxy, ","), u.Hostname()) {
					return name + "=" + of.NoProxy + " takes out " + u.Host
				}
				continue
			}
			if via, _ := by(u); via == nil {
				return name + "=" + of.NoProxy + " takes out " + u.Host
			}
		}
	}
	return ""
}
