package proxy

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/ratetest"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// virtually runs f with a proxy before a server, in virtual time, and has both end. Clients of
// client connect to the proxy.
func virtually(t *testing.T, server http.Handler, c Config, f func(p *Proxy, client func() *http.Client)) {
	t.Helper()
	x := virtual(t, server, c)
	var all []*http.Client
	f(x.proxy, func() *http.Client {
		all = append(all, clientBy(t, x.dial))
		return all[len(all)-1]
	})
	synctest.Wait()
	for _, h := range all {
		h.CloseIdleConnections()
	}
	x.once.Do(func() { // after Stop, and not broken off
		x.server.Stop()
		if err := x.server.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// Programs that send at once and without thinking are never refused by a strict server, and are
// nearly as fast as anybody could be.
func TestPromise(t *testing.T) {
	const (
		programs, each = 8, 75
		all            = programs * each
	)
	for _, c := range []struct {
		name          string
		before, after latency.Law
	}{
		{"no latency", latency.Constant(0), latency.Constant(0)}, {"even", latency.Constant(20 * time.Millisecond), latency.Constant(20 * time.Millisecond)}, {"jitter", latency.Uniform(0, 50*time.Millisecond), latency.Uniform(0, 50*time.Millisecond)},
	} {
		synctest.Test(t, func(t *testing.T) {
			exchange, err := ratetest.NewExchange(ratetest.Config{Keys: []string{"key1"}, Before: c.before, After: c.after, AnyNonce: true})
			if err != nil {
				t.Fatal(err)
			}
			conf := to(mustURL(t, "http://exchange.test"), "20/s")
			conf.Clients.Header = "X-Who"
			conf.MaxWait = 10 * time.Minute
			began := time.Now()
			virtually(t, exchange, conf, func(_ *Proxy, client func() *http.Client) {
				var running sync.WaitGroup
				for i := range programs {
					h := client()
					for j := range each {
						running.Go(func() {
							r, _ := http.NewRequest("POST", "http://proxy.test"+ratetest.Path, strings.NewReader(fmt.Sprintf("api_key=key1&nonce=%d", j)))
							r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
							r.Header.Set("X-Who", fmt.Sprint(i))
							resp, err := h.Do(r)
							if err != nil {
								t.Error(err)
								return
							}
							io.Copy(io.Discard, resp.Body)
							resp.Body.Close()
							if resp.StatusCode != 200 {
								t.Errorf("program %d: %d", i, resp.StatusCode)
							}
						})
					}
				}
				running.Wait()
			})
			took := time.Since(began)
			total := exchange.Report().Judge.Total
			ideal := time.Duration(all/20-1) * time.Second
			t.Logf("%s: %v for %d, the ideal is %v and the way back; %+v", c.name, took, all, ideal, total)
			if total.Accepted != all || total.Total() != all {
				t.Errorf("%s: %+v", c.name, total)
			}
			if most := ideal + ideal*3/100 + 30*100*time.Millisecond; took > most {
				t.Errorf("%s: it took %v, expected %v at most", c.name, took, most)
			}
		})
	}
}

// An unknown limit that only refusals show is found: the server refuses few requests, and no
// program gets a refusal.
func TestAuto(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exchange, err := ratetest.NewExchange(ratetest.Config{Keys: []string{"key1"}, Before: latency.Constant(10 * time.Millisecond), AnyNonce: true, BanAfter: -1})
		if err != nil {
			t.Fatal(err)
		}
		conf := to(mustURL(t, "http://exchange.test"))
		conf.Upstreams[0].Auto, conf.Upstreams[0].Attempts, conf.MaxWait = true, 50, 10*time.Minute
		const all = 2000
		began := time.Now()
		virtually(t, exchange, conf, func(_ *Proxy, client func() *http.Client) {
			var running sync.WaitGroup
			h := client()
			for range all {
				running.Go(func() {
					resp, err := h.Get("http://proxy.test" + ratetest.Path + "?api_key=key1&nonce=1")
					if err != nil {
						t.Error(err)
						return
					}
					b, _ := io.ReadAll(resp.Body)
					resp.Body.Close()
					if resp.StatusCode != 200 {
						t.Errorf("%d %s", resp.StatusCode, b)
					}
				})
			}
			running.Wait()
		})
		took, total := time.Since(began), exchange.Report().Judge.Total
		t.Logf("%v for %d, at 20 a second: %+v", took, all, total)
		if total.Accepted != all || total.Limited > all/20 || took > 2*all/20*time.Second {
			t.Errorf("%v, %+v", took, total)
		}
	})
}
