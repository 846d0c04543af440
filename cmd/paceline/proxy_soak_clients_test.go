package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// soakDeeds are what clients of the soak do: so many of each, with a pause between.
var soakDeeds = []struct {
	says    string
	clients int
	pause   time.Duration
	do      func(k *proxySoak, c *http.Client, key string, id int, says string)
}{
	{"asking", 8, 0, sends("GET", "/things/17", nil)},
	{"posting", 6, 0, sends("POST", "/things", func() io.Reader { return strings.NewReader(`{"a":"b"}`) })},
	{"posting much", 2, 0, sends("POST", "/things", func() io.Reader { return strings.NewReader(strings.Repeat("0123456789", 40_000)) })},
	{"posting in chunks", 2, 0, sends("POST", "/things", func() io.Reader { return io.MultiReader(strings.NewReader("a"), strings.NewReader("b")) })},
	{"slow to post", 2, 0, sends("PUT", "/things", func() io.Reader { return &slowly{left: 10} })},
	{"answered slowly", 2, 0, sends("POST", "/slow", func() io.Reader { return strings.NewReader("{}") })},
	{"answered wrongly", 1, 50 * time.Millisecond, sends("POST", "/wrong", func() io.Reader { return strings.NewReader("{}") })},
	{"looking for what there is not", 1, 20 * time.Millisecond, (*proxySoak).wanders},
	{"listening", 2, 10 * time.Millisecond, (*proxySoak).listens},
	{"listening to the half", 1, 20 * time.Millisecond, (*proxySoak).turnsAway},
	{"reading the beginning", 1, 100 * time.Millisecond, (*proxySoak).readsSome},
	{"tired of waiting", 2, 20 * time.Millisecond, (*proxySoak).givesUp},
	{"impatient", 1, 20 * time.Millisecond, (*proxySoak).hurries},
	{"without a key", 1, 50 * time.Millisecond, (*proxySoak).stranger},
	{"gone in the middle of its body", 1, 50 * time.Millisecond, (*proxySoak).breaksOff},
	{"gone in the middle of its header", 1, 50 * time.Millisecond, (*proxySoak).stammers},
	{"silent in the middle of its body", 1, 50 * time.Millisecond, (*proxySoak).fallsSilent},
	{"sending more than it says", 1, 50 * time.Millisecond, (*proxySoak).says10},
	{"sending two lengths", 1, 50 * time.Millisecond, (*proxySoak).smuggles},
	{"sending too much", 1, 50 * time.Millisecond, (*proxySoak).overflows},
	{"not reading", 1, 200 * time.Millisecond, (*proxySoak).readsNothing},
	{"talking both ways", 2, 10 * time.Millisecond, (*proxySoak).talks},
}

// clients has all of them at work until it is over.
func (k *proxySoak) clients(all *sync.WaitGroup) {
	n := 0
	for _, d := range soakDeeds {
		for i := range d.clients {
			pool := &http.Transport{Protocols: new(http.Protocols)}
			pool.Protocols.SetHTTP1(i%3 != 2)
			pool.Protocols.SetUnencryptedHTTP2(i%3 == 2) // every third speaks HTTP/2
			k.pools = append(k.pools, pool)
			c := &http.Client{Transport: pool, Timeout: time.Minute}
			key := k.key(soakClients[n%len(soakClients)])
			n++
			all.Go(func() {
				defer pool.CloseIdleConnections()
				for !k.over.Load() {
					k.working.RLock()
					d.do(k, c, key, k.ask(), d.says)
					k.working.RUnlock()
					if time.Sleep(rand.N(2*d.pause + 1)); rand.N(50) == 0 {
						pool.CloseIdleConnections()
					}
				}
			})
		}
	}
}

// slowly is a body that comes byte by byte.
type slowly struct{ left int }

func (s *slowly) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(rand.N(20 * time.Millisecond))
	s.left--
	p[0] = 'x'
	return 1, nil
}

func (k *proxySoak) request(ctx context.Context, method, path, key string, id int, body io.Reader) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, fmt.Sprintf("http://%s%s?id=%d", k.at, path, id), body)
	if err != nil {
		panic(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	return r
}

// sends is a request as it should be, and its whole answer.
func sends(method, path string, body func() io.Reader) func(*proxySoak, *http.Client, string, int, string) {
	return func(k *proxySoak, c *http.Client, key string, id int, says string) {
		var b io.Reader
		if body != nil {
			b = body()
		}
		status, text, err := answerTo(c, k.request(context.Background(), method, path, key, id, b))
		want := http.StatusOK
		if path == "/wrong" {
			want = http.StatusInternalServerError
		}
		if err != nil || status != want || text != fmt.Sprintf("of %d", id) {
			k.wrong("%d, %s: %d %q %v", id, says, status, text, err)
		}
		k.end(id, says, whole)
	}
}

// wanders requests paths that no client has requested before.
func (k *proxySoak) wanders(c *http.Client, key string, id int, says string) {
	path := []byte("/aaaaaaaa")
	for i := range path[1:] {
		path[1+i] = byte('a' + rand.N(26))
	}
	sends("GET", string(path), nil)(k, c, key, id, says)
}

// listens takes a stream to its end.
func (k *proxySoak) listens(c *http.Client, key string, id int, says string) {
	status, text, err := answerTo(c, k.request(context.Background(), "GET", "/events", key, id, nil))
	if err != nil || status != http.StatusOK || strings.Count(text, fmt.Sprintf(" of %d\n\n", id)) != soakEvents {
		k.wrong("%d, %s: %d %q %v", id, says, status, text, err)
	}
	k.end(id, says, whole)
}

func (k *proxySoak) turnsAway(c *http.Client, key string, id int, says string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if resp, err := c.Do(k.request(ctx, "GET", "/events", key, id, nil)); err == nil {
		_, _ = bufio.NewReader(resp.Body).ReadString('\n')
		cancel()
		resp.Body.Close()
	}
	k.end(id, says, gone)
}

func (k *proxySoak) readsSome(c *http.Client, key string, id int, says string) {
	if resp, err := c.Do(k.request(context.Background(), "GET", "/big", key, id, nil)); err == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, rand.Int64N(1<<20))
		resp.Body.Close()
	}
	k.end(id, says, gone)
}

func (k *proxySoak) givesUp(c *http.Client, key string, id int, says string) {
	ctx, cancel := context.WithTimeout(context.Background(), rand.N(60*time.Millisecond))
	defer cancel()
	if rand.N(2) == 0 {
		_, _, _ = answerTo(c, k.request(ctx, "GET", "/things/17", key, id, nil))
	} else {
		_, _, _ = answerTo(c, k.request(ctx, "POST", "/things", key, id, strings.NewReader(strings.Repeat("x", 1<<20))))
	}
	k.end(id, says, gone)
}

// hurries says for how long it would wait, which is not long.
func (k *proxySoak) hurries(c *http.Client, key string, id int, says string) {
	r := k.request(context.Background(), "GET", "/things/17", key, id, nil)
	r.Header.Set("Paceline-Max-Wait", "5ms")
	status, text, err := answerTo(c, r)
	switch {
	case err == nil && status == http.StatusOK && text == fmt.Sprintf("of %d", id):
		k.end(id, says, whole)
		return
	case err != nil || status != http.StatusTooManyRequests || !strings.Contains(text, "wait-too-long"):
		k.wrong("%d, %s: %d %q %v", id, says, status, text, err)
	}
	k.end(id, says, denied)
}

func (k *proxySoak) stranger(c *http.Client, _ string, id int, says string) {
	if status, text, err := answerTo(c, k.request(context.Background(), "POST", "/things", "guessed", id, strings.NewReader("{}"))); err != nil || status != http.StatusUnauthorized {
		k.wrong("%d, %s: %d %q %v", id, says, status, text, err)
	}
	k.end(id, says, denied)
}

// raw sends bytes as they are, and returns all bytes until the connection is closed. The proxy
// closes it, or raw itself if atOnce.
func (k *proxySoak) raw(text string, atOnce bool) string {
	c, err := net.Dial("tcp", k.at)
	if err != nil {
		k.wrong("it does not accept: %v", err)
		return ""
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.WriteString(c, text)
	if atOnce {
		time.Sleep(rand.N(20 * time.Millisecond))
		return ""
	}
	b, _ := io.ReadAll(c)
	return string(b)
}

func (k *proxySoak) head(method, path, key string, id int, fields ...string) string {
	return fmt.Sprintf("%s %s?id=%d HTTP/1.1\r\nHost: a.test\r\nAuthorization: Bearer %s\r\n%s\r\n\r\n", method, path, id, key, strings.Join(fields, "\r\n"))
}

func (k *proxySoak) breaksOff(_ *http.Client, key string, id int, says string) {
	length := "Content-Length: 5000"
	if rand.N(2) == 0 {
		length = "Content-Length: 5000000"
	}
	k.raw(k.head("POST", "/things", key, id, length)+strings.Repeat("x", 1000), true)
	k.end(id, says, gone)
}

func (k *proxySoak) stammers(_ *http.Client, key string, id int, says string) {
	k.raw("POST /things HTTP/1.1\r\nHost: a.test\r\nAuthorizat", rand.N(10) > 0)
	k.end(id, says, denied)
}

func (k *proxySoak) fallsSilent(_ *http.Client, key string, id int, says string) {
	if got := k.raw(k.head("POST", "/things", key, id, "Content-Length: 20")+"0123456789", false); !strings.HasPrefix(got, "HTTP/1.1 408 ") {
		k.wrong("%d, %s: %q", id, says, got)
	}
	k.end(id, says, denied)
}

// says10 sends ten bytes more than it says: they are another request, which is none.
func (k *proxySoak) says10(_ *http.Client, key string, id int, says string) {
	got := k.raw(k.head("POST", "/things", key, id, "Content-Length: 10")+"01234567890123456789\r\n\r\n", false)
	if first, second := strings.Index(got, fmt.Sprintf("of %d", id)), strings.Index(got, "HTTP/1.1 400 "); first < 0 || second < first {
		k.wrong("%d, %s: %q", id, says, got)
	}
	k.end(id, says, whole)
}

func (k *proxySoak) smuggles(_ *http.Client, key string, id int, says string) {
	if got := k.raw(k.head("POST", "/things", key, id, "Content-Length: 5", "Content-Length: 7")+"0123456", false); !strings.HasPrefix(got, "HTTP/1.1 400 ") {
		k.wrong("%d, %s: %q", id, says, got)
	}
	k.end(id, says, denied)
}

func (k *proxySoak) overflows(_ *http.Client, key string, id int, says string) {
	if got := k.raw(k.head("POST", "/things", key, id, "Content-Length: 9000000", "Connection: close"), false); !strings.HasPrefix(got, "HTTP/1.1 413 ") {
		k.wrong("%d, %s: %q", id, says, got)
	}
	k.end(id, says, denied)
}

// readsNothing asks for more than the system holds, and waits until it is let go of.
func (k *proxySoak) readsNothing(_ *http.Client, key string, id int, says string) {
	c, err := net.Dial("tcp", k.at)
	if err != nil {
		k.wrong("it does not accept: %v", err)
		return
	}
	defer c.Close()
	_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, _ = io.WriteString(c, k.head("GET", "/big", key, id, "X: y"))
	time.Sleep(3500 * time.Millisecond)
	k.end(id, says, gone)
}

// talks becomes a connection, and says something over it. It may hang up, and not say so.
func (k *proxySoak) talks(_ *http.Client, key string, id int, says string) {
	c, err := net.Dial("tcp", k.at)
	if err != nil {
		k.wrong("it does not accept: %v", err)
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	_, _ = io.WriteString(c, k.head("GET", "/chat", key, id, "Connection: Upgrade", "Upgrade: echo"))
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		k.wrong("%d, %s: %v %v", id, says, resp, err)
		k.end(id, says, gone)
		return
	}
	for i := range rand.N(10) {
		text := fmt.Appendf(nil, "%d of %d\n", i, id)
		_, _ = c.Write(text)
		if got, err := r.ReadBytes('\n'); err != nil || !bytes.Equal(got, text) {
			k.wrong("%d, %s: %q %v", id, says, got, err)
		}
	}
	k.end(id, says, whole)
}
