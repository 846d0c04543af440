package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

const (
	provided = "sk-Zq81kdTTw0pXv27LmAa93bYcQ"
	clients  = "pl-8wjx0FqR41nZtBvC65ukEs"
)

var environment = map[string]string{"OPENAI_A": provided, "ALICE_KEY": clients, "EMPTY": "", "LINE": "x\ny"}

var files = fstest.MapFS{
	"b.key":   {Data: []byte("sk-file-9f8g7h6j5k4l3\n")},
	"not.pem": {Data: []byte("no certificate")},
}

// source is beside files and in environment.
func source(private bool) Source {
	return Source{
		Name: "proxy.yaml", Private: private,
		Env:  func(name string) (string, bool) { v, ok := environment[name]; return v, ok },
		Open: func(name string) (io.ReadCloser, error) { return files.Open(name) },
	}
}

func read(text string) (File, error) { return Read(strings.NewReader(text), source(false)) }

const everything = `
version: 1
listen: 127.0.0.1:7000
forward: {listen: 127.0.0.1:7002, bundle: ca.pem, tunnels: none}
admin: "off"
metrics: {listen: "127.0.0.1:7003", names: true, token: sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad}
open: true
max_wait: 30s
final_only: true
grace: 1m
state: proxy.state
handover: proxy.sock
sent: sent.jsonl
bounds: {header: 32KiB, body: none, kept: 1MiB, kept_in_all: 64MiB, frozen: 8MiB, connections: 100, header_timeout: 5s, idle_timeout: 1m, stall: 20s}
clients:
  header: X-Client
  most: 50
  default: {weight: 0.5, max_waiting: 10}
  list:
    - name: alice
      keys: [{env: ALICE_KEY}, sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad]
      weight: 2
      head_start: 10s
      max_waiting: 500
      max_wait: 0
      reserve: 25%
      in_flight: 4
      models: [gpt-4o, "claude-*"]
      upstreams: [rest, llm]
      limits: [1000/d, 200k tokens/d, 5USD/d]
    - name: batch
      addresses: [10.1.0.0/16, 192.0.2.7]
      max_wait: 2h
      may_say_cost: true
upstreams:
  - name: llm
    to: https://api.openai.com/v1
    path: /openai
    preset: openai:tier1
    per_second: true
    limits:
      - 500/m
      - {limit: 30000 tokens/m, model: gpt-4o, rule: bucket, burst: 60000}
      - {limit: 10/s, scope: route, route: GET /users/*}
      - {limit: 30/m, resource: search}
      - {limit: 100/s, scope: all}
    charges:
      - {on: "GET /depth?limit>1000", cost: 250 weight, resource: "{path}"}
      - {on: "POST /graphql", cost: {weight: .variables.first, orders: 2}, else: 100 weight, answer: {weight: .cost}, learn: true}
      - {on: "* /search/*", resource: search, cost: {input: .n}}
    first: [POST /order, "DELETE /order/*"]
    first_free: 20%
    rejects_free: true
    latency_max: 300ms
    in_flight: 8
    use: 75%
    ramp: 2m
    tokens: true
    count: used
    provider: openai
    prices: [{model: gpt-4o, input: 2.5, output: 10, cached: 1.25}, {input: 1, output: 0}]
    request_price: 0.005
    keys:
      - {name: A, env: OPENAI_A}
      - {name: B, file: b.key, limits: [100/m]}
    header:
      Authorization: Bearer {key}
      X-Team: blue
      X-Nonce: "{nonce}"
    nonce_gap: 50ms
    nonce_unit: 1us
    query: {api-version: '2026-01-01'}
    attempts: 5
    backoff_base: 1s
    backoff_max: 10s
    answer_timeout: none
    connect_timeout: 3s
    max_pause: none
    max_outage: 0
    forwarded: true
    keep_host: true
    keep_links: true
    batches: {folder: kept, keep: 2d, most: 10GiB, weight: 0.5, head_start: 1s, reserve: 0.1, concurrency: 8}
  - {name: rest, to: "http://127.0.0.1:9000", host: rest.local, first: [POST /x], first_free: 0, h2c: true, limits: auto, strangers: true, key_in: [header x-account, parameter Account], answer_timeout: 1m, max_pause: 10m, max_outage: 30s}
`

func TestEverything(t *testing.T) {
	got, err := read(everything)
	if err != nil {
		t.Fatal(err)
	}
	abc, _ := proxy.ParseKeyHash("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
	const day = 24 * time.Hour
	dialect, _ := provider.Lookup("openai")
	want := proxy.Config{
		Listen: "127.0.0.1:7000", Forward: proxy.Forward{Listen: "127.0.0.1:7002", Bundle: "ca.pem", Tunnels: "none"},
		Metrics: proxy.Metrics{Listen: "127.0.0.1:7003", Names: true, Token: &abc},
		Admin:   proxy.Off, Open: true, MaxWait: 30 * time.Second, FinalOnly: true, Grace: time.Minute, State: "proxy.state", Handover: "proxy.sock", Sent: "sent.jsonl",
		Bounds: proxy.Bounds{Header: 32 << 10, Body: -1, Kept: 1 << 20, KeptInAll: 64 << 20, Frozen: 8 << 20, Connections: 100, HeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, Stall: 20 * time.Second},
		Clients: proxy.Clients{Header: "X-Client", Most: 50, Default: proxy.Client{Weight: 0.5, MaxWaiting: 10}, List: []proxy.Client{
			{Name: "alice", Keys: []proxy.KeyHash{proxy.HashKey(clients), abc}, Weight: 2, HeadStart: 10 * time.Second, Reserve: 0.25, InFlight: 4, Models: []string{"gpt-4o", "claude-*"}, Upstreams: []string{"rest", "llm"}, MaxWaiting: 500, MaxWait: -1, Limits: []rate.Limit{
				{N: 1000, Per: day, Text: "1000/d"}, {N: 200_000, Per: day, Unit: limit.Tokens, Text: "200000 tokens/d"}, {N: 5_000_000, Per: day, Unit: limit.Money, Text: "5USD/d"}}},
			{Name: "batch", Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("192.0.2.7/32")}, MaxWait: 2 * time.Hour, MaySayCost: true},
		}},
		Upstreams: []proxy.Upstream{{
			Name: "llm", Path: "/openai", Preset: "openai:tier1", PerSecond: true,
			Limits: []proxy.Limit{
				{Limit: rate.Limit{N: 500, Per: time.Minute, Text: "500/m"}},
				{Limit: rate.Limit{N: 30_000, Per: time.Minute, Unit: limit.Tokens, Text: "30000 tokens/m", Bucket: true, Burst: 60_000}, Scope: provider.Model, Only: "gpt-4o"},
				{Limit: rate.Limit{N: 10, Per: time.Second, Text: "10/s"}, Scope: provider.Route, Only: "GET /users/*"},
				{Limit: rate.Limit{N: 30, Per: time.Minute, Text: "30/m"}, Scope: provider.Resource, Only: "search"},
				{Limit: rate.Limit{N: 100, Per: time.Second, Text: "100/s"}, Scope: provider.IP},
			},
			Charges: []provider.Charge{
				{On: "GET /depth?limit>1000", Cost: map[provider.Unit]int64{provider.Weight: 250}, Resource: "{path}"},
				{On: "POST /graphql", Cost: map[provider.Unit]int64{provider.Weight: 100, provider.Orders: 2}, Learns: true},
				{On: "* /search/*", Resource: "search", Cost: map[provider.Unit]int64{provider.Input: 1}},
			},
			First: []string{"POST /order", "DELETE /order/*"}, FirstFree: 0.2,
			Arrivals: limit.Arrivals{RejectsFree: true, OneWayMax: 300 * time.Millisecond}, InFlight: 8, Use: 0.75, Ramp: 2 * time.Minute, Tokens: true, Counting: tokens.Used, Provider: dialect,
			Prices: []proxy.Price{{Model: "gpt-4o", Input: 2.5, Output: 10, Cached: 1.25}, {Input: 1}}, RequestPrice: 0.005,
			Keys:   []proxy.Key{{Name: "A", Secret: provided}, {Name: "B", Secret: "sk-file-9f8g7h6j5k4l3", Limits: []rate.Limit{{N: 100, Per: time.Minute, Text: "100/m"}}}},
			Header: []proxy.Field{{Name: "Authorization", Value: "Bearer {key}"}, {Name: "X-Team", Value: "blue"}, {Name: "X-Nonce", Value: "{nonce}"}}, Query: []proxy.Field{{Name: "api-version", Value: "2026-01-01"}},
			NonceGap: 50 * time.Millisecond, NonceUnit: time.Microsecond,
			Attempts: 5, Backoff: backoff.Policy{Base: time.Second, Max: 10 * time.Second}, AnswerTimeout: -1, ConnectTimeout: 3 * time.Second, MaxPause: -1, MaxOutage: -1,
			Forwarded: true, KeepHost: true, KeepLinks: true,
			Batches: proxy.Batches{Folder: "kept", Keep: 48 * time.Hour, Most: 10 << 30, Weight: 0.5, HeadStart: time.Second, Reserve: 0.1, Concurrency: 8},
		}, {Name: "rest", Host: "rest.local", First: []string{"POST /x"}, FirstFree: -1, H2C: true, Auto: true, Strangers: true, KeyIn: &secret.Where{Fields: []string{"X-Account"}, Parameters: []string{"account"}}, AnswerTimeout: time.Minute, MaxPause: 10 * time.Minute, MaxOutage: 30 * time.Second}},
	}
	if a, b := got.Config.Upstreams[0].To.String(), got.Config.Upstreams[1].To.String(); a != "https://api.openai.com/v1" || b != "http://127.0.0.1:9000" {
		t.Error(a, b)
	}
	for i := range got.Config.Upstreams {
		got.Config.Upstreams[i].To = nil
		if reflect.ValueOf(got.Config.Upstreams[i].Provider).Kind() == reflect.Func { // functions are never equal
			got.Config.Upstreams[i].Provider, want.Upstreams[i].Provider = nil, nil
		}
	}
	charges := got.Config.Upstreams[0].Charges // of code nothing can be compared but the text
	found := fmt.Sprint(charges[0].Body, charges[0].Answer, charges[1].Body, charges[1].Answer, charges[2].Body, charges[2].Answer)
	if found != "map[] map[] map[weight:.variables.first] map[weight:.cost] map[input tokens:.n] map[]" {
		t.Errorf("expressions: %s", found)
	}
	for i := range charges {
		charges[i].Body, charges[i].Answer = nil, nil
	}
	if !reflect.DeepEqual(got.Config, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got.Config, want)
	}
	from := map[any]string{proxy.Secret(provided): "env OPENAI_A", proxy.Secret("sk-file-9f8g7h6j5k4l3"): "file b.key", proxy.HashKey(clients): "env ALICE_KEY", abc: "by its hash"}
	if !reflect.DeepEqual(got.From, from) {
		t.Errorf("%d secrets are from %v", len(got.From), got.From)
	}
}

// sharing has what does not go with state, latency_max and limits: auto.
const sharing = `
version: 1
share: {store: sqlite:limits.db, name: api, fallback: split, weight: 2.5, least: 0.2}
upstreams: [{to: "https://api.example.com", limits: [20/s]}]
`

func TestShare(t *testing.T) {
	got, err := read(sharing)
	if want := (proxy.ShareBy{Store: "sqlite:limits.db", Name: "api", Fallback: "split", Weight: 2.5, Least: 0.2}); err != nil || got.Config.Share != want {
		t.Errorf("%+v, %v", got.Config.Share, err)
	}
	got, err = read(strings.Replace(sharing, "store: sqlite:limits.db", "env: ALICE_KEY", 1))
	if err != nil || got.Config.Share.Store != clients {
		t.Errorf("from the environment: %v", err)
	}
	for was, c := range map[string][2]string{
		"store: sqlite:limits.db":       {"env: NOT_SET", "proxy.yaml:3:14: env: NOT_SET is not set"},
		"{store: sqlite:limits.db":      {"{env: postgres://u:hunter2@db/limits", "no variable of the environment has this name"},
		"fallback: split":               {"fallback: go", `proxy.yaml:3:55: fallback: "go" is none of wait, split`},
		"weight: 2.5":                   {"weight: 0", `proxy.yaml:3:70: weight: "0" is not above 0`},
		"weight: 2.5, ":                 {"weight: 1001, ", "1001 is not between 0.001 and 1000"},
		"least: 0.2":                    {"least: 0.96", "0.96 is not between 0 and 0.95"},
		"version: 1":                    {"version: 1\nstate: x", "beside a store that limits are shared by"},
		"store: sqlite:limits.db, name": {"name", "there is no store"},
		"limits: [20/s]":                {"limits: auto", "limits that are to be found out cannot be shared by a store"},
	} {
		if _, err := read(strings.Replace(sharing, was, c[0], 1)); err == nil || !strings.Contains(err.Error(), c[1]) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %s", c[0], err, c[1])
		}
	}
}

// targeted has what does not go with to.
const targeted = `
version: 1
upstreams:
  - path: /llm
    header: {Authorization: "Bearer {key}", X-Team: blue}
    affinity: {by: header, header: X-Session, hold: 3s}
    targets:
      - {name: first, to: "https://api.openai.com", preset: openai:tier2, per_second: true, keys: [{name: A, env: OPENAI_A}]}
      - to: "https://eu.openai.azure.com/x"
        path: "/openai/deployments/{model}{rest}?api-version=2025-01-01"
        models: {gpt-4o: prod-4o}
        limits: [240k tokens/m, {limit: 50USD/d, scope: all}]
        provider: azure-openai
        count: sum
        keys: [{name: B, file: b.key}]
        header: {Api-Key: "{key}"}
        query: {tag: eu}
        in_flight: 4
        after: 20s
      - {name: local, to: "http://127.0.0.1:9000", after: never}
`

func TestTargets(t *testing.T) {
	got, err := read(targeted)
	if err != nil {
		t.Fatal(err)
	}
	azure, _ := provider.Lookup("azure-openai")
	want := []proxy.Target{
		{Name: "first", Preset: "openai:tier2", PerSecond: true, Keys: []proxy.Key{{Name: "A", Secret: provided}}},
		{Path: "/openai/deployments/{model}{rest}?api-version=2025-01-01", Models: map[string]string{"gpt-4o": "prod-4o"},
			Limits: []proxy.Limit{{Limit: rate.Limit{N: 240_000, Per: time.Minute, Unit: limit.Tokens, Text: "240000 tokens/m"}},
				{Limit: rate.Limit{N: 50_000_000, Per: 24 * time.Hour, Unit: limit.Money, Text: "50USD/d"}, Scope: provider.IP}},
			Counting: tokens.Sum, Keys: []proxy.Key{{Name: "B", Secret: "sk-file-9f8g7h6j5k4l3"}}, InFlight: 4, After: 20 * time.Second,
			Header: []proxy.Field{{Name: "Api-Key", Value: "{key}"}}, Query: []proxy.Field{{Name: "tag", Value: "eu"}}},
		{Name: "local", After: proxy.Never},
	}
	if a := got.Config.Upstreams[0].Affinity; a != (proxy.Affinity{By: "header", Header: "X-Session", Hold: 3 * time.Second}) {
		t.Errorf("%+v", a)
	}
	for i, to := range []string{"https://api.openai.com", "https://eu.openai.azure.com/x", "http://127.0.0.1:9000"} {
		g := &got.Config.Upstreams[0].Targets[i]
		if g.To.String() != to || i == 1 && g.Provider.Name() != azure.Name() {
			t.Errorf("%v, %v", g.To, g.Provider)
		}
		g.To, g.Provider = nil, nil
	}
	if !reflect.DeepEqual(got.Config.Upstreams[0].Targets, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got.Config.Upstreams[0].Targets, want)
	}
	for was, c := range map[string][2]string{
		"- path: /llm":                    {"- to: https://api.example.com\n    path: /llm", "proxy.yaml:4:9: upstreams[0].to: it is beside targets"},
		"path: /llm":                      {"path: /llm\n    limits: [5/s]", "proxy.yaml:5:13: upstreams[0].limits: it is beside targets"},
		`to: "http://127.0.0.1:9000"`:     {`to: "https://api.anthropic.com"`, "proxy.yaml:20:9: upstreams[0].targets[2]: local speaks Anthropic's API, and a target before it OpenAI's"},
		"name: local, ":                   {"name: first, ", `there are two targets "first"`},
		"by: header":                      {"by: body", `proxy.yaml:6:20: by: "body" is none of prompt_cache_key, user, header, prefix`},
		"by: header, header":              {"by: user, header", "proxy.yaml:6:34: upstreams[0].affinity.header: it is beside by: user, expected by: header"},
		"affinity:":                       {"key_in: [none]\n    affinity:", "proxy.yaml:6:13: upstreams[0].key_in: the requests go with keys of the proxy"},
		"hold: 3s":                        {"hold: 0s", `hold: "0s" is not above 0`},
		"name: B":                         {"name: A", `proxy.yaml:15:15: upstreams[0].targets[1].keys: the target first has a key "A", too`},
		"after: 20s":                      {"after: soon", `proxy.yaml:19:16: after: "soon" is no`},
		"after: never":                    {"after: -1s", `after: "-1s" is`},
		"{model}{rest}":                   {"{deployment}{rest}", `upstreams[0].targets[1].path: "/openai/deployments/{deployment}{rest}?api-version=2025-01-01", expected a path with {model}, {path} or {rest}`},
		"models: {gpt-4o: prod-4o}":       {"models: [gpt-4o]", "models: is no mapping"},
		`Authorization: "Bearer {key}", `: {"", "upstreams[0].targets[0].header: no header field or parameter has {key} in it"},
	} {
		if _, err := read(strings.Replace(targeted, was, c[0], 1)); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %s", c[0], err, c[1])
		}
	}
}

// Every key that the tables know is in the file that has everything.
func TestEverythingIsEverything(t *testing.T) {
	for _, key := range allKeys() {
		if !strings.Contains(everything+sharing+targeted, key+":") && !strings.Contains("tls cert key ca client_ca server_name secret sha256", key) {
			t.Errorf("%s is not tried", key)
		}
	}
}

// limits: auto beside a preset, and auto in a list of limits, are the known limits and Auto.
func TestAutoBesideLimits(t *testing.T) {
	for text, limits := range map[string]int{
		"preset: github\n    limits: auto\n": 0, "preset: github\n    limits: [auto]\n": 0, "limits: [20/s, auto]\n": 1,
	} {
		f, err := read("version: 1\nupstreams:\n  - to: https://api.github.com\n    " + text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if u := f.Config.Upstreams[0]; !u.Auto || len(u.Limits) != limits {
			t.Errorf("%s: Auto %v beside %v", text, u.Auto, u.Limits)
		}
	}
	if _, err := read("version: 1\nupstreams:\n  - to: https://api.github.com\n    limits: {limit: auto}\n"); err == nil {
		t.Error("a mapping is a list of limits")
	}
}

const head = "version: 1\n"

func TestErrors(t *testing.T) {
	const one = head + "upstreams:\n  - to: https://api.example.com\n"
	const list = one + "clients:\n  list:\n"
	for _, c := range []struct {
		text string
		want []string // each with its line and column
	}{
		{"", []string{"proxy.yaml: is empty: want version, listen,"}},
		{"x", []string{`proxy.yaml:1:1: "x" is no configuration: want version, listen,`}},
		{head, []string{"proxy.yaml:1:1: upstreams is missing"}},
		{head + "upstreams: []\n", []string{"proxy.yaml:2:12: upstreams: none, expected one at least"}},
		{head + "upstreams:\n  - path: /a\n", []string{"proxy.yaml:3:5: upstreams[0].to: it is empty, expected the URL of a server, such as https://api.example.com, or targets"}},
		{one + "    limit: 5/s\n", []string{`proxy.yaml:4:5: "limit" is not known in upstreams; did you mean limits?`}},
		{one + "    limts: 5/s\n", []string{`did you mean limits?`}},
		{one + "metrics: 127.0.0.1\n", []string{`metrics.listen: "127.0.0.1", expected HOST:PORT`}},
		{one + "metrics: {names: true}\n", []string{"listen is missing in metrics"}},
		{one + "metrics: {listen: \"127.0.0.1:7003\", token: hunter2}\n", []string{"expected sha256:"}},
		{one + "lisen: x\n", []string{`proxy.yaml:4:1: "lisen" is not known: want version, listen, admin, metrics, forward, open, tls, max_wait, final_only, grace, state, sent, handover, share, bounds, clients, upstreams; did you mean listen?`}},
		{one + "listen: 7878\n", []string{`proxy.yaml:4:9: listen: "7878", expected HOST:PORT such as 127.0.0.1:7878`}},
		{one + "listen: 0.0.0.0:7878\n", []string{`proxy.yaml:4:9: listen: 0.0.0.0:7878 can be reached from other machines`}},
		{one + "admin: 0.0.0.0:7879\n", []string{`proxy.yaml:4:8: admin: 0.0.0.0:7879 can be reached from other machines`}},
		{one + "max_wait: soon\ngrace: -1s\nopen: maybe\n", []string{`proxy.yaml:4:11: max_wait: "soon" is no time`, `proxy.yaml:5:8: grace: "-1s" is not 0 or more`, `proxy.yaml:6:7: open: "maybe" is neither true nor false`}},
		{one + "bounds: {header: 5 apples}\n", []string{`proxy.yaml:4:18: header: "5 apples" is no size: want a whole number of bytes below 2 GiB`}},
		{one + "bounds: {stall: 0}\n", []string{`proxy.yaml:4:17: stall: "0" is not above 0`}},
		{one + "    connect_timeout: 0s\n", []string{`proxy.yaml:4:22: connect_timeout: "0s" is not above 0`}},
		{one + "    answer_timeout: 0m\n", []string{`proxy.yaml:4:21: answer_timeout: "0m" is not above 0`}},
		{"upstreams:\n  - to: http://example.com\n", []string{`proxy.yaml:1:1: version is missing: add version: 1`}},
		{head + "upstreams:\n  - to: 127.0.0.1:9999\n", []string{`proxy.yaml:3:9: to: "127.0.0.1:9999": http:// or https:// is missing in front`}},
		{head + "upstreams:\n  - to: ftp://example.com\n", []string{`proxy.yaml:3:9: to: "ftp://example.com" is no address of a server: want one such as https://`}},
		{head + "upstreams:\n  - to: https://api.example.com?x=1\n", []string{`proxy.yaml:3:9: upstreams[0].to: it has a query`}},
		{one + "  - to: https://b.example.com\n    path: /\n", []string{`proxy.yaml:5:11: upstreams[1].path: "/" is that of Upstreams[0], api.example.com, too`}},
		{one + "    path: /a\n  - to: https://b.example.com\n    path: /a/\n", []string{`proxy.yaml:6:11: upstreams[1].path: "/a" is that of Upstreams[0]`}},
		{one + "    path: a\n", []string{`proxy.yaml:4:11: upstreams[0].path: "a", expected it to begin with a slash`}},
		{one + "    charges: [{on: GET /x, cost: 5 apples}]\n", []string{`proxy.yaml:4:34: cost: "apples" is no unit of a cost, expected weight, orders, input, output or tokens`}},
		{one + "    charges: [{on: GET /x, cost: {apples: 5}}]\n", []string{`proxy.yaml:4:35: cost: "apples" is no unit of a cost`}},
		{one + "    charges: [{on: GET /x, cost: {weight: .a b(}}]\n", []string{`proxy.yaml:4:43: cost: ".a b(", character 4: unexpected token "b", expected a jq expression such as .variables.first`}},
		{one + "    charges: [{on: GET /x, cost: {weight: nowhere}}]\n", []string{`proxy.yaml:4:43: cost: "nowhere": function not defined: nowhere/0, expected a jq expression of the body alone`}},
		{one + "    charges: [{on: GET /x, answer: {weight: 'def f: f; f'}}]\n", []string{`proxy.yaml:4:45: answer: "def f: f; f" does not end`}},
		{one + "    charges: [{on: GET /x, cost: {weight: 0}}]\n", []string{`proxy.yaml:4:43: cost: "0" is not a whole number of 1 or more`}},
		{one + "    charges: [{on: GET /x, cost: {weight: 1, Weight: 2}}]\n", []string{`proxy.yaml:4:46: cost: there are two costs in weight`}},
		{one + "    charges: [{on: GET /x, cost: {weight: [1]}}, {on: GET /y, cost: []}]\n", []string{`proxy.yaml:4:43: cost: a list is neither a number nor an expression`, `proxy.yaml:4:69: cost: a list is no cost: want 25 weight`}},
		{one + "    charges: [{on: GET /x, cost: 5 weight, else: 6 weight}, {on: GET /y, cost: {weight: .a}, else: 2 orders}]\n", []string{`proxy.yaml:4:50: else: of a cost without an expression`, `proxy.yaml:4:100: else: orders, which is no expression in cost`}},
		{one + "    charges: [{on: GET /x, cost: {weight: .a}, else: {weight: .b}}, {on: GET /y, answer: 5 weight}]\n", []string{`else: an expression: want numbers`, `answer: a number: want an expression by unit`}},
		{one + "    charges: [{on: GET /x, cost: 5 weight, learn: true}]\n", []string{`proxy.yaml:4:15: learn: of a charge without answer`}},
		{one + "    charges: [{on: GET /x}]\n", []string{`proxy.yaml:4:15: charges: the requests "GET /x" neither cost anything nor count in a resource`}},
		{one + "    charges: [{cost: 5 weight}]\n", []string{`proxy.yaml:4:15: on is missing in charges`}},
		{one + "    charges: [{on: GET, cost: 5 weight}]\n", []string{`proxy.yaml:4:15: upstreams[0].charges[0]: want a method and a path`}},
		{one + "    charges:\n      - {on: GET /x*, cost: 5 weight}\n      - {on: GET /xy, cost: 6 weight}\n", []string{`proxy.yaml:6:9: upstreams[0].charges[1]: no request fits "GET /xy" but those of the charge before it, on "GET /x*", which holds for them`}},
		{one + "    limits: [{limit: 5/s, resource: serch}]\n", []string{`proxy.yaml:4:14: upstreams[0].limits[0]: no charge names the resource "serch", so the limit holds for no request`}},
		{one + "    charges: [{on: GET /x, resource: a}]\n    limits: [{limit: 5/s, resource: a}, {limit: 6/s, resource: a}]\n", []string{`proxy.yaml:5:41: upstreams[0].limits[1]: the resource "a" has two limits in the same time, 5/s and 6/s`}},
		{one + "    preset: openai:teir1\n", []string{`proxy.yaml:4:13: upstreams[0].preset: no limits are published as "openai:teir1"; did you mean openai:tier1`}},
		{one + "    provider: opnai\n", []string{`proxy.yaml:4:15: provider: "opnai" is not in the table; did you mean openai`}},
		{one + "    prices: [{model: m, input: -1, output: 2}]\n", []string{`proxy.yaml:4:14: upstreams[0].prices[0]: -1 and 2, expected USD per million tokens, 0 or more`}},
		{one + "    prices: [{input: 1, output: 2, cached: 3}]\n", []string{`upstreams[0].prices[0].cached: 3, expected USD per million tokens, 0 or more, and no more than the 1 of other input`}},
		{one + "    prices: [{input: 1, output: 2}, {input: 1, output: x}]\n", []string{`proxy.yaml:4:56: output: "x" is no number`}},
		{one + "    prices: [{input: 1}]\n", []string{`proxy.yaml:4:14: output is missing in prices`}},
		{one + "    request_price: -2\n", []string{`proxy.yaml:4:20: upstreams[0].request_price: -2, expected USD, 0 or more`}},
		{one + "    count: all\n", []string{`proxy.yaml:4:12: count: "all" is none of documented, reserved`}},
		{one + "    limits: 5/s\n", []string{`proxy.yaml:4:13: limits: "5/s" is no list: want items that begin with "- ", none or auto`}},
		{one + "    limits: [500]\n", []string{`proxy.yaml:4:14: limits: "500" does not say per what time, expected 100/min`}},
		{one + "    limits: [5/s, 5/s]\n", []string{`proxy.yaml:4:19: limits: this limit is there already`}},
		{one + "    limits: [{scope: key}]\n", []string{`proxy.yaml:4:14: limit is missing in limits`}},
		{one + "    limits: [{limit: 5/s, scope: everybody}]\n", []string{`proxy.yaml:4:34: scope: "everybody" is none of key, all, model, resource, route`}},
		{one + "    limits: [{limit: 5/s, scope: key, model: gpt}]\n", []string{`proxy.yaml:4:46: model: of a limit whose scope is not model`}},
		{one + "    limits: [{limit: 5/s, model: gpt, scope: key}]\n", []string{`proxy.yaml:4:46: scope: "key" of a limit of one model: want model, or no scope`}},
		{one + "    limits: [{limit: 5/s, model: gpt, route: a}]\n", []string{`proxy.yaml:4:46: route: of a limit of one model: want one of them`}},
		{one + "    limits: [{limit: 5/s, burst: 7}]\n", []string{`proxy.yaml:4:34: burst: of a limit that is no bucket`}},
		{one + "    keys: [OPENAI_A]\n", []string{`proxy.yaml:4:12: keys: want a mapping such as {name: first, env: OPENAI_KEY} for each key, not the key itself`}},
		{one + "    keys: [{env: OPENAI_A}]\n", []string{`proxy.yaml:4:12: name is missing in keys`}},
		{one + "    keys: [{name: A}]\n", []string{`proxy.yaml:4:12: a key is written in 0 ways: want one of env, file, secret`}},
		{one + "    keys: [{name: A, env: OPENAI_A, file: b.key}]\n", []string{`proxy.yaml:4:12: a key is written in 2 ways`}},
		{one + "    keys: [{name: A, env: NOPE}]\n", []string{`proxy.yaml:4:27: env: the variable NOPE is not set in the environment`}},
		{one + "    keys: [{name: A, file: gone}]\n", []string{`proxy.yaml:4:28: file: open gone: file does not exist`}},
		{one + "    header: {X-K: \"{key}\"}\n    keys: [{name: A, env: OPENAI_A}, {name: B, env: OPENAI_A}]\n", []string{`proxy.yaml:5:38: upstreams[0].keys[1].secret: A and B have the same value`}},
		{one + "    header: {X-K: \"{key}\"}\n    keys: [{name: A, env: LINE}]\n", []string{`proxy.yaml:5:12: upstreams[0].keys[0].secret: the value of A has white space around it or a control character`}},
		{one + "    header: {Authorization: \"{key}\"}\n", []string{`proxy.yaml:3:5: upstreams[0].keys: none, and a header field or parameter has {key} in it`}},
		{one + "    header: {X-Key: {key}}\n", []string{`proxy.yaml:4:21: header: the value of X-Key is a mapping: want quotes around what begins with a brace`}},
		{one + "    header: {a b: c}\n", []string{`proxy.yaml:4:19: upstreams[0].header[0]: "a b" is no name of a header field`}},
		{one + "    header: {X: c, x: d}\n", []string{`proxy.yaml:4:20: header: "x" is there already`}},
		{list + "    - keys: [{env: ALICE_KEY}]\n", []string{"proxy.yaml:6:7: name is missing in list"}},
		{list + "    - name: a\n      keys: [{env: EMPTY}]\n", []string{`proxy.yaml:7:14: keys: the key (env EMPTY) is empty, or has white space`}},
		{list + "    - name: a\n      keys: [{sha256: abc}]\n", []string{`proxy.yaml:7:23: sha256: want 64 hexadecimal digits`}},
		{list + "    - {name: a, keys: [{env: ALICE_KEY}]}\n    - {name: b, keys: [{env: ALICE_KEY}]}\n", []string{`proxy.yaml:7:24: clients.list[1].keys[0]: the same key is a's`}},
		{list + "    - {name: a}\n    - {name: a}\n  header: X-Client\n", []string{`proxy.yaml:7:14: clients.list[1].name: there are two clients "a"`}},
		{list + "    - {name: a, models: [\"\", {}]}\n", []string{"proxy.yaml:6:26: models: \"\" is no name of a model", "proxy.yaml:6:30: models: a mapping is no name"}},
		{list + "    - {name: a, models: [\"  \"]}\n", []string{`proxy.yaml:6:26: models: "  " is no name of a model`}},
		{list + "    - {name: a, models: []}\n", []string{"proxy.yaml:6:25: models: none: want one"}},
		{list + "    - {name: a, reserve: 120%}\n", []string{
			`proxy.yaml:6:26: reserve: "120%" is no part of a whole: want 75% or 0.75`}},
		{one + "    use: a lot\n", []string{`proxy.yaml:4:10: use: "a lot" is no part of a whole: want 75% or 0.75`}},
		{one + "    limits: auto\n    use: 75%\n", []string{
			`upstreams[0].use: 0.75 with the limit auto, which finds its own part; expected limits that are known`}},
		{list + "    - {name: a, weight: 0}\n", []string{`proxy.yaml:6:25: weight: "0" is not above 0, want a number such as 0.5 or 2`}},
		{list + "    - {name: a, weight: four}\n", []string{`proxy.yaml:6:25: weight: "four" is no number, want one such as 0.5 or 2`}},
		{one + "    header: {X-Key: 'a {kye}'}\n", []string{`the value of X-Key has {kye} in it, want {key}`}},
		{one + "    keys: [{name: A, env: OPENAI_A}]\n    header: {Authorization: 'Bearer {key}'}\n    key_in: [header X-Account]\n",
			[]string{"proxy.yaml:6:13: upstreams[0].key_in: the requests go with keys of the proxy"}},
		{one + "    query: {n: '{Nonce}'}\n", []string{`the value of n has {Nonce} in it, want {nonce}`}},
		{list + "    - {name: a, addresses: [here, 10.1.2.3/8]}\n", []string{`proxy.yaml:6:29: addresses: "here" is no address`, `proxy.yaml:6:35: addresses: "10.1.2.3/8" is not the beginning of its range, which is 10.0.0.0/8`}},
		{list + "    - {name: a, limits: [5 apples/d]}\n", []string{`proxy.yaml:6:26: limits: "5 apples/d": "apples" is no unit, expected 100/min`}},
		{list + "    - {name: a, addresses: [\"fe80::1%eth0\"]}\n", []string{`proxy.yaml:6:29: addresses: "fe80::1%eth0" is no address`}},
		{list + "    - {name: a}\n", []string{`proxy.yaml:6:7: nobody can be the client "a": want keys, addresses, or a header in clients that names it`}},
		{list + "    - {name: a, addresses: [10.0.0.0/8]}\n    - {name: b, keys: [{env: ALICE_KEY}]}\n", []string{`proxy.yaml:6:7: nobody can be the client "a": others have keys, and requests without one are refused; want keys, or open: true`}},
		{list + "    - {name: a, addresses: [10.0.0.0/8]}\n    - {name: b, addresses: [10.0.0.0/9, 10.0.0.0/8]}\n", []string{`proxy.yaml:7:41: addresses: 10.0.0.0/8 is that of "a", too`}},
		{one + "clients: {default: {name: x}}\n", []string{`proxy.yaml:4:21: "name" is not known in default: want weight, reserve, in_flight, head_start, max_waiting, max_wait, limits`}},
		{one + "tls: {cert: a.pem}\n", []string{`proxy.yaml:4:6: tls: cert without key, or the reverse: want both`}},
		{one + "tls: {}\n", []string{`proxy.yaml:4:6: tls: cert and key are missing`}},
		{one + "tls: {cert: not.pem, key: not.pem}\n", []string{`proxy.yaml:4:13: cert: "not.pem" and "not.pem": tls: failed to find any PEM data`}},
		{one + "    tls: {ca: not.pem}\n", []string{`proxy.yaml:4:15: ca: "not.pem" has no certificate in PEM`}},
		{one + "    tls: {ca: gone.pem}\n", []string{`proxy.yaml:4:15: ca: open gone.pem: file does not exist`}},
	} {
		_, err := read(c.text)
		if err == nil {
			t.Errorf("%s\nis right, want %q", c.text, c.want)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%s\ngot\n%v\nwant %d errors", c.text, err, len(c.want))
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s\ngot\n%s\nwant\n%s", c.text, lines[i], want)
			}
		}
	}
}

// A secret that is written where it should not be is refused, and is not in the error.
func TestSecretsAreNotShown(t *testing.T) {
	const one = head + "upstreams:\n  - to: https://api.example.com\n"
	const list = one + "clients:\n  list:\n    - name: a\n"
	for _, c := range []struct{ text, says string }{
		{one + "    keys: [SECRET]\n", "not the key itself"},
		{one + "    keys: SECRET\n", "is no list"},
		{one + "    keys: [[SECRET]]\n", "not the key itself"},
		{one + "    keys: [{name: A, env: SECRET}]\n", "if it is the key itself"},
		{one + "    keys: [{name: A, env: [SECRET]}]\n", "is no name of a variable"},
		{one + "    keys: [{name: A, secret: SECRET}]\n", "written in a file that others may read"},
		{one + "    keys: [{name: A, secret: [SECRET]}]\n", "is no text"},
		{one + "    keys: [{name: A, file: {a: SECRET}}]\n", "is no text"},
		{one + "    header: SECRET\n", "is no mapping"},
		{one + "    header: {Authorization: Bearer SECRET}\n", "is written in a file that others may read"},
		{one + "    header: {Authorization: [SECRET]}\n", "is no text"},
		{one + "    header: {Authorization: {SECRET}}\n", "want quotes"},
		{one + "    query: {api_key: SECRET}\n", "is written in a file that others may read"},
		{one + "    query: {key: SECRET}\n", "is written in a file that others may read"},
		{list + "      keys: [SECRET]\n", "expected sha256:"},
		{list + "      keys: SECRET\n", "is no list"},
		{list + "      keys: [{sha256: SECRET}]\n", "want 64 hexadecimal digits"},
		{list + "      keys: [{env: SECRET}]\n", "if it is the key itself"},
	} {
		text := strings.ReplaceAll(c.text, "SECRET", strings.ReplaceAll(clients, "-", "_"))
		_, err := read(text)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s\ngot %v, want %q", text, err, c.says)
			continue
		}
		for i := range len(clients) - 8 {
			if part := clients[i : i+8]; strings.Contains(err.Error(), part) {
				t.Errorf("%s\nshows %q of the secret: %v", text, part, err)
				break
			}
		}
	}
}

// A file that only its owner may read may have secrets in it.
func TestPrivate(t *testing.T) {
	const text = head + "upstreams:\n  - to: https://a.example.com\n    keys: [{name: A, secret: " + provided + "}]\n    header: {X-Key: \"{key}\", X-Token: " + clients + "}\n"
	f, err := Read(strings.NewReader(text), source(true))
	if err != nil || f.Config.Upstreams[0].Keys[0].Secret != provided || f.Config.Upstreams[0].Header[1].Value != clients {
		t.Errorf("%v, %v", f.Config, err)
	}
	if _, err := read(text); err == nil || strings.Count(err.Error(), "others may read") != 2 {
		t.Errorf("where others may read it: %v", err)
	}
}

// Names in a file are relative to its folder. An error that is found after it was read has its place in the file itself, and
// not in one that it names.
func TestLoad(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "proxy.yaml")
	for path, text := range map[string]string{
		name:                           head + "upstreams:\n  - to: https://a.example.com\n    keys: [{name: A, file: a.key}]\n    header: {X-Key: \"{key}\"}\n",
		filepath.Join(folder, "a.key"): provided + "\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Load(name, nil)
	if err != nil || f.Config.Upstreams[0].Keys[0].Secret != provided {
		t.Fatalf("%+v, %v", f.Config.Upstreams, err)
	}
	late := errors.New("it cannot be reached")
	if err := f.Locate(late); err != late {
		t.Errorf("an error of no field: %v", err)
	}
	err = f.Locate(&proxy.ConfigError{Field: "Upstreams[0].To", Err: late})
	if want := name + ":3:9: upstreams[0].to: it cannot be reached"; err.Error() != want {
		t.Errorf("%v, expected %s", err, want)
	}
}

// The Sum is of all that the file's meaning comes from.
func TestSum(t *testing.T) {
	sum := func(text string) [32]byte {
		f, err := read(text)
		if err != nil {
			t.Fatal(err)
		}
		return f.Sum
	}
	was := sum(everything)
	if sum(everything) != was {
		t.Error("the same file has two sums")
	}
	if sum(everything+"# more\n") == was {
		t.Error("another file has the same sum")
	}
	old := files["b.key"]
	files["b.key"] = &fstest.MapFile{Data: []byte("sk-file-another-key-0987\n")}
	if sum(everything) == was {
		t.Error("with another key in its file the sum is the same")
	}
	files["b.key"] = old
	environment["OPENAI_A"] = "another"
	defer func() { environment["OPENAI_A"] = provided }()
	if sum(everything) == was {
		t.Error("with another key in the environment the sum is the same")
	}
}

// Any file is refused with a place in it, or is valid for a proxy. No error shows a key.
func FuzzRead(f *testing.F) {
	f.Add(everything)
	f.Add(head + "upstreams: &u\n  - {to: http://a, keys: *u, header: *u, tls: *u, limits: *u}\n")
	f.Add(head + "upstreams: [{to: 'http://[::1]:80', limits: [{limit: 5/s, rule: bucket, burst: 99999999999}]}]\ntls: {cert: b.key, key: not.pem}\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := read(text)
		if err == nil {
			c, err := got.Config.Checked()
			if err != nil {
				t.Fatalf("read, but %v", err)
			}
			if _, err := c.Checked(); err != nil {
				t.Fatalf("checked, but not again: %v", err)
			}
			return
		}
		all := []error{err}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			all = joined.Unwrap()
		}
		for _, err := range all {
			var e *Error
			if !errors.As(err, &e) || e.Line < 0 || e.Column < 0 || e.Problem == "" {
				t.Errorf("%q: %v", text, err)
			}
			for _, key := range []string{provided, clients} {
				if strings.Contains(err.Error(), key) && !strings.Contains(text, key) {
					t.Errorf("%q: %v", text, err)
				}
			}
		}
	})
}

var _ fs.FS = files

// Two upstreams for one place are refused, with the line and column of the second, however the
// place is written.
func TestTwoForOnePlace(t *testing.T) {
	const head = "version: 1\nupstreams:\n  - {name: one, to: https://one.example, "
	for _, c := range []struct{ one, two, want string }{
		{"path: /a}", "path: /a}", `4:48: upstreams[1].path: "/a" is that of Upstreams[0], one, too`},
		{"path: /a}", "path: /a/}", `4:48: upstreams[1].path: "/a" is that of Upstreams[0], one, too`},
		{"path: /a/b/}", "path: /a/b}", `4:48: upstreams[1].path: "/a/b" is that of Upstreams[0], one, too`},
		{"path: /}", "}", `4:5: upstreams[1].path: "/" is that of Upstreams[0], one, too`},
		{"host: api.example}", "host: API.example}", `4:48: upstreams[1].host: "api.example" is that of Upstreams[0], one, too`},
		{"host: api.example}", "host: api.example.}", `4:48: upstreams[1].host: "api.example" is that of Upstreams[0], one, too`},
		{"host: api.example, path: /a}", "path: /a/, host: api.example}", `4:48: upstreams[1].path: "api.example/a" is that of Upstreams[0], one, too`},
		{"path: /a}", "path: /%61}", `4:48: upstreams[1].path: "/%61" has '%' in it; expected letters, digits and -._~ between slashes`},
		{"path: /a}", "path: /a//}", `4:48: upstreams[1].path: "/a//", expected it to begin with a slash, and no empty or dotted segment`},
		{"path: /a}", "path: //}", `4:48: upstreams[1].path: "//", expected it to begin with a slash, and no empty or dotted segment`},
		{"path: /a}", "path: /b/../a}", `4:48: upstreams[1].path: "/b/../a", expected it to begin with a slash, and no empty or dotted segment`},
		{"host: b.example}", "host: b%2Eexample}", `4:48: upstreams[1].host: "b%2eexample", expected a host name without a port`},
		{"host: xn--bcher-kva.example}", "host: bücher.example}", `4:48: upstreams[1].host: "bücher.example", expected a host name without a port, as clients send it: in ASCII, xn--… where it has other letters`},

		{"path: /a}", "path: /A}", ""},
		{"path: /a}", "path: /a/b}", ""},
		{"path: /a}", "path: /a, host: api.example}", ""},
		{"host: api.example}", "host: api2.example}", ""},
	} {
		_, err := read(head + c.one + "\n  - {name: two, to: https://two.example, " + c.two + "\n")
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s and %s: %v", c.one, c.two, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), ":"+c.want)):
			t.Errorf("%s and %s: %v, want %s", c.one, c.two, err, c.want)
		}
	}
}
