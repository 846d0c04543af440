package transport_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sharetest"
	"github.com/paceline-go/paceline/transport"
)

// ledgerOf is what a test knows of the requests of a Transport: the model of its Snapshots.
type ledgerOf struct {
	mu     sync.Mutex
	came   map[int]time.Time // of requests that wait, by number
	whose  map[int]string    // the client of each
	flying map[string]int    // by client
	keys   map[string]int    // in flight, by key
	counts map[string]*observe.Counts
}

func newLedgerOf() *ledgerOf {
	l := &ledgerOf{came: map[int]time.Time{}, whose: map[int]string{}, flying: map[string]int{}, keys: map[string]int{}}
	l.counts = map[string]*observe.Counts{"a": {}, "b": {}}
	return l
}

// goes moves a request from those that wait to those in flight, and returns what ends that.
func (l *ledgerOf) goes(n int, key string) (ends func(status int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	client := l.whose[n]
	delete(l.came, n)
	l.flying[client]++
	l.keys[key]++
	l.counts[client].Sent++
	return func(status int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.flying[client]--
		l.keys[key]--
		switch status {
		case 200:
			l.counts[client].Accepted++
		case 429:
			l.counts[client].Limited++
		default:
			l.counts[client].Failed++
		}
	}
}

// check compares a Snapshot with the model, and each of its fields with what its comment says.
func (l *ledgerOf) check(t *testing.T, s *observe.Snapshot, most int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong := func(what string, got, want any) {
		if got != want {
			t.Errorf("at %v: %s is %v, want %v", s.At.Sub(s.Since), what, got, want)
		}
	}
	var all observe.Counts
	longest, flying := map[string]time.Duration{}, 0
	waiting := map[string]int{}
	for n, came := range l.came {
		waiting[l.whose[n]]++
		longest[l.whose[n]] = max(longest[l.whose[n]], s.At.Sub(came))
	}
	for _, c := range s.Clients {
		wrong(c.Name+"'s Waiting", c.Waiting, waiting[c.Name])
		wrong(c.Name+"'s InFlight", c.InFlight, l.flying[c.Name])
		wrong(c.Name+"'s LongestWait", c.LongestWait, longest[c.Name])
		want := *l.counts[c.Name]
		observe.AddCounts(&all, &want)
		want.Cancelled, want.Used = c.Cancelled, c.Used
		wrong(c.Name+"'s Counts", c.Counts, want)
		if s.Accepted > 0 {
			wrong(c.Name+"'s Share", c.Share, float64(c.Accepted)/float64(s.Accepted))
		}
		if !c.LastGoes.IsZero() && (c.LastGoes.Before(s.At) || c.Waiting == 0) {
			t.Errorf("%s: %d wait, and the last goes at %v", c.Name, c.Waiting, c.LastGoes)
		}
		flying += c.InFlight
	}
	wrong("Waiting", s.Waiting, len(l.came))
	wrong("LongestWait", s.LongestWait, max(longest["a"], longest["b"]))
	wrong("InFlight", s.InFlight, flying)
	all.Cancelled, all.Used = s.Cancelled, s.Used
	wrong("Counts", s.Counts, all)
	wrong("Sent", s.Sent, int64(s.InFlight)+s.Accepted+s.Limited+s.Failed+s.Unknown+s.Unsent)
	for _, k := range s.Keys {
		wrong(k.Name+"'s InFlight", k.InFlight, l.keys[k.Name])
		if paused := k.State == observe.KeyPaused; (k.Why == "") == paused || !k.Until.IsZero() && k.Until.Before(s.At) {
			t.Errorf("%+v", k)
		}
	}
	for _, m := range s.Limits {
		if m.Open > m.Used || m.Used > m.Allowed || m.Used < 0 || m.Recent > m.Total || m.Share < 0 || m.Share > 1 ||
			m.Allowed != most {
			t.Errorf("at %v: %+v", s.At.Sub(s.Since), m)
		}
		if !m.Next.IsZero() && (!m.Next.After(s.At) || m.Used < m.Allowed && m.PausedUntil.IsZero() && m.Fits == 0) {
			t.Errorf("at %v: one more may go at %v: %+v", s.At.Sub(s.Since), m.Next, m)
		}
	}
	for _, p := range s.Paused {
		if !p.Until.After(s.At) || p.Next.After(p.Until) || p.Why == "" {
			t.Errorf("at %v: %+v", s.At.Sub(s.Since), p)
		}
	}
}

// Random programs: requests of two clients with two keys, answers of any kind after any time, and requests that give
// up. At random instants each Snapshot is what the model has.
func TestSnapshotsOfRandomPrograms(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 3))
			most := 2 + rng.Int64N(6)
			model := newLedgerOf()
			apply := func(name string) func(*http.Request) {
				return func(r *http.Request) { r.Header.Set("Key", name) }
			}
			var mu sync.Mutex // guards rng in the Base
			tr := mustNew(t, transport.Config{
				Attempts: 1, Keys: []transport.Key{{Name: "x", Apply: apply("x")}, {Name: "y", Apply: apply("y")}},
				Client: func(r *http.Request) transport.Client { return transport.Client{Name: r.Header.Get("Client")} },
				Limit: func(p transport.Partition) limit.Limiter {
					if p.Scope != provider.Key {
						return nil
					}
					return limit.MustRolling(most, 5*time.Second)
				},
				Base: roundTripper(func(r *http.Request) (*http.Response, error) {
					var n int
					fmt.Sscan(r.Header.Get("Number"), &n)
					ends := model.goes(n, r.Header.Get("Key"))
					mu.Lock()
					took := time.Duration(rng.Int64N(int64(2 * time.Second)))
					status := [...]int{200, 200, 200, 200, 500, 404, 429}[rng.IntN(7)]
					mu.Unlock()
					time.Sleep(took)
					ends(status)
					if status == 429 {
						return reply(429, "", "Retry-After", "1"), nil
					}
					return reply(status, ""), nil
				}),
			})
			var all sync.WaitGroup
			for n := range 60 {
				mu.Lock()
				client, patience := [...]string{"a", "b"}[rng.IntN(2)], time.Duration(rng.IntN(20))*time.Second
				pause := time.Duration(rng.IntN(700)) * time.Millisecond
				mu.Unlock()
				model.mu.Lock()
				model.came[n], model.whose[n] = time.Now(), client
				model.mu.Unlock()
				ctx, cancel := context.WithCancel(t.Context())
				if patience < 5*time.Second {
					time.AfterFunc(patience+time.Nanosecond, cancel)
				}
				all.Go(func() {
					defer cancel()
					q := get(t, "http://a.test/", "Client", client, "Number", fmt.Sprint(n)).WithContext(ctx)
					do(t, tr, q)
					model.mu.Lock()
					delete(model.came, n)
					model.mu.Unlock()
				})
				time.Sleep(pause)
				synctest.Wait()
				s := tr.Snapshot()
				model.check(t, &s, most)
			}
			all.Wait()
			s := tr.Snapshot()
			model.check(t, &s, most)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

// Two Transports share a limit by a store. Their Snapshots show no more as used than the limit, and no less than what is
// open. What each has settled adds up.
func TestSnapshotsOfASharedLimit(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 4))
			var store sharetest.Memory
			own := func() limit.Limiter { return limit.MustRolling(20, 3*time.Second) }
			if _, err := share.Begin(t.Context(), share.Config{Store: &store, Name: "it", Own: own}); err != nil {
				t.Fatal(err)
			}
			var all [2]*transport.Transport
			for i := range all {
				m, err := share.Limiter(&store, "it", own)
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close(context.Background())
				took := time.Duration(rng.Int64N(int64(time.Second)))
				all[i] = mustNew(t, transport.Config{Base: newBase(took, ok), Limiter: m})
			}
			var running sync.WaitGroup
			for range 80 {
				tr := all[rng.IntN(3)/2]
				running.Go(func() { do(t, tr, get(t, "http://a.test/")) })
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
				synctest.Wait()
				for _, tr := range all {
					s := tr.Snapshot()
					for _, m := range s.Limits {
						total := int64(0)
						if m.Name == "it, here" {
							total = s.Accepted
						}
						if m.Open > m.Used || m.Used > m.Allowed || m.Share < 0 || m.Share > 1 || m.Allowed != 20 ||
							m.Total != total {
							t.Errorf("seed %d, at %v: %+v", seed, s.At.Sub(s.Since), m)
						}
					}
				}
			}
			running.Wait()
		})
	}
}
