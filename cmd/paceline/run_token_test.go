package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit/mono"
)

const mintSecret = "m1nt-s3cr3t-v7x2k9q4"

// mint is an OAuth server, and an API whose tokens serve so many requests each. It limits arrivals
// in a rolling window.
type mint struct {
	*httptest.Server
	serves int    // of each token; 0: any number
	denies string // an id that is always refused

	mu      sync.Mutex
	rule    rule.Amendable
	began   time.Time
	minted  int
	used    map[string]int // by token
	served  map[string]int // by id
	late    int            // arrivals over the limit
	refused int            // for their tokens
	broken  int            // how often no token is to be had from now on
}

const mintLimit = 50

func newMint(t *testing.T) *mint {
	t.Helper()
	r, err := rule.NewRolling(rule.RollingConfig{Limit: mintLimit, Window: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	m := &mint{rule: r, began: time.Now(), used: map[string]int{}, served: map[string]int{}}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// mintedToken is the n-th token: no two have a word in common.
func mintedToken(n int) string {
	return fmt.Sprintf("t0k3n-Qz%dWx%dRv-%d", n*7919%1000, n*104729%10007, n)
}

func (m *mint) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if q.URL.Path == "/token" {
		_, secret, inHeader := q.BasicAuth()
		if !inHeader {
			secret = q.FormValue("client_secret")
		}
		w.Header().Set("Content-Type", "application/json")
		if secret != mintSecret || m.broken > 0 {
			m.broken--
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"not with %s"}`, secret)
			return
		}
		m.minted++
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, mintedToken(m.minted))
		return
	}
	if !m.rule.Arrive(mono.Time(time.Since(m.began)), 1) {
		m.late++
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	id, token := q.URL.Query().Get("id"), strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
	m.used[token]++
	if token != mintedToken(m.minted) || m.serves > 0 && m.used[token] > m.serves || id == m.denies {
		m.refused++
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"the token %s is not good"}}`, token)
		return
	}
	m.served[id]++
	fmt.Fprintf(w, `{"you":%q,"sent":%q}`, id, token)
}

// isServed says that every request was served once, and none over the limit.
func (m *mint) isServed(t *testing.T, n int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range n {
		if id := strconv.Itoa(i); m.served[id] != 1 && id != m.denies {
			t.Errorf("%s was served %d times", id, m.served[id])
		}
	}
	if m.late > 0 {
		t.Errorf("%d arrivals over the limit", m.late)
	}
}

// oauth are the flags for a mint, whose secret is in the environment.
func (m *mint) oauth() []string {
	return []string{"--oauth-token-url", m.URL + "/token", "--oauth-client-id-env", "PL_MINT_ID", "--oauth-client-secret-env", "PL_MINT_SECRET"}
}

// command is a command that asks the mint for a token, and where it counts how often.
func (m *mint) command(t *testing.T) (line, count string) {
	self := program(t).Path
	count = filepath.Join(t.TempDir(), "count")
	return fmt.Sprintf("echo x >> '%s'; %s=1 '%s' get '%s/token'", count, asMint, self, m.URL), count
}

// noTokens looks for tokens and secrets in all that a run left behind and said.
func noTokens(t *testing.T, dir string, said ...string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, filepath.Base(name)+": "+string(text))
	}
	for _, text := range said {
		for _, secret := range []string{"t0k3n-", "Rv-", mintSecret} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("there is a secret: %s", text[max(0, i-80):min(len(text), i+80)])
			}
		}
	}
}

func tokenRun(in, out string, args ...string) []string {
	return append([]string{"run", "--limit", fmt.Sprintf("%d/200ms", mintLimit), "--progress", "off", "--backoff-base", "1ms", "--log-level", "debug", "--out", out, in}, args...)
}

// A token that serves so many requests is renewed again and again: all are served once, none pays
// an attempt for it, and no token is anywhere.
func TestRunTokenIsRenewed(t *testing.T) {
	t.Parallel()
	need.Program(t, "sh")
	for _, how := range []string{"oauth", "command"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			m := newMint(t)
			m.serves = 40
			const n = 300
			flags := m.oauth()
			count := ""
			if how == "command" {
				var line string
				line, count = m.command(t)
				flags = []string{"--auth-command", line, "--header", "Authorization: Bearer {token}"}
			}
			in := write(t, "in.jsonl", numbered(n, m.URL+"/"))
			dir := t.TempDir()
			code, stdout, stderr := paceline("", tokenRun(in, filepath.Join(dir, "out.jsonl"), append(flags, "--attempts", "1")...)...)
			if code != 0 || !strings.Contains(stderr, "300 done, 0 rejected, 0 expired, 0 dead, 0 lost") {
				t.Errorf("exit code %d: %s", code, last(stderr))
			}
			m.isServed(t, n)
			// Ceil of 300/40, and each time those that were in flight are refused, and sent again
			// with the next.
			if m.minted < n/m.serves || m.minted > n/m.serves+2 {
				t.Errorf("%d tokens for %d requests", m.minted, n)
			}
			if text, _ := os.ReadFile(count); how == "command" && len(text) != 2*m.minted {
				t.Errorf("the command ran %d times for %d tokens", len(text)/2, m.minted)
			}
			for _, r := range results(t, filepath.Join(dir, "out.jsonl")) {
				if r.Attempts != 1 || r.Hidden != 1 || !strings.Contains(*r.Body, "[token]") {
					t.Errorf("%+v", r)
				}
			}
			noTokens(t, dir, stdout, stderr)
		})
	}
}

// A run whose token ends again and again is killed again and again.
func TestRunTokenKilled(t *testing.T) {
	race.Without(t) // TestRunBatchKilled resumes with it
	t.Parallel()
	need.NotShort(t, "TestRunBatchKilled kills a run")
	m := newMint(t)
	m.serves = 30
	const n = 400
	in, dir := write(t, "in.jsonl", numbered(n, m.URL+"/")), t.TempDir()
	flags := []string{"--oauth-token-url", m.URL + "/token", "--oauth-client-id-env", "PL_MINT_ID", "--oauth-client-secret-env", "PL_MINT_SECRET"}
	var said strings.Builder
	kills := 0
	for done, end := false, time.Now().Add(patient); !done; {
		var errs bytes.Buffer
		c := program(t, tokenRun(in, filepath.Join(dir, "out.jsonl"), flags...)...)
		c.Env = append(c.Env, "PL_MINT_ID=me", "PL_MINT_SECRET="+mintSecret)
		c.Stderr = &errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		before := m.all()
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
			select {
			case err := <-ended:
				if done = true; err != nil {
					t.Fatalf("%v: %s", err, last(errs.String()))
				}
			default:
				if m.all() < before+90 && time.Now().Before(end) {
					continue
				}
				_ = c.Process.Kill()
				<-ended
				kills++
			}
			tick.Stop()
			break
		}
		said.WriteString(errs.String())
		if time.Now().After(end) {
			t.Fatal("not done in a minute")
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if kills < 2 || m.late > 0 {
		t.Errorf("%d kills, %d over the limit", kills, m.late)
	}
	all := results(t, filepath.Join(dir, "out.jsonl"))
	for _, r := range all {
		if m.served[r.ID] == 0 || m.served[r.ID] > 1 && !r.PossibleRepeat {
			t.Errorf("%s was served %d times: %+v", r.ID, m.served[r.ID], r)
		}
	}
	if len(all) != n {
		t.Errorf("%d results", len(all))
	}
	noTokens(t, dir, said.String())
}

func (m *mint) all() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.served)
}

// One request that is refused whatever its token is dead of that, and the others are served.
func TestRunTokenRefused(t *testing.T) {
	t.Parallel()
	m := newMint(t)
	m.denies = "7"
	const n = 20
	in, dir := write(t, "in.jsonl", numbered(n, m.URL+"/")), t.TempDir()
	code, _, stderr := paceline("", tokenRun(in, filepath.Join(dir, "out.jsonl"), m.oauth()...)...)
	if code != cli.ExitSomeFailed || !strings.Contains(stderr, "19 done, 0 rejected, 0 expired, 1 dead, 0 lost") || m.minted < 2 || m.minted > 5 { // until it is alone with a new one
		t.Errorf("exit code %d after %d tokens: %s", code, m.minted, last(stderr))
	}
	m.isServed(t, n)
	for _, r := range results(t, filepath.Join(dir, "out.dead.jsonl")) {
		if r.ID != "7" || r.Class != "refused" || r.Error != "answered 401 Unauthorized: the token [token] is not good" || !strings.Contains(*r.Body, "[token]") {
			t.Errorf("%+v", r)
		}
	}
	noTokens(t, dir, stderr)

}

// The server refuses every token, from every issuer. No request is dead, two requests were sent,
// and the exit code is that of keys.
func TestRunTokenAlwaysRefused(t *testing.T) {
	t.Parallel()
	m := newMint(t)
	m.serves = 1
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		m.mu.Lock()
		m.refused++
		m.mu.Unlock()
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error":{"message":"%s is not for here"}}`, q.Header.Get("Authorization"))
	}))
	defer s.Close()
	in, dir := write(t, "in.jsonl", numbered(50, s.URL+"/")), t.TempDir()
	code, _, stderr := paceline("", tokenRun(in, filepath.Join(dir, "out.jsonl"), m.oauth()...)...)
	want := "no token that is accepted: the server refuses new tokens, too: answered 401 Unauthorized: Bearer [token] is not for here; 50 requests are left, and nothing is lost; the same command again resumes"
	if code != cli.ExitExhausted || !strings.Contains(stderr, want) || m.refused != 2 || m.minted != 2 {
		t.Errorf("exit code %d, %d refused with %d tokens: %s", code, m.refused, m.minted, last(stderr))
	}
	if _, err := os.Stat(filepath.Join(dir, "out.dead.jsonl")); err == nil && len(results(t, filepath.Join(dir, "out.dead.jsonl"))) > 0 {
		t.Error("there are dead letters")
	}
	noTokens(t, dir, stderr)
}

// Without a token nothing is sent, and the exit code says so; what the issuer says is shown, and no
// secret of it.
func TestRunWithoutToken(t *testing.T) {
	t.Parallel()
	need.Program(t, "sh")
	m := newMint(t)
	m.broken = 100
	in := write(t, "in.jsonl", numbered(5, m.URL+"/"))
	for _, c := range []struct {
		name  string
		flags []string
		want  string
	}{
		{"command", []string{"--auth-command", "echo you are not logged in >&2; exit 1"},
			"no token: the command of --auth-command: exit status 1: you are not logged in; nothing was sent"},
		{"an old one", []string{"--auth-command", `echo '{"token":"` + mintedToken(1) + `","expires_in":-5}'`},
			"no token: the command of --auth-command: the token has expired already, or the clock of this machine is wrong; nothing was sent"},
		{"oauth", m.oauth(), "answered 401 Unauthorized: invalid_client: not with [PL_MINT_SECRET]; nothing was sent"},
	} {
		dir := t.TempDir()
		code, stdout, stderr := paceline("", tokenRun(in, filepath.Join(dir, "out.jsonl"), c.flags...)...)
		if code != cli.ExitConfig || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d: %s", c.name, code, stderr)
		}
		noTokens(t, dir, stdout, stderr)
	}
	if len(m.used) > 0 {
		t.Errorf("it was sent: %v", m.used)
	}
}

// A Ctrl-C ends a run whose command hangs, and the command.
func TestRunTokenInterrupted(t *testing.T) {
	need.Program(t, "sh")
	t.Parallel()
	in, dir := write(t, "in.jsonl", numbered(5, "http://127.0.0.1:1/")), t.TempDir()
	c := program(t, tokenRun(in, filepath.Join(dir, "out.jsonl"), "--auth-command", "touch '"+dir+"/began'; sleep 900")...)
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patient); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir + "/began"); err == nil {
			break
		}
	}
	began := time.Now()
	_ = c.Process.Signal(os.Interrupt)
	err := c.Wait()
	e, ok := errors.AsType[*exec.ExitError](err)
	if !ok || e.ExitCode() != cli.ExitInterrupted || time.Since(began) > patient || !strings.Contains(errs.String(), "5 requests are left") {
		t.Errorf("%v after %v: %s", err, time.Since(began), errs.String())
	}
}

func TestRunTokenFlags(t *testing.T) {
	in := write(t, "in.jsonl", numbered(1, "http://127.0.0.1:1/"))
	oauth := []string{"--oauth-token-url", "https://a.example/token"}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--header", "X: {token}"}, cli.ExitUsage, "nobody who gives one: expected --auth-command or --oauth-token-url"},
		{append([]string{"--auth-command", "x"}, oauth...), cli.ExitUsage, "expected one of them"},
		{oauth, cli.ExitUsage, "without --oauth-client-id-env"},
		{append([]string{"--oauth-client-id-env", "PL_MINT_ID"}, oauth...), cli.ExitUsage, "without --oauth-client-secret-env"},
		{append([]string{"--oauth-client-id-env", "PL_MINT_ID", "--oauth-client-secret-env", "PL_MINT_EMPTY"}, oauth...), cli.ExitConfig, "the environment variable PL_MINT_EMPTY is empty"},
		{[]string{"--oauth-scopes", "a"}, cli.ExitUsage, "without --oauth-token-url"},
		{[]string{"--auth-every", "1m"}, cli.ExitUsage, "there is no token to renew"},
		{[]string{"--auth-command", "x", "--auth-every", "-1m"}, cli.ExitUsage, "--auth-every -1m0s, expected a duration above 0"},
		{[]string{"--auth-command", "x", "--header", "authorization: Basic abc"}, cli.ExitUsage, "no request would have it"},
		{[]string{"--oauth-token-url", "ftp://a.example", "--oauth-client-id-env", "PL_MINT_ID", "--oauth-client-secret-env", "PL_MINT_ID"}, cli.ExitUsage, "expected an absolute http or https URL"},
		{append([]string{"--oauth-param", "audience", "--oauth-client-id-env", "PL_MINT_ID", "--oauth-client-secret-env", "PL_MINT_ID"}, oauth...), cli.ExitUsage, "expected 'name=value'"},
	} {
		code, _, stderr := paceline("", append([]string{"run", "--limit", "none", in}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d: %s; want %d, %s", c.args, code, stderr, c.code, c.want)
		}
	}
}

// A token does not go to another host than that of the first line, nor along a redirect.
func TestRunTokenStaysHome(t *testing.T) {
	t.Parallel()
	var seen []string
	abroad := newHost(t, "", "localhost", func(_ http.ResponseWriter, q *http.Request) { seen = append(seen, q.Header.Get("Authorization")) })
	home := newHost(t, "", "127.0.0.1", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, abroad.url, http.StatusFound) })
	dir := t.TempDir()
	try := func(lines string) (int, string) {
		code, _, stderr := paceline("", tokenRun(write(t, "in.jsonl", lines), filepath.Join(dir, "out.jsonl"), "--auth-command", "echo "+mintedToken(1), "--redirects", "1")...)
		return code, stderr
	}
	if code, said := try(fmt.Sprintf("{\"url\":%q}\n{\"url\":%q}\n", home.url, abroad.url)); code != cli.ExitConfig || !strings.Contains(said, "a key is not sent to") {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, said := try(fmt.Sprintf("{\"url\":%q}\n", home.url)); code != 0 || len(seen) != 1 || seen[0] != "" {
		t.Errorf("exit code %d: %q arrived: %s", code, seen, said)
	}
	var r format.Result
	text, _ := os.ReadFile(filepath.Join(dir, "out.jsonl"))
	if json.Unmarshal(text, &r) != nil || r.Location == "" {
		t.Errorf("%s", text)
	}
}

// asMint makes the test binary a command that prints a token.
const asMint = "PACELINE_TEST_AS_MINT"

func printToken(url string) {
	q, err := http.NewRequest(http.MethodPost, url, nil)
	if err != nil {
		panic(err)
	}
	q.SetBasicAuth("me", mintSecret)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		panic(err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(os.Stdout, res.Body)
}

func last(s string) string { return s[max(0, len(s)-1500):] }
