package sending

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/secret"

	"github.com/paceline-go/paceline/limit"
)

func target(t *testing.T, method, address, body string) (*format.Request, Hop) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	r := &format.Request{ID: "r", Method: method, URL: u, Cost: limit.One, Header: http.Header{}}
	if body != "" {
		r.Body = []byte(body)
	}
	return r, FirstHop(r)
}

// A server that answers the first request of a connection and closes it when it has read the
// second. net/http would send that again on another connection, and the server would count it
// twice.
// noSecrets are those of a run without keys.
var noSecrets = format.NewSecrets(nil, nil, nil, format.Plain{})

func TestNeverSentTwice(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var mu sync.Mutex
	seen := map[string]int{}
	meet := make(chan struct{}) // the two requests that open connections wait for each other
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := range 2 {
					q, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, q.Body)
					mu.Lock()
					seen[q.URL.RawQuery]++
					mu.Unlock()
					if n == 0 {
						if strings.HasPrefix(q.URL.RawQuery, "warm") {
							select {
							case meet <- struct{}{}:
							case <-meet:
							}
						}
						fmt.Fprint(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					}
				}
			}()
		}
	}()
	s := New(Config{Timeout: 30 * time.Second, MaxResponse: 1 << 20, UserAgent: "paceline", Secrets: noSecrets})
	defer s.base.CloseIdleConnections()
	broken := 0
	for n, kind := range []struct{ method, body, header string }{
		{"GET", "", ""}, {"GET", "", ""}, {"HEAD", "", ""}, {"GET", "x", ""}, {"POST", "x", "Idempotency-Key"}, {"POST", "", "Idempotency-Key"},
		{"POST", "x", ""}, {"OPTIONS", "", ""}, {"GET", "", ""}, {"GET", "", ""}, {"PUT", "x", ""}, {"GET", "", ""},
	} {
		r, h := target(t, kind.method, fmt.Sprintf("http://%s/?%d", ln.Addr(), n), kind.body)
		if kind.header != "" {
			r.Header.Set(kind.header, "k")
		}
		if n%2 == 0 { // two connections at a time that are kept: the one the attempt fails on, and one to try again on
			s.base.CloseIdleConnections()
			var both sync.WaitGroup
			for i := range 2 {
				both.Go(func() {
					warm, wh := target(t, "GET", fmt.Sprintf("http://%s/?warm-%d-%d", ln.Addr(), n, i), "")
					if res := sent(s, warm, wh); res.Status != 200 {
						t.Errorf("first request on a connection: %+v", res)
					}
				})
			}
			both.Wait()
		}
		res := sent(s, r, h)
		if res.Status == 0 {
			broken++
			if !res.Written || res.Err == nil {
				t.Errorf("%s %d: written %v, error %v; it must count as sent", kind.method, n, res.Written, res.Err)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for q, n := range seen {
		if n > 1 {
			t.Errorf("request %s was sent %d times on one permit", q, n)
		}
	}
	if broken < 6 {
		t.Errorf("only %d attempts met a connection that was closed: the test does not test", broken)
	}
}

// The evidence of each outcome: never written, written without an answer, answered in part,
// answered.
func TestOutcomes(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/hang":
			<-release
		case "/stuck":
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			<-release
		case "/half":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
		case "/reset":
			panic(http.ErrAbortHandler)
		case "/big":
			_, _ = w.Write([]byte(strings.Repeat("é", 100)))
		}
	}))
	defer srv.Close()
	defer close(release)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	within := func(timeout time.Duration) *Sender {
		s := New(Config{Timeout: timeout, MaxResponse: 51, UserAgent: "paceline", Connections: 64, Secrets: noSecrets})
		t.Cleanup(s.base.CloseIdleConnections)
		return s
	}
	s := within(time.Minute)
	for _, c := range []struct {
		address string
		status  int
		written bool
		err     string
	}{
		{srv.URL + "/ok", 200, true, ""},
		{srv.URL + "/hang", 0, true, "no answer within "},
		{srv.URL + "/stuck", 200, true, "no answer within "},
		{srv.URL + "/half", 200, true, "the connection was closed before the whole answer was read"},
		{srv.URL + "/reset", 0, true, "the connection was closed before the whole answer was read"},
		{srv.URL + "/big", 200, true, ""},
		{"http://" + gone.Addr().String() + "/?secret", 0, false, "connection refused"},
		{"http://no-such-host.invalid/?secret", 0, false, "no"},
	} {
		r, h := target(t, "GET", c.address, "")
		var res Response
		if c.err == "no answer within " {
			for timeout := 60 * time.Millisecond; !res.Written || res.Status != c.status; timeout *= 2 { // a slow machine is not as far by then
				res = sent(within(timeout), r, h)
			}
		} else {
			res = sent(s, r, h)
		}
		msg := ""
		if res.Err != nil {
			msg = res.Err.Error()
		}
		if res.Status != c.status || res.Written != c.written || !strings.Contains(msg, c.err) || (c.err == "") != (msg == "") || strings.Contains(msg, "secret") {
			t.Errorf("%s: status %d, written %v, error %q; want %d, %v, %q", c.address, res.Status, res.Written, msg, c.status, c.written, c.err)
		}
		// Rarely, the answer arrives before the write returns. Then the round trip is not known.
		for try := 0; c.err == "" && res.RTT == 0 && try < 20; try++ {
			res = sent(s, r, h)
		}
		if took := res.Ended.Sub(res.Began); c.err == "" && (res.RTT <= 0 || res.RTT > took) {
			t.Errorf("%s: round trip %v of %v", c.address, res.RTT, took)
		}
		if strings.HasSuffix(c.address, "/big") {
			var line format.Result
			line.SetBody(res.Body, res.Cut, res.CutAt(), s.secrets)
			if !res.Cut || line.Body == nil || *line.Body != strings.Repeat("é", 25) || !line.BodyCut {
				t.Errorf("body cut in the middle of a character: %s", line.Append(nil))
			}
		}
	}
}

func TestTemplates(t *testing.T) {
	header, err := format.ParseHeaders([]string{"Authorization: Bearer {key}", "X-Try:{attempt}/{id} {} {", "host: api.example"})
	if err != nil {
		t.Fatal(err)
	}
	query, err := format.ParseQuery([]string{"api_key={key}", "nonce={nonce}"})
	if err != nil {
		t.Fatal(err)
	}
	s := &Sender{header: header, query: query, common: http.Header{"User-Agent": {"paceline"}}, secrets: format.NewSecrets(nil, header, query, nil)}
	r, h := target(t, "POST", "http://h/p?b=%20&nonce=1&&c&api%5fkey=old#x", "body")
	r.Header = http.Header{"X-Try": {"mine"}, "Cookie": {"c"}, "Content-Type": {"t"}}
	q := requested(s, r, h, &format.Values{Key: "a+b&c", ID: "7", Nonce: 12, Attempt: 3})
	if got, want := q.URL.RawQuery, "b=%20&c&api_key=a%2Bb%26c&nonce=12"; got != want {
		t.Errorf("query %s, want %s", got, want)
	}
	if q.Header.Get("Authorization") != "Bearer a+b&c" || q.Header.Get("X-Try") != "3/7 {} {" || q.Host != "api.example" || q.Header.Get("User-Agent") != "paceline" {
		t.Errorf("header %v, host %s", q.Header, q.Host)
	}
	for raw, want := range map[string]string{"q=ü&r=%C3%BC": "q=%C3%BC&r=%C3%BC", "日本=\xff": "%E6%97%A5%E6%9C%AC=%FF", "a=b c": "a=b c"} {
		plain := &Sender{common: s.common, secrets: s.secrets}
		other, to := target(t, "GET", "http://h/p?"+raw, "")
		if got := requested(plain, other, to, &format.Values{}).URL.RawQuery; got != want || other.URL.RawQuery != raw {
			t.Errorf("the query %q goes as %q, want %q", raw, got, want)
		}
	}
	// A request to another host has neither the key nor any field meant for the first host.
	h, err = s.Follow(r, h, &Response{Status: 302, Header: http.Header{"Location": {"http://elsewhere/x?nonce=1"}}})
	if err != nil {
		t.Fatal(err)
	}
	q = requested(s, r, h, &format.Values{Key: "a+b&c", Nonce: 13})
	if q.Header.Get("Authorization") != "" || q.Header.Get("Cookie") != "" || q.Header.Get("Content-Type") != "" ||
		q.URL.String() != "http://elsewhere/x?nonce=1" || q.Method != "GET" || q.Body != nil {
		t.Errorf("on another host: %s %s %v", q.Method, q.URL, q.Header)
	}
	// Nor has one that the other host sends back: whoever answers there chose the path.
	if h, err = s.Follow(r, h, &Response{Status: 302, Header: http.Header{"Location": {"http://h/p"}}}); err != nil {
		t.Fatal(err)
	}
	q = requested(s, r, h, &format.Values{Key: "a+b&c", Nonce: 14})
	if q.Header.Get("Authorization") != "" || q.Header.Get("Cookie") != "" || q.URL.String() != "http://h/p" {
		t.Errorf("back from another host: %s %v", q.URL, q.Header)
	}
	for _, c := range []struct {
		header, query, want string
	}{
		{"no colon", "", `"no colon", expected "Name: value"`},
		{"A b: x", "", `"A b: x": "A b" is no header name, expected "Name: value"`},
		{"A: {secret}", "", `"A: {secret}": unknown {secret}, expected {key}, {token}, {nonce}, {id}, {attempt} or {row.COLUMN}`},
		{"content-length: 3", "", `"content-length: 3": the header Content-Length is set by paceline itself, expected "Name: value"`},
		{"", "x", `"x", expected "name=value"`},
		{"", "=x", `"=x": the name is empty, expected "name=value"`},
	} {
		var err error
		if c.header != "" {
			_, err = format.ParseHeaders([]string{c.header})
		} else {
			_, err = format.ParseQuery([]string{c.query})
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%q %q: %v, want %s", c.header, c.query, err, c.want)
		}
	}
}

// The user and the password in a URL go to its host, as a header. No URL has them any more: results have that of the hop.
func TestUserOfAURL(t *testing.T) {
	s := &Sender{secrets: noSecrets}
	r, h := target(t, "GET", "http://me:pw@h/x", "")
	if h.URL.String() != "http://h/x" || r.URL.User == nil {
		t.Errorf("the first hop goes to %v", h.URL)
	}
	for _, c := range []struct{ to, user string }{{"", "me"}, {"/y", "me"}, {"http://elsewhere/", ""}, {"http://h/x", ""}} {
		if c.to != "" {
			var err error
			if h, err = s.Follow(r, h, &Response{Status: 302, Header: http.Header{"Location": {c.to}}}); err != nil {
				t.Fatal(err)
			}
		}
		q := requested(s, r, h, &format.Values{})
		if user, password, is := q.BasicAuth(); user != c.user || is && password != "pw" {
			t.Errorf("to %v goes %q with %q", h.URL, user, password)
		}
	}
}

// A redirect may name a host by a key's value, which would give the key to that host. No lookup is
// made for it.
func TestKeyIsNoHost(t *testing.T) {
	s := &Sender{secrets: format.NewSecrets([]secret.Key{{Name: "A", Value: "aB3dE5gH7jK9mN1pQ"}, {Name: "B", Value: "zY8^wV6<uT4>sR2qP"}}, nil, nil, nil)}
	r, h := target(t, "GET", "https://h.example/", "")
	for to, want := range map[string]string{
		"https://aB3dE5gH7jK9mN1pQ.evil.example/x":       "not followed to [A].evil.example: its URL has the value of A (--key-host)",
		"https://evil.example/aB3dE5gH7jK9mN1pQ":         "not followed to evil.example: its URL has the value of A (--key-host)",
		"http://h.example/aB3dE5gH7jK9mN1pQ":             "not followed to h.example: its URL has the value of A (--key-host)",
		"https://me:zY8^wV6<uT4>sR2qP@evil.example/?a=b": "not followed: where it leads has the value of B, and is no URL",
		"ftp://evil.example/":                            "redirected to no http or https URL",
		"https://me:aB3dE5gH7jK9mN1pQ@evil.example/?a=b": "",
		"https://evil.example/?k=aB3dE5gH7jK9mN1pQ&a=b":  "",
		"/aB3dE5gH7jK9mN1pQ?k=aB3dE5gH7jK9mN1pQ":         "",
	} {
		n, err := s.Follow(r, h, &Response{Status: 302, Header: http.Header{"Location": {to}}})
		if err == nil && n.Foreign && n.URL.String() != "https://evil.example/?a=b" {
			t.Errorf("%s: goes to %v", to, n.URL)
		}
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%s: %s, want %s", to, got, want)
		}
	}
}

// As many connections to a host stay open as requests may be in flight. New connections would cost
// a round trip each.
func TestConnectionsStayOpen(t *testing.T) {
	for concurrency, want := range map[int]int{0: 1, 1: 1, 64: 64} {
		if got := newTransport(Config{Connections: concurrency}).MaxIdleConnsPerHost; got != want {
			t.Errorf("for %d at a time %d stay open", concurrency, got)
		}
	}
}

func sent(s *Sender, r *format.Request, h Hop) (res Response) {
	s.Send(context.Background(), r, h, &format.Values{}, nil, &res)
	return res
}

func requested(s *Sender, r *format.Request, h Hop, v *format.Values) *http.Request {
	q := new(http.Request)
	s.request(q, r, h, v)
	return q
}

// A body that begins in the midst may have a half of a secret at both ends; one that broke off, at its end.
func TestCutAt(t *testing.T) {
	for _, c := range []struct {
		r    Response
		want secret.Cut
	}{
		{Response{Status: 200}, secret.Whole},
		{Response{Status: 206}, secret.CutStart | secret.CutEnd},
		{Response{Status: 206, Cut: true}, secret.CutStart | secret.CutEnd},
		{Response{Status: 200, Cut: true}, secret.CutEnd},
		{Response{Status: 200, Err: io.ErrUnexpectedEOF}, secret.CutEnd},
	} {
		if got := c.r.CutAt(); got != c.want {
			t.Errorf("%d, cut: %v, error: %v: %v, want %v", c.r.Status, c.r.Cut, c.r.Err, got, c.want)
		}
	}
}
