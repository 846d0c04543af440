package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/text/rate"
)

const (
	ours   = "sk-provider-9f8Q7xZ2kLm4"
	theirs = "client-key-a-3HfT6yUw8R"
	others = "client-key-b-Zq5Pn1Vc7X"
)

// The key identifies the client, in every field that SDKs use. If clients have keys, nothing else
// does.
func TestClientsByKey(t *testing.T) {
	var got http.Header
	var query string
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) { got, query = r.Header.Clone(), r.URL.RawQuery })
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, keyed := range []bool{false, true} {
		conf := to(u)
		conf.Clients = Clients{Header: "X-Who", List: []Client{{Name: "a", Keys: []KeyHash{HashKey(theirs)}}, {Name: "b", Keys: []KeyHash{sha256.Sum256([]byte("other")), HashKey(others)}}, {Name: "c"}}}
		if keyed {
			conf.Upstreams[0].Keys = []Key{{Name: "K1", Secret: ours}}
			conf.Upstreams[0].Header = []Field{{"Authorization", "Bearer {key}"}, {"X-Fixed", "1"}}
			conf.Upstreams[0].Query = []Field{{"k", "{key}"}}
		}
		x := start(t, conf)
		for _, c := range []struct{ field, value, want string }{
			{FieldKey, theirs, "a"}, {"Authorization", "Bearer " + theirs, "a"}, {"Authorization", "bearer  " + others, "b"}, {"X-Api-Key", others, "b"}, {"Api-Key", theirs, "a"},
			{"X-Goog-Api-Key", theirs, "a"}, {"Authorization", basic("me:" + theirs), "a"}, {"Authorization", basic(others + ":"), "b"}, {"Authorization", theirs, "a"},
			{"Authorization", "Bearer " + theirs + "x", ""}, {"Authorization", "Bearer " + theirs[1:], ""}, {"X-Who", "c", ""}, {"X-Other", theirs, ""}, {"Authorization", "Basic %%%", ""}, {"Authorization", "", ""},
		} {
			got = nil
			resp, body := x.do("GET", "/", "", c.field, c.value, "X-Fixed", "2")
			if c.want == "" {
				if p := refused(t, resp, body); resp.StatusCode != 401 || p.Type != Kinds+"no-key" || got != nil || resp.Header.Get("WWW-Authenticate") == "" {
					t.Errorf("%+v: %d %s", c, resp.StatusCode, body)
				}
				continue
			}
			if resp.StatusCode != 200 || !strings.Contains(x.log.String(), "client="+c.want+" ") {
				t.Errorf("%+v: %d\n%s", c, resp.StatusCode, x.log)
			}
			all := fmt.Sprint(got, query)
			if strings.Contains(all, theirs) || strings.Contains(all, others) || strings.Contains(all, "Basic") {
				t.Errorf("%+v: a key for the proxy went on: %s", c, all)
			}
			if keyed && (got.Get("Authorization") != "Bearer "+ours || query != "k="+ours || got.Get("X-Fixed") != "1") {
				t.Errorf("%+v: %s", c, all)
			}
			if !keyed && (got.Get("X-Fixed") != "2" || len(got["Authorization"]) > 0) {
				t.Errorf("%+v: %s", c, all)
			}
			x.log.reset()
		}
		for _, target := range []string{"/?note=" + theirs, "/?api_key=" + theirs + "x", "/?api_key=%zz", "/?" + theirs} {
			if resp, _ := x.do("GET", target, ""); resp.StatusCode != 401 {
				t.Errorf("%s: %d, expected 401", target, resp.StatusCode)
			}
		}
		for _, secret := range []string{ours, theirs, others} {
			if strings.Contains(x.log.String(), secret) {
				t.Errorf("%s is logged", secret)
			}
		}
	}
}

// A key for the proxy does not go upstream, wherever it stands and however often, with the key of
// another client beside it. All else goes on.
func TestClientKeysStay(t *testing.T) {
	var got, query string
	u := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) {
		got, query = fmt.Sprint(r.Header), r.URL.RawQuery
		for _, v := range r.Header {
			for word := range strings.FieldsSeq(strings.Join(v, " ")) {
				plain, _ := base64.StdEncoding.DecodeString(word)
				got += string(plain)
			}
		}
	})
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for _, c := range []struct{ target, fields, query, kept string }{
		{"/", "Authorization: Bearer " + theirs + "\r\nX-Api-Key: " + theirs, "", ""},
		{"/", "X-Api-Key: " + theirs + "\r\nAuthorization: Bearer sk-of-the-client", "", "sk-of-the-client"},
		{"/", "Paceline-Key: " + theirs + "\r\nApi-Key: " + theirs + "\r\nX-Goog-Api-Key: " + theirs + "\r\nX-Auth-Token: " + theirs, "", ""},
		{"/", "Authorization: Bearer " + theirs + "\r\nX-Api-Key: " + others, "", ""},
		{"/", "Authorization: " + basic("me:"+theirs) + "\r\nX-Api-Key: sk-of-the-client", "", "sk-of-the-client"},
		{"/", "Authorization: " + basic(theirs+":"+others), "", ""},
		{"/", "Authorization: " + basic(theirs+":") + "\r\nX-Auth: " + basic(others+":x"), "", ""},
		{"/", "Paceline-Key: " + theirs + "\r\nX-Note: the key is " + theirs + "!\r\nX-Other: stays", "", "stays"},
		{"/", "Paceline-Key: " + theirs + "\r\nX-Api-Key: one\r\nX-Api-Key: " + theirs, "", "one"},
		{"/?a=b&key=" + theirs + "&c=d", "Paceline-Key: " + theirs, "a=b&c=d", ""},
		{"/?api_key=" + others + "&a=%20b", "Paceline-Key: " + theirs, "a=%20b", ""},
		{"/?access_token=" + strings.ReplaceAll(theirs, "-", "%2D"), "Paceline-Key: " + theirs, "", ""},
		{"/?api_key=" + theirs + "&a=%20b", "X-Note: stays", "a=%20b", "stays"},
		{"/?a=1&Token=Bearer+" + strings.ReplaceAll(theirs, "-", "%2D") + "&b=%zz", "X-Note: stays", "a=1&b=%zz", "stays"},
		{"/p/" + theirs + "?apikey=wrong&key=" + theirs + "&api-key=" + others, "Authorization: Bearer no key", "apikey=wrong", ""},
		{"/?" + theirs + "&x", "Paceline-Key: " + theirs, "x", ""},
		{"/?token=Bearer%20" + theirs + "&x=1", "Paceline-Key: " + theirs, "x=1", ""},
		{"/", "Paceline-Key: " + theirs + "\r\nCookie: lang=en; key=" + theirs + "; sid=7; other=" + others, "", "lang=en; sid=7"},
		{"/", "Paceline-Key: " + theirs + "\r\nSec-WebSocket-Protocol: realtime, openai-insecure-api-key." + theirs + ", openai-beta.realtime-v1", "", "realtime, openai-beta.realtime-v1"},
		{"/", "Paceline-Key: " + theirs + "\r\nReferer: http://h/?key=" + theirs, "", ""},
	} {
		conf := to(u)
		conf.Clients = Clients{List: []Client{{Name: "a", Keys: []KeyHash{HashKey(theirs)}}, {Name: "b", Keys: []KeyHash{HashKey(others)}}}}
		x := start(t, conf)
		if answer := x.raw("GET " + c.target + " HTTP/1.1\r\nHost: a\r\n" + c.fields + "\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 200") {
			t.Errorf("%+v: %s", c, answer)
		}
		if all := got + query; strings.Contains(all, theirs) || strings.Contains(all, others) || strings.Contains(all, "%2D") || query != c.query || !strings.Contains(got, c.kept) {
			t.Errorf("%s %s: went on as %s, %s", c.target, c.fields, query, got)
		}
		if log := x.log.String(); strings.Contains(log, theirs) || strings.Contains(log, others) {
			t.Errorf("%s %s: logged: %s", c.target, c.fields, log)
		}
		x.stop()
	}
}

func (l *safeLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Reset()
}

// Without keys a field of the request names the client, and where that is missing its address does.
func TestClientsByName(t *testing.T) {
	var got http.Header
	u := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	conf := to(u)
	conf.Open = true
	conf.Clients = Clients{Header: "X-Who", Most: 2, List: []Client{{Name: "secret", Keys: []KeyHash{HashKey(theirs)}}, {Name: "known"}, {Name: "net", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}}}
	x := start(t, conf)
	for _, c := range []struct{ who, key, want string }{
		{"known", "", "known"}, {"", "", "net"}, {"one", "", "one"}, {"one", "", "one"}, {"secret", "", `"secret (without its key)"`}, {"three", "", "others"}, {"four", theirs, "secret"},
		{strings.Repeat("x", 1000), "", "others"},
	} {
		x.log.reset()
		x.do("GET", "/", "", "X-Who", c.who, FieldKey, c.key)
		if !strings.Contains(x.log.String(), "client="+c.want+" ") {
			t.Errorf("%+v:\n%s", c, x.log)
		}
		if got.Get("X-Who") != "" || got.Get(FieldKey) != "" {
			t.Errorf("%+v: went on: %v", c, got)
		}
	}
}

// Paceline-Key is for the proxy alone: it stays, although no client has such a key, or any key.
func TestKeyFieldStays(t *testing.T) {
	var got http.Header
	u := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	for name, all := range map[string]Clients{
		"nobody has a key": {}, "another has a key": {List: []Client{{Name: "a", Keys: []KeyHash{HashKey(others)}}}},
	} {
		for _, keys := range [][]Key{nil, {{Name: "K1", Secret: ours}}} {
			conf := to(u)
			conf.Open, conf.Clients, conf.Upstreams[0].Keys = true, all, keys
			if len(keys) > 0 {
				conf.Upstreams[0].Header = []Field{{"Authorization", "Bearer {key}"}}
			}
			x := start(t, conf)
			x.do("GET", "/", "", FieldKey, theirs, "X-Other", "stays")
			if got.Get(FieldKey) != "" || got.Get("X-Other") != "stays" {
				t.Errorf("%s, %d keys of the proxy: went on as %v", name, len(keys), got)
			}
		}
	}
}

// A client has limits of its own, which others know nothing of.
func TestClientsOwnLimits(t *testing.T) {
	u := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	hourly, _ := rate.ParseLimit("2/h")
	conf := to(u)
	conf.MaxWait = -1
	conf.Clients = Clients{Header: "X-Who", List: []Client{{Name: "few", Limits: []rate.Limit{hourly}}}}
	x := start(t, conf)
	for i := range 4 {
		for _, who := range []string{"few", "any"} {
			want := 200
			if who == "few" && i >= 2 {
				want = 429
			}
			if resp, body := x.do("GET", "/", "", "X-Who", who); resp.StatusCode != want {
				t.Errorf("%s, request %d: %d %s", who, i, resp.StatusCode, body)
			}
		}
	}
}

// Nothing that prints a Config shows what is secret in it.
func TestSecretsAreNotShown(t *testing.T) {
	c := Config{Upstreams: []Upstream{{Keys: []Key{{Name: "K1", Secret: ours}}, Header: []Field{{"Authorization", Secret("Bearer " + ours)}}}}}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c, "secret", c.Upstreams[0].Keys[0].Secret)
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%v %+v %#v", c, c, c) + log.String())
	for _, verb := range []string{"%s", "%q", "%x", "%d", "%X", "%c"} {
		text.WriteString(fmt.Sprintf(verb, any(c.Upstreams[0].Keys[0].Secret)))
	}
	if strings.Contains(text.String(), ours) || strings.Contains(text.String(), fmt.Sprintf("%x", ours)) {
		t.Error(text.String())
	}
}

// The hash of a key is written as sha256sum does, and read again; what it is not is refused without
// being shown.
func TestKeyHash(t *testing.T) {
	h, err := ParseKeyHash("sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae")
	if err != nil || h != HashKey("foo") || h.String() != "sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae" {
		t.Errorf("%v %v", h, err)
	}
	for _, s := range []string{"", "sha256:", "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", "sha256:zz", ours} {
		if _, err := ParseKeyHash(s); err == nil || s != "" && strings.Contains(err.Error(), s[len(s)/2:]) && s != "sha256:" {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// The error for a wrong Config names the field.
func TestChecked(t *testing.T) {
	good := func() Config { return to(mustURL(t, "https://api.test/v1"), "20/s") }
	for field, spoil := range map[string]func(*Config){
		"Listen":                      func(c *Config) { c.Listen = "0.0.0.0:80" },
		"Admin":                       func(c *Config) { c.Admin = "0.0.0.0:81" },
		"Grace":                       func(c *Config) { c.Grace = -1 },
		"Bounds.Stall":                func(c *Config) { c.Bounds.Stall = -1 },
		"Upstreams":                   func(c *Config) { c.Upstreams = nil },
		"Upstreams[0].To":             func(c *Config) { c.Upstreams[0].To = mustURL(t, "ftp://a") },
		"Upstreams[0].H2C":            func(c *Config) { c.Upstreams[0].H2C = true },
		"Upstreams[0].Path":           func(c *Config) { c.Upstreams[0].Path = "/a/../b" },
		"Upstreams[0].Host":           func(c *Config) { c.Upstreams[0].Host = "a:1" },
		"Upstreams[0].Preset":         func(c *Config) { c.Upstreams[0].Preset = "opnai:tier1" },
		"Upstreams[0].Strangers":      func(c *Config) { c.Upstreams[0].Strangers = true },
		"Upstreams[0].PerSecond":      func(c *Config) { c.Upstreams[0].PerSecond = true },
		"Upstreams[0].Limits[0]":      func(c *Config) { c.Upstreams[0].Limits[0].N = 0 },
		"Upstreams[0].Limits[0].Only": func(c *Config) { c.Upstreams[0].Limits[0].Only = "x" },
		"Upstreams[0].Prices[0]":      func(c *Config) { c.Upstreams[0].Prices = []Price{{Model: "m", Input: -1}} },
		"Upstreams[0].Prices[0].Cached": func(c *Config) {
			c.Upstreams[0].Prices = []Price{{Model: "m", Input: 1, Output: 9, Cached: 1.1}}
		},
		"Upstreams[0].Prices[1].Model": func(c *Config) { c.Upstreams[0].Prices = []Price{{Model: "m"}, {Model: "m"}} },
		"Upstreams[0].RequestPrice":    func(c *Config) { c.Upstreams[0].RequestPrice = -1 },
		"Upstreams[0].Keys":            func(c *Config) { c.Upstreams[0].Header = []Field{{"Authorization", "{key}"}} },
		"Upstreams[0].Header":          func(c *Config) { c.Upstreams[0].Keys = []Key{{Name: "a", Secret: "b"}} },
		"Upstreams[0].Header[0]":       func(c *Config) { c.Upstreams[0].Header = []Field{{"Transfer-Encoding", "chunked"}} },
		"Upstreams[0].Keys[0].Secret":  func(c *Config) { c.Upstreams[0].Keys = []Key{{Name: "a", Secret: "b\n"}} },
		"Upstreams[1].Path": func(c *Config) {
			c.Upstreams = append(c.Upstreams, Upstream{Name: "other", To: mustURL(t, "https://b.test")})
		},
		"Upstreams[1].Name": func(c *Config) {
			c.Upstreams = append(c.Upstreams, Upstream{Path: "/x", To: mustURL(t, "https://api.test")})
		},
		"Clients.List[1].Name": func(c *Config) { c.Clients.List = []Client{{Name: "a"}, {Name: "a"}} },
		"Clients.List[1].Keys[0]": func(c *Config) {
			c.Clients.List = []Client{{Name: "a", Keys: []KeyHash{{}}}, {Name: "b", Keys: []KeyHash{{}}}}
		},
		"Upstreams[0].Use":         func(c *Config) { c.Upstreams[0].Use = 2 },
		"Upstreams[0].Ramp":        func(c *Config) { c.Upstreams[0].Ramp = -1 },
		"Clients.Default.Reserve":  func(c *Config) { c.Clients.Default.Reserve = -1 },
		"Clients.Default.InFlight": func(c *Config) { c.Clients.Default.InFlight = -1 },
		"Clients.Default.Weight":   func(c *Config) { c.Clients.Default.Weight = -1 },
		"Clients.Header":           func(c *Config) { c.Clients.Header = "a b" },
	} {
		c := good()
		spoil(&c)
		_, err := New(c)
		if e, ok := errors.AsType[*ConfigError](err); !ok || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for name, ok := range map[string]func(*Config){
		"as it is": func(*Config) {}, "open": func(c *Config) { c.Listen, c.Open = "0.0.0.0:80", true }, "no admin": func(c *Config) { c.Admin = Off },
		"keys": func(c *Config) { c.Listen, c.Clients.List = "0.0.0.0:80", []Client{{Name: "a", Keys: []KeyHash{{}}}} }, "v6": func(c *Config) { c.Listen, c.Admin = "[::1]:80", "localhost:81" },
		"auto":   func(c *Config) { c.Upstreams[0].Preset, c.Upstreams[0].Auto = "github", true },
		"preset": func(c *Config) { c.Upstreams[0].Preset, c.Upstreams[0].PerSecond = "openai:tier1", true },
	} {
		c := good()
		ok(&c)
		if _, err := New(c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// two is a Config of two upstreams, /a and /b, and a client with limits of its own.
func two(a, b *url.URL, limits ...string) Config {
	return Config{MaxWait: -1, Upstreams: []Upstream{{Name: "a", Path: "/a", To: a}, {Name: "b", Path: "/b", To: b}},
		Clients: Clients{Header: "X-Who", List: []Client{{Name: "few", Limits: ratesOf(limits...)}}}}
}

// passes sends requests to paths, one after the other, and returns how many were answered.
func (x *proxied) passes(who string, paths ...string) (n int) {
	x.t.Helper()
	for _, path := range paths {
		switch resp, body := x.do("GET", path, "", "X-Who", who); resp.StatusCode {
		case 200:
			n++
		case 429:
		default:
			x.t.Errorf("%s of %s: %d %s", path, who, resp.StatusCode, body)
		}
	}
	return n
}

// A client's limits are of what it asks of all upstreams together, however the upstreams and the
// limits change.
func TestClientsOwnLimitsOverUpstreams(t *testing.T) {
	u, elsewhere := upstreamOf(t, hello), upstreamOf(t, hello)
	x, apply := live(t, two(u, u, "3/h"))
	if n := x.passes("few", "/a", "/b", "/a", "/b", "/a"); n != 3 {
		t.Errorf("%d were answered, of 3 an hour", n)
	}
	if n := x.passes("any", "/a", "/b", "/a", "/b", "/a"); n != 5 {
		t.Errorf("of another client %d were answered, of 5", n)
	}
	apply(two(u, u, "5/h"))
	if n := x.passes("few", "/b", "/a", "/b"); n != 2 {
		t.Errorf("%d more were answered, where 5 an hour take the place of 3", n)
	}
	moved := two(u, elsewhere, "6/h")
	moved.Upstreams = append(moved.Upstreams[1:], Upstream{Name: "c", Path: "/c", To: u})
	apply(moved)
	if n := x.passes("few", "/c", "/b"); n != 1 {
		t.Errorf("%d more were answered, where 6 an hour take the place of 5 and other upstreams that of those before", n)
	}
	none := two(u, u)
	apply(none)
	if n := x.passes("few", "/a", "/b"); n != 2 {
		t.Errorf("without limits %d were answered, of 2", n)
	}
}

// A restart neither forgets nor doubles what a client sent to several upstreams, one of which may
// be there no more.
func TestClientsOwnLimitsOverRestarts(t *testing.T) {
	u := upstreamOf(t, hello)
	path := filepath.Join(t.TempDir(), "proxy.state")
	conf := two(u, u, "5/h")
	conf.State = path
	x := start(t, conf)
	if n := x.passes("few", "/a", "/b", "/b"); n != 3 {
		t.Fatalf("%d were answered, of 3", n)
	}
	conf.State = copyState(t, path) // as it was killed
	if n := start(t, conf).passes("few", "/b", "/a", "/b", "/a"); n != 2 {
		t.Errorf("%d more were answered, of 5 an hour", n)
	}
	conf.State = copyState(t, path)
	conf.Upstreams = []Upstream{{Name: "c", To: u}}
	if n := start(t, conf).passes("few", "/a", "/b", "/c", "/d"); n != 2 {
		t.Errorf("with another upstream: %d more were answered, of 5 an hour", n)
	}
}

// Clients of a local socket with a path as its address, as systemd may open it, are one client with
// a name.
func TestClientsOfASocket(t *testing.T) {
	at := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Skip(err)
	}
	x := startAt(t, to(upstreamOf(t, hello)), l, nil, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", at)
	})
	x.url = "http://proxy.test"
	if resp, body := x.do("GET", "/", ""); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	until(t, func() bool { return strings.Contains(x.log.String(), "status=200") })
	if !strings.Contains(x.log.String(), "client=local ") {
		t.Error(x.log)
	}
}
