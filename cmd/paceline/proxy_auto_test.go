package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A finding of --limit auto is in the state file at once. So the next proxy continues from it after
// a kill and after a stop. Package proxy shows in virtual time how few refusals remain.
func TestProxyAutoOverRestarts(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("RateLimit-Policy", `"default";q=6000;w=60`)
		w.Header().Set("RateLimit", `"default";r=5999;t=60`)
		fmt.Fprint(w, "ok")
	}))
	t.Cleanup(srv.Close)
	for _, how := range []string{"killed", "stopped"} {
		state := filepath.Join(t.TempDir(), "proxy.state")
		p := newPassing(t, nil, "--to", srv.URL, "--limit", "auto", "--state", state, "--log-level", "info")
		ask := func() {
			t.Helper()
			resp, err := http.Get("http://" + p.at + "/things")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", how, resp.Status)
			}
		}
		p.begin()
		ask()
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if b, err := os.ReadFile(state); err != nil || time.Now().After(end) {
				t.Fatalf("%s: nothing is remembered in %q: %v", how, b, err)
			} else if strings.Contains(string(b), `"memory"`) {
				break
			}
		}
		if how == "killed" {
			p.kill()
		} else {
			p.stop()
		}
		p.begin()
		ask()
		p.stop() // what it says is here when it has ended
		if said := p.said.String(); !strings.Contains(said, "limit auto goes on with what was found ") || !strings.Contains(said, " ago: 6000 requests per 1m0s, as the server says") {
			t.Errorf("%s: %s", how, said)
		}
	}
}
