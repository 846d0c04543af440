package service_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/race"
	"github.com/paceline-go/paceline/latency"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/ratetest/service"
)

// fullRate is a client at the full rate of what a provider publishes: who it is, what it asks, and for how long.
var fullRate = []struct {
	provider, preset, request string
	long                      time.Duration
}{
	{"ietf", "", "GET /", 5 * time.Minute},
	{"cloudflare", "", "GET /", 15 * time.Minute},
	{"generic", "", "GET /", 5 * time.Minute},
	{"x-ratelimit-epoch", "", "GET /", 5 * time.Minute},
	{"x-ratelimit-seconds", "", "GET /", 5 * time.Minute},
	{"heroku", "", "GET /apps", time.Hour},
	{"github", "", "GET /user", time.Hour},
	{"github", "", "GET /search/code", 5 * time.Minute},
	{"shopify", "", "GET /admin/api/2025-01/products.json", 10 * time.Minute},
	{"shopify", "", `POST /admin/api/2025-01/graphql.json {"query":"{products(first:98){nodes{id}}}"}`, 10 * time.Minute},
	{"stripe", "", "POST /v1/charges", 20 * time.Second},
	{"discord", "", "POST /api/v10/channels/1/messages", 2 * time.Minute},
	{"x", "", "GET /2/tweets", time.Hour},
	{"slack", "", "POST /api/conversations.list", 5 * time.Minute},
	{"slack", "slack:tier1", "POST /api/conversations.list", 30 * time.Minute},
	{"notion", "", "GET /v1/users", 10 * time.Minute},
	{"reddit", "", "GET /api/v1/me", 30 * time.Minute},
	{"okta", "", "GET /api/v1/users", 5 * time.Minute},
	{"atlassian", "", "GET /rest/api/3/issue/1", 20 * time.Second},
	{"groq", "", `POST /openai/v1/chat/completions {"model":"m","max_tokens":9}`, 20 * time.Minute},
	{"groq", "", `POST /openai/v1/chat/completions {"model":"m","max_tokens":2986}`, 10 * time.Minute},
	{"azure-openai", "", `POST /openai/deployments/d/chat/completions {"max_tokens":9}`, 5 * time.Minute},
	{"azure-openai", "", `POST /openai/deployments/d/chat/completions {"max_tokens":2994}`, 5 * time.Minute},
	{"gemini", "", `POST /v1beta/models/gemini-2.5-flash:generateContent {}`, 20 * time.Minute},
	{"binance", "", "GET /api/v3/depth?limit=5000", 5 * time.Minute},
	{"binance-spot", "", "POST /api/v3/order", 5 * time.Minute},
	{"binance-futures", "", "GET /fapi/v1/depth?limit=500", 5 * time.Minute},
	{"bybit", "", "GET /v5/order/realtime", 20 * time.Second},
	{"kraken", "", "POST /0/private/Balance", 20 * time.Minute},
	{"kraken", "kraken:pro", "POST /0/private/Ledgers", 20 * time.Minute},
	{"coinbase", "", "GET /orders", 2 * time.Minute},
	{"okx", "", "GET /api/v5/account/balance", 2 * time.Minute},
	{"cme", "", "POST /", 12 * time.Second},
	{"etherscan", "", "GET /api?module=account", 2 * time.Minute},
	{"gitlab", "", "GET /api/v4/user", 3 * time.Minute},
	{"gitlab", "", "GET /api/v4/projects/1/jobs", 5 * time.Minute},
	{"twitch", "", "GET /helix/users", 5 * time.Minute},
	{"hubspot", "", "GET /crm/v3/objects/contacts", 2 * time.Minute},
	{"hubspot", "hubspot:professional", "POST /crm/v3/objects/contacts/search", 2 * time.Minute},
	{"zendesk", "", "GET /api/v2/users", 5 * time.Minute},
	{"zendesk", "zendesk:enterprise", "GET /api/v2/tickets.json", 5 * time.Minute},
	{"mistral", "", `POST /v1/chat/completions {"model":"m","max_tokens":9}`, 10 * time.Minute},
	{"mistral", "", `POST /v1/chat/completions {"model":"m","max_tokens":1988}`, 10 * time.Minute},
	{"docker-hub", "", "GET /v2/library/alpine/manifests/latest", 18 * time.Hour},
	{"docker-hub", "docker-hub:personal", "GET /v2/library/alpine/manifests/latest", 18 * time.Hour},
	{"strava", "", "POST /api/v3/activities", 45 * time.Minute},
	{"strava", "", "GET /api/v3/athlete", 45 * time.Minute},
	{"spotify", "", "GET /v1/me", 10 * time.Minute},
	{"riot", "", "GET /lol/status/v4/platform-data", 20 * time.Minute},
}

// limiterOf is what a client makes of what is published. Where that does not say how a limit counts, any window of its length
// holds no more than it: that keeps every kind but a rule of its own.
func limiterOf(t *testing.T, p quota.Policy, base time.Time, midnight time.Duration) limit.Limiter {
	t.Helper()
	var units = map[quota.Unit]limit.Unit{quota.Weight: limit.Weight, quota.Orders: limit.Orders, quota.Tokens: limit.Tokens, quota.Input: limit.Input}
	var l limit.Limiter
	var err error
	switch unit := units[p.Unit]; p.Rule {
	case quota.Bucket:
		l, err = limit.NewBucket(limit.BucketConfig{Limit: p.Limit, Window: p.Window, Burst: p.Burst, Unit: unit})
	case quota.Calendar:
		l, err = limit.NewCalendar(limit.CalendarConfig{Limit: p.Limit, Window: p.Window, Phase: mono.Of(base, time.Unix(0, 0).Add(midnight)), Unit: unit})
	case quota.Anchored:
		l, err = limit.NewAnchored(limit.AnchoredConfig{Limit: p.Limit, Window: p.Window, Unit: unit})
	case quota.Concurrency:
		l, err = limit.NewConcurrency(limit.ConcurrencyConfig{Limit: p.Limit})
	default:
		l, err = limit.NewRolling(limit.RollingConfig{Limit: p.Limit, Window: p.Window, Unit: unit})
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestServiceAtFullRate: a Gate with limiters made of the published limits, and 40 goroutines that never rest: nothing is
// refused, and 95 % at least of what the server can give in that time is had.
func TestServiceAtFullRate(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range fullRate {
		covered[c.provider] = true
	}
	for _, p := range service.All() {
		if !covered[p.Name] {
			t.Errorf("%s has no client", p.Name)
		}
	}
	for _, c := range fullRate {
		if race.Enabled && c.long >= 30*time.Minute {
			continue // thousands of requests each; what is concurrent in them is in the others, too
		}
		t.Run(fmt.Sprintf("%s %s %s", c.provider, c.preset, c.request), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// What the request costs, of a server that this one is not.
				var log bytes.Buffer
				probe := newServer(t, service.Config{Provider: c.provider, Preset: c.preset, LogTo: &log})
				sends(probe, "k", c.request)
				var line service.Line
				if err := json.NewDecoder(&log).Decode(&line); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(36 * time.Hour))) // noon: what counts by the clock begins

				config := service.Config{Provider: c.provider, Preset: c.preset, Before: latency.Constant(time.Millisecond), After: latency.Constant(time.Millisecond)}
				s := newServer(t, config)
				published, _ := quota.LookupPreset(map[bool]string{true: c.provider, false: c.preset}[c.preset == ""])
				if c.provider == "slack" && c.preset == "" {
					published, _ = quota.LookupPreset("slack:tier3")
				}
				start := time.Now()
				var cost limit.Cost
				var all []limit.Limiter
				possible := map[string]float64{}
				for _, p := range s.Limits() {
					for _, counts := range line.Counts {
						if counts.Policy != p.Name {
							continue
						}
						for _, q := range published.Policies {
							if q.Name == p.Name {
								p.Rule = q.Rule // as far as it is published
							}
						}
						midnight := time.Duration(0)
						if c.provider == "gemini" {
							midnight = 8 * time.Hour
						}
						all = append(all, limiterOf(t, p, start, midnight))
						switch p.Unit {
						case quota.Weight:
							cost[limit.Weight] = counts.Cost
						case quota.Orders:
							cost[limit.Orders] = counts.Cost
						case quota.Tokens:
							cost[limit.Tokens] = counts.Cost
						case quota.Input:
							cost[limit.Input] = counts.Cost
						default:
							cost[limit.Requests] = counts.Cost
						}
						if p.Rule == quota.Concurrency {
							continue
						}
						can := float64(p.Limit) * c.long.Seconds() / p.Window.Seconds()
						if p.Rule == quota.Bucket {
							can += float64(cmp.Or(p.Burst, p.Limit))
						} else {
							can = max(can, float64(p.Limit))
						}
						possible[p.Name] = can / float64(counts.Cost)
					}
				}
				gate := paceline.NewGate(limit.NewAll(all...))
				ctx, cancel := context.WithTimeout(t.Context(), c.long)
				defer cancel()
				var mu sync.Mutex
				statuses := map[int]int{}
				var workers sync.WaitGroup
				for range 40 {
					workers.Go(func() {
						for {
							permit, err := gate.Wait(ctx, cost)
							if err != nil {
								return
							}
							sent := time.Now()
							r := sends(s, "k", c.request)
							permit.Settle(limit.Outcome{Result: limit.Accepted, RTT: time.Since(sent)})
							mu.Lock()
							statuses[r.Status]++
							mu.Unlock()
						}
					})
				}
				workers.Wait()
				r := s.Report()
				share, binds := 0.0, ""
				for name, can := range possible {
					if v := float64(r.Accepted) / can; v > share {
						share, binds = v, name
					}
				}
				t.Logf("%d accepted in %v, %.2f %% of %s", r.Accepted, c.long, 100*share, binds)
				if r.Limited+r.TooLarge+r.AfterBan != 0 || len(statuses) != 1 || r.Wrong != 0 || share < 0.95 || share > 1.0001 {
					t.Errorf("%v: %+v", statuses, r)
				}
			})
		})
	}
}
