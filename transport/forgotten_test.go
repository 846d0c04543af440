package transport_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/transport"
)

// fullFor is a ledger that takes nothing of routes that begin so.
type fullFor struct {
	*kept
	prefix string
}

func (l fullFor) Send(p transport.Partition, cost limit.Cost) (int64, error) {
	if strings.HasPrefix(p.Route, l.prefix) {
		return 0, errors.New("no space left")
	}
	return l.kept.Send(p, cost)
}

// The counts of a key's requests stay when their partitions are forgotten.
func TestCountsOutliveTheirPartitions(t *testing.T) {
	want := observe.Counts{
		Sent: 5 + 2 + 3 + 4 + 6, Accepted: 5, Limited: 2, Failed: 3, Unknown: 4, Unsent: 6, Never: 2, Late: 3, Full: 1, Cancelled: 1,
		Used: observe.Amounts{Requests: 5, Orders: 1, Input: 5 * 7, Output: 5 * 5, Tokens: 5 * 12},
	}
	for _, most := range []int{1, 100} {
		synctest.Test(t, func(t *testing.T) {
			tr := mustNew(t, transport.Config{
				Attempts: 1, MaxPartitions: most, MaxWaiting: 1, Tokens: estimator(t), Counting: tokens.Used, Recorder: fullFor{new(kept), "unsent"},
				Base: roundTripper(func(r *http.Request) (*http.Response, error) {
					switch route := r.Header.Get("Route"); {
					case strings.HasPrefix(route, "lost"):
						return nil, errors.New("gone")
					case strings.HasPrefix(route, "refused"):
						return reply(429, "no"), nil
					case strings.HasPrefix(route, "failed"):
						return reply(400, "no"), nil
					}
					return reply(200, usage7and5), nil
				}),
				Partition: func(r *http.Request) transport.Partition {
					return transport.Partition{Host: "a.test", Key: "k", Route: r.Header.Get("Route")}
				},
				Limit: func(p transport.Partition) limit.Limiter {
					if p.Scope != provider.Route {
						return nil
					}
					return rolling(t, 1, 10*time.Second, limit.Orders)
				},
				Cost: func(r *http.Request, c limit.Cost) limit.Cost {
					if strings.HasPrefix(r.Header.Get("Route"), "never") {
						c[limit.Orders] = 2
					} else if strings.HasPrefix(r.Header.Get("Route"), "one") {
						c[limit.Orders] = 1
					}
					return c
				},
			})
			ask := func(ctx context.Context, route string) {
				do(t, tr, request(t, http.MethodPost, chat, prompt, "Route", route).WithContext(ctx))
			}
			for _, c := range []struct {
				route string
				n     int
			}{{"served", 4}, {"failed", 3}, {"lost", 4}, {"unsent", 5}, {"never", 2}, {"refused", 2}} {
				for i := range c.n {
					ask(t.Context(), c.route+string(rune('0'+i)))
					time.Sleep(time.Hour) // a pause is over
				}
			}
			ask(t.Context(), "one")
			soon, done := context.WithTimeout(t.Context(), time.Second)
			for range 3 {
				ask(soon, "one")
			}
			done()
			waits, stop := context.WithCancel(t.Context())
			go ask(waits, "one")
			synctest.Wait()
			ask(t.Context(), "one")
			stop()
			synctest.Wait()
			ask(t.Context(), "unsent9") // so that the one before may be forgotten
			all := tr.Snapshot().Keys
			if len(all) != 1 || all[0].Host != "a.test" || all[0].Name != "k" || all[0].InFlight != 0 {
				t.Fatalf("%+v", all)
			}
			if got := all[0].Counts; got != want {
				t.Errorf("of %d partitions:\n%+v, want\n%+v", most, got, want)
			}
			if leaves, _, _ := transport.Remembered(tr); most == 1 && leaves != 1 {
				t.Errorf("%d partitions are remembered", leaves)
			}
		})
	}
}
