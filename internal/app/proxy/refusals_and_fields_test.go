package proxy

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/provider"
)

// Clients that try again by themselves are asked not to where that cannot help.
func TestPointlessRefusals(t *testing.T) {
	u := upstreamOf(t, hello)
	conf := Config{Upstreams: []Upstream{{Path: "/api", To: u}}, Clients: Clients{List: []Client{{Name: "a", Keys: []KeyHash{HashKey(theirs)}}}}}
	conf.Bounds.Body = 10
	x := start(t, conf)
	for _, c := range []struct {
		kind, path, body string
		status           int
		fields           []string
	}{
		{"no-key", "/api", "", 401, nil},
		{"no-upstream", "/other", "", 404, []string{FieldKey, theirs}},
		{"body-too-long", "/api", strings.Repeat("x", 11), 413, []string{FieldKey, theirs}},
		{"bad-field", "/api", "", 400, []string{FieldKey, theirs, FieldMaxWait, "soon"}},
	} {
		resp, body := x.do("POST", c.path, c.body, c.fields...)
		if p := refused(t, resp, body); resp.StatusCode != c.status || p.Type != Kinds+c.kind || resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d, X-Should-Retry %q, %s", c.kind, resp.StatusCode, resp.Header.Get("X-Should-Retry"), body)
		}
		line := "failed=" + c.kind
		until(t, func() bool { return strings.Contains(x.log.String(), line) })
		// The address of a client stands in the log only as long as nobody knows the client.
		said := slices.Collect(strings.Lines(x.log.String()))
		if last := said[len(said)-1]; strings.Contains(last, "address=127.0.0.1") != (c.kind == "no-key") {
			t.Errorf("%s: logged %s", c.kind, last)
		}
	}
}

// An informational answer goes on and is not the answer: the log and the header are the final
// one's.
func TestEarlyHints(t *testing.T) {
	u := upstreamOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header()["Content-Type"] = nil
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "<html>nothing here</html>")
	})
	x := start(t, to(u))
	got := x.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
	hints, final, _ := strings.Cut(got, "\r\n\r\n")
	if !strings.HasPrefix(hints, "HTTP/1.1 103 ") || !strings.HasPrefix(final, "HTTP/1.1 404 ") || strings.Contains(final, "Content-Type") {
		t.Errorf("%q", got)
	}
	until(t, func() bool { return strings.Contains(x.log.String(), "msg=request") })
	if log := x.log.String(); !strings.Contains(log, "status=404") || strings.Contains(log, "status=103") {
		t.Errorf("logged: %s", log)
	}
}

// Fields with the proxy's key are set in place of what a client sends in them.
func TestKeyFieldsReplace(t *testing.T) {
	var got http.Header
	var query string
	u := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) { got, query = r.Header.Clone(), r.URL.RawQuery })
	conf := to(u)
	conf.Upstreams[0].Keys = []Key{{Name: "K1", Secret: ours}}
	conf.Upstreams[0].Header = []Field{{"X-Token", "{key}"}, {"X-Fixed", "1"}}
	conf.Upstreams[0].Query = []Field{{"token", "{key}"}}
	x := start(t, conf)
	x.do("GET", "/?token=mine&a=b", "", "X-Token", "mine", "X-Fixed", "mine")
	if token, fixed := got["X-Token"], got["X-Fixed"]; len(token) != 1 || token[0] != ours || len(fixed) != 1 || fixed[0] != "1" || query != "a=b&token="+ours {
		t.Errorf("%q, %q, %s", token, fixed, query)
	}
}

// The log has the beginning of a long path, and shows that it is not all.
func TestLongPathsInTheLog(t *testing.T) {
	x := start(t, to(upstreamOf(t, hello)))
	path := "/" + strings.Repeat("a", 255)
	x.do("GET", path, "")
	x.do("GET", path+"b", "")
	for _, want := range []string{"path=" + path + " ", "path=" + path + "… "} {
		if log := x.log.String(); strings.Count(log, want) != 1 {
			t.Errorf("not logged once: %s\n%s", want, log)
		}
	}
}

// A limit by the clock of a place that comes while the proxy runs ends with that place's day, and so
// does what was sent before.
func TestAppliedZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(3 * time.Hour) // noon in Tokyo
		conf := to(mustURL(t, "http://server.test"), "1000/h")
		conf.Live, conf.MaxWait = true, -1
		x := virtual(t, http.HandlerFunc(hello), conf)
		x.do("GET", "/", "") // counts on
		time.Sleep(time.Hour)
		next := to(conf.Upstreams[0].To, "2/d@Asia/Tokyo")
		next.Live, next.MaxWait, next.Dial = true, -1, x.proxy.config.Dial
		next.Listen, next.Admin, next.Bounds = x.proxy.config.Listen, x.proxy.config.Admin, x.proxy.config.Bounds
		if err := x.proxy.Apply(next); err != nil {
			t.Fatal(err)
		}
		x.do("GET", "/", "")
		resp, body := x.do("GET", "/", "")
		wait := time.Duration(refused(t, resp, body).WaitMS) * time.Millisecond
		if least := 11 * time.Hour; wait < least || wait > least+time.Minute {
			t.Errorf("%d: at one in the afternoon it says that the day lasts %v more", resp.StatusCode, wait)
		}
		time.Sleep(wait)
		for i, want := range []int{200, 200, 429} {
			if resp, body := x.do("GET", "/", ""); resp.StatusCode != want {
				t.Errorf("request %d of the next day: %d %s", i, resp.StatusCode, body)
			}
		}
	})
}

// A limit of each model, and one of a single model, hold for requests of that model alone, whatever
// they count.
func TestLimitsOfModels(t *testing.T) {
	type sent struct {
		model string
		want  int
	}
	each, one := limitsOf("1/h")[0], limitsOf("2/h")[0]
	each.EachModel, one.Scope, one.Only = true, provider.Model, "a"
	for name, c := range map[string]struct {
		limits []Limit
		sent   []sent
	}{
		"each":                 {[]Limit{each}, []sent{{"a", 200}, {"a", 429}, {"b", 200}, {"b", 429}, {"c", 200}}},
		"of a":                 {[]Limit{one}, []sent{{"a", 200}, {"a", 200}, {"a", 429}, {"b", 200}, {"b", 200}, {"b", 200}}},
		"of a, and each other": {[]Limit{each, one}, []sent{{"a", 200}, {"a", 200}, {"a", 429}, {"b", 200}, {"b", 429}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			conf := to(mustURL(t, "http://server.test"))
			conf.Upstreams[0].Limits, conf.MaxWait = c.limits, -1
			x := virtual(t, http.HandlerFunc(hello), conf)
			for i, c := range c.sent {
				if resp, body := x.do("POST", "/v1/chat/completions", `{"model":"`+c.model+`","messages":[]}`); resp.StatusCode != c.want {
					t.Errorf("%s: request %d, of model %s: %d, want %d: %s", name, i, c.model, resp.StatusCode, c.want, body)
				}
			}
		})
	}
}

// What is looked at is the proxy as it is now, also after upstreams came and went.
func TestSourcesAfterApply(t *testing.T) {
	u := upstreamOf(t, hello)
	of := func(names ...string) (c Config) {
		for _, name := range names {
			c.Upstreams = append(c.Upstreams, Upstream{Name: name, Path: "/" + name, To: u})
		}
		return c
	}
	x, apply := live(t, of("a", "b"))
	apply(of("b", "c"))
	var names []string
	for _, s := range x.proxy.Sources() {
		names = append(names, s.Snapshot().Name)
	}
	slices.Sort(names)
	if want := []string{"b", "c"}; !slices.Equal(names, want) {
		t.Errorf("it shows %q, want %q", names, want)
	}
}

// Numbers that other machines read show no host: an upstream without a name of its own has its number.
func TestNumberedSourcesNameNoHost(t *testing.T) {
	var c Config
	for i, to := range []string{"http://a.test", "http://b.test:8080", "http://c.test/v1", "https://[2001:db8::1]:8443"} {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		c.Upstreams = append(c.Upstreams, Upstream{Path: fmt.Sprint("/", i), To: u})
	}
	c.Upstreams[2].Name = "mine"
	var names []string
	for _, s := range start(t, c).proxy.NumberedSources() {
		names = append(names, s.Snapshot().Name)
	}
	slices.Sort(names)
	if want := []string{"1", "2", "4", "mine"}; !slices.Equal(names, want) {
		t.Errorf("the numbers are of %q, want %q", names, want)
	}
}
