package run

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// A name or certificate is wrong only until its host has answered, and only of a host that the
// input names.
func TestWhichHostIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		known []known
		kind  limit.Link
		wrong bool
	}{
		{"no such name", []known{named}, limit.NoName, true},
		{"a wrong certificate", []known{named, named}, limit.BadCertificate, true},
		{"it has answered", []known{named, answered}, limit.NoName, false},
		{"where a redirect leads", nil, limit.NoName, false},
		{"it refuses", []known{named}, limit.Unreachable, false},
		{"it is broken", []known{named}, limit.Broken, false},
	} {
		var said []string
		r, err := New(Config{Out: "-", Stdout: new(strings.Builder), Notice: func(s string) { said = append(said, s) }})
		if err == nil {
			err = r.Open()
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range c.known {
			r.hosts.note("https://a.test", k)
		}
		r.hosts.outage(pool.HostInfo{Host: "https://a.test", Down: true, Kind: c.kind, Reason: "dial tcp: lookup a.test: no such host"})
		if wrong := errors.Is(r.course.wrong, ErrHost); wrong != c.wrong || wrong == (len(said) == 1) || r.course.isStopped() != wrong {
			t.Errorf("%s: %v, said %q", c.name, r.course.wrong, said)
		}
		r.hosts.outage(pool.HostInfo{Host: "https://a.test", Lasted: 5040 * time.Millisecond})
		if last := said[len(said)-1]; last != "a.test is back after 5s" {
			t.Errorf("%s: said %q", c.name, last)
		}
	}
}

// A request waits for the host to which it goes next, and not for the one that it came from.
func TestGoesToTheHostOfItsHop(t *testing.T) {
	first, _ := url.Parse("http://a.test/x")
	j := &job{r: &format.Request{URL: first}, hop: sending.FirstHop(&format.Request{URL: first})}
	if got := goesTo(&pool.Request{Value: j}); got != "http://a.test" {
		t.Errorf("at first to %s", got)
	}
	j.hop.Host = "http://b.test"
	if got := goesTo(&pool.Request{Value: j}); got != "http://b.test" {
		t.Errorf("after a redirect to %s", got)
	}
}

// A failure at a host that only a redirect led to counts as an attempt. The run does not wait for a
// host that a server invented. Before, this run had no end.
func TestRedirectToNowhere(t *testing.T) {
	const nowhere = "http://127.0.0.1:1/"
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/ok" {
			http.Redirect(w, q, nowhere, http.StatusFound)
		}
	})
	b := newBench(t)
	b.config.Redirects, b.config.Attempts, b.config.MaxOutage = 2, 2, -1
	lines := requests(30, srv.URL+"/goto") // enough for an outage
	got := b.run(append(lines, request("ok", srv.URL+"/ok"))...)
	if got.err != nil || got.Dead != 30 || got.Done != 1 || strings.Contains(got.notices, "nothing arrives") {
		t.Errorf("%+v, %v: %s", got.Totals, got.err, got.notices)
	}
	if d := got.dead["r7"]; d.Class != "redirect" || d.Attempts != 2 || d.Error != "redirected to 127.0.0.1:1: connect: connection refused" {
		t.Errorf("%+v", d)
	}
	// The run waits for a host of the input, whatever led there.
	b = newBench(t)
	b.config.Redirects, b.config.Attempts, b.config.MaxOutage = 2, 2, -1
	if got = b.run(append([]string{request("there", nowhere)}, lines...)...); !errors.Is(got.err, ErrOutage) || got.Dead != 0 {
		t.Errorf("%+v, %v", got.Totals, got.err)
	}
}

// A host that has answered may have an outage: one request at a time probes it, and pays for it.
func TestWhereARedirectFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		known  known
		foul   limit.Link
		result limit.Link
		class  format.DeadClass
	}{
		{"of the input", named, limit.NoName, limit.NoName, format.DeadOutage},
		{"no name", 0, limit.NoName, limit.Working, format.DeadRedirected},
		{"no answer", 0, limit.Silent, limit.Working, format.DeadRedirected},
		{"it has answered", answered, limit.Unreachable, limit.Broken, format.DeadRedirected},
		{"no files", 0, limit.NoFiles, limit.NoFiles, format.DeadOutage},
	} {
		r, err := New(Config{Redirects: 1})
		if err != nil {
			t.Fatal(err)
		}
		at := &url.URL{Scheme: "http", Host: "a.test", Path: "/"}
		r.hosts.note("http://a.test", c.known)
		j := &job{r: &format.Request{URL: at}, hop: sending.Hop{URL: at, Host: "http://a.test", Count: 1, Foreign: true}, res: sending.Response{Err: errors.New("no"), Sight: c.foul, Written: c.foul == limit.Silent}}
		ans, final := r.judge.of(j)
		if got := classOf(j, &ans); final || ans.Link != c.result || got != c.class {
			t.Errorf("%s: %+v, %v", c.name, ans, got)
		}
	}
}

func TestWhyInWords(t *testing.T) {
	for want, h := range map[string]pool.HostInfo{
		"connection refused":                                               {Kind: limit.Unreachable, Reason: "dial tcp 127.0.0.1:9: connect: connection refused"},
		"its name cannot be resolved: no such host":                        {Kind: limit.NoName, Reason: "dial tcp: lookup a.test: no such host"},
		"the TLS handshake fails: certificate signed by unknown authority": {Kind: limit.BadCertificate, Reason: "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"this machine has no files left: too many open files":              {Kind: limit.NoFiles, Reason: "dial tcp 127.0.0.1:9: socket: too many open files"},
		"answered 500 Internal Server Error":                               {Kind: limit.Broken, Reason: "answered 500 Internal Server Error"},
		"no answer within 30s":                                             {Kind: limit.Silent, Reason: "no answer: no answer within 30s"},
		"":                                                                 {},
	} {
		if got := inWords(&h); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The next probe is that of the host that is tried first. A probe that is on its way counts only if all are.
func TestNextProbe(t *testing.T) {
	waits := func(host string, next mono.Time) pool.HostInfo { return pool.HostInfo{Host: host, Next: next} }
	under := func(host string, next mono.Time) pool.HostInfo {
		return pool.HostInfo{Host: host, Next: next, Probing: true}
	}
	for _, c := range []struct {
		down []pool.HostInfo
		at   mono.Time
		text string
	}{
		{[]pool.HostInfo{waits("a", 5)}, 5, "the next request that goes to see"},
		{[]pool.HostInfo{waits("a", 5), waits("b", 3), waits("c", 4)}, 3, "the next request that goes to see"},
		{[]pool.HostInfo{under("a", 1), waits("b", 3)}, 3, "the next request that goes to see"},
		{[]pool.HostInfo{waits("b", 3), under("a", 1)}, 3, "the next request that goes to see"},
		{[]pool.HostInfo{under("http://a", 7)}, 7, "the answer of a"},
	} {
		if at, text := probe(c.down); at != c.at || text != c.text {
			t.Errorf("%v: %v, %q, want %v, %q", c.down, at, text, c.at, c.text)
		}
	}
}

// A server that answers with errors alone is told as such: its requests arrive.
func TestOutageInWords(t *testing.T) {
	for _, c := range []struct {
		kind limit.Link
		why  string
		want string
	}{
		{limit.Broken, "answered 500: The server had an error.", "only errors come from: The server had an error"},
		{limit.Away, "answered 502 Bad Gateway", "only errors come from: answered 502 Bad Gateway"},
		{limit.Unreachable, "dial tcp 10.0.0.1:80: connect: connection refused", "nothing arrives at: connection refused"},
		{limit.Silent, "no answer in 30s", "nothing arrives at: no answer in 30s"},
		{limit.NoName, "dial tcp: lookup a.test: no such host", "nothing arrives at: its name cannot be resolved: no such host"},
	} {
		h := pool.HostInfo{Kind: c.kind, Reason: c.why}
		if got := outageOf(&h) + ": " + inWords(&h); got != c.want {
			t.Errorf("%v, %q: %q, want %q", c.kind, c.why, got, c.want)
		}
	}
}
