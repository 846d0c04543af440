package proxy

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// Of each setting the least and the greatest valid value are valid, and the value beyond is named. clientele_test.go
// has settings with one way to be wrong.
func TestBoundsOfSettings(t *testing.T) {
	type change = func(c *Config)
	url := func(s string) change { return func(c *Config) { c.Upstreams[0].To = mustURL(t, s) } }
	path := func(s string) change { return func(c *Config) { c.Upstreams[0].Path = s } }
	host := func(s string) change { return func(c *Config) { c.Upstreams[0].Host = s } }
	header := func(all ...Field) change {
		return func(c *Config) { c.Upstreams[0].Header, c.Upstreams[0].Keys = all, []Key{{Name: "k", Secret: "s"}} }
	}
	keys := func(all ...Key) change {
		return func(c *Config) { c.Upstreams[0].Header, c.Upstreams[0].Keys = []Field{{"X-Key", "{key}"}}, all }
	}
	client := func(f func(k *Client)) change { return func(c *Config) { f(&c.Clients.Default) } }
	up := func(f func(u *Upstream)) change { return func(c *Config) { f(&c.Upstreams[0]) } }
	limited := func(l Limit) change {
		return up(func(u *Upstream) { l.Limit = limitsOf("5/s")[0].Limit; u.Limits = []Limit{l} })
	}
	targets := func(f func(u *Upstream)) change {
		return func(c *Config) {
			u := Upstream{Name: "llm", Targets: []Target{region(t, "a", "600/m", 0), region(t, "b", "600/m", 0)}}
			f(&u)
			c.Upstreams = []Upstream{u}
		}
	}
	target := func(f func(g *Target)) change { return targets(func(u *Upstream) { f(&u.Targets[1]) }) }
	at := func(s string) change { return target(func(g *Target) { g.Path = s }) }
	affinity := func(a Affinity) change { return targets(func(u *Upstream) { u.Affinity = a }) }
	beside := func(f func(u *Upstream)) []change { return []change{targets(f)} }
	hundred := limitsOf("100/s")[0].Limit
	ofModel := []rate.Limit{{Text: "5/s", Model: "m"}}
	for _, row := range []struct {
		at  string
		ok  []change
		bad []change
	}{
		{"Listen", nil, []change{func(c *Config) { c.Listen = "7878" }, func(c *Config) { c.Listen = "0.0.0.0:1" }}},
		{"Admin", []change{func(c *Config) { c.Listen, c.Admin = "127.0.0.1:0", "127.0.0.1:0" },
			func(c *Config) { c.Admin = "[::ffff:127.0.0.1]:1" }},
			[]change{func(c *Config) { c.Admin = "7879" }, func(c *Config) {
				c.Listen, c.Admin = "127.0.0.1:7",
					"127.0.0.1:7"
			}, func(c *Config) { c.Admin = "10.0.0.1:7" }}},
		{"Grace", []change{func(c *Config) { c.Grace = 0 }}, nil},
		{"Bounds.Header", []change{func(c *Config) { c.Bounds.Header = 1 }},
			[]change{func(c *Config) { c.Bounds.Header = -1 }}},
		{"Bounds.Frozen", nil, []change{func(c *Config) { c.Bounds.Frozen = -1 }}},
		{"Clients.Most", []change{func(c *Config) { c.Clients.Most = 1 }}, []change{func(c *Config) { c.Clients.Most = -1 }}},
		{"Clients.List[0].Name", nil, []change{func(c *Config) { c.Clients.List = []Client{{}} }}},
		{"Clients.List[1].Weight", nil, []change{func(c *Config) {
			c.Clients.List = []Client{{Name: "a"}, {Name: "b",
				Weight: 2e6}}
		}}},
		{"Clients.Default.Weight", []change{client(func(k *Client) { k.Weight = 1e6 })},
			[]change{client(func(k *Client) { k.Weight = 1e6 + 1 }),
				client(func(k *Client) { k.Weight = math.NaN() })}},
		{"Clients.Default.Reserve", []change{client(func(k *Client) { k.Reserve = 1 })},
			[]change{client(func(k *Client) { k.Reserve = 1.01 }),
				client(func(k *Client) { k.Reserve = math.NaN() })}},
		{"Clients.Default.Models", []change{client(func(k *Client) { k.Models = []string{"m"} })},
			[]change{client(func(k *Client) { k.Models = []string{"m", ""} })}},
		{"Clients.Default.HeadStart", nil, []change{client(func(k *Client) { k.HeadStart = -1 })}},
		{"Clients.Default.MaxWaiting", []change{client(func(k *Client) { k.MaxWaiting = 1 })},
			[]change{client(func(k *Client) { k.MaxWaiting = -1 })}},
		{"Clients.Default.Limits[0]", []change{client(func(k *Client) { k.Limits = []rate.Limit{hundred} })},
			[]change{client(func(k *Client) { k.Limits = ofModel }),
				client(func(k *Client) { k.Limits = []rate.Limit{{}} }), client(func(k *Client) { k.Limits = []rate.Limit{{EachModel: true}} })}},
		{"Clients.Default.Upstreams", []change{client(func(k *Client) { k.Upstreams = []string{"api.test"} })},
			[]change{client(func(k *Client) { k.Upstreams = []string{} }),
				client(func(k *Client) { k.Upstreams = []string{"api.test", "b"} })}},
		{"Clients.List[0].Upstreams", nil, []change{func(c *Config) {
			c.Clients.List = []Client{{Name: "a",
				Upstreams: []string{"b"}}}
		}}},
		{"Upstreams[0].To", []change{url("http://api.test/v1")}, []change{up(func(u *Upstream) { u.To = nil }), url("https:"), url("https:opaque"), url("https://me@api.test"),
			url("https://api.test?a=b"), url("https://api.test?"), url("https://api.test#x"), url("http://127.0.0.1:7878")}},
		{"Upstreams[0].Path", []change{path("/aZ09-._~"), path("/a/"), path("/a/b.c")},
			[]change{path("a"), path("/a//b"), path("/a/./b"), path("/a b"), path("/a{b"), path("/a[b"), path("/a`b"), path("/a@b"), path("/a:b")}},
		{"Upstreams[0].Host", []change{host("a.test."), host("A.test")}, []change{host("a:"), host("a/b"), host("a b"), host("é.test")}},
		{"Upstreams[0].PerSecond", nil, []change{up(func(u *Upstream) { u.Preset, u.PerSecond = "github", true })}},
		{"Upstreams[0].InFlight", []change{up(func(u *Upstream) { u.InFlight = 1 })}, []change{up(func(u *Upstream) { u.InFlight = -1 })}},
		{"Upstreams[0].Limits[0].Scope", []change{limited(Limit{Scope: provider.IP}), limited(Limit{Scope: provider.Route, Only: "GET /"})},
			[]change{limited(Limit{Scope: "planet"}), limited(Limit{Scope: provider.All})}},
		{"Upstreams[0].Limits[0].Only", []change{limited(Limit{Scope: provider.Model, Only: "m"})}, []change{limited(Limit{Scope: provider.IP, Only: "m"})}},
		{"Upstreams[0].Attempts", []change{up(func(u *Upstream) { u.Attempts = 1 })}, []change{up(func(u *Upstream) { u.Attempts = -1 })}},
		{"Upstreams[0].Backoff", nil, []change{up(func(u *Upstream) { u.Backoff.Jitter = 2 })}},
		{"Upstreams[0].ConnectTimeout", []change{up(func(u *Upstream) { u.ConnectTimeout = 1 })}, []change{up(func(u *Upstream) { u.ConnectTimeout = -1 })}},
		{"Upstreams[0].Use", []change{up(func(u *Upstream) { u.Use = 1 }), up(func(u *Upstream) { u.Auto, u.Limits, u.Use = true, nil, 1 })},
			[]change{up(func(u *Upstream) { u.Use = 1.01 }), up(func(u *Upstream) { u.Use = math.NaN() }), up(func(u *Upstream) { u.Auto, u.Limits, u.Use = true, nil, 0.5 })}},
		{"Upstreams[0].Ramp", []change{up(func(u *Upstream) { u.Ramp = time.Minute })}, []change{up(func(u *Upstream) { u.Auto, u.Limits, u.Ramp = true, nil, 1 })}},
		{"Upstreams[0].RequestPrice", []change{up(func(u *Upstream) { u.RequestPrice = 1 })}, []change{up(func(u *Upstream) { u.RequestPrice = math.NaN() })}},
		{"Upstreams[0].Keys[0].Name", nil, []change{keys(Key{Secret: "s"})}},
		{"Upstreams[0].Keys[1].Name", nil, []change{keys(Key{Name: "a", Secret: "s"}, Key{Name: "a", Secret: "t"})}},
		{"Upstreams[0].Keys[0].Secret", []change{keys(Key{Name: "a", Secret: "a b"})}, []change{keys(Key{Name: "a"}), keys(Key{Name: "a", Secret: " s"}), keys(Key{Name: "a", Secret: "s\x7f"})}},
		{"Upstreams[0].Keys[1].Secret", []change{keys(Key{Name: "a", Secret: "s"}, Key{Name: "b", Secret: "t"})}, []change{keys(Key{Name: "a", Secret: "s"}, Key{Name: "b", Secret: "s"})}},
		{"Upstreams[0].Keys[0].Limits[0]", []change{keys(Key{Name: "a", Secret: "s", Limits: []rate.Limit{hundred}})}, []change{keys(Key{Name: "a", Secret: "s", Limits: ofModel})}},
		{"Upstreams[0].Header[0]", []change{header(Field{"X-Key", "a {key}"})}, []change{header(Field{"a b", "{key}"}), header(Field{"", "{key}"}), header(Field{"X-Key", "{key}\n"}),
			header(Field{"X-Key", "{kye}"}), header(Field{"connection", "{key}"})}},
		{"Upstreams[0].Query[0]", nil, []change{up(func(u *Upstream) { u.Query = []Field{{"", "x"}} }), up(func(u *Upstream) { u.Query = []Field{{"a", "x\n"}} })}},
		{"Upstreams[0].NonceGap", []change{func(c *Config) {
			header(Field{"X-Key", "{key}"}, Field{"N", "{nonce}"})(c)
			c.Upstreams[0].NonceGap = 1
		}},
			[]change{up(func(u *Upstream) { u.NonceGap = -1 }), up(func(u *Upstream) { u.NonceGap = 1 })}},
		{"Upstreams[0].NonceUnit", nil, []change{up(func(u *Upstream) { u.NonceUnit = 1 })}},
		{"Upstreams[0].Keys", nil, []change{up(func(u *Upstream) { u.Header = []Field{{"N", "{nonce}"}} })}},
		{"Upstreams[0].Affinity", nil, []change{up(func(u *Upstream) { u.Affinity.By = "user" }), targets(func(u *Upstream) { u.Affinity.By, u.Targets = "user", u.Targets[:1] })}},
		{"Upstreams[0].Affinity.By", []change{affinity(Affinity{By: "user", Hold: time.Second})}, []change{affinity(Affinity{Hold: time.Second})}},
		{"Upstreams[0].Affinity.Header", []change{affinity(Affinity{By: AffinityByHeader, Header: "X"})},
			[]change{affinity(Affinity{By: AffinityByHeader}), affinity(Affinity{By: AffinityByHeader, Header: "a b"}), affinity(Affinity{By: "user", Header: "X"})}},
		{"Upstreams[0].Affinity.Hold", nil, []change{affinity(Affinity{By: "user", Hold: -1})}},
		{"Upstreams[0].Targets", []change{targets(many(t, 64))}, []change{targets(many(t, 65))}},
		{"Upstreams[0].Targets[1].To", nil, []change{target(func(g *Target) { g.To = nil })}},
		{"Upstreams[0].Targets[1].Name", nil, []change{target(func(g *Target) { g.Name = "a" })}},
		{"Upstreams[0].Targets[1].After", []change{target(func(g *Target) { g.After = 1 })}, []change{target(func(g *Target) { g.After = -1 })}},
		{"Upstreams[0].Targets[1].Keys", nil, []change{targets(func(u *Upstream) {
			for i := range u.Targets {
				u.Targets[i].Keys, u.Targets[i].Header = []Key{{Name: "k", Secret: Secret(fmt.Sprint("s", i))}}, []Field{{"X-Key", "{key}"}}
			}
		})}},
		{"Upstreams[0].Targets[1].Models", []change{target(func(g *Target) { g.Models = map[string]string{"m": "n"} })},
			[]change{target(func(g *Target) { g.Models = map[string]string{"": "n"} }), target(func(g *Target) { g.Models = map[string]string{"m": ""} })}},
		{"Upstreams[0].Targets[1].Path", []change{at("/{model}{rest}?a=b"), at("{path}/x"), at("{rest}"), at("/%20")},
			[]change{at("x"), at("{model}"), at("/{mode}"), at("/x#y"), at("/}"), at("/%2"), at("/x?a=%2")}},
		{"Upstreams[0].Targets[1]", []change{targets(func(u *Upstream) {
			u.Targets[0].Provider, u.Targets[1].Provider = speaks(t, "openai"), speaks(t, "groq")
		}), targets(func(u *Upstream) { u.Targets[0].Provider = speaks(t, "openai") })}, []change{targets(func(u *Upstream) {
			u.Targets[0].Provider, u.Targets[1].Provider = speaks(t, "openai"), speaks(t, "anthropic")
		})}},
		{"Upstreams[0].To", []change{targets(func(u *Upstream) { u.To = mustURL(t, "http://a.test") })}, beside(func(u *Upstream) { u.To = mustURL(t, "http://c.test") })},
		{"Upstreams[0].Preset", nil, beside(func(u *Upstream) { u.Preset = "github" })},
		{"Upstreams[0].PerSecond", nil, beside(func(u *Upstream) { u.PerSecond = true })},
		{"Upstreams[0].Limits", nil, beside(func(u *Upstream) { u.Limits = limitsOf("1/s") })},
		{"Upstreams[0].Auto", nil, beside(func(u *Upstream) { u.Auto = true })},
		{"Upstreams[0].Strangers", nil, beside(func(u *Upstream) { u.Strangers = true })},
		{"Upstreams[0].InFlight", nil, beside(func(u *Upstream) { u.InFlight = 1 })},
		{"Upstreams[0].Provider", nil, beside(func(u *Upstream) { u.Provider = speaks(t, "openai") })},
		{"Upstreams[0].Counting", nil, beside(func(u *Upstream) { u.Counting = tokens.Documented + 1 })},
		{"Upstreams[0].Keys", nil, beside(func(u *Upstream) { u.Keys = []Key{{Name: "k", Secret: "s"}} })},
		{"Upstreams[0].KeepHost", nil, beside(func(u *Upstream) { u.KeepHost = true })},
		{"Share", []change{func(c *Config) { c.Share.Store = "sqlite:x" }}, []change{func(c *Config) { c.Share.Weight = 1 }}},
		{"State", nil, []change{func(c *Config) { c.Share.Store, c.State = "sqlite:x", "y" }}},
		{"Share.Weight", nil, []change{func(c *Config) { c.Share.Store, c.Share.Weight = "sqlite:x", -1 }}},
		{"Upstreams[0].Targets", nil, []change{func(c *Config) { targets(func(*Upstream) {})(c); c.Share.Store = "sqlite:x" }}},
		{"Upstreams[0].Header", nil, []change{func(c *Config) {
			header(Field{"X-Key", "{key}"}, Field{"N", "{nonce}"})(c)
			c.Share.Store = "sqlite:x"
		}}},
		{"Upstreams[0].Auto", nil, []change{func(c *Config) { c.Share.Store, c.Upstreams[0].Auto, c.Upstreams[0].Limits = "sqlite:x", true, nil }}},
		{"Upstreams[0].Arrivals", nil, []change{func(c *Config) { c.Share.Store, c.Upstreams[0].Arrivals.OneWayMax = "sqlite:x", 1 }}},
	} {
		for i, change := range row.ok {
			c := to(mustURL(t, "https://api.test"), "100/s")
			change(&c)
			if _, err := c.Checked(); err != nil {
				t.Errorf("%s, valid %d: %v", row.at, i, err)
			}
		}
		for i, change := range row.bad {
			c := to(mustURL(t, "https://api.test"), "100/s")
			change(&c)
			_, err := c.Checked()
			if e, ok := errors.AsType[*ConfigError](err); !ok || e.Field != row.at {
				t.Errorf("%s, invalid %d: %v", row.at, i, err)
			}
		}
	}
}

// many gives an upstream so many targets.
func many(t *testing.T, n int) func(u *Upstream) {
	return func(u *Upstream) {
		u.Targets = nil
		for i := range n {
			u.Targets = append(u.Targets, region(t, fmt.Sprint("t", i), "1/s", 0))
		}
	}
}

func speaks(t *testing.T, name string) provider.Dialect {
	t.Helper()
	d, ok := provider.Lookup(name)
	if !ok {
		t.Fatalf("nobody speaks as %s", name)
	}
	return d
}
