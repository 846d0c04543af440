package run

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A proxy on the way out that is wrong, or wants a password, ends the run: it is to blame, and not
// the API's host; no request is lost, and no password is shown. With 407 all requests became dead
// letters.
func TestProxyOnTheWayOut(t *testing.T) {
	password := ""
	company := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") == "" || password != "" && r.Header.Get("Proxy-Authorization") != password {
			w.WriteHeader(http.StatusProxyAuthRequired)
		}
	}))
	defer company.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	at := company.Listener.Addr().String()
	for _, c := range []struct {
		name, variable, value, to string
		want                      error
		says                      string
	}{
		{"wants a password", "HTTP_PROXY", "http://" + at, "http://api.test/", ErrHost, "the proxy " + at + " (HTTP_PROXY) wants a user and a password (407)"},
		{"wants a password, TLS", "HTTPS_PROXY", "http://" + at, "https://api.test/", ErrHost, "the proxy " + at + " (HTTPS_PROXY) wants a user and a password (407)"},
		{"wants a password, for all", "ALL_PROXY", "http://" + at, "http://api.test/", ErrHost, "the proxy " + at + " (ALL_PROXY) wants a user and a password (407)"},
		{"is served", "http_proxy", "http://bob:hush%2F@" + at, "http://api.test/", nil, ""},
		{"is not escaped", "http_proxy", "http://bob:h@sh/hush@" + at, "http://api.test/", ErrConfig, "http_proxy is no address of a proxy"},
		{"is not there", "HTTPS_PROXY", "http://bob:hush@" + gone.Listener.Addr().String(), "https://api.test/", ErrOutage, "the proxy " + gone.Listener.Addr().String() + " (HTTPS_PROXY) cannot be reached: connection refused"},
		{"has no name", "HTTP_PROXY", "http://bob:hush@nowhere.invalid:3128", "http://api.test/", ErrHost, "the proxy nowhere.invalid:3128 (HTTP_PROXY) cannot be reached: its name cannot be resolved"},
	} {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"} {
			t.Setenv(name, "")
		}
		t.Setenv(c.variable, c.value)
		b := newBench(t)
		b.config.MaxOutage = 10 * time.Millisecond
		const n = 30
		if c.want == ErrConfig {
			if _, err := New(b.config); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hush") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		got := b.run(requests(n, c.to)...)
		if c.want == nil {
			if got.err != nil || got.Done != n {
				t.Errorf("%s: %+v, %v", c.name, got.Totals, got.err)
			}
			continue
		}
		if !errors.Is(got.err, c.want) || !strings.Contains(got.err.Error(), c.says) || got.Dead != 0 || got.Left != n {
			t.Errorf("%s: %+v, %v", c.name, got.Totals, got.err)
		}
		if all := got.err.Error() + got.notices + got.log; strings.Contains(all, "hush") || strings.Contains(got.err.Error(), "a host is not there") {
			t.Errorf("%s: %s", c.name, all)
		}
	}
}

// 407 of a server without a proxy on the way is a denial, as 403 is: it costs two requests and not
// the file.
func TestDeniedWithoutProxy(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	defer srv.Close()
	b := newBench(t)
	b.config.MaxOutage = time.Millisecond
	if got := b.run(requests(200, srv.URL)...); got.err == nil || got.Dead > 2 || got.Left < 198 {
		t.Errorf("%+v, %v", got.Totals, got.err)
	}
}
