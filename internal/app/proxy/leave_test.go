package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

// What another program sends by itself counts as much as the program says, also where that is less than the upstream's charge. It
// waits in the line of the upstream, and the proxy sends nothing for it.
func TestLeaveCostsWhatIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		x := virtual(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy sends a request of its own") }),
			Config{Upstreams: []Upstream{{Name: "api", To: mustURL(t, "http://api.test"),
				Charges: []provider.Charge{{On: "POST *", Cost: map[provider.Unit]int64{provider.Weight: 50}}},
				Limits:  []Limit{limitOfUnit(t, "100 weight/m", "")}}}})
		o := Outside{Client: Client{Name: "cron"}, Cost: limit.Cost{limit.Weight: 30}, MaxWait: 5 * time.Minute}
		var mu sync.Mutex
		var at []string
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				l, err := x.proxy.Leave(t.Context(), "api", o)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				at = append(at, fmt.Sprint(time.Since(began).Round(time.Second)))
				mu.Unlock()
				l.Answered(http.StatusOK, nil, "", limit.Cost{})
			})
		}
		synctest.Wait()
		wait, ahead, ok, err := x.proxy.Expect("api", o)
		if wait.Round(time.Second) != time.Minute || ahead != 1 || !ok || err != nil {
			t.Errorf("another one waits %v behind %d, %v, %v", wait, ahead, ok, err)
		}
		all.Wait()
		if want := []string{"0s", "0s", "0s", "1m0s"}; !slices.Equal(at, want) {
			t.Errorf("they went at %v, expected %v", at, want)
		}
		if l, err := x.proxy.Leave(t.Context(), "gone", o); l != nil || err != nil {
			t.Errorf("at no upstream: %v, %v", l, err)
		}
	})
}

// The sender of a Leave learns which of the upstream's keys is meant. It may take as long as it likes: the upstream's
// timeout is for requests that the proxy sends.
func TestLeaveNamesItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy sends a request of its own") })
		x := virtual(t, sent, Config{Upstreams: []Upstream{{
			Name: "api", To: mustURL(t, "http://api.test"), AnswerTimeout: time.Second, Limits: limitsOf("1/h"),
			Keys:   []Key{{Name: "K1", Secret: ours}, {Name: "K2", Secret: second}},
			Header: []Field{{"Authorization", "Bearer {key}"}},
		}}})
		var keys []string
		var all []*Leave
		for range 2 {
			l, err := x.proxy.Leave(t.Context(), "api", Outside{Client: Client{Name: "cron"}, MaxWait: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			all, keys = append(all, l), append(keys, l.Key)
		}
		if slices.Sort(keys); !slices.Equal(keys, []string{"K1", "K2"}) {
			t.Errorf("they are of the keys %q, expected each of K1 and K2", keys)
		}
		time.Sleep(time.Hour)
		for _, l := range all {
			if l.Answered(http.StatusOK, nil, "", limit.Cost{}); l.err != nil {
				t.Errorf("after an hour it has ended: %v", l.err)
			}
		}
	})
}

// A Leave whose sender is gone has ended, by nobody's answer: nothing is sent, and it counts.
func TestLeaveIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy sends a request of its own") })
		conf := to(mustURL(t, "http://api.test"), "1/10s")
		conf.Upstreams[0].Name = "api"
		x := virtual(t, sent, conf)
		o := Outside{Client: Client{Name: "cron"}, MaxWait: time.Minute}
		l, err := x.proxy.Leave(t.Context(), "api", o)
		if err != nil {
			t.Fatal(err)
		}
		if l.Lost(); !errors.Is(l.err, context.Canceled) {
			t.Errorf("it has ended with %v, expected that it was given up", l.err)
		}
		began := time.Now()
		next, err := x.proxy.Leave(t.Context(), "api", o)
		if err != nil {
			t.Fatal(err)
		}
		if after := time.Since(began); after < 10*time.Second {
			t.Errorf("the next goes after %v", after)
		}
		next.Unsent()
	})
}

// The request of a Leave counts over a crash for as long as its sender may take, and not only for the upstream's
// timeout. A request that the proxy sent itself has ended by then.
func TestLeaveCountsOverCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
		conf := to(mustURL(t, "http://api.test"), "1/10s")
		conf.State = filepath.Join(t.TempDir(), "proxy.state")
		conf.clock, conf.Log = bubbleClock, slog.New(slog.DiscardHandler)
		conf.Upstreams[0].Name, conf.Upstreams[0].AnswerTimeout, conf.Upstreams[0].Attempts = "api", time.Second, 1
		first := virtual(t, server, conf)
		if resp, _ := first.do("POST", "/", "{}"); resp.StatusCode != http.StatusGatewayTimeout {
			t.Errorf("a request of the proxy is answered %d", resp.StatusCode)
		}
		o := Outside{Client: Client{Name: "cron"}, MaxWait: time.Hour}
		l, err := first.proxy.Leave(t.Context(), "api", o)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		crashed := conf.State + ".crashed" // a kill leaves the file as it is now
		for _, suffix := range []string{"", ".salt"} {
			text, err := os.ReadFile(conf.State + suffix)
			if err == nil {
				err = os.WriteFile(crashed+suffix, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		l.Unsent()
		conf.State = crashed
		began := time.Now()
		next, err := virtual(t, server, conf).proxy.Leave(t.Context(), "api", o)
		if err != nil {
			t.Fatal(err)
		}
		if after, want := time.Since(began), 10*time.Second+journal.Late; after < want || after > want+time.Second {
			t.Errorf("after the crash the next one goes after %v, expected %v", after, want)
		}
		next.Unsent()
	})
}
