package proxy

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal/recalltest"
	"github.com/paceline-go/paceline/internal/boottime"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/ratetest/service"
)

// bubbleClock is the clock of a machine in a synctest bubble: the real one's is not that of the
// bubble.
func bubbleClock() (time.Time, boottime.Reading) {
	up := time.Since(time.Unix(0, 0))
	return time.Now(), boottime.Reading{Boot: "b", Up: up, Awake: up}
}

// ending is how a proxy ends.
type ending uint8

const (
	livesOn ending = iota
	killed
	terminated
	bereft // killed, and what it remembered is lost: its file is as before there was such a thing
)

func (e ending) String() string { return [...]string{"lives on", "killed", "terminated", "bereft"}[e] }

// asking has a client in so many goroutines ask until the end of a time, or until its connections
// break.
func asking(client *http.Client, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for ctx.Err() == nil {
				r, _ := http.NewRequestWithContext(ctx, "GET", "http://proxy.test"+recalltest.Path, nil)
				r.Header.Set("Authorization", "token one")
				if resp, err := client.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if resp.StatusCode != http.StatusOK {
						time.Sleep(time.Second)
					}
				}
			}
		})
	}
	all.Wait()
}

// restarts runs a proxy with --limit auto for the time learns, and ends it. It returns the server's
// counts for the minute before the end, and for the minute after the start of the next proxy.
func restarts(t *testing.T, of string, strangers bool, learns, gap time.Duration, how ending) (before, after recalltest.Did, says string) {
	defer time.Sleep(time.Minute) // the server ends what it was asked
	server, err := recalltest.New(of)
	if err != nil {
		t.Fatal(err)
	}
	log := &safeLog{}
	conf := to(mustURL(t, "http://server.test"))
	conf.Upstreams[0].Auto, conf.Upstreams[0].Attempts, conf.MaxWait = true, 50, 10*time.Minute
	conf.Upstreams[0].Strangers = strangers
	conf.State, conf.clock, conf.Log = filepath.Join(t.TempDir(), "proxy.state"), bubbleClock, slog.New(slog.NewTextHandler(log, nil))
	virtually(t, server, conf, func(_ *Proxy, client func() *http.Client) {
		h := client()
		asking(h, learns-time.Minute)
		server.Since()
		asking(h, time.Minute)
		synctest.Wait()
		before = server.Since()
		switch how {
		case livesOn:
			time.Sleep(gap)
			server.Since()
			asking(h, time.Minute)
			after = server.Since()
		case killed, bereft:
			conf.State = copyState(t, conf.State)
		}
	})
	if how == livesOn {
		return before, after, ""
	}
	if how == bereft {
		forget(t, conf.State)
	}
	time.Sleep(gap)
	server.Since()
	virtually(t, server, conf, func(_ *Proxy, client func() *http.Client) { asking(client(), time.Minute) })
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "limit auto") {
			says += line
		}
	}
	return before, server.Since(), says
}

// asksAll asks for so many paths at once, and returns how many were served, and after what time the last.
func asksAll(h *http.Client, n int, path string) (served int, took time.Duration) {
	began := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex
	for range n {
		all.Go(func() {
			r, _ := http.NewRequest("GET", "http://proxy.test"+path, nil)
			r.Header.Set("Authorization", "token one")
			resp, err := h.Do(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			if resp.StatusCode == http.StatusOK {
				served, took = served+1, time.Since(began)
			}
		})
	}
	all.Wait()
	return served, took
}

// Beside a preset, --limit auto takes nothing from it at the provider's own server, which states
// limits of two resources. The limit of searches does not hold for other calls.
func TestAutoBesideAPreset(t *testing.T) {
	race.Without(t) // TestAuto has these goroutines
	for _, strangers := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server, err := service.New(service.Config{Provider: "github"})
			if err != nil {
				t.Fatal(err)
			}
			conf := to(mustURL(t, "http://server.test"))
			u := &conf.Upstreams[0]
			u.Preset, u.Auto, u.Strangers, u.Attempts, conf.MaxWait = "github", true, strangers, 1, time.Hour
			virtually(t, server, conf, func(_ *Proxy, client func() *http.Client) {
				h := client()
				var both sync.WaitGroup
				both.Go(func() {
					if n, took := asksAll(h, 90, "/search/issues?q=x"); n != 90 {
						t.Errorf("%d of 90 searches were served, in %v", n, took)
					}
				})
				if n, took := asksAll(h, 600, "/user"); n != 600 || took > 2*time.Minute {
					t.Errorf("strangers %v: %d of 600 were served, in %v", strangers, n, took)
				}
				both.Wait()
			})
			if r := server.Report(); r.Limited > 0 {
				t.Errorf("%+v", r)
			}
			time.Sleep(time.Minute)
		})
	}
}

// Beside a limit, --limit auto has as many requests in flight as the limit needs, though the answers
// of a silent server take long.
func TestAutoBesideALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conf := to(mustURL(t, "http://server.test"))
		u := &conf.Upstreams[0]
		u.Auto, u.Limits, conf.MaxWait = true, []Limit{{Limit: rate.Limit{N: 600, Per: time.Minute}}}, time.Hour
		silent := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(6 * time.Second) })
		virtually(t, silent, conf, func(_ *Proxy, client func() *http.Client) {
			if n, took := asksAll(client(), 600, "/"); n != 600 || took > time.Minute {
				t.Errorf("%d of 600 were served, in %v", n, took)
			}
		})
	})
}

// forget makes of a state file one of the version before.
func forget(t *testing.T, path string) {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(b)) {
		if !strings.Contains(line, `"memory"`) {
			kept = append(kept, strings.Replace(line, `"version":6`, `"version":4`, 1))
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(kept, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The findings of --limit auto survive a restart. In the minute after it the server refuses no more
// than without a restart: none or one in a minute. It serves as much as before, except for the
// delay after a refusal. Random choices differ from run to run, so the bounds are wider. A file of
// the version before has no findings. It is read, and the search begins anew, at a silent server
// with a tenth of the rate of the minute before.
func TestAutoOverRestarts(t *testing.T) {
	race.Without(t) // TestAuto and TestStateOverRestarts have what starts something here
	need.NotShort(t, "TestStateOverRestarts has restarts, and package run keeps the same findings")
	const states = " ago: 5000 requests per 1h0m0s, as the server says"
	for i, c := range []struct {
		of   string
		how  ending
		gap  time.Duration
		says string
	}{
		{"window", livesOn, 0, ""},
		{"window", killed, 0, states},
		{"window", terminated, 3 * time.Second, states},
		{"bucket", livesOn, 0, ""},
		{"bucket", killed, 3 * time.Second, " ago: "},
		{"bucket", terminated, 0, " ago: "},
		{"silent", livesOn, 0, ""},
		{"silent", killed, 0, " ago: about "},
		{"silent", terminated, 3 * time.Second, " ago: about "},
		{"silent", bereft, 0, ""},
	} {
		if !need.Long() && (c.how == livesOn || (c.of == "bucket") != (c.how == terminated)) {
			continue // without a restart there is nothing to lose, and each ending has a server
		}
		for _, strangers := range need.Fewer([]bool{i%3 == 1}, []bool{true, false}) {
			synctest.Test(t, func(t *testing.T) {
				before, after, says := restarts(t, c.of, strangers, 4*time.Minute, c.gap, c.how)
				t.Logf("%s, strangers %v, %v, away for %v: %+v, then %+v", c.of, strangers, c.how, c.gap, before, after)
				if c.how != bereft && (after.Refused > 3 || after.Served < before.Served*4/5) {
					t.Errorf("%s, %v, away for %v: %+v in the minute before, and %+v in the minute after", c.of, c.how, c.gap, before, after)
				}
				if goesOn := strings.Contains(says, "limit auto goes on with what was found "); !strings.Contains(says, c.says) || goesOn != (c.says != "") {
					t.Errorf("%s, %v: it says %q, want %q", c.of, c.how, says, c.says)
				}
			})
		}
	}
}
