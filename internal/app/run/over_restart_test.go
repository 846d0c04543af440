package run

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/pool"
)

// clockedBench is a virtualBench that notes when each request came, since the first.
func clockedBench(t *testing.T, serve func(n int, w http.ResponseWriter)) (b *bench, url string, came func() []time.Duration) {
	var mu sync.Mutex
	var all []time.Duration
	began := time.Now()
	b, url, _ = virtualBench(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		all = append(all, time.Since(began))
		n := len(all)
		mu.Unlock()
		serve(n, w)
	})
	return b, url, func() []time.Duration { mu.Lock(); defer mu.Unlock(); return all }
}

// A request without an answer may arrive for a while after its end. The next run knows that from
// the journal, and its window begins after that while.
func TestUnansweredCountsInTheNextRun(t *testing.T) {
	const window = 20 * time.Second
	for answered, least := range map[bool]time.Duration{true: window, false: window + journal.Late} {
		synctest.Test(t, func(t *testing.T) {
			b, url, came := clockedBench(t, func(n int, _ http.ResponseWriter) {
				if n == 1 && !answered {
					panic(http.ErrAbortHandler)
				}
			})
			b.config.Limits = []format.Rate{{N: 1, Per: window, Text: "1/20s"}}
			b.config.HoldUnanswered, b.config.Append = true, true
			b.run(request("x", url))
			time.Sleep(time.Second)
			b.run(request("y", url))
			if at := came(); len(at) != 2 || at[1] < least || at[1] > least+time.Second {
				t.Errorf("answered %v: sent at %v, want the second at %v", answered, at, least)
			}
		})
	}
}

// A request that may have been served, and waits to be sent again when the run ends, is a possible
// repeat in the next run.
func TestDoubtLastsOverRestart(t *testing.T) {
	for _, c := range []struct {
		answer         func(w http.ResponseWriter)
		hold, doubtful bool
	}{
		{func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, false, true},
		{func(w http.ResponseWriter) { w.WriteHeader(500) }, false, true},
		{func(w http.ResponseWriter) { w.WriteHeader(500) }, true, true},
		{func(w http.ResponseWriter) { w.WriteHeader(429) }, false, false},
		{func(w http.ResponseWriter) { w.Header().Set("Location", "/on"); w.WriteHeader(307) }, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, url, came := clockedBench(t, func(n int, w http.ResponseWriter) {
				if n == 1 {
					c.answer(w)
				}
			})
			b.config.Backoff = pool.Backoff{Base: 20 * time.Second, Jitter: -1}
			b.config.Limits, b.config.Redirects = []format.Rate{{N: 1, Per: 20 * time.Second, Text: "1/20s"}}, 1
			b.config.Until = time.Now().Add(10 * time.Second)
			if got := b.run(request("x", url)); got.Left != 1 || len(came()) != 1 {
				t.Fatalf("the first run: %+v", got.Totals)
			}
			b.config.Until, b.config.HoldUnanswered = time.Time{}, c.hold
			got := b.run(request("x", url))
			if c.hold {
				if got.Dead != 1 || len(came()) != 1 {
					t.Errorf("it is held back: %+v, sent %d times", got.Totals, len(came()))
				}
				return
			}
			if got.Done != 1 || got.results["x"].PossibleRepeat != c.doubtful {
				t.Errorf("doubtful: %v: %+v", c.doubtful, got.results["x"])
			}
		})
	}
}

// A server's Retry-After holds for a request that it could not serve as for one that it refused, and
// holds in the next run, too.
func TestAskedWaits(t *testing.T) {
	for _, status := range []int{429, 500, 502, 503, 504, 529} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(status, " ", restart), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, url, came := clockedBench(t, func(n int, w http.ResponseWriter) {
						if n == 1 {
							w.Header().Set("Retry-After", "30")
							w.WriteHeader(status)
						}
					})
					if restart {
						b.config.Until = time.Now().Add(10 * time.Second)
						b.run(request("x", url))
						b.config.Until = time.Time{}
					}
					b.run(request("x", url))
					if at := came(); len(at) != 2 || at[1] < 30*time.Second || at[1] > 32*time.Second {
						t.Errorf("sent at %v, want 0s and 30s", at)
					}
				})
			})
		}
	}
}

// What another run of the same user sent a moment ago counts, if it had the same key and the same server, whichever files
// it had. A store counts for itself, and so does a run without a limit. A run that is still there is named.
func TestRecent(t *testing.T) {
	const window = 20 * time.Second
	bearer := func(url, key string) string {
		return fmt.Sprintf(`{"id":"x","url":%q,"headers":{"Authorization":"Bearer %s"}}`, url, key)
	}
	keys := func(secret string) func(b *bench) {
		return func(b *bench) { b.config.Keys = []format.Key{{Name: "mine", Secret: secret}} }
	}
	for name, c := range map[string]struct {
		first, second func(b *bench)
		url           func(url string) string // of the second
		key           string                  // of its request
		counts        bool
	}{
		"the same key":        {key: "k", counts: true},
		"another key":         {key: "other", counts: true}, // a run without keys may know the key of no request
		"another server":      {key: "k", url: func(url string) string { return strings.Replace(url, "http://", "http://other.", 1) }},
		"no folder":           {key: "k", second: func(b *bench) { b.config.Recent = "" }},
		"the first had none":  {key: "k", first: func(b *bench) { b.config.Recent = "" }},
		"the first unlimited": {key: "k", first: func(b *bench) { b.config.Limits = nil }},
		"no limit":            {key: "k", second: func(b *bench) { b.config.Limits = nil }},
		"keys of the runs":    {first: keys("s"), second: keys("s"), counts: true},
		"other keys":          {first: keys("s"), second: keys("t")},
		"requests of no key":  {first: func(*bench) {}, second: func(*bench) {}, counts: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, url, came := clockedBench(t, func(int, http.ResponseWriter) {})
			b.config.Limits, b.config.Recent = []format.Rate{{N: 1, Per: window, Text: "1/20s"}}, t.TempDir()
			before := b.config
			line := func(url, key string) string {
				if key == "" {
					return request("x", url)
				}
				return bearer(url, key)
			}
			if c.first != nil {
				c.first(b)
			}
			key := "k"
			if c.key == "" {
				key = ""
			}
			b.run(line(url, key))
			time.Sleep(time.Second)
			b.config = before
			b.config.Out = filepath.Join(t.TempDir(), "out.jsonl")
			if c.second != nil {
				c.second(b)
			}
			if c.url != nil {
				url = c.url(url)
			}
			got := b.run(line(url, c.key))
			at := came()
			if len(at) != 2 || (at[1] >= window) != c.counts || at[1] > window+time.Second {
				t.Errorf("%s: sent at %v; %v %s", name, at, got.err, got.notices)
			}
			if told := strings.Contains(got.notices, "what other programs sent with the same keys still counts"); told != c.counts {
				t.Errorf("%s: it is told: %t\n%s", name, told, got.notices)
			}
		})
	}
}
