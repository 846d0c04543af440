package transport_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/transport"
)

// Each attempt reports how long it waited, and for which limit. Of the limits of a key and of an
// address, which are passed at once, it is the one that is ready last. A pause is reported too.
func TestAttemptTellsWhatItWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var waits []paceline.WaitStats
		b := newBase(0, func(n int, _ *http.Request) *http.Response {
			if n == 3 {
				return reply(429, "", "Retry-After", "7")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{
			Base: b, Ended: func(a transport.Attempt) { waits = append(waits, a.Waits) },
			Limit: func(p transport.Partition) limit.Limiter {
				switch p.Scope {
				case provider.Key:
					return limit.Named("of the key", rolling(t, 1, 2*time.Second, limit.Requests))
				case provider.IP:
					return rolling(t, 1, 5*time.Second, limit.Requests)
				}
				return nil
			},
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			}})),
		})
		for range 3 {
			do(t, tr, get(t, "http://a.test/"))
		}
		if got, want := b.at(), seconds(0, 5, 10, 17); !slices.Equal(got, want) {
			t.Errorf("sent at %v, want %v", got, want)
		}
		type on struct{ key, address, pause, all time.Duration }
		for i, want := range []on{{}, {0, 5 * time.Second, 0, 5 * time.Second}, {0, 5 * time.Second, 0, 5 * time.Second}, {0, 0, 7 * time.Second, 7 * time.Second}} {
			w := waits[i]
			if got := (on{w.On("of the key"), w.On("requests"), w.On("pause"), w.Waited}); got != want {
				t.Errorf("attempt %d waited %+v, want %+v", i+1, got, want)
			}
		}
		for _, line := range []string{
			`msg="requests: 1 waiting, next in 5.0 s" partition.scope=ip partition.host=a.test limit=requests waiting=1 next=5s round=1`,
			`msg="pause: 1 waiting, next in 7.0 s" partition.scope=key`,
		} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("no %s in\n%s", line, log.String())
			}
		}
	})
}

// 60 of 100 tokens are in use, 70 wait for them: with Fill, 20 that come later and fit beside them go ahead.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		fill int
		want []time.Duration
	}{{0, seconds(0, 60, 60)}, {8, seconds(0, 0, 60)}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBase(0, ok)
			tr := mustNew(t, transport.Config{
				Base: b, Fill: c.fill, Limiter: rolling(t, 100, time.Minute, limit.Tokens),
				Cost: func(r *http.Request, cost limit.Cost) limit.Cost {
					cost[limit.Tokens] = map[string]int64{"/60": 60, "/70": 70, "/20": 20}[r.URL.Path]
					return cost
				},
			})
			var wg sync.WaitGroup
			for _, path := range []string{"/60", "/70", "/20"} {
				wg.Go(func() { do(t, tr, get(t, "http://a.test"+path)) })
				synctest.Wait()
			}
			wg.Wait()
			if !slices.Equal(b.at(), c.want) {
				t.Errorf("Fill %d: sent at %v, want %v", c.fill, b.at(), c.want)
			}
		})
	}
}

// blind is a limiter that does not foresee.
type blind struct{}

func (blind) Ready(now mono.Time, _ limit.Cost) mono.Time   { return now }
func (blind) Admit(*limit.Sent)                             {}
func (blind) Settle(mono.Time, *limit.Sent, *limit.Outcome) {}

// With Fill a limiter that does not foresee is an error, and nothing is sent. The limit's scope and
// maker do not matter, and it holds for Ask too.
func TestFillNeedsForesight(t *testing.T) {
	if _, err := transport.New(transport.Config{Fill: 1, Limiter: blind{}}); err == nil || !strings.Contains(err.Error(), "does not foresee") {
		t.Error(err)
	}
	own := func(transport.Partition) limit.Limiter { return blind{} }
	client := func(*http.Request) transport.Client {
		return transport.Client{Name: "c", Limit: func() limit.Limiter { return blind{} }}
	}
	common, err := transport.NewClients(transport.ClientsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := do(t, mustNew(t, transport.Config{Clients: common, Client: client, Base: newBase(0, ok)}), get(t, "http://a.test/")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]transport.Config{
		"a partition's":            {Limit: own},
		"a client's":               {Client: client},
		"a client's, made already": {Client: client, Clients: common},
	} {
		c.Fill, c.Base = 1, newBase(0, ok)
		tr := mustNew(t, c)
		for range 2 {
			if _, _, err := do(t, tr, get(t, "http://a.test/")); err == nil || !strings.Contains(err.Error(), "does not foresee") {
				t.Errorf("%s: %v", name, err)
			}
			if at, ahead, err := tr.Ask(get(t, "http://a.test/")); err == nil || !strings.Contains(err.Error(), "does not foresee") || !at.IsZero() || ahead != 0 {
				t.Errorf("%s, asked: %v, %d ahead, %v", name, at, ahead, err)
			}
		}
		if n := len(c.Base.(*base).at()); n != 0 {
			t.Errorf("%s: %d were sent", name, n)
		}
	}
}

// An error names the partition of the limit that stood in the way. It is the host's, if nothing
// arrives there. It is the request's own, if it was too late before any limit was asked.
func TestErrorNamesThePartition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		tr := mustNew(t, transport.Config{Base: roundTripper(func(*http.Request) (*http.Response, error) { return nil, down }), Attempts: 1})
		ask := func(host string, wait time.Duration) *transport.Error {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			_, err := tr.RoundTrip(get(t, "http://"+host, "Authorization", "Bearer a").WithContext(ctx))
			e, _ := errors.AsType[*transport.Error](err)
			return e
		}
		for range 20 {
			ask("a.test", time.Hour)
		}
		if e := ask("a.test", time.Millisecond); e == nil || e.Partition.Scope != provider.IP {
			t.Errorf("where nothing arrives: %v", e)
		}
		if e := ask("b.test", 0); e == nil || e.Partition.Scope != provider.Route {
			t.Errorf("too late before it was asked: %v", e)
		}
	})
}
