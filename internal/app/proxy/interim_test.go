package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// agents are names of clients, as they send them, with the interim answers that they get in line.
var agents = map[string]int{
	"python-requests/2.28.1": 100, "Python-urllib/3.11": 100, "python-httpx/0.23.3": 100, "Python/3.11 aiohttp/3.8.4": 100,
	"Boto3/1.26.27 Python/3.11.2 Linux/6.1 Botocore/1.29.27": 100, "OpenAI/Python 1.3.5": 100, "AsyncAnthropic/Python 0.9": 100,
	"node": 102, "undici": 102, "OpenAI/JS 6.49.0": 102, "Anthropic/JS 1.12.0": 102,
	"curl/7.88.1": 0, "Go-http-client/2.0": 0, "node-fetch/1.0 (+https://github.com/bitinn/node-fetch)": 0, "nodejs": 0, "": 0,
	"grpc-python/1.51.1 grpc-c/29.0.0 (linux; chttp2)": 0, "Java-http-client/17.0.9": 0, "python-requests-html": 0,
	"Python/3.11 websockets/10.4": 0, "Ruby": 100, "Ruby on Rails": 0, "x OpenAI/JSON": 0,
}

func TestInterimFor(t *testing.T) {
	for agent, want := range agents {
		if got := interimFor(agent); got != want {
			t.Errorf("%q: %d, want %d", agent, got, want)
		}
	}
}

// In line a client of the table gets its interim answer every 2 s, and then the answer, whole. The
// wait for a refused request is in line, too. All others get none.
func TestInterimAnswers(t *testing.T) {
	request := func(agent, more string) string {
		return "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nUser-Agent: " + agent + "\r\n" + more + "\r\n"
	}
	continues, processes := strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 4), strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 4)
	for _, c := range []struct {
		name, request string
		finalOnly     bool
		before        string // the answer
	}{
		{"requests", request("python-requests/2.28.1", ""), false, continues},
		{"fetch", request("node", ""), false, processes},
		{"another", request("curl/7.88.1", ""), false, ""},
		{"HTTP/1.0", strings.Replace(request("node", ""), "1.1", "1.0", 1), false, ""},
		{"an upgrade", request("Python/3.11 aiohttp/3.8.4", "Upgrade: websocket\r\n"), false, ""},
		{"by a server in front", request("node", "X-Forwarded-For: 10.0.0.1\r\n"), false, ""},
		{"by nginx in front", request("node", "X-Real-IP: 10.0.0.1\r\n"), false, ""},
		{"by another proxy", request("node", "Via: 1.1 x\r\n"), false, ""},
		{"FinalOnly", request("node", ""), true, ""},
		{"a body is asked for", strings.Replace(request("Boto3/1.26 x", "Expect: 100-continue\r\nContent-Length: 4\r\n"), "GET", "PUT", 1) + "body", false, continues},
		{"a body is asked for by the server alone", strings.Replace(request("node", "Expect: 100-continue\r\nContent-Length: 4\r\n"), "GET", "PUT", 1) + "body", false, "HTTP/1.1 100 Continue\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				refused := false
				conf := to(mustURL(t, "http://up.test"), "1/5s")
				conf.FinalOnly, conf.MaxWait = c.finalOnly, time.Hour
				x := virtual(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					b, _ := io.ReadAll(r.Body)
					if strings.Contains(c.request, "\r\n\r\nbody") && string(b) != "body" && r.UserAgent() != "first" {
						t.Errorf("the body is %q", b)
					}
					if r.UserAgent() != "first" && !refused {
						refused = true
						w.Header().Set("Retry-After", "5")
						w.WriteHeader(http.StatusTooManyRequests)
						return
					}
					io.WriteString(w, "whole")
				}), conf)
				x.do("GET", "/", "", "User-Agent", "first")
				began := time.Now()
				got := x.raw(c.request)
				rest, ok := strings.CutPrefix(got, c.before)
				if took := time.Since(began); !ok || !strings.HasPrefix(rest, "HTTP/1.") || !strings.Contains(rest[:12], " 200") ||
					!strings.HasSuffix(rest, "whole") || took < 10*time.Second || took > 12*time.Second {
					t.Errorf("after %v: %q", took, got)
				}
			})
		})
	}
}

// Over HTTP/2, and with an interim answer of the upstream after ours, the client gets each of them.
func TestInterimAnswersOverHTTP2(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := virtual(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</style.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			time.Sleep(10 * time.Second)
			fmt.Fprint(w, "whole")
		}), to(mustURL(t, "http://up.test"), "1/5s"))
		tr := &http.Transport{DialContext: x.dial, Protocols: new(http.Protocols)}
		tr.Protocols.SetUnencryptedHTTP2(true)
		defer tr.CloseIdleConnections()
		ask := func() (all []int) {
			ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
				Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
					if (h.Get("Link") != "") != (code == http.StatusEarlyHints) {
						t.Errorf("%d has %v", code, h)
					}
					all = append(all, code)
					return nil
				}})
			r, _ := http.NewRequestWithContext(ctx, "GET", x.url, nil)
			r.Header.Set("User-Agent", "node")
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return nil
			}
			defer resp.Body.Close()
			if b, err := io.ReadAll(resp.Body); string(b) != "whole" || err != nil || resp.ProtoMajor != 2 || resp.Header.Get("Link") == "" {
				t.Errorf("%s %q %v %v", resp.Proto, b, err, resp.Header)
			}
			return all
		}
		if got := fmt.Sprint(ask()); got != "[103]" {
			t.Error("the first, which does not wait:", got)
		}
		if got := fmt.Sprint(ask()); got != "[102 102 103]" {
			t.Error("the one in line:", got)
		}
	})
}

// Programs that hang up in line are reported once each, with the waits and what helps.
func TestHangups(t *testing.T) {
	for bound, live := range map[string]bool{"--max-wait": false, "max_wait": true} {
		synctest.Test(t, func(t *testing.T) { hangUp(t, bound, live) })
	}
}

// hangUp is TestHangups with flags, or with a file.
func hangUp(t *testing.T, bound string, live bool) {
	c := to(mustURL(t, "http://up.test"), "1/h")
	c.Live = live
	c.MaxWait = 2 * time.Hour
	x := virtual(t, http.HandlerFunc(hello), c)
	x.do("GET", "/", "")
	gone := func(agent string, after time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		defer cancel()
		if resp, text, err := x.try(ctx, "GET", "/?q=secret", "", "User-Agent", agent); err == nil {
			t.Error("it was served:", resp.Status, text)
		}
		synctest.Wait()
	}
	for range 3 {
		gone("python-httpx/0.23.3", 2*time.Second)
	}
	gone("", 3*time.Second)
	lines := func() (all []string) {
		for line := range strings.Lines(x.log.String()) {
			if strings.Contains(line, "hung up") {
				all = append(all, line)
			}
		}
		return all
	}
	if got := lines(); got != nil {
		t.Errorf("too early: %q", got)
	}
	time.Sleep(10 * time.Second)
	gone("python-httpx/0.23.3", time.Second)
	got := lines()
	if len(got) != 2 {
		t.Fatalf("%q", got)
	}
	text := strings.Join(got, "")
	for _, want := range []string{"program=python-httpx times=3 shortest_wait=2s longest_wait=2s", "or " + bound + " below 2s",
		`program="a program without User-Agent" times=1 shortest_wait=3s`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	gone("ruby", 54*time.Millisecond)
	x.stop()
	if got := lines(); len(got) != 3 || !strings.Contains(got[2], "program=ruby times=1") || !strings.Contains(got[2], `helps="a longer timeout in the program"`) {
		t.Errorf("at the end: %q", got)
	}
	if strings.Contains(strings.Join(lines(), ""), "secret") {
		t.Error("a line has the query")
	}
}
