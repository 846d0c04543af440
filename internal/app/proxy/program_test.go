package proxy

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// clientAt is the client of a request from an address, with header fields in pairs.
func (x *proxied) clientAt(address string, fields ...string) *client {
	x.t.Helper()
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = address
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	who, _ := x.proxy.clients.of(r, false)
	return who
}

// Programs of this machine are clients by their products and credentials. Other addresses are clients as they are, and so is this
// machine's where clients have names.
func TestProgramsOfOneMachine(t *testing.T) {
	u := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	plain := start(t, to(u))
	for _, c := range []struct{ address, agent, want string }{
		{"127.0.0.1:5", "curl/8.5.0", "127.0.0.1 curl"}, {"127.0.0.1:6", "curl/7.1", "127.0.0.1 curl"}, {"127.0.0.1:5", "OpenAI/Python 1.2", "127.0.0.1 openai"},
		{"127.0.0.1:5", "MyApp 1.0", "127.0.0.1 myapp"}, {"127.0.0.1:5", "", "127.0.0.1"}, {"127.0.0.1:5", "(compatible)", "127.0.0.1"},
		{"[::1]:5", "python-requests/2.31", "::1 python-requests"}, {"[::ffff:127.0.0.1]:5", "curl/8", "127.0.0.1 curl"}, {"@", "curl/8", "local"},
		{"127.0.0.1:5", strings.Repeat("é", 40) + "/1", "127.0.0.1 " + strings.Repeat("?", 32)}, {"127.0.0.1:5", strings.Repeat("X", 1000), "127.0.0.1 " + strings.Repeat("x", 64)},
		{"192.0.2.7:5", "curl/8", "192.0.2.7"}, {"[2001:db8::1]:5", "curl/8", "2001:db8::1"},
	} {
		if got := plain.clientAt(c.address, "User-Agent", c.agent); got.Name != c.want || got.asker.Name != c.want || !strings.HasPrefix(c.want, got.owner) || strings.Contains(got.owner, " ") {
			t.Errorf("%s %.30q: %q, want %q", c.address, c.agent, got.Name, c.want)
		}
	}
	for what, change := range map[string]func(*Config){
		"a header": func(c *Config) { c.Clients.Header = "X-Who" },
		"client keys": func(c *Config) {
			c.Open, c.Clients.List = true, []Client{{Name: "a", Keys: []KeyHash{HashKey(theirs)}}}
		},
		"an address": func(c *Config) {
			c.Clients.List = []Client{{Name: "127.0.0.1", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}
		},
		"one for many": func(c *Config) { c.Clients.Most = 1 },
	} {
		conf := to(u)
		change(&conf)
		x := start(t, conf)
		first, second := x.clientAt("127.0.0.1:5", "User-Agent", "one/1"), x.clientAt("127.0.0.1:5", "User-Agent", "two/1")
		if what == "one for many" {
			if first.Name != "127.0.0.1 one" || second.Name != "others" {
				t.Errorf("with %s: %q, %q", what, first.Name, second.Name)
			}
		} else if first.Name != "127.0.0.1" || second.Name != first.Name {
			t.Errorf("with %s: %q, %q", what, first.Name, second.Name)
		}
	}
}

// A credential distinguishes programs, and neither a log nor the page has it. With a state file, names are the same after a restart.
func TestProgramsByCredential(t *testing.T) {
	u := upstreamOf(t, func(http.ResponseWriter, *http.Request) {})
	hashed := regexp.MustCompile(`^127\.0\.0\.1 curl key [0-9a-z]{6}$`)
	for _, state := range []string{"", filepath.Join(t.TempDir(), "state")} {
		var before string
		for range 2 {
			conf := to(u)
			conf.State = state
			x := start(t, conf)
			name := func(field, value string) string {
				return x.clientAt("127.0.0.1:5", "User-Agent", "curl/8", field, value).Name
			}
			one, other := name("Authorization", "Bearer "+theirs), name("Authorization", "Bearer "+others)
			if !hashed.MatchString(one) || !hashed.MatchString(other) || one == other || one != name("Authorization", "Bearer "+theirs) {
				t.Errorf("%q and %q", one, other)
			}
			if state != "" && before != "" && before != one {
				t.Errorf("after a restart %q is %q", before, one)
			}
			before = one
			x.do("GET", "/", "", "User-Agent", "curl/8", "Authorization", "Bearer "+theirs)
			if log := x.log.String(); !strings.Contains(log, `client="`+one+`" `) || strings.Contains(log, theirs[4:]) {
				t.Errorf("logged: %s", log)
			}
			x.stop()
		}
	}
}

// What a program keeps belongs to its address: another program of this machine finds it.
func TestProgramsShareTheirFiles(t *testing.T) {
	conf := batching(t, t.TempDir())
	conf.Clients.Header = ""
	x := start(t, conf)
	kind, form := formOf("batch", `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m"}}`)
	resp, made := x.do("POST", "/llm/v1/files", form, "User-Agent", "one/1", "Content-Type", kind)
	var file struct{ ID string }
	if err := json.Unmarshal([]byte(made), &file); err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %v: %s", resp.StatusCode, err, made)
	}
	if resp, text := x.do("GET", "/llm/v1/files/"+file.ID, "", "User-Agent", "two/1"); resp.StatusCode != 200 {
		t.Errorf("another program gets %d %s", resp.StatusCode, text)
	}
}
