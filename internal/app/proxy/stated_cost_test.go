package proxy

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/charge"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/ratetest/service"
)

// expression compiles an expression in jq of weight.
func expression(t *testing.T, text string) map[provider.Unit]provider.Expression {
	t.Helper()
	e, err := charge.Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	return map[provider.Unit]provider.Expression{provider.Weight: e}
}

// limitOfUnit is a limit with its unit, of a resource if that is not empty.
func limitOfUnit(t *testing.T, text, resource string) Limit {
	t.Helper()
	l, err := rate.ParseCounted(text)
	if err != nil {
		t.Fatal(err)
	}
	if resource == "" {
		return Limit{Limit: l}
	}
	return Limit{Limit: l, Scope: provider.Resource, Only: resource}
}

// Charges of the configuration say what a request costs, by its body too, and the answer has the last
// word.
func TestChargesOfTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []string
		x := virtual(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			at = append(at, fmt.Sprintf("%s %s %v", r.Method, r.URL.Path, time.Since(began).Round(time.Second)))
			w.Write(body)
		}), Config{MaxWait: time.Hour, Upstreams: []Upstream{{To: mustURL(t, "http://api.test/base"),
			Charges: []provider.Charge{
				{On: "GET */depth?limit>1000", Cost: map[provider.Unit]int64{provider.Weight: 90}},
				{On: "* /base/search/*", Resource: "search"},
				{On: "POST *", Cost: map[provider.Unit]int64{provider.Weight: 50}, Body: expression(t, ".n"), Answer: expression(t, ".did")},
			}, Limits: []Limit{limitOfUnit(t, "100 weight/m", ""), limitOfUnit(t, "1/h", "search")}}}})
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/depth?limit=5000", ""}, {"GET", "/depth?limit=5", ""}, // only the first has a cost
			{"POST", "/a", `{"n":20,"did":5}`}, // 90 + 20 is too much: after a minute. It did cost 5
			{"POST", "/b", `{"n":95,"did":95}`},
			{"POST", "/c", `{}`}, // 50, the number of the row
			{"GET", "/search/x", ""}, {"GET", "/other", ""},
		} {
			if resp, body := x.do(c.method, c.path, c.body); resp.StatusCode != 200 || body != c.body {
				t.Errorf("%s: %d %s", c.path, resp.StatusCode, body)
			}
		}
		want := []string{"GET /base/depth 0s", "GET /base/depth 0s", "POST /base/a 1m0s", "POST /base/b 1m0s", "POST /base/c 2m0s", "GET /base/search/x 2m0s", "GET /base/other 2m0s"}
		if !slices.Equal(at, want) {
			t.Errorf("arrived: %q, want %q", at, want)
		}
		if resp, _ := x.do("GET", "/search/y", "", FieldMaxWait, "30m"); resp.StatusCode != 429 {
			t.Errorf("the second search: %d", resp.StatusCode)
		}
		// The expressions found nothing in the body and the answer of /c: each is said once.
		for _, where := range []string{"body", "answer"} {
			if said := strings.Count(x.log.String(), "what a request costs is not in its "+where); said != 1 {
				t.Errorf("%s: said %d times\n%s", where, said, x.log)
			}
		}
	})
}

// A client may raise the cost of its request. Only a client that may say it lowers the cost, or chooses
// the resource. The server does not get the field.
func TestCostsThatClientsSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		x := virtual(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(FieldCost) != "" {
				t.Errorf("the server gets %s", r.Header.Get(FieldCost))
			}
			at = append(at, time.Since(began).Round(time.Second))
		}), Config{MaxWait: time.Hour, Clients: Clients{Header: "X-Client", List: []Client{{Name: "trusted", MaySayCost: true}}},
			Upstreams: []Upstream{{To: mustURL(t, "http://api.test"),
				Charges: []provider.Charge{{On: "GET *", Cost: map[provider.Unit]int64{provider.Weight: 40}}},
				Limits:  []Limit{limitOfUnit(t, "100 weight/m", ""), limitOfUnit(t, "1/h", "search")}}}})
		for _, c := range []struct {
			client, says string
			status       int
		}{
			{"a", "", 200}, {"a", "60 weight", 200}, // the minute is full
			{"a", "1 weight", 200}, {"trusted", "1 weight", 200}, {"trusted", "59 weight", 200}, // 40 + 1 + 59
			{"a", "101 weight", 413},
			{"trusted", "1 weight; resource=search", 200}, {"a", "resource=search", 403},
			{"a", "many weight", 400}, {"a", "5 apples", 400}, {"trusted", "resource=", 400},
		} {
			fields := []string{"X-Client", c.client}
			if c.says != "" {
				fields = append(fields, FieldCost, c.says)
			}
			if resp, body := x.do("GET", "/", "", fields...); resp.StatusCode != c.status {
				t.Errorf("%s says %q: %d %s", c.client, c.says, resp.StatusCode, body)
			}
		}
		if want := []time.Duration{0, 0, time.Minute, time.Minute, time.Minute, 2 * time.Minute}; !slices.Equal(at, want) {
			t.Errorf("arrived at %v, want %v", at, want)
		}
		if resp, _ := x.do("GET", "/", "", "X-Client", "trusted", FieldCost, "resource=search", FieldMaxWait, "10m"); resp.StatusCode != 429 {
			t.Errorf("the second request of the resource: %d", resp.StatusCode)
		}
	})
}

// A charge that fits nothing and a limit of a resource without a charge are refused, each at its place.
func TestChargesThatFitNothing(t *testing.T) {
	search := provider.Charge{On: "* /search/*", Resource: "search"}
	for _, c := range []struct {
		charges []provider.Charge
		limits  []Limit
		clients Clients
		field   string
		want    string
	}{
		{charges: []provider.Charge{search, {On: "GET /search/code", Resource: "code"}}, field: "Upstreams[0].Charges[1]", want: `no request fits "GET /search/code" but those of the charge before it, on "* /search/*"`},
		{charges: []provider.Charge{search, {On: "* /search/*?q=a*", Resource: "a"}}, field: "Upstreams[0].Charges[1]", want: "expected one charge with all of it"},
		{charges: []provider.Charge{{On: "* /search/*?q=a*", Resource: "a"}, search}},
		{charges: []provider.Charge{{On: "GET /x", Cost: map[provider.Unit]int64{provider.Weight: 0}}}, field: "Upstreams[0].Charges[0]", want: "a cost of 0 weight; want 1 to"},
		{charges: []provider.Charge{search}, limits: []Limit{limitOfUnit(t, "30/m", "serch")}, field: "Upstreams[0].Limits[0]", want: `no charge names the resource "serch"`},
		{charges: []provider.Charge{{On: "* /search/*", Resource: "{1}"}}, limits: []Limit{limitOfUnit(t, "30/m", "serch")}},
		{limits: []Limit{limitOfUnit(t, "30/m", "search")}, clients: Clients{Default: Client{MaySayCost: true}}},
		{charges: []provider.Charge{search}, limits: []Limit{limitOfUnit(t, "30/m", "search"), limitOfUnit(t, "40/m", "search")}, field: "Upstreams[0].Limits[1]", want: `the resource "search" has two limits in the same time, 30/m and 40/m`},
		{charges: []provider.Charge{search}, limits: []Limit{limitOfUnit(t, "30/m", "search"), limitOfUnit(t, "100/h", "search"), limitOfUnit(t, "5 weight/m", "search"), limitOfUnit(t, "9/m", "*")}},
	} {
		_, err := Config{Clients: c.clients, Upstreams: []Upstream{{To: mustURL(t, "http://api.test"), Charges: c.charges, Limits: c.limits}}}.Checked()
		place, ok := err.(*ConfigError)
		if ok != (c.field != "") || ok && (place.Field != c.field || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v %v: %v, want %s: %s", c.charges, c.limits, err, c.field, c.want)
		}
	}
}

// The rows of a provider, written as charges of a file, decide the same for each request.
func TestRowsAsCharges(t *testing.T) {
	for _, p := range provider.Providers() {
		if len(p.Charges) == 0 {
			continue
		}
		d, _ := provider.Lookup(p.Name)
		own := Upstream{To: mustURL(t, "http://api.test"), Charges: p.Charges, Provider: d}
		rows := Upstream{To: mustURL(t, "http://api.test"), Provider: d}
		for _, c := range p.Charges {
			r := fitting(t, c.On)
			a, resource, index := own.Charge(r)
			b, of, none := rows.Charge(r)
			if a == nil || b == nil || a.On != b.On || resource != of || index < 0 || none != -1 {
				t.Errorf("%s: %s: %+v of %q, and %+v of %q", p.Name, c.On, a, resource, b, of)
			}
		}
		if _, _, index := own.Charge(fitting(t, "PROPFIND /nowhere")); index >= 0 && p.Charges[index].On != "* *" && !strings.Contains(p.Charges[index].On, "*") {
			t.Errorf("%s: a request that no row names has row %d", p.Name, index)
		}
	}
}

// fitting makes a request that a charge fits, or an earlier one.
func fitting(t *testing.T, on string) *http.Request {
	t.Helper()
	method, target, _ := strings.Cut(strings.NewReplacer(">", "=9", "<51", "=5", "<", "=0", "*", "x").Replace(on), " ")
	if method == "x" {
		method = "GET"
	}
	if target[0] != '/' {
		target = "/" + target
	}
	return &http.Request{Method: method, URL: mustURL(t, strings.ReplaceAll(target, "%", "%25"))}
}

// A stated cost takes no memory of a request without it.
func TestNothingStated(t *testing.T) {
	h := http.Header{"Accept": {"*/*"}}
	v := &visit{client: &client{}}
	if n := testing.AllocsPerRun(100, func() {
		v.stated, _ = statedOf(h)
		_ = v.over(limit.One)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if _, err := statedOf(http.Header{FieldCost: {"1 weight", "2 weight"}}); err == nil {
		t.Error("two fields are taken")
	}
}

// A planted cost is noticed at the third answer. The log has the line that mends it, and the server
// refuses nothing afterwards.
func TestPlantedCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := service.New(service.Config{Provider: "binance"})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		x := virtual(t, server, Config{MaxWait: time.Hour, Upstreams: []Upstream{{To: mustURL(t, "http://api.test"), Preset: "binance",
			Charges: []provider.Charge{{On: "GET /api/v3/depth?limit>1000", Cost: map[provider.Unit]int64{provider.Weight: 5}}}}}})
		const mends = `{on: \"GET /api/v3/depth?limit>1000\", cost: \"250 weight\"}`
		for n := 1; n <= 3; n++ {
			if strings.Contains(x.log.String(), mends) {
				t.Errorf("it is said before answer %d", n)
			}
			x.do("GET", "/api/v3/depth?limit=5000&symbol=BTCUSDT", "")
		}
		if said := strings.Count(x.log.String(), mends); said != 1 {
			t.Errorf("said %d times:\n%s", said, x.log)
		}
		var all sync.WaitGroup
		for range 40 { // more than a minute's weight
			all.Go(func() { x.do("GET", "/api/v3/depth?limit=5000&symbol=BTCUSDT", "") })
		}
		all.Wait()
		if r := server.Report(); r.Accepted != 43 || r.Limited+r.Bans > 0 {
			t.Errorf("%d served, %d refused, %d bans", r.Accepted, r.Limited, r.Bans)
		}
	})
}

// The number of a charge is reserved until each answer, whatever the answer before stated.
func TestTheBoundOfAChargeHolds(t *testing.T) {
	const calls = 100
	synctest.Test(t, func(t *testing.T) {
		server, err := llm.New(llm.Config{Limits: llm.Limits{Requests: 1000, Tokens: 3000}, Rolling: true, Count: "corrected",
			Law: llm.Law{OutputMedian: 40, OutputP99: 380}, Seed: 1, First: latency.Uniform(100*time.Millisecond, time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		did, err := charge.Compile(".usage.total_tokens")
		if err != nil {
			t.Fatal(err)
		}
		x := virtual(t, server, Config{MaxWait: time.Hour, Upstreams: []Upstream{{To: mustURL(t, "http://llm.test"), Attempts: 1,
			Charges: []provider.Charge{{On: "POST /v1/*", Cost: map[provider.Unit]int64{provider.Tokens: 400},
				Answer: map[provider.Unit]provider.Expression{provider.Tokens: did}}},
			Limits: []Limit{limitOfUnit(t, "3000 tokens/m", "")}}}})
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				x.do("POST", "/v1/chat/completions", `{"model":"gpt-4o","max_tokens":390,"messages":[{"role":"user","content":"Hello"}]}`,
					"Authorization", "Bearer k", "Content-Type", "application/json")
			})
		}
		all.Wait()
		if v := server.Report().Verdicts; v["accepted"] != calls || len(v) != 1 {
			t.Errorf("%v, want %d accepted", v, calls)
		}
	})
}
