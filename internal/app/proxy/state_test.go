package proxy

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

func open(t *testing.T, path string) *state {
	t.Helper()
	s, err := openState(path, time.Minute, time.Minute, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// Sent requests are known after a kill of the process. An answered one counts by its instant, an
// unanswered one as a request that may still arrive.
func TestStateOverRestarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxy.state")
	first := open(t, path)
	l := ledger{first, "api"}
	p := transport.Partition{Host: "server", Key: "A", Model: "gpt-4o&=%", Route: "POST /v1/chat", Client: "nightly job"}
	zero := time.Now()
	if all, since := l.Earlier(scope(p, provider.Key), zero); len(all) != 0 || since != mono.Min {
		t.Fatalf("%v since %v before anything was sent", all, since)
	}
	cost := limit.Cost{limit.Requests: 1, limit.Input: 100, limit.Tokens: 120, limit.Weight: 5, limit.Money: 70_000}
	answered, err := l.Send(p, cost)
	if err != nil {
		t.Fatal(err)
	}
	used := limit.Cost{limit.Requests: 1, limit.Input: 90, limit.Tokens: 95, limit.Weight: 5, limit.Money: 60_000}
	l.Settle(answered, cost, limit.Outcome{Result: limit.Accepted, Metered: true, Actual: used})
	unsent, _ := l.Send(p, cost)
	l.Settle(unsent, cost, limit.Outcome{Result: limit.Unsent})
	if _, err := l.Send(p, cost); err != nil {
		t.Fatal(err)
	}
	if _, err := (ledger{first, "another"}).Send(p, limit.One); err != nil {
		t.Fatal(err)
	}
	// It is killed: nothing is closed, and the next one finds the file as it is.
	copied := copyState(t, path)
	second := ledger{open(t, copied), "api"}
	zero = time.Now()
	for _, s := range []provider.Scope{provider.IP, provider.Key, provider.Model, provider.Route, transport.ScopeClient} {
		all, since := second.Earlier(scope(p, s), zero)
		if s == transport.ScopeClient { // what it sent to another upstream is its own as well
			if len(all) != 3 || all[2].Cost != limit.One {
				t.Fatalf("%v: %+v", s, all)
			}
			all = all[:2]
		}
		if len(all) != 2 || since > mono.Time(-time.Minute+5*time.Second) {
			t.Fatalf("%v: %+v since %v", s, all, since)
		}
		if a := all[0]; a.At > 0 || a.At < mono.Time(-10*time.Second) || a.Cost != used || a.Result != limit.Accepted {
			t.Errorf("%v: the answered one: %+v", s, a)
		}
		if a := all[1]; a.At < mono.Time(3*time.Second) || a.At > mono.Time(6*time.Second) || a.Cost != cost || a.Result != limit.Unknown {
			t.Errorf("%v: the one under way: %+v", s, a)
		}
	}
	other := p
	other.Key, other.Client = "B", "another"
	for _, s := range []provider.Scope{provider.Key, transport.ScopeClient} {
		if all, _ := second.Earlier(scope(other, s), zero); len(all) != 0 {
			t.Errorf("%v: %+v is another's", s, all)
		}
	}
}

// copyState copies a state and its salt, as a process that is killed leaves them: the file itself
// is locked by the one that lives.
func copyState(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy.state")
	for _, suffix := range []string{"", ".salt"} {
		text, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+suffix, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// Where the file is gone, and its salt shows that there was one, nothing goes for a window and the
// time in which a request may still arrive. The first of all files holds nothing up, nor does a file
// of a run that sent nothing.
func TestStateThatIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxy.state")
	rolling, err := rate.ParseLimit("20/s")
	if err != nil {
		t.Fatal(err)
	}
	bucket := rolling
	bucket.Bucket = true
	p := transport.Partition{Scope: provider.Key, Host: "server", Key: "A"}
	waits := func(s *state, l rate.Limit) time.Duration {
		u := &Upstream{Limits: []Limit{{Limit: l, Scope: provider.Key}}}
		g := &governed{}
		g.now.Store(u)
		zero := time.Now()
		all, since := limitedLedger{ledger{s, "api"}, g}.Earlier(p, zero)
		own := u.of(p).limiter()
		limit.Replay(own, 0, since, all)
		return own.Ready(0, limit.Cost{limit.Requests: 20}).Sub(0)
	}
	first := open(t, path)
	for _, l := range []rate.Limit{rolling, bucket} {
		if d := waits(first, l); d > 0 {
			t.Errorf("%+v: the first file of all: waits %v", l, d)
		}
		if d := waits(open(t, copyState(t, path)), l); d > 0 {
			t.Errorf("%+v: nothing was sent before: waits %v", l, d)
		}
	}
	for _, l := range []rate.Limit{rolling, bucket} {
		copied := copyState(t, path)
		if err := os.Remove(copied); err != nil {
			t.Fatal(err)
		}
		s := open(t, copied)
		if d := waits(s, l); d < journal.Late+time.Second-100*time.Millisecond || d > journal.Late+time.Second+10*time.Millisecond { // a limiter has a margin
			t.Errorf("%+v: waits %v, want %v and a window", l, d, journal.Late)
		}
		s.began = s.began.Add(-s.keep - time.Minute)
		if d := waits(s, l); d > 0 {
			t.Errorf("%+v: later it waits %v", l, d)
		}
	}
}

// A file of longer windows is kept for as long by a process of short ones, which may get long ones.
func TestStateKeepsAsBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxy.state")
	s, err := openState(path, 24*time.Hour, time.Minute, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.close()
	if s = open(t, path); s.keep != 24*time.Hour {
		t.Errorf("it keeps what was sent for %v", s.keep)
	}
}

// scope is the part of p that a scope has.
func scope(p transport.Partition, s provider.Scope) transport.Partition {
	q := transport.Partition{Scope: s, Host: p.Host, Key: p.Key}
	switch s {
	case provider.IP:
		q.Key = ""
	case provider.Model:
		q.Model = p.Model
	case provider.Route:
		q.Route = p.Route
	case transport.ScopeClient:
		q = transport.Partition{Scope: s, Client: p.Client}
	}
	return q
}

// A credential has the same name after a restart, another has another, and neither is in the file.
func TestStateNamesCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "proxy.state")
	const secret = "sk-very-secret-0123456789"
	ask := func(s *state, key string) transport.Partition {
		r, _ := http.NewRequest("POST", "https://server/v1/chat", nil)
		r.Header.Set("Authorization", "Bearer "+key)
		return s.partition(r)
	}
	first := open(t, path)
	a, b := ask(first, secret), ask(first, "sk-another")
	if _, err := (ledger{first, "api"}).Send(a, limit.One); err != nil {
		t.Fatal(err)
	}
	copied := copyState(t, path)
	if again := ask(open(t, copied), secret); again != a || a.Key == b.Key || a.Key == "" {
		t.Errorf("%v, %v, %v", a, again, b)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), secret) {
		t.Errorf("the file tells the key: %v", err)
	}
	if elsewhere := ask(open(t, filepath.Join(t.TempDir(), "other.state")), secret); elsewhere.Key == a.Key {
		t.Error("two files have one name for a key: it can be looked up")
	}
}

// Every place can be read back, also in the older form.
func TestPlaces(t *testing.T) {
	if err := quick.Check(func(upstream, host, key, model, route, client string) bool {
		p := place{Owner: upstream, Partition: transport.Partition{Host: host, Key: key, Model: model, Route: route, Client: client, Resource: model}}
		back, err := journal.ParsePlace(p.String())
		old, err2 := journal.ParsePlace(strings.ReplaceAll(p.String(), "|", "&"))
		return err == nil && back == p && err2 == nil && old == p
	}, nil); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "key", "a&b&c&d&e", "a&b&c&d&e&%zz", "a|b|c|d|e", "a|b|c|d|e|f|g|h|i", "a|b|c|d|e|%zz"} {
		if _, err := journal.ParsePlace(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// A file that is another program's is named, and left as it is.
func TestStateOfSomethingElse(t *testing.T) {
	for name, text := range map[string]string{"text": "hello\n", "salt": ""} {
		path := filepath.Join(t.TempDir(), "file")
		broken := path
		if name == "salt" {
			broken += ".salt"
		}
		if err := os.WriteFile(broken, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openState(path, time.Minute, time.Minute, nil, slog.Default(), nil); err == nil || !strings.Contains(err.Error(), broken) {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(broken); err != nil || string(now) != text {
			t.Errorf("%s: %q, %v", name, now, err)
		}
	}
}

// If attempts of one upstream may take any time, the longest time of an attempt is not known,
// whatever the other upstreams have.
func TestSlowest(t *testing.T) {
	of := func(all ...time.Duration) *Config {
		c := &Config{}
		for _, d := range all {
			c.Upstreams = append(c.Upstreams, Upstream{AnswerTimeout: d})
		}
		return c
	}
	if d := of(time.Second, time.Minute).slowest(); d != time.Minute {
		t.Error(d)
	}
	for _, c := range []*Config{of(-1), of(-1, time.Second), of(time.Second, -1)} {
		if d := c.slowest(); d != 0 {
			t.Error(d)
		}
	}
}

// A state file keeps what may count. For a Live configuration that is an hour: a later one may have longer windows.
func TestKeptForLongerWindows(t *testing.T) {
	for _, c := range []struct {
		limit       string
		live        bool
		least, most time.Duration
	}{
		{"10/s", false, time.Minute, 2 * time.Minute},
		{"10/s", true, time.Hour, 2 * time.Hour},
		{"100/3h", false, 3 * time.Hour, 8 * time.Hour},
		{"100/3h", true, 3 * time.Hour, 8 * time.Hour},
	} {
		conf := Config{Live: c.live, Upstreams: []Upstream{{Limits: limitsOf(c.limit)}, {Limits: limitsOf("1/s")}}}
		if d := conf.kept(); d < c.least || d > c.most {
			t.Errorf("%s, live %v: kept for %v, want %v to %v", c.limit, c.live, d, c.least, c.most)
		}
	}
}
