package service_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/service"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// example is a line of provider.Provider.Examples.
type example struct {
	request  string // METHOD TARGET BODY
	costs    map[provider.Unit]int64
	tokens   bool
	resource string
	keyless  string // its resource without a key
}

func parseExample(t *testing.T, line string) (e example) {
	t.Helper()
	i := strings.LastIndex(line, " = ")
	if i < 0 {
		t.Fatalf("the example %q has no cost", line)
	}
	e.request, e.costs = line[:i], map[provider.Unit]int64{}
	keyed, keyless, _ := strings.Cut(line[i+3:], "; without a key, of ")
	costs, resource, _ := strings.Cut(keyed, " of ")
	e.resource, e.keyless = resource, cmp.Or(keyless, resource)
	for cost := range strings.SplitSeq(costs, ", ") {
		if cost == "its tokens" {
			e.tokens = true
			continue
		}
		n, unit, _ := strings.Cut(cost, " ")
		of := map[string]provider.Unit{"request": provider.Requests, "weight": provider.Weight, "order": provider.Orders,
			"orders": provider.Orders}[unit]
		amount, err := strconv.ParseInt(n, 10, 64)
		if err != nil || of == "" {
			t.Fatalf("the cost %q of the example %q", cost, line)
		}
		e.costs[of] = amount
	}
	return e
}

// made is a request of an example. Without a key, key is empty.
func (e example) made(ctx context.Context, t *testing.T, key string) *http.Request {
	method, rest, _ := strings.Cut(e.request, " ")
	target, body, _ := strings.Cut(rest, " ")
	r, err := http.NewRequestWithContext(ctx, method, "http://fake.test"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return r
}

// TestExamplesCostWhatRowsSay: the charge of a row gives each example the cost and the resource that
// it states, and each resource of a published limit has an example.
func TestExamplesCostWhatRowsSay(t *testing.T) {
	for _, who := range provider.Providers() {
		if len(who.Published) > 0 && len(who.Examples) == 0 {
			t.Errorf("%s publishes limits and has no example", who.Name)
		}
		resources := map[string]bool{}
		for _, line := range who.Examples {
			e := parseExample(t, line)
			charge, resource := provider.ChargesOf(who.Name).Of(e.made(t.Context(), t, "k"))
			costs := map[provider.Unit]int64{}
			if charge != nil {
				costs = charge.Cost
			}
			for unit, n := range e.costs {
				if unit != provider.Requests && costs[unit] != n {
					t.Errorf("%s: %q costs %d %s", who.Name, line, costs[unit], unit)
				}
			}
			for unit, n := range costs {
				if e.costs[unit] != n {
					t.Errorf("%s: %q costs %d %s", who.Name, line, n, unit)
				}
			}
			if resource != e.resource {
				t.Errorf("%s: %q counts in %q", who.Name, line, resource)
			}
			_, keyless := provider.ChargesOf(who.Name).OfKeyless(e.made(t.Context(), t, ""))
			if strings.Contains(line, "; without") && keyless != e.keyless {
				t.Errorf("%s: %q counts in %q without a key", who.Name, line, keyless)
			}
			resources[resource], resources[keyless] = true, true
		}
		for _, preset := range who.Published {
			for _, p := range preset.Policies {
				met := false
				for r := range resources {
					met = met || p.Covers(r)
				}
				if !met {
					t.Errorf("%s: no example counts in %q", preset.Name, p.Resource)
				}
			}
		}
	}
}

// cell is a preset under one of the conditions in which it must hold.
type cell struct {
	fake, preset string
	keys         []string // "": without a key
	half         bool     // the client begins with half of each limit used up, in the middle of a window
}

func (c cell) String() string {
	who := map[bool]string{true: "without a key", false: fmt.Sprintf("%d keys", len(c.keys))}[c.keys[0] == ""]
	return fmt.Sprintf("%s, %s, from %s", c.preset, who, map[bool]string{true: "half", false: "full"}[c.half])
}

// only are presets of some requests alone, by a part of them.
var only = map[string]string{"github:search": "GET /search/issues", "github:unauthenticated": "GET /repos/",
	"google:drive": "/drive/", "google:drive-queries": "/drive/", "google:youtube": "/youtube/"}

// keyed and keyless are presets of requests with a key alone, and without one.
var (
	keyed   = []string{"etherscan", "github:search"}
	keyless = []string{"github:unauthenticated", "gitlab:unauthenticated"}
)

// TestPresetsHold: a client with a preset and nothing else sends the examples of its row, each from
// 40 goroutines. It is refused nothing, and each of the routes gets 90 % of a limit in which it
// counts. A condition is drawn for each preset by the day; the long form tries all of them.
func TestPresetsHold(t *testing.T) {
	race.Without(t) // TestServiceAtFullRate has these goroutines
	need.NotShort(t, "TestServiceAtFullRate has a client without rest at each server")
	day := int(time.Now().Unix() / 86400)
	t.Logf("seed %d", day)
	for _, c := range cells(day, !need.Long()) {
		t.Run(c.String(), func(t *testing.T) { synctest.Test(t, c.run) })
	}
}

// cells are the conditions of all presets, or one of each if they are to be few. Of the large presets ./check has a
// third, another one each day.
func cells(day int, few bool) (all []cell) {
	rng, larges := rand.New(rand.NewPCG(uint64(day), 74)), 0
	for _, info := range service.All() {
		for _, preset := range info.Presets {
			who, ok := provider.Publisher(preset)
			if !ok || who.Name != info.Name {
				continue
			}
			published, _ := provider.LookupPreset(preset)
			if who.Silent && slices.ContainsFunc(published.Policies, provider.Policy.Unpublished) {
				continue // nobody can know how many, before a refusal
			}
			var some []cell
			for _, keys := range [][]string{{"k"}, {"k", "l"}, {""}} {
				if slices.Contains(map[bool][]string{true: keyed, false: keyless}[keys[0] == ""], preset) {
					continue
				}
				for _, half := range []bool{false, true} {
					some = append(some, cell{info.Name, preset, keys, half})
				}
			}
			if few {
				if large(published) {
					if larges++; need.Fewer((larges+day)%3 != 0, false) {
						continue
					}
					some = slices.DeleteFunc(some, func(c cell) bool { return len(c.keys) > 1 })
				}
				some = some[rng.IntN(len(some)):][:1]
			}
			all = append(all, some...)
		}
	}
	return all
}

// large reports whether a preset lets thousands of requests go: two keys send twice as many.
func large(p provider.Preset) bool {
	return slices.ContainsFunc(p.Policies, func(p provider.Policy) bool { return p.Unit == provider.Requests && p.Limit >= 2000 })
}

// flooded is an example, and the limits in which its requests count.
type flooded struct {
	example
	counts []service.Count
}

// routes returns the examples that a server of the cell serves.
func (c cell) routes(t *testing.T) (all []flooded) {
	who, _ := provider.Publisher(c.preset)
	for _, line := range who.Examples {
		e := parseExample(t, line)
		if !strings.Contains(e.request, only[c.preset]) {
			continue
		}
		var log bytes.Buffer
		s := newServer(t, service.Config{Provider: c.fake, Preset: c.preset, LogTo: &log})
		sends(s, c.keys[0], e.request)
		var l service.Line
		if err := json.NewDecoder(&log).Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l.Verdict == "unauthorized" {
			continue // it asks for a key
		}
		all = append(all, flooded{e, l.Counts})
	}
	return all
}

func (c cell) run(t *testing.T) {
	time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(36 * time.Hour))) // when limits by the clock begin
	routes := c.routes(t)
	if len(routes) == 0 {
		t.Skip("its endpoints ask for a key")
	}
	leg := latency.Constant(time.Millisecond)
	config := service.Config{Provider: c.fake, Preset: c.preset, Before: leg, After: leg}
	s := newServer(t, config)
	most := map[string]int64{}
	long, shortest := 10*time.Second, time.Hour
	for _, p := range s.Limits() {
		most[p.Name] = max(p.Limit, p.Burst)
		if p.Window > 0 && p.Window <= 2*time.Minute {
			long, shortest = max(long, 2*p.Window), min(shortest, p.Window)
		}
	}
	x := &path{server: s, statuses: map[int]int{}}
	paced := transport.Must(transport.Config{Base: x, Preset: c.preset, Attempts: 1, MaxRetryAfter: 24 * time.Hour,
		Tokens: c.estimator()})
	if c.half {
		c.spendHalf(t, paced, routes, most)
		time.Sleep(shortest / 2)
	}
	x.flood(t, paced, routes, c.keys, long)
	r := s.Report()
	if r.Limited+r.TooLarge+r.AfterBan+r.Wrong != 0 {
		t.Errorf("%d refused, %d wrong: %+v", r.Limited+r.TooLarge+r.AfterBan, r.Wrong, r.FirstWrong)
		for _, l := range r.Limits {
			if l.Refused > 0 {
				t.Errorf("%s, of %s: %d refused, %d accepted", l.Policy, l.Who, l.Refused, l.Accepted)
			}
		}
	}
	for _, e := range routes {
		if miss := full(r, e, long); miss != "" {
			t.Error(miss)
		}
	}
}

func (c cell) estimator() *tokens.Estimator {
	e, err := tokens.New(tokens.Config{})
	if err != nil {
		panic(err)
	}
	return e
}

// spendHalf lets the client use up half of each limit, as far as its routes can.
func (c cell) spendHalf(t *testing.T, paced *transport.Transport, routes []flooded, most map[string]int64) {
	for _, e := range routes {
		n := int64(math.MaxInt64)
		for _, l := range e.counts {
			n = min(n, most[l.Policy]/2/max(l.Cost, 1)/int64(len(routes)*len(c.keys)))
		}
		if !e.bound() {
			n = 1
		}
		for range n {
			for _, key := range c.keys {
				resp, err := paced.RoundTrip(e.made(t.Context(), t, key))
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		}
	}
}

// full returns what is missing unless each key's requests have 90 % of a limit in which the route
// counts.
func full(r service.Report, e flooded, long time.Duration) string {
	best := map[string]float64{}
	for _, l := range e.counts {
		_, part := whoOf(l.Who)
		for _, w := range r.Limits {
			if who, of := whoOf(w.Who); w.Policy == l.Policy && w.Rule != provider.Concurrency && of == part {
				best[who] = max(best[who], float64(w.Cost)/served(w, long))
			}
		}
	}
	if e.bound() && len(best) == 0 {
		return fmt.Sprintf("nothing of %s counts", e.request)
	}
	for who, share := range best {
		if max(share, best[address]) < 0.9 {
			return fmt.Sprintf("%s, of %s: %.0f %%", e.request, who, 100*share)
		}
	}
	return ""
}

// address is that of each client in this process.
const address = "192.0.2.1"

// whoOf splits the name of a part of a limit: whose it is, and what it is of.
func whoOf(who string) (whose, part string) {
	if rest, ok := strings.CutPrefix(who, "key "); ok {
		n, part, _ := strings.Cut(rest, " ")
		return "key " + n, part
	}
	whose, part, _ = strings.Cut(who, " ")
	return whose, part
}

// served is what a limit serves in a time at least, if it is unused at the start.
func served(w service.Window, long time.Duration) float64 {
	if w.Rule == provider.Bucket {
		return float64(cmp.Or(w.Burst, w.Limit)) + float64(w.Limit)*long.Seconds()/w.Window.Seconds()
	}
	return float64(w.Limit) * max(1, float64(long/w.Window))
}

// bound reports whether a limit of anything but requests at once bounds the rate of the route.
func (e flooded) bound() bool {
	return slices.ContainsFunc(e.counts, func(l service.Count) bool { return l.Whole > 0 })
}

// flood sends each route with each key from 40 goroutines without rest. What no limit bounds goes
// once.
func (p *path) flood(t *testing.T, paced *transport.Transport, routes []flooded, keys []string, long time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) // the client must not see the end in advance
	defer cancel()
	defer time.AfterFunc(long, cancel).Stop()
	var workers sync.WaitGroup
	for _, e := range routes {
		for _, key := range keys {
			for range 40 {
				workers.Go(func() {
					for ctx.Err() == nil {
						resp, err := paced.RoundTrip(e.made(ctx, t, key))
						if err != nil {
							if ctx.Err() == nil {
								t.Errorf("%s: %v", e.request, err)
							}
							return
						}
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						if !e.bound() {
							return
						}
					}
				})
			}
		}
	}
	workers.Wait()
}
