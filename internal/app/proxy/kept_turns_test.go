package proxy

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
)

// What a user has changed goes on where a changed file states the same as before, also for a key under another name.
// Where the file states another value, or has no such thing any more, the file holds, and the log says so.
func TestTurnsGoOn(t *testing.T) {
	file := func() Config {
		c := to(mustURL(t, "http://server.test"), "20/s", "500/m")
		u := &c.Upstreams[0]
		u.Name, u.InFlight, u.Header = "api", 9, []Field{{"Authorization", "{key}"}}
		u.Keys = []Key{{Name: "K1", Secret: "one", Limits: ratesOf("7/s")}, {Name: "K2", Secret: "two"}}
		c.Clients.List = []Client{{Name: "ann", Keys: []KeyHash{HashKey("k")}, Limits: ratesOf("3/s")}}
		return c
	}
	const limit, own, ofAnn = "limit 20/s is 10/s now", "limit key K1: 7/s is 5/s now", "limit client ann: 3/s is 2/s now"
	const atOnce, weight = "api: 4 in flight at most for each key", "client ann: weight 1 is 3 now"
	all := []string{limit, own, ofAnn, atOnce, weight}
	for name, c := range map[string]struct {
		change func(c *Config)
		limits string
		ended  []string
	}{
		"another wait":      {func(c *Config) { c.MaxWait = time.Hour }, "10/s, 500/m, key K1: 5/s, client ann: 2/s", nil},
		"keys":              {func(c *Config) { c.Upstreams[0].Keys[1] = Key{Name: "K3", Secret: "three"} }, "10/s, 500/m, key K1: 5/s, client ann: 2/s", nil},
		"a name of a key":   {func(c *Config) { c.Upstreams[0].Keys[0].Name = "X" }, "10/s, 500/m, key X: 5/s, client ann: 2/s", nil},
		"names exchanged":   {func(c *Config) { k := c.Upstreams[0].Keys; k[0].Name, k[1].Name = k[1].Name, k[0].Name }, "10/s, 500/m, key K2: 5/s, client ann: 2/s", nil},
		"a limit":           {func(c *Config) { c.Upstreams[0].Limits = limitsOf("30/s", "500/m") }, "30/s, 500/m, key K1: 5/s, client ann: 2/s", []string{limit}},
		"a limit less":      {func(c *Config) { c.Upstreams[0].Limits = limitsOf("20/s") }, "20/s, key K1: 5/s, client ann: 2/s", []string{limit}},
		"a key less":        {func(c *Config) { c.Upstreams[0].Keys = c.Upstreams[0].Keys[1:] }, "10/s, 500/m, client ann: 2/s", []string{own}},
		"a bound in flight": {func(c *Config) { c.Upstreams[0].InFlight = 8 }, "10/s, 500/m, key K1: 5/s, client ann: 2/s", []string{atOnce}},
		"a client less":     {func(c *Config) { c.Clients = Clients{} }, "10/s, 500/m, key K1: 5/s", []string{ofAnn, weight}},
		"a weight":          {func(c *Config) { c.Clients.List[0].Weight = 2 }, "10/s, 500/m, key K1: 5/s, client ann: 2/s", []string{weight}},
	} {
		synctest.Test(t, func(t *testing.T) {
			first := file()
			first.Live = true
			x := virtual(t, &turning{began: time.Now(), of: map[string]int{}}, first)
			x.turn(daemon.Turn{Knob: daemon.Limit, Name: "api: 20/s", Value: "10/s"}, limit)
			x.turn(daemon.Turn{Knob: daemon.Limit, Name: "key K1", Value: "5/s"}, own)
			x.turn(daemon.Turn{Knob: daemon.Limit, Name: "client ann", Value: "2/s"}, ofAnn)
			x.turn(daemon.Turn{Knob: daemon.Concurrency, Name: "api", Value: "4"}, atOnce)
			x.turn(daemon.Turn{Knob: daemon.Share, Name: "ann", Value: "3"}, weight)
			for i := range 2 { // the second time, the file is the same
				next := file()
				c.change(&next)
				next.Listen, next.Admin = x.proxy.config.Listen, x.proxy.config.Admin
				if err := x.proxy.Apply(next); err != nil {
					t.Fatal(err)
				}
				set := x.proxy.Settings()
				held := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(c.ended, s) })
				if got := strings.Join(set.Limits, ", "); got != c.limits || !slices.Equal(set.Changes, held) {
					t.Errorf("%s, applied %d: limits %s, want %s; changes %q, want %q", name, i+1, got, c.limits, set.Changes, held)
				}
			}
			if logged := strings.Count(x.log.String(), "what its user changed holds no more"); logged > 1 || logged == 1 != (len(c.ended) > 0) ||
				!strings.Contains(x.log.String(), strings.Join(c.ended, "; ")) {
				t.Errorf("%s: logged %d times, want %q", name, logged, c.ended)
			}
			if in := x.proxy.Settings().InFlight[0].Most; in != map[bool]int{true: 8, false: 4}[slices.Contains(c.ended, atOnce)] {
				t.Errorf("%s: %d in flight", name, in)
			}
		})
	}
}
