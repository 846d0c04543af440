package transport_test

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

func usualOf(preset string) string {
	who, _ := provider.Publisher(preset)
	return provider.ChargesOf(who.Name).Usual()
}

// Every published limit is a limiter of its scope, new for each partition. It lets its first
// request through and has room for no more than the limit at once.
func TestPublished(t *testing.T) {
	for _, p := range provider.Presets() {
		made := transport.MustPublished(p.Name)
		scopes := map[provider.Scope]bool{}
		for _, policy := range p.Policies {
			if policy.Scope == provider.All {
				t.Errorf("%s: %s is a limit of everybody, which no partition has", p.Name, policy.Name)
			}
			scopes[policy.Scope] = scopes[policy.Scope] || !policy.Unpublished()
			if policy.Scope == provider.Resource && policy.Covers(usualOf(p.Name)) {
				scopes[provider.Key] = true // most requests count there
			}
		}
		for _, s := range []provider.Scope{provider.IP, provider.Key, provider.Model, provider.Route} {
			l := made(transport.Partition{Scope: s, Host: "a.test"})
			if (l != nil) != scopes[s] {
				t.Errorf("%s: scope %s: %v", p.Name, s, l)
			}
			if l == nil {
				continue
			}
			if l == made(transport.Partition{Scope: s, Host: "b.test"}) {
				t.Errorf("%s: two hosts share a limiter", p.Name)
			}
			one := limit.Cost{1, 1, 1, 1, 1, 1}
			if at := l.Ready(0, one); at != 0 {
				t.Errorf("%s: scope %s: the first may go at %v", p.Name, s, at)
			}
			for _, policy := range p.Policies {
				if policy.Scope != s || policy.Rule == provider.Concurrency {
					continue
				}
				most := limit.Cost{}
				for u := range limit.Money {
					if u.String() == string(policy.Unit) {
						most[u] = max(policy.Limit, policy.Burst) + 1
					}
				}
				at, why := limit.Explain(l, 0, most)
				if policy.Burst < policy.Limit && policy.Burst > 0 {
					continue
				}
				want := limit.Never
				if strings.HasPrefix(p.Name, "anthropic:") && policy.Unit == provider.Output { // it counts as it is produced
					want = 0
				}
				if at != want || most == (limit.Cost{}) || why.Name == "" {
					t.Errorf("%s: %s: one more than the limit may go at %v", p.Name, policy.Name, at)
				}
			}
		}
	}
}

func TestPublishedUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"openai:tier9": `transport: no limits are published as "openai:tier9"; did you mean openai:tier1 or openai:tier2? the names are those of provider.Presets`,
		"opnai:tier1":  `transport: no limits are published as "opnai:tier1"; did you mean openai:tier1 or openai:tier2? the names are those of provider.Presets`,
		"nobody":       `transport: no limits are published as "nobody"; the names are those of provider.Presets`,
	} {
		if _, err := transport.Published(name); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The tier 1 of gpt-4o: 500 requests a minute, so a burst of 500, and then one each 120 ms, for each model by itself.
func TestPublishedAtWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		tr := mustNew(t, transport.Config{Base: b, Limit: transport.MustPublished("openai:tier1"), Partition: func(r *http.Request) transport.Partition {
			return transport.Partition{Host: "a.test", Model: r.URL.Query().Get("model")}
		}})
		for i := range 502 {
			do(t, tr, get(t, "http://a.test/?model=m"))
			if i == 500 {
				do(t, tr, get(t, "http://a.test/?model=other"))
			}
		}
		at := b.at()
		if at[499] != 0 || at[500] < 120*time.Millisecond || at[500] > 125*time.Millisecond || at[501] != at[500] || at[502]-at[500] < 119*time.Millisecond || !slices.IsSorted(at) {
			t.Errorf("sent at %v", at[498:])
		}
	})
}

// Without Tokens the model in a body is not read: then all models count as one, and not as none.
func TestPublishedOfAModelThatIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, ok)
		tr := mustNew(t, transport.Config{Base: b, Limit: transport.MustPublished("openai:tier1")})
		for i := range 502 {
			do(t, tr, request(t, http.MethodPost, "http://a.test/v1/chat/completions", `{"model":"m`+strconv.Itoa(i%2)+`"}`))
		}
		if at := b.at(); at[499] != 0 || at[500] < 120*time.Millisecond || at[501] < at[500]+119*time.Millisecond {
			t.Errorf("sent at %v", at[498:])
		}
	})
}

// A preset by name is Published, of the provider whose it is; a model that it does not name is said once.
func TestPreset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		spy := &spy{}
		tr := mustNew(t, transport.Config{Base: newBase(0, ok), Preset: "openai:tier1", Limiter: spy, Tokens: estimator(t), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for _, model := range []string{"gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-mini", "o3", "gpt-4o-mini", "gpt-4o-mini-2024-07-18"} {
			if _, _, err := do(t, tr, request(t, http.MethodPost, chat, `{"model":"`+model+`","max_tokens":5000,"messages":[]}`)); err != nil || spy.cost[limit.Tokens] != 5000 {
				t.Error(model, err, spy.cost)
			}
		}
		for model, want := range map[string]int{"gpt-4o-mini ": 1, "o3 ": 1, "gpt-4o ": 0} {
			if n := strings.Count(log.String(), "partition.model="+model); n != want {
				t.Errorf("%s is named %d times in\n%s", model, n, &log)
			}
		}
		if _, unknown := transport.New(transport.Config{Preset: "openai:tier9"}); unknown == nil {
			t.Error("a preset that does not exist is taken")
		}
	})
}

// A limit of tokens that is configured holds without an Estimator of the caller's own, too. Who counts in another way is left alone.
func TestTokensAreCountedWhereALimitIs(t *testing.T) {
	perMinute := func() limit.Limiter { return rolling(t, 30_000, time.Minute, limit.Tokens) }
	cost := func(_ *http.Request, c limit.Cost) limit.Cost { return c }
	for name, c := range map[string]struct {
		config transport.Config
		kept   bool
	}{
		"preset":                {transport.Config{Preset: "openai:tier1"}, true},
		"preset of a target":    {transport.Config{Targets: []transport.Target{{Name: "a", Host: "a.test", Preset: "openai:tier1"}}}, true},
		"limiter":               {transport.Config{Limiter: perMinute()}, true},
		"limiter, and a Cost":   {transport.Config{Limiter: perMinute(), Cost: cost}, false},
		"no limit of tokens":    {transport.Config{Limiter: limit.MustRolling(10, time.Second)}, false},
		"preset without tokens": {transport.Config{Preset: "heroku"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			c.config.Base = newBase(0, ok)
			_, _, err := do(t, mustNew(t, c.config), request(t, http.MethodPost, chat, `{"model":"gpt-4o","max_tokens":40000,"messages":[]}`))
			if errors.Is(err, paceline.ErrNever) != c.kept || !c.kept && err != nil {
				t.Errorf("%s: 40000 tokens where 30000 a minute fit: %v", name, err)
			}
		})
	}
}

// A preset and limits of one's own hold together: whichever is the stricter one binds.
func TestPresetAndLimit(t *testing.T) {
	for _, c := range []struct {
		scope provider.Scope // at which there is one of one's own
		own   int64
		sends int
		want  time.Duration // when the last goes
	}{{provider.Model, 2, 3, time.Minute}, {provider.Model, 1 << 20, 501, 120 * time.Millisecond}, {provider.IP, 1 << 20, 501, 120 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			tr := mustNew(t, transport.Config{Base: newBase(0, ok), Preset: "openai:tier1", Tokens: estimator(t), Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope != c.scope {
					return nil
				}
				return rolling(t, c.own, time.Minute, limit.Requests)
			}})
			began := time.Now()
			for range c.sends {
				if _, _, err := do(t, tr, get(t, "http://a.test/x", "Authorization", "Bearer k")); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took < c.want || took > c.want+2*time.Millisecond {
				t.Errorf("with %d a minute of one's own, request %d goes after %v, expected %v", c.own, c.sends, took, c.want)
			}
		})
	}
}

// A quota of a day of Google ends at midnight Pacific time.
func TestPublishedByTheClockOfAPlace(t *testing.T) {
	l := transport.MustPublished("google:youtube")(transport.Partition{Scope: provider.Key})
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	limit.SetEpoch(l, time.Date(2026, 11, 1, 0, 0, 0, 0, pacific)) // a day of 25 hours
	all := limit.Cost{limit.Weight: 10_000}
	l.Settle(0, limittest.Admit(l, 0, all), &limit.Outcome{Result: limit.Accepted})
	if at, want := l.Ready(0, all), mono.Time(25*time.Hour+50*time.Millisecond); at != want {
		t.Errorf("the next quota is there at %v, want %v", at, want)
	}
}
