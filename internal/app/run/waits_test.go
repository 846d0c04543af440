package run

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/auth"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

func TestResultsSayWhatWasWaitedFor(t *testing.T) {
	srv, _ := counting(t, func(http.ResponseWriter, *http.Request) {})
	b := newBench(t)
	b.config.Concurrency = crowd // with more, the first answer would be waited for
	b.config.Limits = []format.Rate{{N: 2, Per: 200 * time.Millisecond, Text: "2/200ms"}}
	got := b.run(requests(4, srv.URL)...)
	for id, waited := range map[string]bool{"r0": false, "r1": false, "r2": true, "r3": true} {
		r := got.results[id]
		if ms := r.WaitedFor["limit 2/200ms"]; (ms > 100) != waited || float64(ms) > r.WaitedMS+100 {
			t.Errorf("%s: %v of %v ms", id, r.WaitedFor, r.WaitedMS)
		}
	}
}

// Each cause of a wait has its name: the first answer of a key, the remaining quota that the server
// states, load that begins slowly. The order of nonces is no cause without nonces.
func TestWaitsHaveTheirNames(t *testing.T) {
	for _, c := range []struct {
		name, want string
		nonces     bool
		handler    func(n int, w http.ResponseWriter)
		limits     []format.Rate
		keys       int
	}{
		{"two keys", "the first answer", false, func(int, http.ResponseWriter) { time.Sleep(100 * time.Millisecond) }, []format.Rate{{N: 100, Per: time.Second, Text: "100/s"}}, 2},
		{"what is left", "what is left", false, func(n int, w http.ResponseWriter) {
			w.Header().Set("RateLimit", `"a";r=`+strconv.Itoa(max(2-n, 0))+`;t=1`)
			w.Header().Set("RateLimit-Policy", `"a";q=2;w=1`)
		}, []format.Rate{{N: 100, Per: 10 * time.Second, Text: "100/10s"}}, 0},
		{"after a refusal", "slow beginning", false, func(n int, w http.ResponseWriter) {
			if n == 1 {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}, nil, 0},
		{"nonces", "nonce order", true, func(int, http.ResponseWriter) { time.Sleep(50 * time.Millisecond) }, []format.Rate{{N: 100, Per: time.Second, Text: "100/s"}}, 0},
	} {
		var n atomic.Int32
		srv, _ := counting(t, func(w http.ResponseWriter, _ *http.Request) { c.handler(int(n.Add(1)), w) })
		b := newBench(t)
		b.config.Limits, b.config.Concurrency = c.limits, 8
		for i := range c.keys {
			b.config.Keys = append(b.config.Keys, format.Key{Name: fmt.Sprint("K", i), Secret: fmt.Sprint("s3cret-Of-9a7Kq-", i)})
		}
		if c.nonces {
			var err error
			if b.config.Header, err = format.ParseHeaders([]string{"X: {nonce}"}); err != nil {
				t.Fatal(err)
			}
		}
		names := map[string]bool{}
		res := b.run(requests(map[bool]int{true: 30, false: 9}[c.limits == nil], srv.URL)...).results
		for _, r := range res {
			for name := range r.WaitedFor {
				names[name] = true
			}
		}
		found := names[c.want]
		for name := range names {
			found = found || strings.HasPrefix(name, c.want+" of K")
		}
		if !found || !c.nonces && names["nonce order"] {
			t.Errorf("%s: it waited for %v, want %q", c.name, names, c.want)
		}
	}
}

// newToken gives a token.
type newToken struct{ takes time.Duration }

func (newToken) Secrets() map[string]string { return nil }
func (newToken) String() string             { return "a new token" }
func (n newToken) Issue(context.Context) (auth.Token, error) {
	time.Sleep(n.takes)
	return auth.Token{Value: "s3cret-Of-Token-8f2", Lasts: n.takes + time.Minute}, nil
}

// A request that waits for a full window does not wait for a token, although none is there yet, or
// it has ended meanwhile. It waits for a token when nothing else is missing.
func TestWaitsForWindowOrToken(t *testing.T) {
	for _, c := range []struct {
		limit format.Rate
		takes time.Duration
		want  string
	}{
		{format.Rate{N: 1, Per: time.Minute, Text: "1/m"}, 0, "map[limit 1/m:120000]"},
		{format.Rate{N: 9, Per: time.Second, Text: "9/s"}, time.Minute, "map[token:60000]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b, url, _ := virtualBench(t, func(http.ResponseWriter, *http.Request) {})
			b.config.Limits, b.config.Concurrency = []format.Rate{c.limit}, 1
			var err error
			if b.config.Header, err = format.ParseHeaders([]string{"Authorization: Bearer {token}"}); err != nil {
				t.Fatal(err)
			}
			b.config.Bearer = &Bearer{Issuer: newToken{c.takes}}
			b.run(request("a", url))
			out := b.run(request("a", url), request("b", url), request("c", url))
			waited := out.results["c"].WaitedFor
			for cause, ms := range waited {
				if waited[cause] = (ms + 1000) / 60_000 * 60_000; waited[cause] == 0 { // a latency
					delete(waited, cause)
				}
			}
			if got := fmt.Sprint(waited); got != c.want {
				t.Errorf("%s, tokens that take %v: waited for %s, want %s", c.limit.Text, c.takes, got, c.want)
			}
		})
	}
}
