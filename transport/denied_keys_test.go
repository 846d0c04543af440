package transport_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/transport"
)

// All keys are unknown to the server, one or several. The log says so once, with the answer, and the Snapshot
// until a request is served.
func TestAllKeysAreDenied(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "c", "d"}} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			b := newKeyed()
			for _, name := range names {
				b.answers[name] = always(403, `{"error":"unknown key"}`)
			}
			tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 1000, names...),
				Logger: slog.New(slog.NewTextHandler(&log, nil))})
			ask := func() {
				if _, _, err := do(t, tr, get(t, "http://a.test/")); err != nil {
					t.Fatal(err)
				}
			}
			for n := range 20 {
				ask()
				k := tr.Snapshot().Keys[0]
				const why = `403 Forbidden: {"error":"unknown key"}`
				if denied := k.State == observe.KeyDenied; denied != (n >= 2) || denied && !strings.Contains(k.Why, why) {
					t.Fatalf("%d keys, after %d requests: %+v", len(names), n+1, k)
				}
			}
			const line = `level=WARN msg="all keys are denied" status=403 ` +
				`answer="it answers 403 Forbidden: {\"error\":\"unknown key\"}"`
			if strings.Count(log.String(), line) != 1 || strings.Count(log.String(), "level=WARN") != 1 {
				t.Errorf("%d keys: want one line\n%s\nin\n%s", len(names), line, log.String())
			}
			b.answers["a"] = nil
			for range len(names) {
				ask()
			}
			if k := tr.Snapshot().Keys[0]; k.State != observe.KeyOK {
				t.Errorf("%d keys, after one was served: %+v", len(names), k)
			}
		})
	}
}

// Requests that a key denied wait for another key, each in a lane of its own. Their waits are not logged one
// by one. A lane of two keys names the limit with its window, and says that there are two.
func TestWaitsOfDeniedRequestsAreNotAFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		b := newKeyed()
		b.answers["a"], b.answers["b"] = always(403, ""), always(403, "")
		tr := mustNew(t, transport.Config{Base: b, Keys: keys(t, 5, "a", "b"),
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		var all sync.WaitGroup
		for range 60 {
			all.Go(func() { do(t, tr, get(t, "http://a.test/")) })
		}
		all.Wait()
		if n := strings.Count(log.String(), "waiting, next in"); n == 0 || n > 4 {
			t.Errorf("%d lines about waits:\n%s", n, &log)
		}
		if want := ` rule="5 requests per `; !strings.Contains(log.String(), want) || !strings.Contains(log.String(), " ways=2") {
			t.Errorf("no %s and ways=2 in\n%s", want, &log)
		}
	})
}
