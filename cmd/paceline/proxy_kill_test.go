package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// A proxy is killed under load and started again at once, many times. A server with any kind of
// window refuses nothing. Each answer to a client agrees with the server's.
//
//	PACELINE_LONG=1 go test ./cmd/paceline -run TestProxyKilled -v       50 times each
func TestProxyKilled(t *testing.T) {
	t.Parallel()
	kills := 5
	if need.Long() {
		kills = 50
	}
	const secret = "kill-hunter2-55d0b1"
	for _, c := range []struct {
		name   string
		limit  int64
		window time.Duration
		tens   int64 // of another limit, in 10 windows
		config string
	}{
		{name: "a second", limit: 50, window: time.Second},
		{name: "two limits", limit: 60, window: time.Second, tens: 300},
		{name: "several servers", limit: 50, window: time.Second, config: "version: 1\nlisten: %s\nadmin: %s\nstate: %s\nupstreams:\n" +
			"  - {name: one, path: /one, to: %s, limits: [50/s], header: {Authorization: 'Bearer {key}'}, keys: [{name: a, env: PL_KILL_KEY}]}\n" +
			"  - {name: two, path: /two, to: %s, limits: [50/s]}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			state := filepath.Join(t.TempDir(), "proxy.state")
			one, two := newLawful(t, c.limit, c.window), newLawful(t, c.limit, c.window)
			p := newPassing(t, []string{secret}, "--to", one.URL, "--limit", fmt.Sprintf("%d/%v", c.limit, c.window), "--state", state)
			p.env = []string{"PL_KILL_KEY=" + secret}
			if c.tens > 0 {
				p.args = append(p.args, "--limit", fmt.Sprintf("%d/%v", c.tens, 10*c.window))
				one.also(t, c.tens, 10*c.window)
			}
			paths := []string{""}
			if c.config != "" {
				paths = []string{"/one", "/two"}
				file := write(t, "proxy.yaml", fmt.Sprintf(c.config, p.at, p.admin, state, one.URL, two.URL))
				p.args = []string{"proxy", "--config", file}
			}
			k := &slain{passing: p, servers: map[string]*lawful{"": one, "/one": one, "/two": two}, paths: paths}
			k.run(kills)
			for _, path := range paths {
				if refused, passed := k.servers[path].told(); len(refused) > 0 || passed == 0 {
					t.Errorf("%q refused %d, and let %d through: %v", path, len(refused), passed, clipped(refused))
				}
			}
			if b, err := os.ReadFile(state); err != nil || len(b) == 0 || strings.Contains(string(b), secret) {
				t.Errorf("the state file: %v, %d bytes", err, len(b))
			}
		})
	}
}

// slain is a proxy that clients go on to send through.
type slain struct {
	*passing
	servers map[string]*lawful
	paths   []string
	last    atomic.Int64
	over    atomic.Bool
	whole   atomic.Int64
	lost    atomic.Int64 // broke off
	told    atomic.Int64 // the proxy said why not
}

func (k *slain) run(kills int) {
	k.begin()
	var clients sync.WaitGroup
	for i := range 24 {
		clients.Go(func() { k.client(k.paths[i%len(k.paths)], fmt.Sprintf("key-%d", i%2)) })
	}
	began := time.Now()
	for range kills {
		time.Sleep(150*time.Millisecond + rand.N(1600*time.Millisecond))
		k.kill()
		k.begin()
	}
	took := time.Since(began)
	// On a machine with little to spare for this test, a proxy is up for most of its time without an answer yet.
	for end := time.Now().Add(2 * time.Minute); k.whole.Load() < 100 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	k.over.Store(true)
	clients.Wait()
	k.t.Logf("%d kills in %v: %d whole, %d broken off, %d told why not", kills, took.Round(time.Second), k.whole.Load(), k.lost.Load(), k.told.Load())
	if k.lost.Load() == 0 || k.whole.Load() < 100 {
		k.t.Error("nothing is shown")
	}
}

// client sends as fast as it is let, until it is over.
func (k *slain) client(path, key string) {
	server := k.servers[path]
	c := http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	for !k.over.Load() {
		id := int(k.last.Add(1))
		r, err := http.NewRequest("POST", fmt.Sprintf("http://%s%s/things?id=%d", k.at, path, id), strings.NewReader("{}"))
		if err != nil {
			k.t.Error(err)
			return
		}
		r.Header.Set("Authorization", "Bearer "+key)
		status, text, err := answerTo(&c, r)
		switch {
		case err != nil:
			k.lost.Add(1)
			time.Sleep(2 * time.Millisecond)
		case status == http.StatusOK && text == fmt.Sprintf("of %d", id):
			k.whole.Add(1)
		case status == http.StatusTooManyRequests || status >= 500:
			k.told.Add(1)
			time.Sleep(10 * time.Millisecond)
		default:
			k.t.Errorf("%d is answered with %d %q", id, status, text)
		}
		if n := server.times(id); n > 1 || n == 0 && err == nil && status == http.StatusOK {
			k.t.Errorf("%d was served %d times: %d %v", id, n, status, err)
		}
	}
}

// answerTo is the answer to a request, if it is whole.
func answerTo(c *http.Client, r *http.Request) (status int, text string, err error) {
	resp, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}
