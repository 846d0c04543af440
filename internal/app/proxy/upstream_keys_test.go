package proxy

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
)

const second = "sk-provider-7hG5dR3wQ1sX"

// Each key has the limits for itself, unless it has its own, and a request goes with one that may
// go.
func TestKeys(t *testing.T) {
	var mu sync.Mutex
	served := map[string]int{}
	u := upstreamOf(t, func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		served[r.Header.Get("Authorization")+" "+r.URL.RawQuery+" "+r.Header.Get("X-Api-Key")+" "+r.Trailer.Get("X-Sum")]++
	})
	hourly, _ := rate.ParseLimit("3/h")
	conf := to(u, "2/h")
	conf.MaxWait = -1
	conf.Upstreams[0].Keys = []Key{{Name: "K1", Secret: ours}, {Name: "K2", Secret: second, Limits: []rate.Limit{hourly}}}
	conf.Upstreams[0].Header = []Field{{"Authorization", "Bearer {key}"}}
	conf.Upstreams[0].Query = []Field{{"key", "{key}"}}
	x := start(t, conf)
	for i := range 7 {
		r, _ := http.NewRequest("POST", x.url+"/?a=1&key=mine", struct{ io.Reader }{strings.NewReader("x")})
		r.Trailer = http.Header{"X-Sum": {"1"}}
		r.Header.Set("Authorization", "Bearer sdk-insists")
		r.Header.Set("X-Api-Key", "sdk-insists")
		resp, err := clientOf(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if want := 200; i < 5 && resp.StatusCode != want || i >= 5 && resp.StatusCode != 429 {
			t.Errorf("request %d: %d %s", i, resp.StatusCode, b)
		}
		if strings.Contains(string(b), ours) || strings.Contains(string(b), second) {
			t.Errorf("the answer has a key in it: %s", b)
		}
	}
	want := map[string]int{fmt.Sprintf("Bearer %s a=1&key=%[1]s  1", ours): 2, fmt.Sprintf("Bearer %s a=1&key=%[1]s  1", second): 3}
	if fmt.Sprint(served) != fmt.Sprint(want) {
		t.Errorf("served %v, expected %v", served, want)
	}
	log := x.log.String()
	if strings.Count(log, "key=K1") != 2 || strings.Count(log, "key=K2") != 3 || strings.Contains(log, ours) || strings.Contains(log, second) || strings.Contains(log, "sdk-insists") {
		t.Error(log)
	}
}

// A key that the server denies is excluded. When no key is left, the answer says so.
func TestKeysThatAreDenied(t *testing.T) {
	good := true
	u := upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
		if !good || r.Header.Get("Authorization") != "Bearer "+second {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	conf := to(u, "1000/s")
	conf.Upstreams[0].Keys = []Key{{Name: "K1", Secret: ours}, {Name: "K2", Secret: second}}
	conf.Upstreams[0].Header = []Field{{"Authorization", "Bearer {key}"}}
	x := start(t, conf)
	for range 10 {
		if resp, body := x.do("GET", "/", ""); resp.StatusCode != 200 {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
	if log := x.log.String(); !strings.Contains(log, "K1") || strings.Contains(log, ours) || strings.Contains(log, second) {
		t.Error(log)
	}
}

// A key counts once, whether it comes in the query or in a form. So an exchange that bans for refusals refuses
// nothing. A proxy with keys of its own fills them, whatever key the form has.
func TestKeysInForms(t *testing.T) {
	for name, own := range map[string]bool{"of clients": false, "of the proxy": true} {
		synctest.Test(t, func(t *testing.T) {
			server, err := ratetest.NewExchange(ratetest.Config{Keys: []string{"key1", "key2"}, AnyNonce: true, Seed: 1,
				Before: latency.Uniform(0, 50*time.Millisecond), After: latency.Uniform(0, 50*time.Millisecond)})
			if err != nil {
				t.Fatal(err)
			}
			conf := to(mustURL(t, "http://exchange.test"), "20/s")
			conf.MaxWait = time.Hour
			if own {
				conf.Upstreams[0].Keys = []Key{{Name: "K1", Secret: "key1"}, {Name: "K2", Secret: "key2"}}
				conf.Upstreams[0].Query = []Field{{"api_key", "{key}"}}
			}
			virtually(t, server, conf, func(_ *Proxy, client func() *http.Client) {
				h, all := client(), sync.WaitGroup{}
				for i := range 120 {
					all.Go(func() {
						at, query, form := "http://proxy.test"+ratetest.Path, "", ""
						if query = "?api_key=key1"; i%2 > 0 {
							query, form = "", "side=buy&api%5Fkey=key1&amount=1"
						}
						r, _ := http.NewRequest([]string{"GET", "POST"}[i%2], at+query, strings.NewReader(form))
						r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
						resp, err := h.Do(r)
						if err != nil {
							t.Error(err)
							return
						}
						if resp.Body.Close(); resp.StatusCode != 200 {
							t.Errorf("%s: %d", name, resp.StatusCode)
						}
					})
				}
				all.Wait()
			})
			if total := server.Report().Judge.Total; total.Accepted != 120 || total.Total() != 120 {
				t.Errorf("%s: %v, want 120 accepted", name, total)
			}
			if second := server.Report().Judge.Keys[1].Counts.Accepted; own != (second > 40) {
				t.Errorf("%s: %d with the second key", name, second)
			}
		})
	}
}

// A server with requests that have a key and others without is named once, with the flag that helps.
func TestSomeWithoutKey(t *testing.T) {
	for name, c := range map[string]struct {
		paths []string
		in    []string
		want  int
	}{
		"both":   {[]string{"/?api_key=a", "/", "/?api_key=a", "/"}, nil, 1},
		"keys":   {[]string{"/?api_key=a", "/?api_key=b"}, nil, 0},
		"none":   {[]string{"/", "/"}, nil, 0},
		"stated": {[]string{"/?api_key=a", "/"}, []string{"none"}, 0},
	} {
		conf := to(upstreamOf(t, func(http.ResponseWriter, *http.Request) {}), "20/s")
		var err error
		if conf.Upstreams[0].KeyIn, err = ParseKeyIn(c.in); err != nil {
			t.Fatal(err)
		}
		x := start(t, conf)
		for _, path := range c.paths {
			x.do("GET", path, "")
		}
		if got := strings.Count(x.log.String(), "--key-in"); got != c.want {
			t.Errorf("%s: said %d times, want %d", name, got, c.want)
		}
	}
	for _, bad := range []string{"header", "header a b", "field x", "none x", "parameter a=b"} {
		if _, err := ParseKeyIn([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := ParseKeyIn([]string{"none", "header x"}); err == nil {
		t.Error("none is taken beside a field")
	}
}

// A body that is too long for a credential goes on as it comes: the server gets its beginning before the client
// has its end. So does a short one of another kind.
func TestLongBodiesAreNotHeld(t *testing.T) {
	const part, buffered = secret.MostBody + 1, 16 << 10 // in the client and in the proxy, 4 KiB each
	for name, c := range map[string]struct {
		kind   string
		length int64
		first  int
	}{
		"JSON of a known length":    {"application/json", 5 * part, 1},
		"JSON of an unknown length": {"application/json", -1, part},
		"a form":                    {"application/x-www-form-urlencoded", -1, part},
		"lines of JSON":             {"application/x-ndjson", -1, 1},
		"bytes":                     {"", -1, 1},
	} {
		came := make(chan struct{})
		x := start(t, to(upstreamOf(t, func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadFull(r.Body, make([]byte, c.first)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			close(came)
			n, err := io.Copy(io.Discard, r.Body)
			if want := int64(5*part - c.first); n != want || err != nil {
				t.Errorf("%s: %d more bytes, %v, want %d", name, n, err, want)
			}
		})))
		out, in := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // if the body is held
		r, err := http.NewRequestWithContext(ctx, "POST", x.url+"/", out)
		if err != nil {
			t.Fatal(err)
		}
		if r.ContentLength = c.length; c.kind != "" {
			r.Header.Set("Content-Type", c.kind)
		}
		go func() {
			in.Write(make([]byte, c.first+buffered))
			select {
			case <-came:
			case <-ctx.Done():
			}
			in.Write(make([]byte, 5*part-c.first-buffered))
			in.Close()
		}()
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if resp.Body.Close(); resp.StatusCode != 200 {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
		cancel()
	}
	http.DefaultClient.CloseIdleConnections()
}
