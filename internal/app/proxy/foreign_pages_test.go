package proxy

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A foreign web page cannot spend the proxy's keys, and all other clients pass.
func TestPagesElsewhere(t *testing.T) {
	for _, c := range []struct {
		host, origin, site string
		foreign            bool
	}{
		{"127.0.0.1:7878", "", "", false},
		{"proxy.internal:7878", "", "", false}, // a program, by whatever name
		{"127.0.0.1:7878", "", "none", false},  // typed into the address bar
		{"127.0.0.1:7878", "", "same-origin", false},
		{"127.0.0.1:7878", "http://localhost:3000", "cross-site", false},
		{"localhost:7878", "http://127.0.0.1:5173", "", false},
		{"[::1]:7878", "http://[::1]:3000", "same-site", false},
		{"127.0.0.1:7878", "https://evil.example", "cross-site", true},
		{"127.0.0.1:7878", "https://evil.example", "", true},
		{"127.0.0.1:7878", "https://localhost.evil.example", "cross-site", true},
		{"127.0.0.1:7878", "null", "cross-site", true},
		{"127.0.0.1:7878", "http://[", "cross-site", true},
		{"127.0.0.1:7878", "", "cross-site", true}, // an image
		{"evil.example:7878", "", "same-origin", true},
		{"evil.example:7878", "http://evil.example:7878", "same-origin", true}, // its name leads here
		{"evil.example:7878", "http://localhost", "", true},
	} {
		for _, keys := range []struct {
			name   string
			has    bool // the proxy has keys
			adds   func(*Upstream)
			open   bool
			client Clients
			bound  bool
		}{
			{name: "keys of the proxy", has: true, bound: true},
			{name: "keys of the client"},
			{name: "a fixed key", adds: func(u *Upstream) { u.Header = []Field{{"Authorization", "Bearer sk-7Qw9Zr4Lx2Vb8Nm1"}} }, bound: true},
			{name: "a fixed cookie", adds: func(u *Upstream) { u.Header = []Field{{"Cookie", "sid=x"}} }, bound: true},
			{name: "a fixed key in a field of any name", adds: func(u *Upstream) { u.Header = []Field{{"X-Me", "7Qw9Zr4Lx2Vb8Nm1"}} }, bound: true},
			{name: "a fixed parameter", adds: func(u *Upstream) { u.Query = []Field{{"api_key", "x"}} }, bound: true},
			{name: "a fixed parameter of any name", adds: func(u *Upstream) { u.Query = []Field{{"appid", "7Qw9Zr4Lx2Vb8Nm1"}} }, bound: true},
			{name: "a certificate", adds: func(u *Upstream) { u.TLS = &tls.Config{Certificates: []tls.Certificate{{}}} }, bound: true},
			{name: "a token in the path", adds: func(u *Upstream) { u.To = u.To.JoinPath("/bot12345:7Qw9Zr4Lx2Vb8Nm1Tk6Yp3") }, bound: true},
			{name: "a fixed field", adds: func(u *Upstream) { u.Header = []Field{{"User-Agent", "my program/1.0"}, {"X-Version", "2024-01-01"}} }},
			{name: "open", has: true, open: true},
			{name: "clients with keys", has: true, client: Clients{List: []Client{{Name: "a", Keys: []KeyHash{HashKey("mine")}}}}},
		} {
			t.Run(fmt.Sprintf("%s from %s %s: %s", c.host, c.origin, c.site, keys.name), func(t *testing.T) {
				served := 0
				s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
				defer s.Close()
				to, err := url.Parse(s.URL)
				if err != nil {
					t.Fatal(err)
				}
				up := Upstream{To: to, Limits: limitsOf("1000/s")}
				if keys.has {
					up.Keys, up.Header = []Key{{Name: "K", Secret: "s3cret"}}, []Field{{Name: "Authorization", Value: "Bearer {key}"}}
				}
				if keys.adds != nil {
					keys.adds(&up)
				}
				p, err := New(Config{Upstreams: []Upstream{up}, Open: keys.open, Clients: keys.client})
				if err != nil {
					t.Fatal(err)
				}
				defer p.close()
				r := httptest.NewRequest(http.MethodPost, "/v1/things", strings.NewReader("{}"))
				r.Header.Set("Content-Type", "text/plain") // as a page may send without a preflight
				r.Host, r.RemoteAddr = c.host, "127.0.0.1:1234"
				r.Header.Set("Authorization", "Bearer mine")
				for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
					if value != "" {
						r.Header.Set(name, value)
					}
				}
				w := httptest.NewRecorder()
				p.ServeHTTP(w, r)
				if refused := w.Code == http.StatusForbidden; refused != (c.foreign && keys.bound) || served == 1 == refused {
					t.Errorf("answered %d, served %d times: %s", w.Code, served, w.Body)
				}
			})
		}
	}
}

// The proxy's own answers can be read by the pages that may send, and by no others. A preflight
// takes no place in a limit.
func TestPagesMayRead(t *testing.T) {
	for _, c := range []struct {
		name      string
		config    func(*Config)
		fields    []string // of the request
		origin    string
		reads     bool // the page may read a refusal
		preflight int  // the status of a preflight; 200: it goes on
	}{
		{"a page of this machine", nil, nil, "http://localhost:3000", true, 204},
		{"a page elsewhere, and keys", nil, nil, "https://evil.example", false, 403},
		{"a file, and keys", nil, nil, "null", false, 403},
		{"a page elsewhere, open", func(c *Config) { c.Open = true }, nil, "https://play.example", true, 204},
		{"a page elsewhere, and clients with keys", func(c *Config) { c.Clients.List = []Client{{Name: "a", Keys: []KeyHash{HashKey(theirs)}}} }, []string{"Authorization", "Bearer " + theirs}, "https://play.example", true, 204},
		{"a page elsewhere with a wrong key", func(c *Config) { c.Clients.List = []Client{{Name: "a", Keys: []KeyHash{HashKey(theirs)}}} }, nil, "https://play.example", true, 204},
		{"a page elsewhere, without keys", func(c *Config) { c.Upstreams[0].Keys, c.Upstreams[0].Header = nil, nil }, nil, "https://play.example", true, 200},
		{"no page", nil, nil, "", false, 429},
	} {
		served := 0
		conf := to(upstreamOf(t, func(http.ResponseWriter, *http.Request) { served++ }), "2/h")
		conf.MaxWait = -1
		conf.Upstreams[0].Keys, conf.Upstreams[0].Header = []Key{{Name: "K", Secret: ours}}, []Field{{"Authorization", "Bearer {key}"}}
		if c.config != nil {
			c.config(&conf)
		}
		x := start(t, conf)
		fields := c.fields
		if c.origin != "" {
			fields = append([]string{"Origin", c.origin, "Sec-Fetch-Site", "cross-site"}, fields...)
		}
		ask := append([]string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, content-type", "Access-Control-Request-Private-Network", "true"}, fields[:min(len(fields), 4)]...)
		for range 3 {
			resp, body := x.do("OPTIONS", "/v1/things", "", ask...)
			if c.preflight == 204 {
				h := resp.Header
				if resp.StatusCode != 204 || h.Get("Access-Control-Allow-Origin") != c.origin || h.Get("Access-Control-Allow-Methods") != "POST" || h.Get("Access-Control-Allow-Headers") != "authorization, content-type" || h.Get("Access-Control-Allow-Private-Network") != "true" || body != "" {
					t.Errorf("%s: the preflight got %d %v", c.name, resp.StatusCode, h)
				}
			} else if c.preflight == 403 && (resp.StatusCode != 403 || resp.Header.Get("Access-Control-Allow-Origin") != "") {
				t.Errorf("%s: the preflight got %d %v", c.name, resp.StatusCode, resp.Header)
			}
		}
		if c.preflight == 204 && served != 0 {
			t.Errorf("%s: preflights went on", c.name)
		}
		for range 2 {
			x.do("POST", "/v1/things", "{}", fields...)
		}
		resp, body := x.do("POST", "/v1/things", "{}", fields...)
		if allowed := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode == 200 || (allowed == c.origin && allowed != "") != c.reads || allowed == "*" || c.reads && !strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "Retry-After") {
			t.Errorf("%s: %d %v %s", c.name, resp.StatusCode, resp.Header, body)
		}
		x.stop()
	}
}
