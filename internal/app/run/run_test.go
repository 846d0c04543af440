package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

func TestRun(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) }) // after the server's
	var unavailable, limited atomic.Int32
	srv, seen := counting(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "7")
		w.Header().Set("Secret-Sauce", "x")
		switch q.URL.Path {
		case "/echo":
			body, _ := io.ReadAll(q.Body)
			fmt.Fprintf(w, "%s %s %s", q.Method, q.Header.Get("Content-Type"), body)
		case "/binary":
			_, _ = w.Write([]byte{0xff, 0})
		case "/moved":
			http.Redirect(w, q, "/echo", http.StatusFound)
		case "/missing":
			http.Error(w, "no such thing", http.StatusNotFound)
		case "/unavailable":
			if unavailable.Add(1) < 3 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		case "/limited":
			if limited.Add(1) == 1 {
				w.Header().Set("Retry-After", "0.01")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b := newBench(t)
	lines := []string{
		fmt.Sprintf(`{"id":"post","method":"POST","url":"%s/echo?post","body":{"a": 1},"priority":2,"cost":0}`, srv.URL),
		request("binary", srv.URL+"/binary?binary"), request("moved", srv.URL+"/moved?moved"),
		request("missing", srv.URL+"/missing?missing"), request("unavailable", srv.URL+"/unavailable?unavailable"),
		request("limited", srv.URL+"/limited?limited"), request("broken", srv.URL+"/broken?broken"),
		fmt.Sprintf(`{"id":"late","url":"%s/echo?late","deadline":"2020-01-01T00:00:00Z"}`, srv.URL),
		fmt.Sprintf(`{"url":"%s/echo?plain"}`, srv.URL),
	}
	got := b.run(lines...)
	if got.err != nil || got.Done != 6 || got.Dead != 2 || got.Expired != 1 || got.Rejected != 1 || got.Lost != 0 || got.Offered != 9 {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
	body := func(r format.Result) string {
		if r.Body == nil {
			return "none"
		}
		return *r.Body
	}
	plain := ""
	for id := range got.results {
		if strings.HasPrefix(id, "line-9-") {
			plain = id
		}
	}
	for _, c := range []struct {
		id, state        string
		status, attempts int
		body, err        string
	}{
		{"post", "done", 200, 1, `POST application/json {"a":1}`, ""},
		{"binary", "done", 200, 1, "none", ""},
		{"moved", "done", 302, 1, "<a href=\"/echo\">Found</a>.\n\n", ""},
		{"unavailable", "done", 200, 3, "", ""},
		{"limited", "done", 200, 2, "", ""},
		{plain, "done", 200, 1, "GET  ", ""},
		{"late", "expired", 0, 0, "none", "the deadline passed before it could be sent"},
	} {
		r := got.results[c.id]
		if r.State != c.state || r.Status != c.status || r.Attempts != c.attempts || body(r) != c.body || r.Error != c.err || r.PossibleRepeat != (c.id == "unavailable") || r.At == "" {
			t.Errorf("%s: %s", c.id, r.Append(nil))
		}
	}
	if r := got.results["binary"]; !bytes.Equal(r.BodyBase64, []byte{0xff, 0}) || r.Headers["x-ratelimit-remaining"] != "7" || r.Headers["secret-sauce"] != "" || r.Key != "default" || r.LatencyMS <= 0 {
		t.Errorf("%s", r.Append(nil))
	}
	for _, c := range []struct {
		id, err  string
		attempts int
	}{
		{"missing", "answered 404 Not Found", 1}, {"broken", "answered 500 Internal Server Error", 5},
	} {
		r := got.dead[c.id]
		if r.State != "dead" || r.Attempts != c.attempts || r.Error != c.err || string(r.Request) != request(c.id, srv.URL+"/"+c.id+"?"+c.id) {
			t.Errorf("%s: %s", c.id, r.Append(nil))
		}
	}
	if !strings.Contains(got.log, "msg=answer id=post attempt=1 key=default result=accepted") || !strings.Contains(got.log, "msg=expired id=late") {
		t.Errorf("log:\n%s", got.log)
	}

	// Again: everything has ended, the dead are left alone.
	again := b.run(lines...)
	if again.err != nil || again.SkippedDone != 6 || again.SkippedExpired != 1 || again.SkippedDead != 2 || again.Offered != 0 || again.Sends != 0 || again.Lost != 0 {
		t.Fatalf("%+v, %v", again.Totals, again.err)
	}
	// Again, the dead as well; one of them is done now and stays done.
	unavailable.Store(9)
	lines[3] = request("missing", srv.URL+"/echo?missing")
	b.config.RetryDead = format.AllDead
	again = b.run(lines...)
	if again.err != nil || again.SkippedDone != 6 || again.SkippedExpired != 1 || again.Done != 1 || again.Dead != 1 || again.Lost != 0 || again.results["missing"].State != "done" {
		t.Fatalf("%+v, %v", again.Totals, again.err)
	}
	again = b.run(lines...)
	if again.SkippedDone != 7 || again.SkippedExpired != 1 || again.Dead != 1 {
		t.Fatalf("%+v, %v", again.Totals, again.err)
	}
	if seen("missing") != 2 || seen("broken") != 15 || seen("post") != 1 {
		t.Errorf("the server saw missing %d, broken %d, post %d times", seen("missing"), seen("broken"), seen("post"))
	}
	// Another input on the same line is another request.
	lines[8] = fmt.Sprintf(`{"url":"%s/echo?other"}`, srv.URL)
	b.config.RetryDead = 0
	if again = b.run(lines...); again.Done != 1 || seen("other") != 1 {
		t.Errorf("an edited line without id: %+v", again.Totals)
	}
}

// Each hop of a redirect is admitted like another request: the limit holds for what the server
// sees.
func TestRedirectsAreAdmitted(t *testing.T) {
	var mu sync.Mutex
	var arrivals []time.Time
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		arrivals = append(arrivals, time.Now())
		mu.Unlock()
		if n, _ := strconv.Atoi(q.URL.Query().Get("n")); n > 0 {
			http.Redirect(w, q, fmt.Sprintf("/?n=%d", n-1), http.StatusSeeOther)
		}
	})
	b := newBench(t)
	b.config.Limits = []format.Rate{{N: 2, Per: 60 * time.Millisecond, Text: "2/60ms"}}
	b.config.Redirects = 3
	got := b.run(request("a", srv.URL+"/?n=3"), request("b", srv.URL+"/?n=4"), request("c", srv.URL+"/?n=1"))
	if got.err != nil || got.Done != 3 || got.Sends != 10 || got.Rejected != 0 {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
	if a, b := got.results["a"], got.results["b"]; a.Status != 200 || a.Attempts != 1 || a.Location != srv.URL+"/?n=0" || b.Status != 303 {
		t.Errorf("%s%s", a.Append(nil), b.Append(nil))
	}
	for i := 2; i < len(arrivals); i++ {
		if d := arrivals[i].Sub(arrivals[i-2]); d <= 60*time.Millisecond {
			t.Errorf("arrivals %d and %d are %v apart: three in a window of two", i-2, i, d)
		}
	}
}

// A request that costs nothing passes a limit that is used up.
func TestCostOfNothing(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	b.config.Limits = []format.Rate{{N: 1, Per: time.Hour, Text: "1/h"}}
	got := b.run(request("a", srv.URL), fmt.Sprintf(`{"id":"b","url":%q,"cost":0,"deadline":"5s"}`, srv.URL), fmt.Sprintf(`{"id":"c","url":%q,"cost":0,"deadline":"5s"}`, srv.URL))
	if got.err != nil || got.Done != 3 {
		t.Errorf("%+v, %v", got.Totals, got.err)
	}
}

// A banned key stops, and the work goes on with the others; when all are banned nothing is lost.
func TestBannedKeys(t *testing.T) {
	var banned atomic.Value
	banned.Store("secret-a")
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		if strings.Contains(banned.Load().(string), q.Header.Get("Key")) {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	b := newBench(t)
	b.config.Keys = []format.Key{{Name: "A", Secret: "secret-a"}, {Name: "B", Secret: "secret-b"}}
	b.config.BanStatus = []int{401}
	b.config.Header, _ = format.ParseHeaders([]string{"Key: {key}"})
	got := b.run(requests(20, srv.URL)...)
	if got.err != nil || got.Done != 20 || got.Dead != 0 || !strings.Contains(got.notices, "key A is denied: answered 401 Unauthorized") || strings.Count(got.notices, "A is denied") != 1 || !slices.Equal(got.OutOfUse, []string{"A"}) {
		t.Fatalf("%+v, %v, %s", got.Totals, got.err, got.notices)
	}
	for id, r := range got.results {
		if r.Key != "B" || r.Attempts != 1 {
			t.Errorf("%s: %s", id, r.Append(nil))
		}
	}
	banned.Store("secret-a secret-b")
	got = b.run(requests(40, srv.URL)...)
	if !errors.Is(got.err, pool.ErrExhausted) || got.SkippedDone != 20 || got.Left != 20 || got.Lost != 0 {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
	banned.Store("")
	if got = b.run(requests(40, srv.URL)...); got.err != nil || got.Done != 20 || got.Repeats != 0 {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
}

// A server refuses requests that keep to its limit, if the promised latency is right. That is
// reported once.
func TestRetreatIsSaid(t *testing.T) {
	var n atomic.Int64
	srv, _ := counting(t, func(w http.ResponseWriter, _ *http.Request) {
		if n.Add(1)%4 == 0 {
			w.Header().Set("Retry-After", "0.01")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	b := newBench(t)
	b.config.Limits = []format.Rate{{N: 1000, Per: time.Second, Text: "1000/s"}}
	b.config.Arrivals = limit.Arrivals{OneWayMax: 50 * time.Millisecond}
	got := b.run(requests(20, srv.URL)...)
	if got.err != nil || got.Done != 20 || strings.Count(got.notices, "--latency-max 50ms is too short: requests were refused") != 1 {
		t.Fatalf("%+v, %v, %s", got.Totals, got.err, got.notices)
	}
}

// The value of a key is shown nowhere, even if the server repeats it or a connection fails.
func TestSecretsStaySecret(t *testing.T) {
	const value = "s3cr/et+v4lueX9"
	var served sync.WaitGroup
	served.Add(2)
	srv, _ := counting(t, func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("X-RateLimit-Key", q.Header.Get("Key"))
		if q.URL.Path == "/bad" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprintf(w, "no such key: %s, in %s", q.Header.Get("Key"), q.URL)
		served.Done()
	})
	b := newBench(t)
	b.config.Keys = []format.Key{{Name: "A", Secret: value}}
	b.config.Header, _ = format.ParseHeaders([]string{"Key: {key}"})
	b.config.Query, _ = format.ParseQuery([]string{"k={key}"})
	b.config.Attempts = 1
	b.config.Redirects = 1
	b.config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "no-such-host.invalid:") { // a name server may take longer than an attempt
			served.Wait()
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: "no-such-host.invalid", IsNotFound: true}}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	for _, h := range []string{srv.URL, "http://127.0.0.1:1", "http://no-such-host.invalid"} {
		p, err := secret.ParsePlace(h)
		if err != nil {
			t.Fatal(err)
		}
		b.config.KeyHosts = append(b.config.KeyHosts, p)
	}
	got := b.run(request("ok", srv.URL), request("bad", srv.URL+"/bad"), request("gone", "http://127.0.0.1:1/"), request("nowhere", "http://no-such-host.invalid/"))
	if got.Done != 1 || got.Dead != 1 || got.Left != 2 || !errors.Is(got.err, ErrHost) {
		t.Fatalf("%+v, %v", got.Totals, got.err)
	}
	if body := *got.results["ok"].Body; body != "no such key: [A], in /?k=[A]" {
		t.Errorf("body %q", body)
	}
	var all strings.Builder
	all.WriteString(got.notices + got.log + fmt.Sprint(got.err))
	for _, path := range []string{b.config.Out, output.DeadBeside(b.config.Out), b.config.Out + ".journal"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(string(text))
	}
	for _, form := range []string{value, "s3cr%2Fet", "s3cr"} {
		if i := strings.Index(all.String(), form); i >= 0 {
			t.Errorf("the key's value is shown: %s", all.String()[max(0, i-100):i+50])
		}
	}
}

// Nonces rise over runs, even if the clock is behind what the journal says.
func TestNoncesRise(t *testing.T) {
	var mu sync.Mutex
	var nonces []uint64
	srv, _ := counting(t, func(_ http.ResponseWriter, q *http.Request) {
		n, _ := strconv.ParseUint(q.URL.Query().Get("nonce"), 10, 64)
		mu.Lock()
		nonces = append(nonces, n)
		mu.Unlock()
	})
	b := newBench(t)
	b.config.Query, _ = format.ParseQuery([]string{"nonce={nonce}"})
	journal := fmt.Sprintf("{\"key\":\"default\",\"nonce\":%d}\n", time.Now().Add(time.Hour).UnixMilli())
	if err := os.WriteFile(b.config.Out+".journal", []byte(journal), 0o644); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		b.run(requests(5*(n+1), srv.URL)...)
	}
	if len(nonces) != 15 || !slices.IsSorted(nonces) || len(slices.Compact(slices.Clone(nonces))) != 15 || nonces[0] <= uint64(time.Now().UnixMilli()) {
		t.Errorf("nonces %v", nonces)
	}
}

func TestWhy(t *testing.T) {
	release := make(chan struct{})
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) { <-release })
	b := newBench(t)
	b.config.Limits = []format.Rate{{N: 2, Per: time.Hour, Text: "2/h"}, {N: 1000, Per: time.Second, Text: "1000/s"}}
	b.config.Concurrency = crowd // with more, the first answer would be waited for
	b.drain = func(r *Run) {
		wait := func(done int, want string) Progress {
			for range 2000 {
				if p := r.Progress(); p.Done == done && strings.HasPrefix(p.Why, want) {
					return p
				}
				time.Sleep(time.Millisecond)
			}
			t.Errorf("waiting for %q, want %q", r.Progress().Why, want)
			return r.Progress()
		}
		wait(0, "limit 2/h, until an answer comes")
		close(release)
		if p := wait(2, "limit 2/h"); p.WaitLeft <= 3590*time.Second || p.WaitLeft > time.Hour+time.Minute || p.Total != 3 || p.ETA <= 3590*time.Second || p.ETA > time.Hour+time.Minute || p.Percent != 100 {
			t.Errorf("%+v", p)
		}
		r.Drain()
	}
	if got := b.run(requests(3, srv.URL)...); got.Done != 2 || got.Left != 1 {
		t.Errorf("%+v", got.Totals)
	}
}
