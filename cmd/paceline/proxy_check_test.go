package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/proxy/config"
	"github.com/paceline-go/paceline/provider"
)

// writeCertificate writes a certificate that signs itself, and its key.
func writeCertificate(t *testing.T, cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestProxyInit: what --init writes is right as it is. The tests of package config try each line that is commented out.
// They also hold the file to the schema: jsonschema in this binary would begin with each program that a test starts.
func TestProxyInit(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, stdout, stderr := paceline("", "proxy", "--init", "paceline.yaml"); code != cli.ExitOK || stdout != "" || !strings.Contains(stderr, "next: paceline proxy check paceline.yaml") {
		t.Fatalf("exit %d with %q and %q", code, stdout, stderr)
	}
	text, err := os.ReadFile("paceline.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := paceline("", "proxy", "--init"); code != cli.ExitOK || stdout != string(text) {
		t.Errorf("--init without a file: exit %d, %d bytes", code, len(stdout))
	}
	if code, stdout, stderr := paceline("", "proxy", "check", "paceline.yaml"); code != cli.ExitOK || !strings.Contains(stdout, "paceline.yaml is right.") {
		t.Errorf("it is not right: exit %d\n%s%s", code, stdout, stderr)
	}
	code, schema, stderr := paceline("", "proxy", "--schema")
	if code != cli.ExitOK || schema != string(config.Schema()) {
		t.Fatalf("--schema: exit %d %s", code, stderr)
	}
}

const checked = `
version: 1
listen: 0.0.0.0:8443
admin: "off"
metrics: {listen: "0.0.0.0:9090", token: {env: ALICE_KEY}}
grace: 30s
tls: {cert: proxy.pem, key: proxy.key, client_ca: proxy.pem}
max_wait: 2m
state: proxy.state
sent: sent.jsonl
bounds: {body: none}
clients:
  list:
    - name: alice
      keys: [{env: ALICE_KEY}, sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad]
      weight: 2
      head_start: 10s
      max_wait: 0
      limits: [1000/d, 5USD/d]
upstreams:
  - name: llm
    to: https://api.openai.com
    path: /openai
    preset: openai:tier1
    limits:
      - {limit: 30000 tokens/m, model: gpt-4o, rule: bucket, burst: 60000}
      - {limit: 100/s, scope: all}
    in_flight: 8
    prices: [{model: gpt-4o, input: 2, output: 8}]
    keys: [{name: A, env: OPENAI_A}, {name: B, file: b.key, limits: [100/m]}]
    header: {Authorization: "Bearer {key}", X-Team: blue, X-Nonce: "{nonce}"}
    nonce_gap: 50ms
    attempts: 5
    answer_timeout: none
    batches: {folder: kept, most: 20GiB}
    tls: {ca: proxy.pem}
  - {to: "http://127.0.0.1:9000/v1/", host: rest.local, limits: auto}
  - {name: bare, to: "http://127.0.0.1:9001", prices: [{input: 1, output: 2, cached: 0.5}], request_price: 0.01}
`

const checkedWords = `checked.yaml is right. With it, paceline proxy

listens at https://0.0.0.0:8443; other machines can reach it
  with TLS; clients need a certificate of your authorities
  headers up to 64KiB, bodies of any length (of which 32MiB is kept to send it again, 512MiB in
    all), 64MiB for what counts of idle keys, 16384 connections
has no page (admin: "off")
has its numbers at http://0.0.0.0:9090/metrics, without names of clients, keys, hosts and upstreams,
  to those who send its token; /livez and /readyz need no token
gives waiting requests 30s to be sent before it stops
hands over to a next process by proxy.state.sock, without a drop
remembers in proxy.state what it sent and still counts, over a restart
writes a line for each attempt that it sent to sent.jsonl

lets in who has a key for it, and refuses others with 401
  alice, known by a key (env ALICE_KEY) or a key (by its hash)
    weight 2, goes before others that came up to 10s later, up to 10000 waiting, waits for nothing,
      at most 1000/d in any window, at most 5USD/d in any window

sends https://0.0.0.0:8443/openai/… to https://api.openai.com/… (llm)
  limit: 500 requests per 1m, a bucket, of a key and model (openai:tier1)
  limit: 30000 tokens per 1m, a bucket, of a key and model (openai:tier1)
  limit: 30000 tokens/m, a bucket that holds 60000, of the model gpt-4o, for each key
  limit: 100/s in any window, of all requests together
  limit: 8 requests at once, of each key
  prices: gpt-4o 2 and 8 USD per million tokens of input and output; as OpenAI published them
    (2026-11)
  key A: env OPENAI_A
  key B: file b.key, which has 100/m in any window in place of the limits of each key
    each request goes with the key that may go soonest
  sets: Authorization (with the key), X-Team, X-Nonce
    with a number that rises with each key: requests of a key go 50ms apart at least
  sends a request up to 5 times, where that is safe; connects within 10s, however long its answer
    takes
  keeps files and batches in kept, those of a client up to 20GiB, for 30 days once they have ended;
    their requests have weight 1 beside clients
  TLS: certificates of your authorities alone are taken

sends https://rest.local:8443/… to http://127.0.0.1:9000/v1/… (127.0.0.1:9000)
  limit: nobody knows; it is found out, from what answers say and refuse
  prices: a model whose price nobody knows (prices says it) is refused with 403 where dollars are
    counted
  key: the clients' own
  sends a request up to 3 times, where that is safe; connects within 10s, waits 10m for its answer

sends https://0.0.0.0:8443/… to http://127.0.0.1:9001/… (bare)
  limit: none is given; it keeps to what answers say
  prices: each other model 1 and 2 USD per million tokens of input and output, 0.5 of input from a
    cache; 0.01 USD each request
  key: the clients' own
  sends a request up to 3 times, where that is safe; connects within 10s, waits 10m for its answer

A client sends at once. Its request waits up to 2m for its turn; one that would wait longer is
  answered 429 at once, with Retry-After, and is not sent.
Answers, also refusals that are not sent again, come as the server gave them, with Paceline-Waited.
`

func TestProxyCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	const provided, ours, filed = "sk-Zq81kdTTw0pXv27LmAa93bYcQ", "pl-8wjx0FqR41nZtBvC65ukEs", "sk-file-9f8g7h6j5k4l3"
	t.Setenv("OPENAI_A", provided)
	t.Setenv("ALICE_KEY", ours)
	writeCertificate(t, "proxy.pem", "proxy.key")
	for name, text := range map[string]string{"checked.yaml": checked, "b.key": filed + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := paceline("", "proxy", "check", "checked.yaml")
	if code != cli.ExitOK || stdout != checkedWords || stderr != "" {
		t.Errorf("exit %d\n%s\n%s\nwant\n%s", code, stderr, stdout, checkedWords)
	}
	for _, secret := range []string{provided, ours, filed} {
		if strings.Contains(stdout, secret) {
			t.Errorf("it shows %s", secret)
		}
	}
}

func TestProxyCheckRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"two.yaml":  "version: 1\nupstreams:\n  - to: https://a.example.com\n  - {name: b, to: https://b.example.com}\n",
		"many.yaml": "version: 2\nlisen: x\nupstreams:\n  - to: https://a.example.com\n    keys: [{name: A, env: NOT_SET_ANYWHERE}]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"check two.yaml", cli.ExitConfig, []string{`two.yaml:4:5: upstreams[1].path: "/" is that of Upstreams[0], a.example.com, too`}},
		{"check many.yaml", cli.ExitConfig, []string{`many.yaml:1:10: version: "2" is not 1`, `many.yaml:2:1: "lisen" is not known`, "did you mean listen?", `many.yaml:5:27: env: the variable NOT_SET_ANYWHERE is not set`}},
		{"check", cli.ExitUsage, []string{"want one configuration file; paceline proxy --init paceline.yaml writes one"}},
		{"check two.yml", cli.ExitConfig, []string{"two.yml: no such file or directory, expected a configuration", "; did you mean two.yaml?"}},
		{"--init two.yaml", cli.ExitUsage, []string{"two.yaml is there already, and --init overwrites nothing"}},
		{"--schema x.json", cli.ExitUsage, []string{"paceline proxy --schema > x.json"}},
	} {
		code, stdout, stderr := paceline("", append([]string{"proxy"}, strings.Fields(c.args)...)...)
		if code != c.code || stdout != "" {
			t.Errorf("proxy %s: exit %d, want %d\n%s%s", c.args, code, c.code, stdout, stderr)
		}
		for _, says := range c.says {
			if !strings.Contains(stderr, says) {
				t.Errorf("proxy %s: want %q in\n%s", c.args, says, stderr)
			}
		}
	}
}

// TestProxyConfigPage: the page has every key that there is.
func TestProxyConfigPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/proxy-config.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	var walk func(v any)
	walk = func(v any) {
		of, ok := v.(map[string]any)
		if list, isList := v.([]any); isList {
			for _, below := range list {
				walk(below)
			}
		}
		if !ok {
			return
		}
		if properties, ok := of["properties"].(map[string]any); ok {
			for key := range properties {
				if !strings.Contains(page, "`"+key) && !strings.Contains(page, "{"+key+": ") {
					t.Errorf("docs/proxy-config.md does not say what %s is", key)
				}
			}
		}
		for _, below := range of {
			walk(below)
		}
	}
	var doc any
	if err := json.Unmarshal(config.Schema(), &doc); err != nil {
		t.Fatal(err)
	}
	walk(doc)
}

// There are words for each scope that a limit of a file may have.
func TestScopesOfLimitsInWords(t *testing.T) {
	for _, s := range provider.Scopes() {
		if s.Scope != provider.All && whoseInWords(proxy.Limit{Scope: s.Scope}) == "" {
			t.Errorf("no words for %s", s.Scope)
		}
	}
}

// The words for a file have what goes first, and --route says it of a request at its path of the server.
func TestProxyCheckSaysWhatGoesFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	file := "version: 1\nupstreams: [{to: 'https://api.example.com/v1', path: /x, limits: [20/s], first: [POST /v1/order], first_free: 25%}]\n"
	if err := os.WriteFile("p.yaml", []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"first: POST /v1/order go before other requests of the same client; these leave 25 % of each limit free": nil,
		"first: before other requests of its client":                                                             {"--route", "POST /x/order"},
		"25 % of each limit, for requests that go first":                                                         {"--route", "GET /x/order"},
	} {
		code, stdout, stderr := paceline("", append([]string{"proxy", "check", "p.yaml"}, args...)...)
		if code != cli.ExitOK || !strings.Contains(strings.Join(strings.Fields(stdout), " "), want) {
			t.Errorf("exit %d without %q:\n%s%s", code, want, stdout, stderr)
		}
	}
}

// Clients one after the other with the same settings have the words for these once.
func TestProxyCheckOfClientsAlike(t *testing.T) {
	t.Chdir(t.TempDir())
	file := "version: 1\nupstreams: [{to: 'https://api.example.com', limits: [20/s]}]\nclients:\n  header: X-Who\n  list: " +
		"[{name: a, weight: 2}, {name: b, weight: 2}, {name: c, weight: 2}, {name: d, weight: 3}, {name: e, weight: 2}]\n"
	if err := os.WriteFile("p.yaml", []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := paceline("", "proxy", "check", "p.yaml")
	const want = "  a, known by X-Who: a\n  b, known by X-Who: b\n" +
		"  c, known by X-Who: c\n    each of them: weight 2, up to 10000 waiting\n" +
		"  d, known by X-Who: d\n    weight 3, up to 10000 waiting\n  e, known by X-Who: e\n    weight 2, up to 10000 waiting\n"
	if code != cli.ExitOK || !strings.Contains(stdout, want) {
		t.Errorf("exit %d:\n%s%s", code, stdout, stderr)
	}
}
