package proxy

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// The admin listener is read-only for any request, answers only to this machine and under its name,
// and never fails.
func FuzzAdmin(f *testing.F) {
	p, err := New(to(mustURL(f, "http://127.0.0.1:1")))
	if err != nil {
		f.Fatal(err)
	}
	defer p.close()
	p.Mount("/metrics", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	h := p.admin(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7879})
	f.Add("GET", "/livez", "127.0.0.1:7879", "")
	f.Add("POST", "/readyz", "localhost", "same-origin")
	f.Add("GET", "//metrics/../readyz", "evil.test", "cross-site")
	f.Add("HEAD", "/metrics", "[::1]:80", "none")
	f.Add("", "*", "[", "cross-site")
	f.Add("POST", "", "localhost", "same-origin")
	f.Fuzz(func(t *testing.T, method, path, host, site string) {
		r := &http.Request{Method: method, URL: &url.URL{Path: path}, Host: host, Header: http.Header{"Sec-Fetch-Site": {site}}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		local := strings.EqualFold(strings.TrimSuffix(hostname(host), "."), "localhost")
		if at, err := netip.ParseAddr(strings.Trim(hostname(host), "[]")); err == nil {
			local = local || at.Unmap().IsLoopback()
		}
		looks := method == http.MethodGet || method == http.MethodHead
		if served := w.Code < 400 || w.Code == http.StatusNotFound; w.Code >= 500 || served && (!local || !looks || site == "cross-site") {
			t.Errorf("%q %q of %q from %q: %d", method, path, host, site, w.Code)
		}
		if w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%q %q: no policy", method, path)
		}
	})
}

// With any value in the fields for keys, only the owner of a key is identified by it. No key for
// the proxy goes on to the server.
func FuzzClientKeys(f *testing.F) {
	const key = "sk-client-51d0"
	conf := to(mustURL(f, "http://127.0.0.1:1"))
	conf.Clients.List = []Client{{Name: "a", Keys: []KeyHash{HashKey(key)}}}
	conf.Upstreams[0].Keys = []Key{{Name: "k", Secret: "s"}}
	conf.Upstreams[0].Header = []Field{{Name: "Authorization", Value: "Bearer {key}"}}
	p, err := New(conf)
	if err != nil {
		f.Fatal(err)
	}
	defer p.close()
	for _, v := range []string{key, "Bearer " + key, "bearer  " + key + " ", "Basic " + base64.StdEncoding.EncodeToString([]byte("a:"+key)), "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":")), "Basic ====", "Bearer", "", " ", "Bearer " + key + "x"} {
		f.Add(uint8(1), v)
		f.Add(uint8(2), v)
	}
	f.Fuzz(func(t *testing.T, which uint8, value string) {
		field := keyFields[int(which)%len(keyFields)]
		r := &http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Header: http.Header{field: {value}}, RemoteAddr: "127.0.0.1:1"}
		who, as := p.clients.of(r, false)
		_, encoded, _ := strings.Cut(strings.TrimSpace(value), " ")
		decoded, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		has := strings.Contains(value, key) || strings.Contains(string(decoded), key)
		if who != nil && (!has || as != key) || who == nil && (value == key || value == "Bearer "+key) {
			t.Errorf("%s: %q is %v", field, value, who)
		}
		v := &visit{proxy: p, in: r, client: who, clientKey: as, upstream: p.routes[0]}
		on := r.Clone(t.Context())
		v.withhold(on)
		if len(on.Header) > 0 {
			t.Errorf("%s: %q goes on", field, value)
		}
	})
}

// Whatever a User-Agent says, the name of its program is short and printable, and no name of another's batches.
func FuzzProduct(f *testing.F) {
	for _, agent := range []string{"curl/8.5.0", "Mozilla/5.0 (X11)", "OpenAI/Python 1.2", "", "/", "a b", "\xff\x00é/1", "x (batch)", strings.Repeat("ü", 99)} {
		f.Add(agent)
	}
	f.Fuzz(func(t *testing.T, agent string) {
		p := product(agent)
		if len(p) > mostName || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r > '~' }) || p != product(p) || p != product(p+"/1.2") || strings.HasSuffix("x "+p, inBulk) {
			t.Errorf("%q is %q", agent, p)
		}
	})
}
