package transport_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/transport"
)

// A Snapshot's counts of sent, served, refused and used are those of the server's judge. One limit
// is right, and one is twice too large, so that the server refuses.
func TestSnapshotIsWhatTheJudgeCounted(t *testing.T) {
	for _, c := range []struct {
		requests int64
		refused  bool
	}{{40, false}, {80, true}} {
		synctest.Test(t, func(t *testing.T) {
			server, err := llm.New(llm.Config{Limits: llm.Limits{Requests: 40, Tokens: 600_000}, Rolling: true, TokensPerSecond: 200, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			tr := mustNew(t, transport.Config{Base: within{server, 20 * time.Millisecond}, Tokens: estimator(t), Attempts: 3, Limit: func(p transport.Partition) limit.Limiter {
				if p.Scope != provider.Model {
					return nil
				}
				return limit.NewAll(limit.MustRolling(c.requests, time.Minute), rolling(t, 600_000, time.Minute, limit.Tokens))
			}})
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					do(t, tr, request(t, http.MethodPost, "https://api.openai.com/v1/chat/completions", chatOf("gpt-4o"), "Authorization", "Bearer k", "Content-Type", "application/json"))
				})
			}
			time.Sleep(30 * time.Second)
			early := tr.Snapshot()
			if early.Waiting == 0 || early.LongestWait < 29*time.Second || early.Waiting+early.InFlight+int(early.Accepted+early.Limited) < 100 {
				t.Errorf("after 30 s: %+v", early)
			}
			all.Wait()
			time.Sleep(10 * time.Second)
			s := tr.Snapshot()
			server.Close()
			report := server.Report()
			var accepted, limited, input, output int64
			for _, a := range report.Accounts {
				accepted, limited, input, output = accepted+int64(a.Accepted), limited+int64(a.Limited), input+a.Input, output+a.Output
			}
			if s.Accepted != accepted || s.Limited != limited || s.Sent != accepted+limited || s.InFlight != 0 || s.Waiting != 0 {
				t.Errorf("%d sent, %d accepted, %d limited; the judge has %d and %d", s.Sent, s.Accepted, s.Limited, accepted, limited)
			}
			if limited > 0 != c.refused || c.refused != (s.Pauses > 0) {
				t.Errorf("%d were limited, and %d pauses begun", limited, s.Pauses)
			}
			if s.Used.Input != input || s.Used.Output != output || output == 0 {
				t.Errorf("%+v were used; the judge has %d input and %d output tokens", s.Used, input, output)
			}
			var counted int64
			for _, l := range s.Limits {
				if l.Host != "api.openai.com" || l.Model != "gpt-4o" || l.Used > l.Allowed {
					t.Errorf("%+v", l)
				}
				if l.Unit == "requests" {
					counted += l.Total
				}
			}
			if counted != accepted+limited {
				t.Errorf("the limits have counted %d requests, the judge %d", counted, accepted+limited)
			}
			var keys, waits int64
			for _, k := range s.Keys {
				keys += k.Accepted
				if strings.Contains(k.Name, "Bearer") {
					t.Errorf("a credential is shown: %+v", k)
				}
			}
			for _, w := range s.Waits {
				waits += w.Count
			}
			if len(s.Keys) != 1 || keys != accepted || waits != s.Sent+s.Never+s.Late+s.Full+s.Cancelled {
				t.Errorf("%d keys with %d accepted, %d waits: %+v", len(s.Keys), keys, waits, s)
			}
			if said := slices.ContainsFunc(s.Events, func(e observe.Event) bool {
				return e.Kind == observe.EventRefused && strings.HasPrefix(e.Text, "429: rate limited, by requests") && strings.Contains(e.Text, "Come back in ")
			}); said != c.refused {
				t.Errorf("%+v", s.Events)
			}
		})
	}
}

// While it lasts, a pause is shown with its limits and its key, in words.
func TestSnapshotOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(0, func(n int, r *http.Request) *http.Response {
			if n == 3 {
				return reply(429, "", "Retry-After", "90")
			}
			return reply(200, "")
		})
		tr := mustNew(t, transport.Config{Base: b, Attempts: 1, Limit: func(p transport.Partition) limit.Limiter {
			if p.Scope != provider.Key {
				return nil
			}
			return rolling(t, 10, time.Minute, limit.Requests)
		}})
		for range 3 {
			do(t, tr, get(t, "http://a.test/x", "Authorization", "Bearer secret"))
		}
		var last sync.WaitGroup
		last.Go(func() { do(t, tr, get(t, "http://a.test/x", "Authorization", "Bearer secret")) })
		time.Sleep(5 * time.Second)
		s := tr.Snapshot()
		if len(s.Limits) != 1 || s.Limits[0].Used != 3 || s.Limits[0].PausedUntil.Sub(s.At) != 85*time.Second || s.Limits[0].Next.Sub(s.At) != 85*time.Second || s.Limits[0].Why == "" {
			t.Errorf("%+v", s.Limits)
		}
		if len(s.Keys) != 1 || s.Keys[0].State != observe.KeyPaused || s.Keys[0].Why != "refused: rate limited; the server asks for it" || len(s.Paused) != 1 || s.Paused[0].Key != s.Keys[0].Name {
			t.Errorf("%+v, %+v", s.Keys, s.Paused)
		}
		if s.Waiting != 1 || len(s.Clients) != 1 || s.Clients[0].LastGoes.Sub(s.At) != 85*time.Second {
			t.Errorf("%+v", s.Clients)
		}
		time.Sleep(2 * time.Minute)
		s = tr.Snapshot()
		if len(s.Paused) != 0 || s.Keys[0].State != observe.KeyOK || len(s.Events) != 2 || s.Events[1].Text != "stays away for 1 min 30 s, as the server asks" {
			t.Errorf("%+v", s)
		}
		i := slices.IndexFunc(s.Waits, func(w observe.WaitTimes) bool { return w.Limit == "pause" })
		if i < 0 || s.Waits[i].Count != 1 || s.Waits[i].Sum != 90*time.Second {
			t.Errorf("%+v", s.Waits)
		}
	})
}

// The counts of a key are not forgotten with its partitions.
func TestSnapshotOfForgottenPartitions(t *testing.T) {
	b := newBase(0, ok)
	tr := mustNew(t, transport.Config{Base: b, MaxPartitions: 2})
	for i := range 10 {
		do(t, tr, get(t, fmt.Sprintf("http://a.test/%c/y", 'a'+i), "Authorization", "Bearer k"))
	}
	s := tr.Snapshot()
	if len(s.Keys) != 1 || s.Keys[0].Sent != 10 || s.Accepted != 10 || len(tr.Partitions()) > 2 {
		t.Errorf("%d partitions; %+v", len(tr.Partitions()), s)
	}
}

// A host that is down is shown, and so is its return.
func TestSnapshotOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		tr := mustNew(t, transport.Config{Attempts: 1, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			if down {
				return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
			}
			return reply(200, ""), nil
		})})
		for range 8 {
			do(t, tr, get(t, "http://a.test/x"))
			time.Sleep(100 * time.Millisecond)
		}
		if s := tr.Snapshot(); len(s.Paused) != 1 || !s.Paused[0].Down || s.Paused[0].Host != "a.test" || len(s.Events) != 1 || s.Events[0].Kind != observe.EventDown {
			t.Errorf("%+v", s)
		}
		down = false
		time.Sleep(time.Minute)
		do(t, tr, get(t, "http://a.test/x"))
		if s := tr.Snapshot(); len(s.Paused) != 0 || len(s.Events) != 2 || s.Events[1].Kind != observe.EventBack {
			t.Errorf("%+v", s)
		}
	})
}

// The durations of answers are shown by host.
func TestSnapshotOfLatencies(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { time.Sleep(2 * time.Millisecond) }))
	defer server.Close()
	tr := mustNew(t, transport.Config{})
	defer (&http.Client{Transport: tr}).CloseIdleConnections()
	for range 5 {
		do(t, tr, get(t, server.URL))
	}
	s := tr.Snapshot()
	if len(s.Upstream) != 1 || s.Upstream[0].Count != 5 || s.Upstream[0].P50 < 2*time.Millisecond || s.Upstream[0].Max < s.Upstream[0].P50 || "http://"+s.Upstream[0].Host != server.URL {
		t.Errorf("%+v", s.Upstream)
	}
}
