package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
