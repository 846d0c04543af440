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

// What another run of the same user sent a moment ago counts, if it had the same key and the same server, whichever
// files it had. A store counts for itself, and so does a run without a limit. A run that is still there is named.
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

// Answers that came another way are judged and written as those of a run. Only an answer that ends its request is,
// once. A run with the same files sends the others alone, at once: nothing was sent by the limits.
func TestOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, url, came := clockedBench(t, func(int, http.ResponseWriter) {})
		b.config.Limits = []format.Rate{{N: 1, Per: time.Hour, Text: "1/h"}}
		b.config.Keys = []format.Key{{Name: "A", Secret: "s3cret-Of-9a7Kq"}}
		b.config.RetryDead = 0
		o, err := b.made(b.config).Outside()
		if err != nil {
			t.Fatal(err)
		}
		answers := []struct {
			id         string
			status     int
			done, dead bool
		}{{"served", 200, true, false}, {"invalid", 400, false, true}, {"limited", 429, false, false}, {"down", 503, false, false}}
		var all []string
		for _, c := range answers {
			all = append(all, request(c.id, url))
		}
		in := format.NewReader(format.Plain{}, "in", strings.NewReader(strings.Join(all, "\n")), b.config.Input)
		for _, c := range answers {
			if err := o.Begin(); err != nil {
				t.Fatal(err)
			}
			q, err := in.Next()
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				v, err := o.Take(q, c.status, http.Header{}, []byte("body"))
				if err != nil || v != (Verdict{Done: c.done, Dead: c.dead}) || o.Has(c.id) != (c.done || c.dead) {
					t.Errorf("%s: %+v, %v; it has a result: %t", c.id, v, err, o.Has(c.id))
				}
			}
		}
		if said := o.Sanitized("key s3cret-Of-9a7Kq"); strings.Contains(said, "s3cret") {
			t.Errorf("it says %q", said)
		}
		if n, err := o.Close(); n != 0 || err != nil {
			t.Errorf("%d unselected, %v", n, err)
		}
		time.Sleep(time.Minute)
		began := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
		got := b.run(all...)
		if got.SkippedDone != 1 || got.SkippedDead != 1 || got.Done != 2 || got.lines != 3 || len(came()) != 2 || came()[0]-began > time.Second {
			t.Errorf("%v: %+v, %d lines, sent at %v", got.err, got.Totals, got.lines, came())
		}
	})
}
