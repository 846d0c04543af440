package transport_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// deployments are servers by their hosts, each with a limit of its own and a time in which it is away.
type deployments struct {
	began time.Time
	mu    sync.Mutex
	of    map[string]*deployment
}

type deployment struct {
	judge      rule.Amendable // nil: no limit
	away, back time.Duration
	status     int // while it is away; 0: no connection
	refused    int
	answered   []time.Duration
	probes     int             // requests that came while it was away
	failed     []time.Duration // when those of callers came then, which no HEAD is
	had        []*http.Request
	bodies     []string
}

func deploy(names ...string) *deployments {
	d := &deployments{began: time.Now(), of: map[string]*deployment{}}
	for _, name := range names {
		d.of[name] = &deployment{}
	}
	return d
}

// limited makes the server at a host count requests in a rolling window.
func (d *deployments) limited(t testing.TB, host string, n int64, window time.Duration) *deployment {
	j, err := rule.NewRolling(rule.RollingConfig{Limit: n, Window: window})
	if err != nil {
		t.Fatal(err)
	}
	d.of[host].judge = j
	return d.of[host]
}

func (d *deployments) RoundTrip(r *http.Request) (*http.Response, error) {
	at := time.Since(d.began)
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.of[r.URL.Host]
	away := s != nil && at >= s.away && at < s.back
	if away {
		s.probes++
	}
	body := ""
	if r.Body != nil {
		defer r.Body.Close()
	}
	switch {
	case s == nil:
		return nil, fmt.Errorf("no server at %s", r.URL.Host)
	case away && s.status == 0:
		httptrace.ContextClientTrace(r.Context()).GetConn(r.URL.Host)
		return nil, errRefused
	case r.Body != nil:
		all, _ := io.ReadAll(r.Body)
		body = string(all)
	}
	if away {
		if r.Method != http.MethodHead {
			s.failed = append(s.failed, at)
		}
		return reply(s.status, ""), nil
	}
	s.had, s.bodies = append(s.had, r), append(s.bodies, body)
	if s.judge != nil {
		now := mono.Time(at)
		fits := s.judge.Fits(now, 1)
		if s.judge.Count(now, 1, fits); !fits {
			s.refused++
			return reply(429, "", "Retry-After", "7"), nil
		}
	}
	s.answered = append(s.answered, at)
	return reply(200, `{"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`, "Content-Type", "application/json"), nil
}

// perMinute is a target with a limit for each key.
func perMinute(t testing.TB, name string, n int64, after time.Duration) transport.Target {
	return transport.Target{Name: name, Host: name + ".test", After: after, Limit: func(p transport.Partition) limit.Limiter {
		if p.Scope != provider.Key {
			return nil
		}
		if p.Target != name || p.Host != name+".test" {
			t.Errorf("a limit of %v, want target %s", p, name)
		}
		return limit.MustRolling(n, time.Minute)
	}}
}

// Two targets of 600 and 240 a minute: together they serve what both allow, and refuse nothing.
func TestTwoTargetsServeTheSum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy("large.test", "small.test")
		large, small := d.limited(t, "large.test", 600, time.Minute), d.limited(t, "small.test", 240, time.Minute)
		tr := mustNew(t, transport.Config{Base: d, Targets: []transport.Target{perMinute(t, "large", 600, 0), perMinute(t, "small", 240, 0)}})
		var wg sync.WaitGroup
		const long = 5 * time.Minute
		for range 60 {
			wg.Go(func() {
				for time.Since(d.began) < long {
					if status, _, err := do(t, tr, get(t, "https://llm.test/x")); err != nil || status != 200 {
						t.Error(status, err)
					}
				}
			})
		}
		time.Sleep(long)
		d.mu.Lock()
		served := len(large.answered) + len(small.answered)
		d.mu.Unlock()
		wg.Wait()
		ceiling := 840 * int(long/time.Minute)
		t.Logf("%d of %d served: %.1f %%, %d by the large one", served, ceiling, 100*float64(served)/float64(ceiling), len(large.answered))
		if large.refused+small.refused > 0 || float64(served) < 0.99*float64(ceiling) {
			t.Errorf("%d and %d refused, %d of %d served", large.refused, small.refused, served, ceiling)
		}
	})
}

// One target is away for 10 of 60 seconds: the other carries the load, at most one failure reaches a
// caller, and the first is back at most 2 s late.
func TestTargetIsAway(t *testing.T) {
	for _, status := range []int{0, 502, 503} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(fmt.Sprint(status, method), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := deploy("a.test", "b.test")
					a := d.of["a.test"]
					a.away, a.back, a.status = 20*time.Second, 30*time.Second, status
					tr := mustNew(t, transport.Config{Base: d, Targets: []transport.Target{perMinute(t, "a", 600, 0), perMinute(t, "b", 600, 0)}})
					var wg sync.WaitGroup
					var mu sync.Mutex
					failed := 0
					for range 300 { // five a second: each alone can carry them
						wg.Go(func() {
							code, _, err := do(t, tr, request(t, method, "https://llm.test/x", "{}"))
							mu.Lock()
							defer mu.Unlock()
							if err != nil || code >= 500 {
								failed++
							}
						})
						time.Sleep(200 * time.Millisecond)
					}
					wg.Wait()
					i := slices.IndexFunc(a.answered, func(at time.Duration) bool { return at >= a.back })
					late := a.answered[i] - a.back
					t.Logf("%d failed, %d came while it was away, back %v late", failed, a.probes, late)
					if failed > 1 || late > 2*time.Second || a.probes > 20 {
						t.Errorf("%d failed, %d came while it was away, back %v late", failed, a.probes, late)
					}
				})
			})
		}
	}
}

// Above the limit of the first target the surplus goes to the spare one after its time, and below it
// nothing does. Nobody starves.
func TestSurplusGoesToTheSpareTarget(t *testing.T) {
	for _, perSecond := range []int{15, 22} {
		synctest.Test(t, func(t *testing.T) {
			d := deploy("main.test", "spare.test")
			first, spare := d.limited(t, "main.test", 20, time.Second), d.limited(t, "spare.test", 10, time.Second)
			second := func(n int64) func(transport.Partition) limit.Limiter {
				return func(p transport.Partition) limit.Limiter {
					if p.Scope != provider.Key {
						return nil
					}
					return limit.MustRolling(n, time.Second)
				}
			}
			tr := mustNew(t, transport.Config{Base: d, Targets: []transport.Target{
				{Name: "main", Host: "main.test", Limit: second(20)},
				{Name: "spare", Host: "spare.test", Limit: second(10), After: 500 * time.Millisecond},
			}})
			var wg sync.WaitGroup
			for range 60 * perSecond {
				wg.Go(func() {
					if status, _, err := do(t, tr, get(t, "https://llm.test/x")); err != nil || status != 200 {
						t.Error(status, err)
					}
				})
				time.Sleep(time.Second / time.Duration(perSecond))
			}
			wg.Wait()
			t.Logf("at %d/s: %d by the main target, %d spilled", perSecond, len(first.answered), len(spare.answered))
			surplus := max(60*(perSecond-20), 0)
			if n := len(spare.answered); n > surplus+20 || n < surplus*2/3 || first.refused+spare.refused > 0 {
				t.Errorf("at %d/s: %d by the main target, %d spilled, %d and %d refused", perSecond, len(first.answered), n, first.refused, spare.refused)
			}
		})
	}
}

// A spare target is used at once where the one before is shut: away, its key out, or paused for longer
// than the request can wait. Otherwise a request waits for its time.
func TestShutTargetIsPassedOver(t *testing.T) {
	key := func(name string) transport.Key {
		return transport.Key{Name: name, Target: name, Apply: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+name) }}
	}
	type world struct {
		d  *deployments
		tr *transport.Transport
	}
	for name, c := range map[string]struct {
		before  func(t *testing.T, w world)
		maxWait time.Duration
		want    time.Duration // how long the request waits for the spare target; -1: it goes to the first
	}{
		"all is well": {func(*testing.T, world) {}, time.Minute, -1},
		"away": {func(t *testing.T, w world) {
			w.d.of["main.test"].back = time.Hour
			for range 8 {
				do(t, w.tr, get(t, "https://llm.test/x"))
				time.Sleep(100 * time.Millisecond)
			}
		}, time.Minute, 0},
		"used up for long": {func(t *testing.T, w world) {
			for range 20 {
				do(t, w.tr, get(t, "https://llm.test/x"))
			}
		}, 5 * time.Second, 0},
		"used up": {func(t *testing.T, w world) {
			for range 20 {
				do(t, w.tr, get(t, "https://llm.test/x"))
			}
		}, time.Minute, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := deploy("main.test", "spare.test")
				wait := time.Minute
				tr := mustNew(t, transport.Config{Base: d, Keys: []transport.Key{key("main"), key("spare")},
					MaxWait: func(*http.Request) time.Duration { return wait },
					Targets: []transport.Target{perMinute(t, "main", 20, 0), perMinute(t, "spare", 600, 10*time.Second)}})
				c.before(t, world{d, tr})
				time.Sleep(time.Second)
				wait = c.maxWait
				main, spare := len(d.of["main.test"].answered), len(d.of["spare.test"].answered)
				began := time.Now()
				if status, _, err := do(t, tr, get(t, "https://llm.test/x")); err != nil || status != 200 {
					t.Fatal(status, err)
				}
				took := time.Since(began)
				if len(d.of["main.test"].answered) > main {
					took = -1
				} else if len(d.of["spare.test"].answered) == spare {
					t.Fatal("no target had it")
				}
				if took != c.want {
					t.Errorf("it waited for %v, want %v", took, c.want)
				}
				if had := d.of["spare.test"].had; len(had) > 0 && had[len(had)-1].Header.Get("Authorization") != "Bearer spare" {
					t.Errorf("the spare target got %q", had[len(had)-1].Header)
				}
			})
		})
	}
}

// A request that no target can take before its deadline is refused at once. Its error names the limit, and the instant
// at which the request could go: at a target with After Never, too.
func TestRefusedBeforeAllTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spare := perMinute(t, "spare", 1, transport.Never)
		own := spare.Limit
		spare.Limit = func(p transport.Partition) limit.Limiter {
			if own(p) == nil {
				return nil
			}
			return rolling(t, 1, 20*time.Second, limit.Requests)
		}
		tr := mustNew(t, transport.Config{Base: deploy("main.test", "spare.test"), MaxWait: func(*http.Request) time.Duration { return 5 * time.Second },
			Targets: []transport.Target{perMinute(t, "main", 1, 0), spare}})
		for range 2 { // the second is the spare target's, as the first one is shut to it
			if status, _, err := do(t, tr, get(t, "https://llm.test/x")); err != nil || status != 200 {
				t.Fatal(status, err)
			}
		}
		began := time.Now()
		_, _, err := do(t, tr, get(t, "https://llm.test/x"))
		e, ok := errors.AsType[*transport.Error](err)
		if !ok || !errors.Is(err, paceline.ErrDeadline) || time.Since(began) != 0 {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		if ready := e.Ready.Sub(began); ready != 20*time.Second || e.Partition.Target != "spare" {
			t.Errorf("it could go in %v, by %+v: %v", ready, e.Partition, err)
		}
	})
}

// After a refusal or a failure the next attempt goes to another target, at once.
func TestNextAttemptGoesElsewhere(t *testing.T) {
	for _, status := range []int{429, 503} {
		synctest.Test(t, func(t *testing.T) {
			var hosts []string
			b := newBase(0, func(n int, r *http.Request) *http.Response {
				hosts = append(hosts, r.URL.Host)
				if r.URL.Host == "b.test" {
					return reply(200, "")
				}
				return reply(status, "", "Retry-After", "30")
			})
			tr := mustNew(t, transport.Config{Base: b, Targets: []transport.Target{{Name: "a", Host: "a.test"}, {Name: "b", Host: "b.test", After: transport.Never}}})
			for range 2 {
				if got, _, err := do(t, tr, get(t, "https://llm.test/x")); err != nil || got != 200 {
					t.Error(got, err)
				}
			}
			if at := b.at(); !slices.Equal(at[:2], seconds(0, 0)) || hosts[0] != "a.test" || hosts[1] != "b.test" {
				t.Errorf("%d: sent at %v to %v", status, at, hosts)
			}
		})
	}
}

// The model has the name that it has at the target: in the body, or in the path. Requests whose model
// is not known go where no name is needed.
func TestModelsAreRenamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy("plain.test", "azure.test")
		azure := transport.Target{Name: "azure", Host: "azure.test", Models: map[string]string{"gpt-4o": "prod 4o"},
			Apply: func(r *http.Request, model string) {
				if strings.HasPrefix(r.URL.Path, "/v1/") {
					r.URL.Path = "/openai/deployments/" + model + strings.TrimPrefix(r.URL.Path, "/v1")
				}
			}}
		last := func() (path, body string, length int64) {
			s := d.of["azure.test"]
			return s.had[len(s.had)-1].URL.Path, s.bodies[len(s.bodies)-1], s.had[len(s.had)-1].ContentLength
		}
		for _, tokens := range []*tokens.Estimator{nil, estimator(t)} {
			tr := mustNew(t, transport.Config{Base: d, Tokens: tokens, MaxBody: 1000, Targets: []transport.Target{azure}})
			for _, c := range []struct{ path, body, wantPath, wantBody string }{
				{"/v1/chat/completions", chatOf("gpt-4o"), "/openai/deployments/prod 4o/chat/completions", chatOf("prod 4o")},
				{"/v1/chat/completions", chatOf("other"), "/openai/deployments/other/chat/completions", chatOf("other")},
				{"/openai/deployments/gpt-4o/chat/completions", `{"messages":[]}`, "/openai/deployments/prod 4o/chat/completions", `{"messages":[]}`},
			} {
				if status, _, err := do(t, tr, request(t, "POST", "https://llm.test"+c.path, c.body)); err != nil || status != 200 {
					t.Fatal(status, err)
				}
				if path, body, n := last(); path != c.wantPath || body != c.wantBody || n != int64(len(body)) {
					t.Errorf("%s %s: sent as %s %s of %d bytes", c.path, c.body, path, body, n)
				}
			}
			long := request(t, "POST", "https://llm.test/v1/chat/completions", chatOf(strings.Repeat("x", 1000)))
			if _, _, err := do(t, tr, long); !errors.Is(err, transport.ErrModel) {
				t.Errorf("a body that is not read: %v, want ErrModel", err)
			}
			both := mustNew(t, transport.Config{Base: d, Tokens: tokens, MaxBody: 1000,
				Targets: []transport.Target{azure, {Name: "plain", Host: "plain.test", After: transport.Never}}})
			before := len(d.of["plain.test"].had)
			if status, _, err := do(t, both, request(t, "POST", "https://llm.test/v1/chat/completions", chatOf(strings.Repeat("x", 1000)))); err != nil || status != 200 || len(d.of["plain.test"].had) != before+1 {
				t.Errorf("a body that is not read does not go where no name is needed: %d, %v", status, err)
			}
		}
	})
}

// A request costs what its target counts: by the target's own counting and price.
func TestTargetsHaveTheirCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy("dear.test", "cheap.test")
		tills := map[string]*till{"dear": newTill(t, 1_000_000), "cheap": newTill(t, 1_000_000)}
		used := map[string]limit.Limiter{"dear": rolling(t, 1000, time.Minute, limit.Tokens), "cheap": rolling(t, 1000, time.Minute, limit.Tokens)}
		target := func(name string, counts tokens.Counting) transport.Target {
			return transport.Target{Name: name, Host: name + ".test", Counting: counts, Models: map[string]string{"m": "m of " + name},
				Limit: func(p transport.Partition) limit.Limiter {
					switch p.Scope {
					case provider.Key:
						return tills[name]
					case provider.IP:
						return used[name]
					}
					return nil
				}}
		}
		tr := mustNew(t, transport.Config{Base: d, Tokens: estimator(t), Attempts: 1,
			Price: func(p transport.Partition, model string) (provider.ModelInfo, bool) {
				if model != "m of "+p.Target || p.Model != model {
					t.Errorf("the price of %s at %v", model, p)
				}
				return provider.ModelInfo{Input: map[string]float64{"dear": 10, "cheap": 1}[p.Target]}, true
			},
			Targets: []transport.Target{target("dear", tokens.Sum), target("cheap", tokens.Used)}})
		for range 2 {
			if status, _, err := do(t, tr, request(t, "POST", "https://llm.test/v1/chat/completions", chatOf("m"))); err != nil || status != 200 {
				t.Fatal(status, err)
			}
		}
		for name, want := range map[string]int64{"dear": 70, "cheap": 7} {
			ends := tills[name].ended
			if len(ends) != 1 || !ends[0].Metered || ends[0].Actual[limit.Money] != want {
				t.Errorf("%s: %+v, want %d millionths", name, ends, want)
			}
		}
		counted := func(name string) int64 {
			return limit.AppendUsage(nil, used[name], mono.Time(time.Since(d.began)))[0].Used
		}
		if dear, cheap := counted("dear"), counted("cheap"); cheap != 12 || dear <= 50 {
			t.Errorf("%d and %d tokens count, want the reserved ones and 12", dear, cheap)
		}
	})
}

// An account may have keys at several targets. Each key goes to its own target, and counts in that target's limit.
func TestAccountAtTwoTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy("a.test", "b.test")
		key := func(name string) transport.Key {
			return transport.Key{Name: "of " + name, Account: "acme", Target: name, Apply: func(r *http.Request) { r.Header.Set("X-Key", "of "+name) }}
		}
		target := func(name string) transport.Target {
			return transport.Target{Name: name, Host: name + ".test", Limit: eachKey(func() limit.Limiter { return limit.MustRolling(2, time.Minute) })}
		}
		tr := mustNew(t, transport.Config{Base: d, Targets: []transport.Target{target("a"), target("b")}, Keys: []transport.Key{key("a"), key("b")}})
		began := time.Now()
		for range 4 {
			do(t, tr, get(t, "https://llm.test/x"))
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("two at each target take %v", took)
		}
		for _, name := range []string{"a", "b"} {
			had := d.of[name+".test"].had
			if len(had) != 2 {
				t.Errorf("%d requests at %s", len(had), name)
			}
			for _, r := range had {
				if got := r.Header.Get("X-Key"); got != "of "+name {
					t.Errorf("%s gets a request with the key %q", name, got)
				}
			}
		}
	})
}

// A configuration that makes no sense is refused, by its place.
func TestTargetsAreChecked(t *testing.T) {
	a := transport.Target{Name: "a", Host: "a.test"}
	key := transport.Key{Name: "k", Target: "b", Apply: func(*http.Request) {}}
	for want, c := range map[string]transport.Config{
		"Targets[1]: another has the Name": {Targets: []transport.Target{a, a}},
		"Targets[0] has no Name":           {Targets: []transport.Target{{Host: "a.test"}}},
		"Targets[0]: \"a\" has no Host":    {Targets: []transport.Target{{Name: "a"}}},
		"After -1ns is negative":           {Targets: []transport.Target{{Name: "a", Host: "a.test", After: -1}}},
		"no limits are published as":       {Targets: []transport.Target{{Name: "a", Host: "a.test", Preset: "nobody"}}},
		"the Target of the key \"k\" is":   {Targets: []transport.Target{a}, Keys: []transport.Key{key}},
		"Targets and Organization are set": {Targets: []transport.Target{a}, Organization: func(*http.Request) string { return "" }},
		"65 Targets, want 64 at most":      {Targets: many(65)},
	} {
		if _, err := transport.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	tr := mustNew(t, transport.Config{Targets: []transport.Target{a}})
	if _, err := tr.With(transport.Config{}); err == nil {
		t.Error("With without the Targets that there are")
	}
}

func many(n int) (all []transport.Target) {
	for i := range n {
		all = append(all, transport.Target{Name: strconv.Itoa(i), Host: "a.test"})
	}
	return all
}

// Idle partitions of targets are frozen like others, with their rooms, and their windows are kept.
func TestPartitionsOfTargetsAreFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy("a.test", "b.test")
		a, b := d.limited(t, "a.test", 5, time.Minute), d.limited(t, "b.test", 3, time.Minute)
		tr := mustNew(t, transport.Config{Base: d, MaxPartitions: 1, Adaptive: &limit.AdaptiveConfig{},
			Targets: []transport.Target{perMinute(t, "a", 5, 0), perMinute(t, "b", 3, 0)}})
		for i := range 24 { // three windows of both, each request of another partition
			if status, _, err := do(t, tr, get(t, fmt.Sprintf("https://llm.test/%c", 'a'+i))); err != nil || status != 200 {
				t.Fatal(status, err)
			}
		}
		leaves, _, nodes := transport.Remembered(tr)
		if took := time.Since(d.began); a.refused+b.refused > 0 || took < 2*time.Minute || leaves != 1 || nodes > 8 {
			t.Errorf("%d and %d refused in %v; %d partitions of %d nodes", a.refused, b.refused, took, leaves, nodes)
		}
	})
}

// A name of one's own, as deployments have, has the price and the vocabulary of the model in the
// request. Where a limit counts money and no price is known, the target is passed over.
func TestNamesOfDeployments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := deploy("a.test", "b.test")
		money := newTill(t, 1_000_000)
		var asked []string
		tr := mustNew(t, transport.Config{Base: d, Tokens: estimator(t), Counting: tokens.Used,
			Price: func(p transport.Partition, model string) (provider.ModelInfo, bool) {
				asked = append(asked, p.Target+" "+model)
				return provider.ModelInfo{Input: 3}, p.Target == "a" && model == "gpt-4o"
			},
			Targets: []transport.Target{
				{Name: "b", Host: "b.test", Limit: func(p transport.Partition) limit.Limiter {
					if p.Scope == provider.Key {
						return rolling(t, 1_000_000, time.Hour, limit.Money)
					}
					return nil
				}},
				{Name: "a", Host: "a.test", After: time.Minute, Models: map[string]string{"gpt-4o": "prod"}, Limit: func(p transport.Partition) limit.Limiter {
					if p.Scope == provider.Key {
						return money
					}
					return nil
				}}}})
		for range 2 {
			if status, _, err := do(t, tr, request(t, "POST", "https://llm.test/v1/chat/completions", chatOf("gpt-4o"))); err != nil || status != 200 {
				t.Fatal(status, err)
			}
		}
		if len(d.of["b.test"].had) > 0 || len(money.ended) != 2 || money.ended[0].Actual[limit.Money] != 21 || time.Since(d.began) > 0 {
			t.Errorf("%d went where no price is known; %+v; asked for %q in %v", len(d.of["b.test"].had), money.ended, asked, time.Since(d.began))
		}
		if _, _, err := do(t, tr, request(t, "POST", "https://llm.test/v1/chat/completions", chatOf("other"))); !errors.Is(err, transport.ErrPrice) {
			t.Errorf("a model without a price anywhere: %v, want ErrPrice", err)
		}
	})
}
