package proxy

import (
	"net/http"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// noting is a proxy that has a note for other programs.
func noting(t *testing.T, state string) (p *Proxy, notes func() int) {
	t.Helper()
	l, err := rate.ParseLimit("10/s")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	p, err = New(Config{State: state, Beside: Beside{Folder: folder, Door: "proxy"}, Upstreams: []Upstream{{
		Name: "u", To: &url.URL{Scheme: "https", Host: "api.test"}, Limits: []Limit{{Limit: l}}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, func() int {
		all, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
}

// At a takeover the next process has a note of the same file. With that of the former one, too, a run would count
// twice what was sent.
func TestNoteAtATakeover(t *testing.T) {
	p, notes := noting(t, filepath.Join(t.TempDir(), "state"))
	if n := notes(); n != 1 {
		t.Errorf("%d notes of a proxy", n)
	}
	if err := p.state.suspend(); err != nil {
		t.Fatal(err)
	}
	p.state.handOver(func(int64, limit.Outcome) error { return nil })
	p.Close()
	if n := notes(); n != 0 {
		t.Errorf("%d notes after another process took over, want none", n)
	}
}

// A file that nobody asked for may fail, and requests go on. A state file may not.
func TestNoteThatCannotBeWritten(t *testing.T) {
	for state, fails := range map[string]bool{"": false, filepath.Join(t.TempDir(), "state"): true} {
		p, _ := noting(t, state)
		if err := p.state.journal.Suspend(); err != nil { // from here on each record fails
			t.Fatal(err)
		}
		n, err := (ledger{p.state, "u"}).Send(transport.Partition{Host: "api.test"}, limit.One)
		if (err != nil) != fails || !fails && n == 0 {
			t.Errorf("with the state %q: entry %d, %v", state, n, err)
		}
		if err := p.state.journal.Resume(); err != nil {
			t.Error(err)
		}
	}
}

// A limit that is there counts what others sent within its window with its key to its server, and no more than it
// lets go at once.
func TestLately(t *testing.T) {
	p, _ := noting(t, "")
	b, now := p.state.beside, time.Now()
	b.meetsNew("k", "Bearer secret")
	key := []string{journal.DigestOf("secret")}
	sent := func(n int, ago time.Duration, keys []string, servers ...string) (all []earlier) {
		for range n {
			e := earlier{keys: keys, servers: servers}
			e.Counts, e.Cost = now.Add(-ago), limit.One
			all = append(all, e)
		}
		return all
	}
	all := append(sent(4, time.Second/2, key, "https://api.test"), sent(30, 30*time.Second, key, "https://api.test")...)
	all = append(all, sent(100, 0, key, "https://other.test")...)
	all = append(all, sent(7, 0, []string{"another"}, "https://api.test")...)
	at := transport.Partition{Scope: provider.Key, Host: "api.test", Key: "k"}
	for _, c := range []struct {
		p    transport.Partition
		most int64
		per  time.Duration
		want int64
	}{
		{at, 10, time.Second, 4}, {at, 3, time.Second, 3}, {at, 100, time.Minute, 34}, {at, 20, time.Minute, 20},
		{transport.Partition{Scope: provider.IP, Host: "api.test"}, 100, time.Second, 11},
		{transport.Partition{Scope: transport.ScopeClient, Client: "c"}, 100, time.Second, 0},
	} {
		if got := b.lately("u", all, c.p, limit.MustRolling(c.most, c.per), now)[limit.Requests]; got != c.want {
			t.Errorf("%d/%v at %v: %d, want %d", c.most, c.per, c.p.Scope, got, c.want)
		}
	}
}

// What another proxy of the user sent with a client's key a moment ago counts, whether that proxy has ended or not:
// for a proxy that begins, and for one that meets the key. Nobody is warned of one that has ended, or only waits for
// programs.
func TestBesideAnother(t *testing.T) {
	for name, c := range map[string]struct {
		ends, idle bool
		key        string
		server     string // of the second
		waits      bool
		warned     bool
	}{
		"it lives":           {key: "Bearer k", server: "api.test", waits: true, warned: true},
		"it has ended":       {ends: true, key: "Bearer k", server: "api.test", waits: true},
		"it waits for some":  {idle: true, key: "Bearer k", server: "api.test", waits: true},
		"with another key":   {key: "Bearer other", server: "api.test", warned: true}, // both may send there without a key
		"to another server":  {key: "Bearer k", server: "other.test"},
		"it has ended there": {ends: true, key: "Bearer k", server: "other.test"},
	} {
		synctest.Test(t, func(t *testing.T) {
			served := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
			folder, warnings := t.TempDir(), atomic.Int64{}
			conf := func(host string) Config {
				c := to(mustURL(t, "http://"+host), "3/m")
				c.MaxWait, c.Upstreams[0].Name = time.Hour, "api"
				c.Beside = Beside{Folder: folder, Door: "proxy", Warn: func(server, _ string) {
					if server != "http://"+host {
						t.Errorf("%s: a warning of %s", name, server)
					}
					warnings.Add(1)
				}}
				return c
			}
			first := virtual(t, served, conf("api.test"))
			for range 3 {
				first.do("GET", "/x", "", "Authorization", "Bearer k")
			}
			if warnings.Load() > 0 {
				t.Errorf("%s: it warns of itself", name)
			}
			if first.proxy.SetIdle(c.idle); c.ends {
				first.stop()
			}
			time.Sleep(time.Second)
			second, began := virtual(t, served, conf(c.server)), time.Now()
			for range 3 {
				second.do("GET", "/x", "", "Authorization", c.key)
			}
			if d := time.Since(began); d > 61*time.Second || d >= 58*time.Second != c.waits {
				t.Errorf("%s: three requests take %v", name, d)
			}
			if n := warnings.Load(); (n > 0) != c.warned || n > 1 {
				t.Errorf("%s: %d warnings", name, n)
			}
		})
	}
}
