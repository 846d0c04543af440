package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
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
			open   bool
			client Clients
			bound  bool
		}{
			{name: "keys of the proxy", has: true, bound: true},
			{name: "keys of the client"},
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
				p, err := New(Config{Upstreams: []Upstream{up}, Open: keys.open, Clients: keys.client})
				if err != nil {
					t.Fatal(err)
				}
				defer p.close()
				r := httptest.NewRequest(http.MethodGet, "/v1/things", nil)
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
