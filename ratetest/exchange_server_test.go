package ratetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/core/ceiling"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
	"go.uber.org/goleak"
)

func newExchange(t testing.TB, c ratetest.Config) *ratetest.Exchange {
	t.Helper()
	x, err := ratetest.NewExchange(c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// send makes one request in memory.
func send(x http.Handler, query string) (int, string) {
	w := httptest.NewRecorder()
	x.ServeHTTP(w, httptest.NewRequest("GET", ratetest.Path+"?"+query, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

const form = "application/x-www-form-urlencoded"

// TestTimeline: instant, request, answer.
func TestTimeline(t *testing.T) {
	ok := func(id string) string { return `{"req_id":` + id + `,"status":"OK"}` }
	bad := func(msg string) string { return `{"error_msg":` + fmt.Sprintf("%q", msg) + `,"status":"error"}` }
	synctest.Test(t, func(t *testing.T) {
		x := newExchange(t, ratetest.Config{Limit: 2})
		base := time.Now()
		for i, s := range []struct {
			at                  time.Duration // in ms
			method, query, body string
			status              int
			answer              string
		}{
			{0, "GET", "api_key=key1&nonce=100&req_id=17", "", 200, ok("17")},
			{0, "GET", "", "api_key=key1&nonce=101&req_id=r%2F1", 200, ok(`"r/1"`)}, // a form in the body of a GET
			{1, "POST", "", "api_key=key2&nonce=5&req_id=007", 200, ok(`"007"`)},
			{1, "POST", "api_key=key9&nonce=6", "api_key=key2&nonce=6&req_id=-3", 200, ok("-3")}, // the body wins
			{1000, "GET", "api_key=key1&nonce=102", "", 429, bad("rate limit exceeded: 2 requests per 1s")},
			{1001, "GET", "api_key=key1&nonce=101", "", 400, bad("bad nonce: 101 is not above the last one")},
			{1001, "GET", "api_key=key1&nonce=102", "", 200, ok("null")}, // the bad request used the other slot
			{1001, "GET", "api_key=key1&nonce=103", "", 429, bad("rate limit exceeded: 2 requests per 1s")},
			{1001, "GET", "api_key=key6&nonce=103", "", 401, bad("unknown api_key")},
			{1001, "GET", "nonce=103", "", 400, bad("parameter api_key is missing")},
			{1001, "GET", "", "", 400, bad("parameters api_key and nonce are missing: expected them in the query, or as a form in the body")},
			{1001, "GET", "req_id=3", "", 400, bad("parameters api_key and nonce are missing: expected them in the query, or as a form in the body")},
			{1001, "GET", "api_key=key3", "", 400, bad("parameter nonce is missing")}, // uses no slot
			{1001, "GET", "api_key=key3&nonce=-1", "", 400, bad(`parameter nonce: "-1" is not a whole number`)},
			{1001, "GET", "api_key=key3&nonce=1e9", "", 400, bad(`parameter nonce: "1e9" is not a whole number`)},
			{1001, "GET", "api_key=key3&nonce=173263680012313996437203660801123&req_id=173263680012313996437203660801123", "", 200, ok("173263680012313996437203660801123")},
			{1001, "GET", "api_key=key3&nonce=1732636800123139964372036608011230", "", 200, ok("null")},
			{2002, "GET", "api_key=key3&nonce=173263680012313996437203660801124", "", 400, bad("bad nonce: 173263680012313996437203660801124 is not above the last one")},
			{2002, "PUT", "api_key=key3&nonce=1", "", 405, bad("GET or POST, not PUT")},
			{2002, "GET", "api_key=%zz", "", 400, bad(`query: invalid URL escape "%zz"`)},
			{2002, "POST", "", "api_key=%zz", 400, bad(`body: invalid URL escape "%zz"`)},
			{2002, "POST", "", strings.Repeat("x", 1<<16+1), 413, bad("body: more than 65536 bytes")},
		} {
			time.Sleep(time.Until(base.Add(s.at * time.Millisecond)))
			r := httptest.NewRequest(s.method, ratetest.Path+"?"+s.query, strings.NewReader(s.body))
			if s.body != "" {
				r.Header.Set("Content-Type", form)
			}
			w := httptest.NewRecorder()
			x.ServeHTTP(w, r)
			if got := strings.TrimSpace(w.Body.String()); w.Code != s.status || got != s.answer {
				t.Errorf("step %d: %d %s, want %d %s", i, w.Code, got, s.status, s.answer)
			}
			if kind := w.Header().Get("Content-Type"); kind != "application/json" {
				t.Errorf("step %d: Content-Type %q", i, kind)
			}
		}
		r := httptest.NewRequest("POST", ratetest.Path, strings.NewReader(`{"api_key":"key1"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if x.ServeHTTP(w, r); w.Code != 415 || !strings.Contains(w.Body.String(), form) {
			t.Errorf("JSON: %d %s", w.Code, w.Body)
		}
		w = httptest.NewRecorder()
		if x.ServeHTTP(w, httptest.NewRequest("GET", "/api/requests", nil)); w.Code != 404 {
			t.Errorf("another path: %d", w.Code)
		}
		report := x.Report()
		want := rule.Counts{Accepted: 7, BadNonce: 2, Limited: 2, UnknownKey: 1}
		if report.Judge.Total != want || report.Malformed != 10 || report.Received != 12 || report.Judge.Faults != 0 {
			t.Errorf("%+v", report)
		}
	})
}

func TestTenRefusalsBan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExchange(t, ratetest.Config{Keys: []string{"a", "b"}})
		var codes []int
		for n := range 32 {
			code, _ := send(x, fmt.Sprintf("api_key=a&nonce=%d", n))
			codes = append(codes, code)
		}
		want := slices.Concat(slices.Repeat([]int{200}, 20), slices.Repeat([]int{429}, 10), []int{403, 403})
		if fmt.Sprint(codes) != fmt.Sprint(want) {
			t.Errorf("%v", codes)
		}
		time.Sleep(time.Hour)
		if code, body := send(x, "api_key=a&nonce=99"); code != 403 || !strings.Contains(body, "banned") {
			t.Errorf("an hour later: %d %s", code, body)
		}
		if code, _ := send(x, "api_key=b&nonce=99"); code != 200 {
			t.Errorf("the other key: %d", code)
		}
		if keys := x.Report().Judge.Keys; !keys[0].Banned || keys[1].Banned {
			t.Errorf("%+v", keys)
		}
	})
}

func TestLatencyIsBeforeAndAfterTheCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = mono.Time(time.Millisecond)
		x := newExchange(t, ratetest.Config{Before: latency.Constant(30 * time.Millisecond), After: latency.Constant(20 * time.Millisecond)})
		time.Sleep(5 * time.Millisecond)
		start := time.Now()
		if code, body := send(x, "api_key=key2&nonce=1"); code != 200 {
			t.Fatal(body)
		}
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		r := x.Records()[0]
		if r.Key != 1 || r.Nonce != "1" || r.Verdict != rule.Accepted || r.Received != 5*ms || r.Checked != 35*ms || r.Answered != 55*ms {
			t.Errorf("%+v", r)
		}
		if legs := x.Legs(); len(legs) != 5 || len(legs[1]) != 1 || legs[1][0] != (ceiling.Leg{Forward: 30 * time.Millisecond, Back: 20 * time.Millisecond}) {
			t.Errorf("legs %v", legs)
		}
		if last := x.Report().Judge.Last; last != 35*ms {
			t.Errorf("judged at %v", last)
		}
	})
}

// TestCrowd: 30 clients per key at once, through latencies that reorder them. 20 requests of each
// key pass, then 10 refusals ban the key.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		x := newExchange(t, ratetest.Config{
			Before:   latency.Uniform(0, 50*time.Millisecond),
			After:    latency.Uniform(0, 50*time.Millisecond),
			AnyNonce: true,
			LogTo:    &log,
		})
		var mu sync.Mutex
		codes := map[int]int{}
		var clients sync.WaitGroup
		for i := range 6 * 31 {
			clients.Go(func() {
				code, _ := send(x, fmt.Sprintf("api_key=key%d&req_id=%d", 1+i%6, i))
				mu.Lock()
				defer mu.Unlock()
				codes[code]++
			})
		}
		clients.Wait()
		if fmt.Sprint(codes) != fmt.Sprint(map[int]int{200: 100, 429: 50, 403: 5, 401: 31}) {
			t.Errorf("%v", codes)
		}
		report := x.Report()
		if report.Judge.Faults != 0 || report.Received != 186 || report.Kept != 186 {
			t.Errorf("%+v", report)
		}
		for i, k := range report.Judge.Keys {
			if k.Worst.Requests != 20 || k.WorstSent.Requests != 30 || !k.Banned {
				t.Errorf("key %d: %+v", i, k)
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		checkLog(t, &log, 186)
	})
}

// checkLog reads the log again: the order of the checks, and the verdict of a second judge.
func checkLog(t *testing.T, log io.Reader, want int) {
	t.Helper()
	lines := json.NewDecoder(log)
	lines.DisallowUnknownFields()
	last, n, accepted := int64(0), 0, 0
	ids, began := map[string]bool{}, time.Time{}
	for {
		var line ratetest.LogLine
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if line.Checked < last || line.Checked != line.Received+line.Before {
			t.Fatalf("line %d: %+v after an instant of %d", n, line, last)
		}
		if base := line.At.Add(-time.Duration(line.Checked)); n > 0 && !base.Equal(began) {
			t.Errorf("line %d: at %v, of a server that began at %v", n, line.At, began)
		} else {
			began = base
		}
		if (line.Key == "") != (line.Status == 401) {
			t.Errorf("line %d: %+v", n, line)
		}
		if line.Verdict == "accepted" {
			accepted++
		}
		last, ids[line.ReqID] = line.Checked, true
		n++
	}
	if n != want || len(ids) != want || accepted != 100 {
		t.Errorf("%d lines about %d requests, %d accepted", n, len(ids), accepted)
	}
}

// The same seed gives the same latencies, and another seed gives others.
func TestSameSeedSameLatencies(t *testing.T) {
	drawn := func(seed uint64) (s string) {
		synctest.Test(t, func(t *testing.T) {
			x := newExchange(t, ratetest.Config{Before: latency.Exponential(time.Millisecond, 0), Seed: seed})
			for n := range 5 {
				send(x, fmt.Sprintf("api_key=key1&nonce=%d", n))
			}
			for _, r := range x.Records() {
				s += fmt.Sprint(r.Before, r.After, " ")
			}
		})
		return s
	}
	one, again, two := drawn(1), drawn(1), drawn(2)
	if one != again || one == two {
		t.Errorf("seed 1: %s\nagain:  %s\nseed 2: %s", one, again, two)
	}
}

// TestBestClientReachesTheCeiling: a client never has two requests in flight, and reuses a slot
// 1001 ms after its answer. It is never refused. It gets exactly the ceiling that the server's own
// log gives.
func TestBestClientReachesTheCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExchange(t, ratetest.Config{
			Before: latency.Uniform(0, 50*time.Millisecond),
			After:  latency.Uniform(0, 50*time.Millisecond),
			Seed:   7,
		})
		start := time.Now()
		const d = 30 * time.Second
		var slots []time.Time
		answers := 0
		for n := 0; ; n++ {
			if n >= 20 {
				time.Sleep(time.Until(slots[n-20].Add(1001 * time.Millisecond)))
			}
			if time.Since(start) > d {
				break
			}
			if code, body := send(x, fmt.Sprintf("api_key=key1&nonce=%d", n)); code != 200 {
				t.Fatalf("request %d: %d %s", n, code, body)
			}
			slots = append(slots, time.Now())
			if time.Since(start) <= d {
				answers++
			}
		}
		most, err := ceiling.Config{Knowledge: ceiling.OneInFlight}.Most(d, x.Legs()[0])
		if err != nil || answers != most {
			t.Errorf("%d answers, ceiling %d, %v", answers, most, err)
		}
		if rate := float64(answers) / d.Seconds(); rate < 17.5 || rate > 19.5 {
			t.Errorf("%.2f/s", rate)
		}
	})
}

func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for keep, want := range map[int]string{-1: "[]", 3: "[4 5 6]", 5: "[2 3 4 5 6]", 7: "[0 1 2 3 4 5 6]", 8: "[0 1 2 3 4 5 6]", 0: "[0 1 2 3 4 5 6]"} {
			x := newExchange(t, ratetest.Config{Keep: keep})
			nonces := []string{}
			for n := range 7 {
				send(x, fmt.Sprintf("api_key=key1&nonce=%d", n))
			}
			for _, r := range x.Records() {
				nonces = append(nonces, r.Nonce)
			}
			if fmt.Sprint(nonces) != want {
				t.Errorf("keep %d: %v, want %v", keep, nonces, want)
			}
		}
	})
}

// TestKeepsTheLatest: an earlier request that ends later does not overwrite the later record.
func TestKeepsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExchange(t, ratetest.Config{Keep: 1, Before: latency.Constant(10 * time.Millisecond)})
		var clients sync.WaitGroup
		for n := range 2 {
			clients.Go(func() {
				time.Sleep(time.Duration(5*n) * time.Millisecond)
				send(x, fmt.Sprintf("api_key=key1&nonce=%d", n))
			})
		}
		time.Sleep(12 * time.Millisecond)
		if r := x.Records(); len(r) != 1 || r[0].Nonce != "1" || r[0].Checked != -1 || r[0].Answered != -1 {
			t.Errorf("%+v", r)
		}
		if legs := x.Legs()[0]; len(legs) != 0 {
			t.Errorf("latencies of a request that is not answered: %v", legs)
		}
		clients.Wait()
	})
}

// clientOf is a client of a network in memory: loopback sockets are outside of virtual time.
func clientOf(n *fakeconn.Network) (*http.Client, *http.Transport) {
	transport := &http.Transport{DialContext: n.Dial}
	return &http.Client{Transport: transport}, transport
}

// TestClientThatGoesAwayHasArrived: the client gives up while the request is on its way.
func TestClientThatGoesAwayHasArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExchange(t, ratetest.Config{Before: latency.Constant(100 * time.Millisecond)})
		net := fakeconn.New()
		x.StartListener(net)
		client, transport := clientOf(net)
		client.Timeout = 50 * time.Millisecond
		if _, err := client.Get(x.URL() + ratetest.Path + "?api_key=key1&nonce=1"); err == nil {
			t.Fatal("an answer in time")
		}
		if total := x.Report().Judge.Total.Total(); total != 0 {
			t.Fatalf("checked already: %d", total)
		}
		time.Sleep(60 * time.Millisecond)
		report := x.Report()
		if report.Judge.Total.Accepted != 1 || report.Judge.Last != mono.Time(100*time.Millisecond) {
			t.Errorf("%+v", report)
		}
		transport.CloseIdleConnections()
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestShutdown: requests arrive at 0 and 1 s, each with a second of latency there and a second
// back. The server closes at 1.5 s.
func TestShutdown(t *testing.T) {
	for name, c := range map[string]struct {
		patience time.Duration
		closed   time.Duration
		codes    [2]int
		dropped  int
	}{
		"waits for those under way":                                {5 * time.Second, 3 * time.Second, [2]int{200, 200}, 0},
		"in time for the check of both":                            {time.Second, 2500 * time.Millisecond, [2]int{200, 200}, 0},
		"drops what is not checked yet, answers the other at once": {0, 1500 * time.Millisecond, [2]int{200, 503}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newExchange(t, ratetest.Config{Before: latency.Constant(time.Second), After: latency.Constant(time.Second)})
				net := fakeconn.New()
				x.StartListener(net)
				client, transport := clientOf(net)
				start := time.Now()
				var codes [2]int
				var clients sync.WaitGroup
				for i := range codes {
					clients.Go(func() {
						time.Sleep(time.Duration(i) * time.Second)
						r, err := client.Get(x.URL() + ratetest.Path + fmt.Sprintf("?api_key=key1&nonce=%d", i))
						if err != nil {
							t.Error(err)
							return
						}
						r.Body.Close()
						codes[i] = r.StatusCode
					})
				}
				time.Sleep(1500 * time.Millisecond)
				ctx, cancel := context.WithTimeout(context.Background(), c.patience)
				defer cancel()
				if err := x.Shutdown(ctx); err != nil {
					t.Error(err)
				}
				// net/http polls for idle connections, at most every 500 ms.
				if took := time.Since(start); took < c.closed || took > c.closed+500*time.Millisecond {
					t.Errorf("closed at %v", took)
				}
				clients.Wait()
				if report := x.Report(); codes != c.codes || report.Dropped != c.dropped || report.Judge.Total.Total() != 2-c.dropped {
					t.Errorf("answers %v, %+v", codes, report)
				}
				if err := x.Close(); err != nil { // a second time
					t.Error(err)
				}
				transport.CloseIdleConnections()
			})
		})
	}
}

// A client that has sent half a body does not hold up Shutdown.
func TestShutdownDoesNotWaitForASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExchange(t, ratetest.Config{})
		net := fakeconn.New()
		x.StartListener(net)
		_, transport := clientOf(net)
		conn, err := transport.DialContext(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\napi_key=", ratetest.Path, form)
		go io.Copy(io.Discard, conn)
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := x.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("closed after %v", took)
		}
	})
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestLogThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newExchange(t, ratetest.Config{LogTo: fullDisk{}})
		if code, body := send(x, "api_key=key1&nonce=1"); code != 200 {
			t.Errorf("%d %s", code, body)
		}
		if err := x.Close(); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("Close: %v", err)
		}
		if code, _ := send(x, "api_key=key1&nonce=2"); code != 503 {
			t.Errorf("after Close: %d", code)
		}
	})
}

func TestNewExchangeRefuses(t *testing.T) {
	for _, c := range []struct {
		config ratetest.Config
		why    string
	}{
		{ratetest.Config{Keys: []string{"a", ""}}, `Keys: ""`},
		{ratetest.Config{Keys: []string{"a", "b", "a"}}, `Keys: "a"`},
		{ratetest.Config{Limit: -1}, "Limit -1"},
	} {
		if _, err := ratetest.NewExchange(c.config); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v", c.config, err)
		}
	}
}

// TestLoopback: real sockets, real latency, and nothing left behind.
func TestLoopback(t *testing.T) {
	defer goleak.VerifyNone(t)
	x := newExchange(t, ratetest.Config{Before: latency.Constant(2 * time.Millisecond), After: latency.Constant(time.Millisecond)})
	if err := x.Start(""); err != nil {
		t.Fatal(err)
	}
	other := newExchange(t, ratetest.Config{})
	if err := other.Start(strings.TrimPrefix(x.URL(), "http://")); err == nil {
		t.Error("two servers on one address")
	}
	transport := &http.Transport{}
	client := &http.Client{Transport: transport}
	for n := range 3 {
		body := url.Values{"api_key": {"key1"}, "nonce": {fmt.Sprint(n)}, "req_id": {"1"}}.Encode()
		r, err := http.NewRequest("GET", x.URL()+ratetest.Path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", form)
		start := time.Now()
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if took := time.Since(start); resp.StatusCode != 200 || took < 3*time.Millisecond {
			t.Errorf("%d %s after %v", resp.StatusCode, text, took)
		}
	}
	if legs := x.Legs()[0]; len(legs) != 3 || legs[0].Forward < 2*time.Millisecond || legs[0].Back < time.Millisecond {
		t.Errorf("%v", legs)
	}
	transport.CloseIdleConnections()
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Get(x.URL() + ratetest.Path); err == nil {
		t.Error("still listening")
	}
}
