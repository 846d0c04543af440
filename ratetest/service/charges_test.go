package service_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/service"
	"github.com/paceline-go/paceline/transport"
)

// mixedRow is a client that sends several routes, each 40 at once, with nothing but the preset.
type mixedRow struct {
	provider, preset string
	routes           []string
	long             time.Duration
	// full are limits that the client should use up, by name and the requests that each serves in
	// that time. Those of a resource are of one resource each.
	full map[string]float64
}

var mixed = []mixedRow{
	{"github", "github", []string{"GET /user", "GET /search/issues?q=x", "GET /search/code?q=x"}, 10 * time.Minute,
		map[string]float64{"requests": 5000, "search": 300, "code_search": 100}},
	{"okx", "okx", []string{"GET /api/v5/market/books?instId=A", "GET /api/v5/market/ticker?instId=A", "GET /api/v5/account/balance",
		"GET /api/v5/public/funding-rate?instId=A", "GET /api/v5/public/funding-rate?instId=B", "POST /api/v5/trade/order"}, time.Minute,
		map[string]float64{"40/2s": 1200, "20/2s": 600, "10/2s": 300, "60/2s": 1800}},
	{"binance-spot", "binance", []string{"GET /api/v3/depth?symbol=A&limit=5000", "GET /api/v3/ticker/24hr", "GET /api/v3/klines?symbol=A",
		"GET /api/v3/depth?symbol=A", "GET /api/v3/openOrders", "POST /api/v3/order"}, 3 * time.Minute, map[string]float64{"weight": 18000}},
	{"binance-futures", "binance:futures", []string{"GET /fapi/v1/depth?symbol=A&limit=1000", "GET /fapi/v1/ticker/24hr", "GET /fapi/v1/klines?symbol=A&limit=1500",
		"GET /fapi/v1/income", "POST /fapi/v1/order"}, 3 * time.Minute, map[string]float64{"weight": 7200}},
	{"kraken", "kraken:pro", []string{"POST /0/private/Balance", "POST /0/private/Ledgers", "GET /0/public/Time", "GET /0/public/Trades?pair=A",
		"GET /0/public/Trades?pair=B"}, 3 * time.Minute, map[string]float64{"weight": 200, "public": 180}},
	{"hubspot", "hubspot:professional", []string{"POST /crm/v3/objects/contacts/search", "GET /crm/v3/objects/contacts"}, time.Minute,
		map[string]float64{"10 seconds": 1140}},
	{"hubspot", "hubspot:free", []string{"POST /crm/v3/objects/contacts/search", "POST /crm/v3/objects/deals/search"}, time.Minute, map[string]float64{"search": 300}},
	{"gitlab", "gitlab", []string{"GET /api/v4/projects/1/jobs", "GET /api/v4/projects/7", "POST /api/v4/projects/1/issues/2/notes", "GET /api/v4/user"}, 3 * time.Minute,
		map[string]float64{"requests": 6000, "600/min": 1800, "400/min": 1200, "60/min": 180}},
	{"zendesk", "zendesk:enterprise", []string{"GET /api/v2/incremental/tickets?start_time=1", "GET /api/v2/tickets.json?page=600", "PUT /api/v2/tickets/1.json", "GET /api/v2/users"},
		3 * time.Minute, map[string]float64{"requests": 2100, "incremental export": 30, "deep pages of tickets": 150, "updates of tickets": 300}},
	{"bybit", "bybit", []string{"GET /v5/order/realtime", "GET /v5/position/list", "GET /v5/account/fee-rate?category=spot", "GET /v5/asset/transfer/query-asset-info"}, time.Minute,
		map[string]float64{"10/s": 600, "5/s": 300, "1/s": 60}},
}

// TestPresetsServeMixedRoutes: with its preset and nothing else, a client of mixed routes is refused
// nothing, and gets 90 % of each limit that binds. The fakes count by tables of their own.
func TestPresetsServeMixedRoutes(t *testing.T) {
	for _, c := range mixed {
		t.Run(c.preset, func(t *testing.T) { synctest.Test(t, c.run) })
	}
}

func (c mixedRow) run(t *testing.T) {
	time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(36 * time.Hour))) // when limits by the clock begin
	s := newServer(t, service.Config{Provider: c.provider, Preset: c.preset, Before: latency.Constant(time.Millisecond), After: latency.Constant(time.Millisecond)})
	x := &path{server: s, statuses: map[int]int{}}
	paced := transport.Must(transport.Config{Base: x, Preset: c.preset, Attempts: 1, MaxRetryAfter: 24 * time.Hour})
	x.flood(t, paced, c.routes, c.long)
	r := s.Report()
	if r.Limited+r.TooLarge+r.AfterBan+r.Wrong != 0 {
		t.Errorf("%d refused, %d wrong: %+v", r.Limited+r.TooLarge+r.AfterBan, r.Wrong, r.FirstWrong)
	}
	for name, can := range c.full {
		some := false
		for _, l := range r.Limits {
			if l.Policy != name {
				continue
			}
			some = true
			t.Logf("%s, of %s: %d of %.0f", name, l.Who, l.Cost, can)
			if share := float64(l.Cost) / can; share < 0.9 {
				t.Errorf("%s, of %s: %d of %.0f", name, l.Who, l.Cost, can)
			}
		}
		if !some {
			t.Errorf("nothing counts in %s: %+v", name, r.Limits)
		}
	}
}

// flood sends each route from 40 goroutines without rest.
func (p *path) flood(t *testing.T, paced *transport.Transport, routes []string, long time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) // the client must not see the end in advance
	defer cancel()
	defer time.AfterFunc(long, cancel).Stop()
	var workers sync.WaitGroup
	for _, route := range routes {
		method, target, _ := strings.Cut(route, " ")
		for range 40 {
			workers.Go(func() {
				for ctx.Err() == nil {
					r, err := http.NewRequestWithContext(ctx, method, "http://fake.test"+target, nil)
					if err != nil {
						t.Error(err)
						return
					}
					if !strings.Contains(target, "/public/") { // those need no key
						r.Header.Set("Authorization", "Bearer k")
					}
					resp, err := paced.RoundTrip(r)
					if err != nil {
						if ctx.Err() == nil {
							t.Errorf("%s: %v", route, err)
						}
						return
					}
					resp.Body.Close()
				}
			})
		}
	}
	workers.Wait()
}

// TestASpentSearchShutsNoCore: a stranger has used up GitHub's search. Core calls go at their
// ceiling all the same, with a preset and without any limit.
func TestASpentSearchShutsNoCore(t *testing.T) {
	github, _ := provider.Lookup("github")
	for _, c := range []transport.Config{{Preset: "github"}, {Provider: github}} {
		t.Run(fmt.Sprintf("preset %q", c.Preset), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, service.Config{Provider: "github", Before: latency.Constant(time.Millisecond), After: latency.Constant(time.Millisecond)})
				x := &path{server: s, statuses: map[int]int{}}
				for range 30 { // with the same key
					sends(s, "k", "GET /search/issues?q=x")
				}
				c.Base, c.Attempts = x, 1
				paced := transport.Must(c)
				x.flood(t, paced, []string{"GET /search/issues?q=x", "GET /user"}, 5*time.Minute)
				i := slices.IndexFunc(s.Report().Limits, func(l service.Window) bool { return l.Policy == "requests" })
				core := s.Report().Limits[i]
				t.Logf("%d core calls in five minutes, of 5000; %v", core.Accepted, x.statuses)
				if core.Accepted < 5000 {
					t.Errorf("%d core calls, want 5000", core.Accepted)
				}
			})
		})
	}
}
