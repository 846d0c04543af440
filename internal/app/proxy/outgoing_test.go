package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A proxy on the way out is to blame for what it does, by the name of its variable and without its
// password. Its 407 is not passed on: a client would take it for one of ours.
func TestProxyOnTheWayOut(t *testing.T) {
	company := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") == "" {
			w.WriteHeader(http.StatusProxyAuthRequired)
		}
	}))
	defer company.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	at := company.Listener.Addr().String()
	for _, c := range []struct {
		variable, value, to string
		status              int
		says                string
	}{
		{"HTTP_PROXY", "http://" + at, "http://api.test", 502, "the proxy " + at + " (HTTP_PROXY) wants a user and a password (407)"},
		{"ALL_PROXY", "http://" + at, "https://api.test", 502, "the proxy " + at + " (ALL_PROXY) wants a user and a password (407)"},
		{"HTTP_PROXY", "http://bob:hush@" + at, "http://api.test", 200, ""},
		{"HTTPS_PROXY", "http://bob:hush@" + gone.Listener.Addr().String(), "https://api.test", 502, "the proxy " + gone.Listener.Addr().String() + " (HTTPS_PROXY) cannot be reached: connection refused"},
	} {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"} {
			t.Setenv(name, "")
		}
		t.Setenv(c.variable, c.value)
		config := to(mustURL(t, c.to))
		config.Upstreams[0].Attempts, config.Upstreams[0].MaxOutage = 1, -1
		x := start(t, config)
		resp, body := x.do("GET", "/v1/x", "")
		if resp.StatusCode != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s=%s to %s: %d %s", c.variable, c.value, c.to, resp.StatusCode, body)
		}
		x.stop()
		if strings.Contains(body+x.log.String(), "hush") {
			t.Errorf("%s: %s %s", c.variable, body, x.log)
		}
	}
	t.Setenv("HTTP_PROXY", "http://bob:h@sh/hush@"+at)
	if _, err := New(to(mustURL(t, "http://api.test"))); err == nil || !strings.HasPrefix(err.Error(), "HTTP_PROXY is no address") || strings.Contains(err.Error(), "hush") {
		t.Error(err)
	}
}
