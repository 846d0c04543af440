package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
)

// explain --route says what a request costs, where it counts, and which row says so.
func TestExplainRoute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		route, flag, name string
		says              []string
		not               string
	}{
		{"GET /api/v3/depth?symbol=BTCUSDT&limit=5000", "--preset", "binance",
			[]string{"to Binance spot", "1 request, 250 weight", "the key; no resource", "GET /api/v3/depth?limit>1000", "6,000 weight per minute"}, "orders"},
		{"GET /api/v3/ticker/24hr", "--preset", "binance", []string{"80 weight", "ticker/24hr?symbol=&symbols="}, "orders"},
		{"POST /api/v3/order", "--preset", "binance", []string{"1 request, 1 order, 1 weight", "100 orders per 10 s", "200,000 orders per day"}, ""},
		{"POST /fapi/v1/order", "--preset", "binance:futures", []string{"1 order\n", "300 orders"}, "weight per"},
		{"GET /search/issues?q=x", "--preset", "github", []string{"of          search", "GET /search/*", "docs.github.com", "100 concurrent requests", "30 requests per minute"}, "5,000"},
		{"HEAD /user", "--provider", "github", []string{"of          core", "* *", "github:unauthenticated: 60 requests per hour"}, ""},
		{"GET /api/v5/public/funding-rate?instId=BTC-USDT-SWAP", "--provider", "okx", []string{"10/2s GET /api/v5/public/funding-rate BTC-USDT-SWAP", "10 requests per 2 s (per resource)"}, "20 requests"},
		{"POST /0/private/AddOrder", "--preset", "kraken:pro", []string{"costs       1 request\n"}, "20 at once"},
		{"POST /0/private/Ledgers", "--preset", "kraken:pro", []string{"2 weight", "1 weight per second"}, ""},
		{"POST /api/conversations.list", "--preset", "slack:tier3", []string{"none: no row of the table fits"}, ""},
	} {
		code, stdout, stderr := paceline("", "explain", c.flag, c.name, "--route", c.route)
		if code != cli.ExitOK || c.not != "" && strings.Contains(stdout, c.not) {
			t.Errorf("%s of %s: %d, has %q: %s%s", c.route, c.name, code, c.not, stdout, stderr)
		}
		for _, says := range c.says {
			if !strings.Contains(stdout, says) {
				t.Errorf("%s of %s says no %q:\n%s%s", c.route, c.name, says, stdout, stderr)
			}
		}
	}
	code, stdout, _ := paceline("", "explain", "--preset", "binance", "--route", "GET /api/v3/depth", "-o", "json")
	if code != cli.ExitOK || !strings.Contains(stdout, `"weight": 5`) || !strings.Contains(stdout, `"row": "GET /api/v3/depth"`) || strings.Contains(stdout, `"resource"`) {
		t.Errorf("%d %s", code, stdout)
	}
}

func TestExplainRouteErrors(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`--route "/x": want a method and a path, such as 'GET /search/code?q=x'`: {"--preset", "github", "--route", "/x"},
		`--route "get /x": want a method`:                                        {"--preset", "github", "--route", "get /x"},
		`--route "GET x": want a method`:                                         {"--preset", "github", "--route", "GET x"},
		"--route needs --preset or --provider, and no response":                  {"--route", "GET /x"},
		"no --preset and no --route":                                             {"--providers", "--route", "GET /x", "--preset", "github"},
	} {
		if code, _, stderr := paceline("", append([]string{"explain"}, args...)...); code != cli.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: %d %s, want %q", args, code, stderr, want)
		}
	}
}

// proxy check --route says what a request costs at its upstream, by the file or the provider, and where it
// counts.
func TestProxyCheckRoute(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "paceline.yaml")
	err := os.WriteFile(file, []byte(`version: 1
upstreams:
  - {name: exchange, to: "https://api.binance.com", path: /b, preset: binance, charges: [{on: "GET /api/v3/new", cost: 7 weight}]}
  - name: mine
    to: https://api.example.com/base
    charges:
      - {on: "* */search/*", resource: search}
      - {on: "POST /base/graphql", cost: {weight: .first}, else: 9 weight, answer: {weight: .cost}}
    limits: [500/m, 100 weight/m, {limit: 30/m, resource: search}]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		route string
		says  []string
		not   string
	}{
		{"GET /b/api/v3/new", []string{"to exchange", "1 request, 7 weight", "GET /api/v3/new, of the configuration", "binance: 6,000 weight"}, "orders"},
		{"GET /b/api/v3/depth?limit=5000", []string{"250 weight", "GET /api/v3/depth?limit>1000", "documented"}, ""},
		{"GET /search/x", []string{"GET /base/search/x, to mine", "of          search", "500/m", "30/m"}, "100 weight"},
		{"POST /graphql", []string{"1 request, 9 weight", "or, in weight, by the body: .first", "in the end, in weight, by the answer: .cost", "100 weight/m"}, "30/m"},
		{"GET /x", []string{"none: no row of the table fits", "500/m"}, "100 weight"},
	} {
		code, stdout, stderr := paceline("", "proxy", "check", file, "--route", c.route)
		if code != cli.ExitOK || c.not != "" && strings.Contains(stdout, c.not) {
			t.Errorf("%s: %d, has %q: %s%s", c.route, code, c.not, stdout, stderr)
		}
		for _, says := range c.says {
			if !strings.Contains(stdout, says) {
				t.Errorf("%s says no %q:\n%s%s", c.route, says, stdout, stderr)
			}
		}
	}
	if _, stdout, _ := paceline("", "proxy", "check", file); !strings.Contains(stdout, "charge: * */search/* counts in the resource search") || !strings.Contains(stdout, "charge: POST /base/graphql costs 1 request, 9 weight, costs what .first of the body says") {
		t.Errorf("check says no charges:\n%s", stdout)
	}
	if code, _, stderr := paceline("", "proxy", "check", file, "--route", "GET"); code != cli.ExitUsage || !strings.Contains(stderr, "want a method and a path") {
		t.Errorf("%d %s", code, stderr)
	}
}

func TestProxyChargeFlags(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`--charge "GET /x=5 apples": "apples" is no unit of a cost`:     {"--limit", "5/s", "--charge", "GET /x=5 apples"},
		`--limit "many/m": "many" is not a whole number`:                {"--charge", "GET /x=resource a", "--limit", "a: many/m"},
		`no charge names the resource "b"`:                              {"--charge", "GET /x=resource a", "--limit", "b: 5/m"},
		`no request fits "GET /x" but those of the charge before it`:    {"--limit", "5/s", "--charge", "* *=resource a", "--charge", "GET /x=resource b"},
		`the resource "a" has two limits in the same time, 5/m and 9/m`: {"--charge", "GET /x=resource a", "--limit", "a: 5/m", "--limit", "a: 9/m"},
	} {
		code, _, stderr := paceline("", append([]string{"proxy", "--to", "http://127.0.0.1:9"}, args...)...)
		if code != cli.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: %d %s, want %q", args, code, stderr, want)
		}
	}
}

// run takes presets of weight, charges, and limits of weight and of resources.
func TestRunCharges(t *testing.T) {
	t.Parallel()
	const line = `{"url":"https://api.binance.com/api/v3/depth?limit=5000"}`
	for want, args := range map[string][]string{
		`--charge "GET /x=5 apples": "apples" is no unit of a cost`:             {"--limit", "5/s", "--charge", "GET /x=5 apples"},
		`no charge of github, and no --charge, names the resource "serch"`:      {"--preset", "github", "--limit", "serch: 30/m"},
		`no request fits the charge on "GET /x" but those of the one before it`: {"--limit", "5/s", "--charge", "* *=5 weight", "--charge", "GET /x=6 weight"},
		`cost 250 weight can never go: limit 200 weight/m allows 200 at once`:   {"--limit", "200 weight/m", "--dry-run"},
		`1 to send`:                {"--preset", "binance", "--dry-run"},
		`limit 5000/h requests  1`: {"--preset", "github", "--limit", "search: 20/m", "--dry-run"},
	} {
		_, stdout, stderr := paceline(line, append([]string{"run"}, args...)...)
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("%q: %s%s, want %q", args, stdout, stderr, want)
		}
	}
}
