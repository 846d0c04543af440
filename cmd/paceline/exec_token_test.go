//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
)

// formsOf are the texts by which a token is known: itself, and its part of any text in base64 that has it.
func formsOf(token string) []string {
	all := []string{token}
	for begin := range 3 {
		whole := token[begin:]
		all = append(all, base64.StdEncoding.EncodeToString([]byte(whole[:len(whole)/3*3])))
	}
	return all
}

// sayNoToken looks for a token in texts, by their names.
func sayNoToken(t *testing.T, token string, texts map[string]string) {
	t.Helper()
	for where, text := range texts {
		if text == "" {
			t.Errorf("%s is empty", where)
		}
		for _, form := range formsOf(token) {
			if strings.Contains(text, form) {
				t.Errorf("a token as %q is in %s: %s", form, where, text)
			}
		}
	}
}

// The token of a run is in no message of the daemon and in none of its files and answers, though clients come with it, with
// another one and without.
func TestExecTokenIsNowhere(t *testing.T) {
	t.Parallel()
	race.Without(t)
	need.Program(t, "curl")
	s, ca := strictTLS(t)
	p := ofRuns(t)
	logged := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(logged)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	at := p.program("daemon", "--log-level", "debug")
	at.Stderr = log
	if err := at.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = at.Process.Kill(); _ = at.Wait() }()
	c := p.program("exec", "--to", s.URL, "--limit", "20/s", "--ca-file", ca, "--log-level", "debug", "--", "sh", "-c", `env
		curl -sf "$0" >/dev/null || exit 9
		curl -s --cacert /dev/null "$0" && exit 8
		curl -s -x "$(echo "$HTTPS_PROXY" | sed 's/:[^:@]*@/:other@/')" "$0" && exit 7
		curl -s "$HTTPS_PROXY/?id=1"
		curl -s https://127.0.0.1:9/ && exit 6
		"$1" daemon status --json`, s.URL+"/?id=0", at.Path)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	token := tokenIn.FindStringSubmatch(out.String())
	if token == nil {
		t.Fatal("the program has no token")
	}
	counts, err := json.Marshal(p.counts())
	if err != nil {
		t.Fatal(err)
	}
	_, status, _ := strings.Cut(out.String(), "\n{")
	texts := map[string]string{"the status": status, "what the run says": errs.String(), "the permits": string(counts)}
	for name, file := range map[string]string{"the log": logged, "the state file": filepath.Join(filepath.Dir(daemonStatus(t, p.env).Log), "daemon.state")} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(b)
	}
	sayNoToken(t, token[1], texts)
	if _, passed := s.told(); passed != 1 {
		t.Errorf("%d requests passed, expected 1", passed)
	}
}

// The key of a program at a forward proxy is in no message, on no page and in no metric, and the server does not get it.
func TestForwardTokenIsNowhere(t *testing.T) {
	t.Parallel()
	race.Without(t)
	const token, other = "token-7d31f0c2b95e4a68", "token-of-somebody-else"
	s := newLawful(t, 20, time.Second)
	var got atomic.Value
	s.more = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		got.Store(fmt.Sprint(r.URL, r.Header))
		return false
	}
	dir, door, metrics := t.TempDir(), need.Address(t), need.Address(t)
	state := filepath.Join(dir, "state")
	p := newPassing(t, slices.Concat(formsOf(token), formsOf(other)), "--to", s.URL, "--limit", "20/s", "--forward", door,
		"--forward-bundle", filepath.Join(dir, "ca.pem"), "--state", state, "--client-key-env", "K1", "--log-level", "debug",
		"--metrics", metrics, "--metrics-names")
	p.env = []string{"K1=" + token}
	p.begin()
	for began := time.Now(); !strings.Contains(p.said.String(), "HTTPS_PROXY=http://"+door); time.Sleep(time.Millisecond) {
		if time.Since(began) > patient {
			t.Fatal(p.said.String())
		}
	}
	ask := func(by *url.Userinfo, want int) {
		t.Helper()
		way := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", User: by, Host: door}), DisableKeepAlives: true}
		a, err := (&http.Client{Transport: way}).Get(s.URL + "/?id=1")
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		if a.StatusCode != want {
			t.Errorf("status %d, expected %d", a.StatusCode, want)
		}
	}
	ask(url.UserPassword("any", token), http.StatusOK)
	ask(url.User(token), http.StatusOK)
	ask(url.UserPassword("any", other), http.StatusProxyAuthRequired)
	numbers, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(numbers.Body); err != nil {
		t.Fatal(err)
	}
	journal, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	seen, _ := got.Load().(string)
	texts := map[string]string{"the page": p.look("/"), "all.json": p.look("/all.json?list=clients"), "snapshot.json": p.look("/snapshot.json"),
		"/metrics": p.look("/metrics"), "/metrics of other machines": b.String(), "the state file": string(journal), "the request": seen,
		"the log": p.said.String()}
	sayNoToken(t, token, texts)
	sayNoToken(t, other, texts)
}
