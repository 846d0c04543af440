package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/service"
)

// inTime runs the package's own code against a server in virtual time.
type inTime struct {
	opened func(r *Run) // if not nil, called before the first request
	*testing.T
	config Config
	server http.Handler
	// killed, if not 0, is when the sending stops. Only the content of the files at that time is
	// left.
	killed time.Duration
}

type inTimeRan struct {
	tally.Totals
	err           error
	took          time.Duration
	results, dead map[string]format.Result
	notices       string
	progress      []Progress // a minute apart
}

// run sends lines; it must be called within a bubble.
func (v *inTime) run(lines []string) (got inTimeRan) {
	v.Helper()
	network := fakeconn.New()
	srv := &http.Server{Handler: v.server}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(network) }()
	var notices lockedBuffer
	c := v.config
	if c.Base == nil {
		c.Dial = network.Dial
	}
	c.Notice = func(s string) { fmt.Fprintln(&notices, s) }
	r, err := New(c)
	if err != nil {
		v.Fatal(err)
	}
	text := strings.Join(lines, "\n")
	if err := errors.Join(r.Check("in", strings.NewReader(text)), r.Open()); err != nil {
		v.Fatal(err)
	}
	if v.opened != nil {
		v.opened(r)
	}
	began, over2 := time.Now(), make(chan struct{})
	var watched sync.WaitGroup
	watched.Go(func() {
		for {
			select {
			case <-over2:
				return
			case <-time.After(time.Minute):
				got.progress = append(got.progress, r.Progress())
			}
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	if v.killed > 0 {
		time.AfterFunc(v.killed, func() {
			v.moveOut()
			cancel()
		})
	}
	got.err = r.Send(ctx, "in", strings.NewReader(text))
	cancel()
	got.took = time.Since(began)
	close(over2)
	watched.Wait()
	if got.Totals, err = r.Close(); err != nil {
		v.Error(err)
	}
	_ = srv.Close()
	<-served
	got.results, _ = readResults(v.T, c.Out)
	got.dead, _ = readResults(v.T, output.DeadBeside(c.Out))
	got.notices = notices.String()
	return got
}

// moveOut gives later runs the files as they are now.
func (v *inTime) moveOut() {
	v.Helper()
	from := filepath.Dir(v.config.Out)
	to := v.TempDir()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		v.Error(err)
	}
	v.config.Out = filepath.Join(to, filepath.Base(v.config.Out))
}

func newInTime(t *testing.T, server http.Handler, limits ...format.Rate) *inTime {
	return &inTime{T: t, server: server, config: Config{Out: filepath.Join(t.TempDir(), "out.jsonl"), Limits: limits, Concurrency: 16, Timeout: time.Minute, clock: bubbleClock}}
}

// oneByOne returns a handler that counts its requests.
func oneByOne(h http.HandlerFunc) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		h(w, r)
	})
}

func perSecond(n int64) format.Rate {
	return format.Rate{N: n, Per: time.Second, Text: fmt.Sprintf("%d/s", n)}
}

func (v *inTime) keys(names ...string) {
	for _, n := range names {
		v.config.Keys = append(v.config.Keys, format.Key{Name: n, Secret: n})
	}
	var err error
	if v.config.Query, err = format.ParseQuery([]string{"api_key={key}"}); err != nil {
		v.Fatal(err)
	}
}

func (v *inTime) nonces() {
	q, err := format.ParseQuery([]string{"nonce={nonce}"})
	if err != nil {
		v.Fatal(err)
	}
	v.config.Query = append(v.config.Query, q...)
}

// newWrong returns a run with a limit of 25 requests a second. Its server allows each key 20, is
// some 20 ms away, and bans after ten refusals.
func newWrong(t *testing.T, anyNonce bool, keys ...string) (*inTime, *ratetest.Exchange) {
	law := latency.Uniform(5*time.Millisecond, 15*time.Millisecond)
	x, err := ratetest.NewExchange(ratetest.Config{Keys: keys, AnyNonce: anyNonce, Before: law, After: law})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	v := newInTime(t, x, perSecond(25))
	v.keys(keys...)
	return v, x
}

// A server of 20 a second that bans after ten refusals, and --limit 25/s: before, five keys were
// banned after 45 s.
func TestWrongLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, x := newWrong(t, false, "key-1", "key-2")
		v.nonces()
		const n = 2800 // more than a minute
		got := v.run(requests(n, "http://server"+ratetest.Path))
		if got.err != nil || got.Done != n || got.Rejected == 0 || got.Rejected > 10 || got.took > n/36*time.Second {
			t.Errorf("%+v, %v in %v", got.Totals, got.err, got.took)
		}
		for _, k := range x.Report().Judge.Keys {
			if k.Banned || k.Counts.Limited > 5 {
				t.Errorf("%+v", k)
			}
		}
		if c := strings.Count(got.notices, "kept to 25/s"); c < 2 || c > 6 || !strings.Contains(got.notices, "--limit 20/s would fit") && !strings.Contains(got.notices, "--limit 19/s would fit") {
			t.Errorf("notices: %s", got.notices)
		}
		// The ETA uses the rate that fits, and not 50 a second.
		if p := got.progress[0]; p.ETA < time.Duration(p.Total-p.Done)*time.Second/41 {
			t.Errorf("ETA %v with %d left", p.ETA, p.Total-p.Done)
		}
	})
}

// A process does not learn again the lessons about a wrong limit. The server allows 20 a second and
// bans after ten refusals. Runs with --limit 25/s without nonces are killed again and again.
// Before, two runs were a ban: 6 refusals and 4.
func TestWrongLimitOverRestarts(t *testing.T) {
	refused := func(kills ...time.Duration) (n int, told string) {
		synctest.Test(t, func(t *testing.T) {
			v, x := newWrong(t, true, "key-1")
			v.config.Concurrency = 4
			lines := requests(500, "http://server"+ratetest.Path)
			for _, v.killed = range append(kills, 0) {
				got := v.run(lines)
				told += got.notices
				if v.killed == 0 && (got.err != nil || got.Left != 0 || got.Dead != 0) {
					t.Errorf("%+v, %v\n%s", got.Totals, got.err, told)
				}
			}
			k := x.Report().Judge.Keys[0]
			if n = k.Counts.Limited; k.Banned {
				t.Errorf("banned: %+v\n%s", k, told)
			}
		})
		return n, told
	}
	whole, _ := refused()
	const s = time.Second
	killed, told := refused(s/2, 3*s/2, 2*s, 2*s, 10*s)
	if killed > whole+2 { // attempts in flight at the kill may be refused, and no process learns of that
		t.Errorf("%d were refused over restarts, %d without any\n%s", killed, whole, told)
	}
	if strings.Count(told, "--limit 20/s would fit") == 0 || !strings.Contains(told, "kept to 25/s in a run before and was refused") {
		t.Errorf("%s", told)
	}
}

// Lessons about one limit do not bind another, and return with that limit. A limit is the same in
// any notation.
func TestWrongLimitIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inSecond, began := 0, time.Time{}
		v := newInTime(t, oneByOne(func(w http.ResponseWriter, _ *http.Request) {
			if time.Since(began) >= time.Second {
				inSecond, began = 0, time.Now()
			}
			if inSecond++; inSecond > 20 {
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
		lines := requests(1000, "http://server/")
		for i, c := range []struct {
			limit format.Rate
			binds bool
		}{
			{perSecond(25), false},
			{perSecond(25), true},
			{perSecond(24), false},
			{format.Rate{N: 25, Per: time.Second, Text: "25/s", Bucket: true}, false},
			{format.Rate{N: 25, Per: time.Second, Text: "25/1s"}, true},
		} {
			v.killed, v.config.Limits = 3*time.Second, []format.Rate{c.limit}
			if i == 0 {
				v.killed = 30 * time.Second
			}
			got := v.run(lines)
			if binds := strings.Contains(got.notices, " in a run before and were refused"); binds != c.binds {
				t.Errorf("%d: it binds: %v\n%s", i, binds, got.notices)
			}
		}
	})
}

// A wrong limit is reported at once, and the rate that would fit when it is known. Kraken counts in
// a bucket. Before, four rates were reported on the way down.
func TestWouldFit(t *testing.T) {
	kraken, _ := provider.Lookup("kraken")
	synctest.Test(t, func(t *testing.T) {
		s, err := service.New(service.Config{Provider: "kraken"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		v := newInTime(t, s, perSecond(20))
		v.config.Provider = kraken
		got := v.run(requests(100, "http://server/0/private/Balance"))
		figures := regexp.MustCompile(`--limit \S+ would fit`).FindAllString(got.notices, -1)
		if got.err != nil || strings.Count(got.notices, "with 20/s kept") > 3 || len(figures) > 2 || len(figures) == 0 || figures[len(figures)-1] != "--limit 1/4s would fit" {
			t.Errorf("%+v, %v: %s", got.Totals, got.err, got.notices)
		}
	})
}

// A key that answers nothing but 429, or 403, beside one that serves: no request is lost to it, and
// it is named.
func TestKeyWithoutUse(t *testing.T) {
	const perWindow = 5
	for _, status := range []int{429, 403} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			v := newInTime(t, oneByOne(func(w http.ResponseWriter, r *http.Request) {
				if r.FormValue("api_key") == "bad" {
					asked++
					w.WriteHeader(status)
				}
			}), perSecond(perWindow))
			v.keys("good", "bad")
			v.config.Attempts = 2
			const n = 600
			got := v.run(requests(n, "http://server/"))
			// The requests of one window are refused together, and once more after a second, which
			// may have been enough. From then on there is one probe after 2, 4, 8 s and so on. So
			// the number grows with the length of the run, and not with the number of requests.
			most := 2*perWindow + bits.Len(uint(got.took/time.Second))
			if got.err != nil || got.Done != n || got.Dead != 0 || asked > most {
				t.Errorf("%d: %+v, %v; it was asked %d times, want %d at most", status, got.Totals, got.err, asked, most)
			}
			if !strings.Contains(got.notices, "key bad ") || strings.Contains(got.notices, "key good") {
				t.Errorf("%d: %s", status, got.notices)
			}
		})
	}
}

// Kraken refuses with status 200: before, 45 of these were done.
func TestRefusedWith200(t *testing.T) {
	kraken, _ := provider.Lookup("kraken")
	for _, dialect := range []provider.Dialect{nil, kraken} {
		synctest.Test(t, func(t *testing.T) {
			s, err := service.New(service.Config{Provider: "kraken"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			v := newInTime(t, s, perSecond(20))
			v.config.Provider = dialect
			got := v.run(requests(60, "http://server/0/private/Balance"))
			if got.err != nil || got.Done != 60 || got.Rejected == 0 || got.Rejected > 40 || got.took > 6*time.Minute {
				t.Errorf("%+v, %v in %v", got.Totals, got.err, got.took)
			}
			for id, r := range got.results {
				if strings.Contains(*r.Body, "EAPI") {
					t.Errorf("%s is done with %s", id, *r.Body)
				}
			}
		})
	}
}

// Success judges the answers of a server that is not known.
func TestSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := map[string]int{}
		v := newInTime(t, oneByOne(func(w http.ResponseWriter, r *http.Request) {
			id := r.URL.Query().Get("id")
			times[id]++
			state := "OK"
			if n, _ := strconv.Atoi(id); n == 7 || n == 5 && times[id] < 3 {
				state = "BUSY"
			}
			fmt.Fprintf(w, `{"status":%q}`, state)
		}), perSecond(20))
		v.config.Attempts = 4
		v.config.Success = func(body []byte) error {
			var b struct{ Status string }
			if err := json.Unmarshal(body, &b); err != nil || b.Status != "OK" {
				return errors.New("which is none")
			}
			return nil
		}
		var lines []string
		for i := range 10 {
			lines = append(lines, request(fmt.Sprint("q", i), fmt.Sprint("http://server/?id=", i)))
		}
		got := v.run(lines)
		if got.err != nil || got.Done != 9 || got.Dead != 1 || times["5"] != 3 || times["7"] != 4 {
			t.Errorf("%+v, %v, %v", got.Totals, got.err, times)
		}
		if d := got.dead["q7"]; d.Class != "invalid" || !strings.Contains(d.Error, "which is none") {
			t.Errorf("%+v", d)
		}
	})
}

// Nonces that came in the wrong order cost no request: each is sent again, with a new one.
func TestBadNonces(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
	}{"in words": {400, `{"error_msg":"bad nonce: 7 is not above the last one"}`}, "by its status": {409, "no"}} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			last := map[string]uint64{}
			refused := 0
			v := newInTime(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				nonce, _ := strconv.ParseUint(r.FormValue("nonce"), 10, 64)
				time.Sleep(time.Duration(nonce*7919%23) * time.Millisecond) // on the way
				mu.Lock()
				defer mu.Unlock()
				if key := r.FormValue("api_key"); nonce <= last[key] {
					refused++
					w.WriteHeader(c.status)
					fmt.Fprint(w, c.body)
				} else {
					last[key] = nonce
				}
			}), perSecond(200))
			v.keys("A")
			v.nonces()
			v.config.Gap, v.config.Attempts = time.Millisecond, 1
			if name == "by its status" {
				v.config.NonceStatus = []int{c.status}
			}
			const n = 500
			got := v.run(requests(n, "http://server/"))
			if got.err != nil || got.Done != n || refused == 0 {
				t.Errorf("%s: %+v, %v after %d bad nonces", name, got.Totals, got.err, refused)
			}
		})
	}
}

// A key that saw larger nonces refuses those that are in order: that is said, and nothing is lost.
func TestNoncesTooSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		began := time.Now()
		v := newInTime(t, oneByOne(func(w http.ResponseWriter, r *http.Request) {
			if asked++; time.Since(began) < 20*time.Minute {
				w.WriteHeader(400)
				fmt.Fprint(w, "Invalid nonce")
			}
		}), perSecond(20))
		v.keys("A")
		v.nonces()
		v.config.Attempts = 1
		got := v.run(requests(100, "http://server/"))
		if got.err != nil || got.Done != 100 || asked > 120 || strings.Count(got.notices, "key A refuses nonces, 4 in a row now") != 1 {
			t.Errorf("%+v, %v; asked %d times; %s", got.Totals, got.err, asked, got.notices)
		}
	})
}

// The remaining quota that a server states holds for the next run, too.
func TestNothingLeftOverRestarts(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"nothing left": func(w http.ResponseWriter) {
			w.Header().Set("RateLimit-Limit", "20")
			w.Header().Set("RateLimit-Remaining", "0")
			w.Header().Set("RateLimit-Reset", "90")
		},
		"to stay away": func(w http.ResponseWriter) { w.Header().Set("Retry-After", "90"); w.WriteHeader(429) },
	} {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Duration
			began := time.Now()
			v := newInTime(t, oneByOne(func(w http.ResponseWriter, _ *http.Request) {
				if at = append(at, time.Since(began)); len(at) == 1 {
					answer(w)
				}
			}), perSecond(20))
			if name == "nothing left" {
				v.run(requests(1, "http://server/"))
			} else {
				v.config.Attempts = 1
				v.run(requests(1, "http://server/"))
				v.config.RetryDead = format.AllDead
			}
			time.Sleep(10 * time.Second)
			got := v.run(requests(3, "http://server/"))
			if got.err != nil || len(at) < 3 || at[1] < 90*time.Second || at[1] > 91*time.Second {
				t.Errorf("%s: %+v, %v; arrivals at %v", name, got.Totals, got.err, at)
			}
			if slices.Max(at) > 2*time.Minute {
				t.Errorf("%s: arrivals at %v", name, at)
			}
		})
	}
}

// The ETA counts the keys that serve and the requests that ended lately. Without any, it is not
// known.
func TestETA(t *testing.T) {
	for _, c := range []struct {
		name   string
		keys   []string
		server func(n int, key string) int
		// at is seconds a request within a minute; 0: nothing can be known.
		at float64
	}{
		{"it refuses after a while", []string{"a"}, func(n int, _ string) int {
			if n > 120 {
				return 429
			}
			return 200
		}, 0},
		{"one of two is banned", []string{"a", "b"}, func(_ int, key string) int {
			if key == "b" {
				return 401
			}
			return 200
		}, 1. / 5},
		{"one of two refuses", []string{"a", "b"}, func(_ int, key string) int {
			if key == "b" {
				return 429
			}
			return 200
		}, 1. / 5},
		{"three of four attempts fail", []string{"a"}, func(n int, _ string) int {
			if n%4 != 0 {
				return 500
			}
			return 200
		}, 4. / 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			v := newInTime(t, oneByOne(func(w http.ResponseWriter, r *http.Request) {
				n++
				w.WriteHeader(c.server(n, r.FormValue("api_key")))
			}), perSecond(5))
			v.keys(c.keys...)
			v.config.BanStatus, v.config.Attempts, v.config.Until = []int{401}, 100, time.Now().Add(90*time.Second)
			p := v.run(requests(3000, "http://server/")).progress[0]
			want := time.Duration(c.at * float64(p.Total-p.Done) * float64(time.Second))
			if p.ETA < want*9/10 || p.ETA > want*11/10 {
				t.Errorf("%s: ETA %v, want %v: %+v", c.name, p.ETA, want, p)
			}
		})
	}
}

// A host that is dead from the beginning has no ETA. A limit that lets nothing go for long is no
// standstill.
func TestETAOfWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newInTime(t, oneByOne(func(w http.ResponseWriter, _ *http.Request) {}), format.Rate{N: 100, Per: 10 * time.Minute, Text: "100/10m"})
		v.config.Until = time.Now().Add(11 * time.Minute)
		for i, p := range v.run(requests(1000, "http://server/")).progress[:9] {
			if p.ETA < 80*time.Minute || p.ETA > 91*time.Minute {
				t.Errorf("minute %d: ETA %v", i+1, p.ETA)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		v := newInTime(t, oneByOne(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }), perSecond(20))
		v.config.Attempts, v.config.Until = 100, time.Now().Add(3*time.Minute)
		for i, p := range v.run(requests(1000, "http://server/")).progress {
			if p.ETA != 0 || p.Why == "" {
				t.Errorf("minute %d: ETA %v, waiting for %q", i+1, p.ETA, p.Why)
			}
		}
	})
}
