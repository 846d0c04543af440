package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/dashboard"
)

func must(t *testing.T, c dashboard.Config) *dashboard.Page {
	t.Helper()
	p, err := dashboard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func get(h http.Handler, target, host string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", target, nil)
	r.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Names that a stranger can make point here are refused whatever is asked for; addresses cannot be made to.
func TestHosts(t *testing.T) {
	p := must(t, dashboard.Config{Sources: []observe.Source{fixed(observe.Snapshot{})}, Hosts: []string{"Metrics.example.com", "box"}})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:7879": 200, "LOCALHOST.": 200, "a.localhost:1": 200, "127.0.0.1": 200, "127.0.0.1:7879": 200, "127.9.9.9:80": 200,
		"[::1]": 200, "[::1]:7879": 200, "10.1.2.3:7879": 200, "metrics.example.com": 200, "METRICS.example.com.:443": 200, "box": 200,
		"": 403, "evil.example": 403, "evil.example:7879": 403, "localhost.evil.example": 403, "notlocalhost": 403, "127.0.0.1.nip.io": 403, "127.1": 403,
		"a.box": 403, "[::1": 403, "[::1]x": 403, "[localhost]": 403, "localhost:1:2": 403, "0x7f000001": 403, "evil.example/127.0.0.1": 403, "localhost@evil.example": 403,
	} {
		for _, path := range []string{"/", "/events", "/snapshot.json", "/all.json", "/page.js", "/none"} {
			if path == "/events" && want == 200 || path == "/none" && want == 200 {
				continue
			}
			ask := path
			if path == "/all.json" {
				ask += "?list=clients"
			}
			w := get(p, ask, host)
			if w.Code != want {
				t.Errorf("Host %q: %s is answered with %d, want %d", host, path, w.Code, want)
			}
			if want == 403 && !strings.Contains(w.Body.String(), "dashboard.Config.Hosts") {
				t.Errorf("Host %q: it says %q", host, w.Body)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, h := range []string{"", "a:80", "http://a", "a/b", "*.example.com", "a b", "u@a"} {
		if _, err := dashboard.New(dashboard.Config{Hosts: []string{h}}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", h)) {
			t.Errorf("Hosts %q: %v", h, err)
		}
	}
	if _, err := dashboard.New(dashboard.Config{Sources: []observe.Source{fixed(observe.Snapshot{}), nil}}); err == nil || !strings.Contains(err.Error(), "source 1") {
		t.Errorf("a nil Source: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Handler takes a nil Source")
		}
	}()
	dashboard.Handler(nil)
}

// For any answer, no script or style in the page runs, no type is guessed, and no other page may
// frame it. Nothing can be changed.
func TestHeaders(t *testing.T) {
	p := must(t, dashboard.Config{Sources: []observe.Source{fixed(observe.Snapshot{})}})
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/a/b/": "text/html; charset=utf-8", "/debug/page.css": "text/css; charset=utf-8", "/page.js": "text/javascript; charset=utf-8", "/chart.js": "text/javascript; charset=utf-8",
		"/uplot.js": "text/javascript; charset=utf-8", "/uplot.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml", "/licence.txt": "text/plain; charset=utf-8",
		"/snapshot.json": "application/json", "/all.json?list=keys": "application/json",
		"/index.html": "", "/assets/page.js/x": "", "/..%2f..%2fetc/passwd": "", "/all.json?list=events": "", "/all.json?list=clients&source=1": "",
		"/all.json?list=clients&source=-1": "", "/all.json?list=clients&source=x": "", "/all.json?list=clients&from=-1": "", "/all.json?list=clients&from=1e3": "",
	} {
		w := get(p, path, "localhost")
		h := w.Header()
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy is %q", path, csp)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if kind == "" {
			if w.Code < 400 || w.Code > 499 || h.Get("Content-Type") != "text/plain; charset=utf-8" || w.Body.Len() < 20 {
				t.Errorf("%s is answered with %d %s %q", path, w.Code, h.Get("Content-Type"), w.Body)
			}
		} else if w.Code != 200 || h.Get("Content-Type") != kind || w.Body.Len() == 0 {
			t.Errorf("%s is answered with %d %s, %d bytes", path, w.Code, h.Get("Content-Type"), w.Body.Len())
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
			r := httptest.NewRequest(method, path, strings.NewReader("x"))
			r.Host = "localhost"
			w := httptest.NewRecorder()
			p.ServeHTTP(w, r)
			if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s is answered with %d", method, path, w.Code)
			}
		}
	}
	first := get(p, "/page.js", "localhost")
	r := httptest.NewRequest("GET", "/page.js", nil)
	r.Host = "localhost"
	r.Header.Set("If-None-Match", first.Header().Get("ETag"))
	again := httptest.NewRecorder()
	p.ServeHTTP(again, r)
	if again.Code != 304 {
		t.Errorf("a file that is known is answered with %d", again.Code)
	}
}

// event reads one server-sent event.
func event(t *testing.T, r *bufio.Reader) (name string, data []byte) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ends: %v", err)
		}
		line = strings.TrimSuffix(line, "\n")
		if after, ok := strings.CutPrefix(line, "event: "); ok {
			name = after
		} else if after, ok := strings.CutPrefix(line, "data: "); ok {
			data = []byte(after)
		} else if line == "" && name != "" {
			return name, data
		}
	}
}

// serve has a server with that handler in memory.
func serve(h http.Handler) (*http.Server, *http.Client, *fakeconn.Network) {
	l := fakeconn.New()
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }()
	return server, &http.Client{Transport: &http.Transport{DialContext: l.Dial, DisableKeepAlives: true}}, l
}

type frame struct {
	Number  int
	At      int64
	Sources []struct {
		Name    string
		Waiting int
		Verdict struct{ Kind, Text string }
		Clients []struct {
			Client  string
			Waiting int
		}
		All   struct{ Clients, Limits int }
		Rest  struct{ Waiting, Accepted int }
		Point map[string]*float64
	}
}

func decode[T any](t *testing.T, data []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v: %.300s", err, data)
	}
	return v
}

// Twenty look, one asks for the numbers every tenth of a second, and one keeps a record: the source is asked once a second. When all
// are gone it is not asked at all, and nothing runs any more.
func TestOneSnapshotASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fixed(observe.Snapshot{Waiting: 3, Counts: observe.Counts{Sent: 1}})
		p := must(t, dashboard.Config{Sources: []observe.Source{s}})
		if n := s.count(); n != 0 {
			t.Fatalf("it was asked %d times before anybody looked", n)
		}
		server, client, _ := serve(p)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		last := make([]int, 20)
		for i := range last {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 30 * time.Millisecond)
				r, _ := http.NewRequestWithContext(ctx, "GET", "http://localhost/debug/events", nil)
				resp, err := client.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" {
					t.Errorf("the stream is %s", kind)
				}
				in := bufio.NewReader(resp.Body)
				if name, _ := event(t, in); name != "past" {
					t.Errorf("it begins with %q", name)
				}
				for range 60 {
					name, data := event(t, in)
					f := decode[frame](t, data)
					if name != "frame" || f.Number <= last[i] || f.Sources[0].Waiting != 3 {
						t.Errorf("after frame %d comes %s %s", last[i], name, data)
					}
					last[i] = f.Number
				}
			})
		}
		all.Go(func() {
			for range 500 {
				get(p, "/snapshot.json", "localhost")
				time.Sleep(100 * time.Millisecond)
			}
		})
		record, stop := context.WithCancel(ctx)
		go p.Record(record)
		time.Sleep(50 * time.Second)
		synctest.Wait()
		// At 0, 1, … 50 s, if the last has come yet.
		if n := s.count(); n < 50 || n > 51 {
			t.Errorf("in 50 s the source was asked %d times", n)
		}
		all.Wait()
		stop()
		cancel()
		time.Sleep(3 * time.Second)
		n := s.count()
		time.Sleep(time.Minute)
		if now := s.count(); now != n {
			t.Errorf("it was asked %d times while nobody looked", now-n)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Close lets a server shut down despite viewers; a later viewer is asked to come back.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must(t, dashboard.Config{})
		server, client, _ := serve(p)
		server.RegisterOnShutdown(p.Close)
		resp, err := client.Get("http://localhost/events")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, resp.Body)
			done <- err
		}()
		time.Sleep(time.Minute)
		began := time.Now()
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Errorf("who looked saw %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("to shut down took %v", took)
		}
		p.Record(t.Context()) // it returns
		if w := get(p, "/events", "localhost"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("who comes now is told %d %s", w.Code, w.Body)
		}
	})
}

// The number of viewers is bounded; one that goes makes room.
func TestViewersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must(t, dashboard.Config{})
		server, client, _ := serve(p)
		defer server.Close()
		var open []*http.Response
		for {
			resp, err := client.Get("http://localhost/events")
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != 200 {
				if resp.StatusCode != 503 || len(open) != 100 {
					t.Errorf("number %d is told %d", len(open), resp.StatusCode)
				}
				resp.Body.Close()
				break
			}
			open = append(open, resp)
		}
		open[17].Body.Close()
		time.Sleep(2 * time.Second)
		resp, err := client.Get("http://localhost/events")
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("with one gone the next is told %v, %v", resp, err)
		}
		for _, r := range append(open, resp) {
			r.Body.Close()
		}
	})
}

// A viewer who does not read any more is let go of, so that it holds no place for ever.
func TestViewerWhoDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must(t, dashboard.Config{})
		server, _, l := serve(p)
		defer server.Close()
		conn, err := l.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		time.Sleep(time.Minute)
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Errorf("a minute later it reads on: %v", err)
		}
	})
}

type bare struct{ http.ResponseWriter } // without Flush and Unwrap

func TestCannotFlush(t *testing.T) {
	p := must(t, dashboard.Config{})
	r := httptest.NewRequest("GET", "/events", nil)
	r.Host = "localhost"
	w := httptest.NewRecorder()
	p.ServeHTTP(bare{w}, r)
	if w.Code != 500 || !strings.Contains(w.Body.String(), "flush") {
		t.Errorf("it is answered with %d %q", w.Code, w.Body)
	}
}

// Of a thousand clients a frame has those who wait most and the sum of the rest; all.json has each of them once.
func TestLists(t *testing.T) {
	race.Without(t) // one call after another
	s := observe.Snapshot{Name: "s", Bounds: bounds}
	for i := range 1234 {
		s.Clients = append(s.Clients, observe.ClientState{Name: fmt.Sprint("client ", i), Waiting: i * 7919 % 1234, Share: math.NaN(), Counts: observe.Counts{Accepted: 2}})
		s.Limits = append(s.Limits, observe.LimitState{Name: "requests", Unit: "requests", Whose: observe.Whose{Route: fmt.Sprint("GET /", i)}, Share: math.Inf(1)})
	}
	before := slices.Clone(s.Clients)
	p := must(t, dashboard.Config{Sources: []observe.Source{fixed(s)}})
	w := get(p, "/snapshot.json", "localhost")
	f := decode[frame](t, w.Body.Bytes()).Sources[0]
	if len(f.Clients) != 50 || f.All.Clients != 1234 || f.All.Limits != 1234 {
		t.Fatalf("a frame has %d of %d clients", len(f.Clients), f.All.Clients)
	}
	sum := f.Rest.Waiting
	for i, c := range f.Clients {
		if sum += c.Waiting; c.Waiting != 1233-i {
			t.Errorf("client %d waits with %d", i, c.Waiting)
		}
	}
	if sum != 1233*1234/2 || f.Rest.Accepted != 2*1184 {
		t.Errorf("in all %d wait, and the rest got %d", sum, f.Rest.Accepted)
	}
	if w.Body.Len() > 64<<10 {
		t.Errorf("a frame has %d bytes", w.Body.Len())
	}
	type rows struct {
		Total, Found, From int
		Rows               []map[string]any
	}
	seen := map[any]bool{}
	for from := 0; ; from += 500 {
		a := decode[rows](t, get(p, fmt.Sprint("/all.json?source=0&list=clients&from=", from), "localhost").Body.Bytes())
		if a.Total != 1234 || a.Found != 1234 {
			t.Fatalf("it says %d of %d", a.Found, a.Total)
		}
		for _, c := range a.Rows {
			seen[c["client"]] = true
		}
		if len(a.Rows) == 0 {
			break
		}
	}
	if len(seen) != 1234 {
		t.Errorf("%d clients are found", len(seen))
	}
	for list, want := range map[string]int{"list=clients&find=CLIENT+12": 1 + 10 + 34, "list=limits&find=%2F1233": 1, "list=clients&find=none": 0, "list=keys": 0} {
		if a := decode[rows](t, get(p, "/all.json?"+list, "localhost").Body.Bytes()); a.Found != want || len(a.Rows) != want {
			t.Errorf("%s finds %d", list, a.Found)
		}
	}
	for i, c := range s.Clients { // what a Source gives is not changed
		if b := before[i]; c.Name != b.Name || c.Waiting != b.Waiting || !math.IsNaN(c.Share) {
			t.Fatalf("client %d was changed: %+v", i, c)
		}
	}
}

// For any query, no answer is a failure of ours.
func FuzzAll(f *testing.F) {
	f.Add("0", "clients", "x", "0")
	f.Add("-1", "limits", "\x00", "99999999999999999999")
	f.Add("", "", "", "")
	p, err := dashboard.New(dashboard.Config{Sources: []observe.Source{fixed(story(30)(time.Now()))}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, source, list, find, from string) {
		w := get(p, "/all.json?"+url.Values{"source": {source}, "list": {list}, "find": {find}, "from": {from}}.Encode(), "localhost")
		if w.Code != 200 && w.Code != 400 {
			t.Errorf("it is answered with %d %s", w.Code, w.Body)
		}
		if w.Code == 200 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s is no JSON", w.Body)
		}
	})
}

// Whatever the Host field is: only what no name server can point here is let in.
func FuzzHost(f *testing.F) {
	for _, h := range []string{"localhost:1", "[::1]:80", "evil.example", "127.0.0.1.evil.example", "[::1%25evil]", "a@b"} {
		f.Add(h)
	}
	p := dashboard.Handler()
	f.Fuzz(func(t *testing.T, host string) {
		w := get(p, "/snapshot.json", host)
		if w.Code == 403 {
			return
		}
		name := strings.TrimSuffix(strings.ToLower(host), ".")
		if h, _, err := net.SplitHostPort(name); err == nil {
			name = strings.TrimSuffix(h, ".")
		}
		name = strings.Trim(name, "[]")
		before, _, _ := strings.Cut(name, "%")
		if name != "localhost" && !strings.HasSuffix(name, ".localhost") && net.ParseIP(before) == nil {
			t.Errorf("Host %q is let in, with %d", host, w.Code)
		}
	})
}
