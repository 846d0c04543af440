package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/paceline-go/paceline/internal/text/rate"
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
