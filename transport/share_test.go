package transport_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/fakeconn"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/share"
	"github.com/paceline-go/paceline/share/sharetest"
	"github.com/paceline-go/paceline/transport"
)

// shared is a transport within a shared limit, over connections that take a given time to open. Its
// server reports when requests arrive.
type shared struct {
	transport *transport.Transport
	store     *sharetest.Memory
	member    *share.Member
	arrived   chan mono.Time
	dialled   chan struct{}
}

func newShared(t *testing.T, dial time.Duration, c transport.Config) *shared {
	t.Helper()
	s := &shared{store: new(sharetest.Memory), arrived: make(chan mono.Time, 100), dialled: make(chan struct{}, 100)}
	base := time.Now()
	m, err := share.Limiter(s.store, "it", func() limit.Limiter { return limit.MustRolling(20, time.Second) })
	if err != nil {
		t.Fatal(err)
	}
	s.member = m
	net := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		s.dialled <- struct{}{}
		time.Sleep(dial)
		return fakeconn.Conn(func() int {
			s.arrived <- mono.Of(base, time.Now())
			return http.StatusOK
		}), nil
	}}
	c.Base, c.Limiter = net, m
	s.transport = transport.Must(c)
	return s
}

func (s *shared) close() {
	time.Sleep(10 * time.Second) // connections that are still being opened
	s.transport.CloseIdleConnections()
	s.member.Close(context.Background())
}

// A store that cannot be reached is named by the error of a request that waited for it.
func TestStoreThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, 0, transport.Config{MaxWait: atMost(12 * time.Second)})
		defer s.close()
		s.store.Away(errors.New("no route to limits.internal"))
		_, _, err := do(t, s.transport, get(t, "http://a.test/"))
		want := "transport: all requests: the store of its limit: no route to limits.internal; the request waits for 12 s at most"
		if err == nil || err.Error() != want || !errors.Is(err, paceline.ErrDeadline) {
			t.Errorf("%v, want\n%s", err, want)
		}
	})
}

// The process is cut off from the store, or stopped, between the grant and the write. Its grant
// ends, and others may have it by then. The request is not written; it is back in line, and goes
// with the next grant.
func TestLapsedLeave(t *testing.T) {
	for name, c := range map[string]transport.Config{
		"once": {Attempts: 1}, "hedged": {Hedge: transport.Hedge{After: time.Second, Share: 1}},
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			t.Run(name+" "+method, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newShared(t, 4*time.Second, c)
					defer s.close()
					began := time.Now()
					go func() {
						<-s.dialled
						s.store.Away(errors.New("cut off"))
						time.Sleep(6 * time.Second)
						s.store.Away(nil)
					}()
					r := request(t, method, "http://a.test/", "x")
					resp, err := s.transport.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					at, back := <-s.arrived, mono.Time(0).Add(8*time.Second+6*time.Second)                             // a new store is quiet for 8 s
					if at < back || at > back.Add(6*time.Second) || len(s.arrived) > int(s.transport.Stats().Hedged) { // a copy may go, too
						t.Errorf("it arrived at %v, %v after it began, not after %v, and %d more", at, time.Since(began), back, len(s.arrived))
					}
					if st := s.transport.Stats(); st.Attempts-st.Hedged != 1 || st.Resent != 0 {
						t.Errorf("%+v", st)
					}
				})
			})
		}
	}
}

// Sixty waiting requests get what the member fetches, without a callback that the test registers.
func TestSharedTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t, time.Millisecond, transport.Config{})
		defer s.close()
		done := make(chan error, 60)
		for range 60 {
			go func() {
				resp, err := s.transport.RoundTrip(request(t, http.MethodGet, "http://a.test/", ""))
				if err == nil {
					resp.Body.Close()
				}
				done <- err
			}()
		}
		for range 60 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		var all []mono.Time
		for range 60 {
			all = append(all, <-s.arrived)
		}
		for i := 20; i < 60; i++ {
			if all[i].Sub(all[i-20]) < time.Second {
				t.Errorf("request %d arrived at %v, and %d at %v", i, all[i], i-20, all[i-20])
			}
		}
		if last := all[59]; last > mono.Time(0).Add(12*time.Second) {
			t.Errorf("the last arrived at %v", last)
		}
	})
}

// The record of the process before is not counted again in a limit that a store keeps: the store knows it. It does count
// in the limits beside.
func TestRecordBesideAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store sharetest.Memory
		var book kept
		var members []*share.Member
		if _, err := share.Begin(t.Context(), share.Config{Store: &store, Name: "key", Own: func() limit.Limiter {
			return limit.MustRolling(20, time.Minute)
		}}); err != nil {
			t.Fatal(err)
		}
		serve := func(route int64) *base {
			b := newBase(0, ok)
			c := transport.Config{Base: b, Recorder: &book, Limit: func(p transport.Partition) limit.Limiter {
				switch p.Scope {
				case provider.Key:
					return limit.MustRolling(20, time.Minute)
				case provider.Route:
					return limit.MustRolling(route, time.Minute)
				}
				return nil
			}}
			c.Share = func(p transport.Partition, made func() limit.Limiter) limit.Limiter {
				if p.Scope != provider.Key {
					return made()
				}
				m, err := share.Limiter(&store, "key", made)
				if err != nil {
					t.Error(err)
					return made()
				}
				members = append(members, m)
				return m
			}
			tr := mustNew(t, c)
			for range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				do(t, tr, get(t, "http://server/").WithContext(ctx))
				cancel()
			}
			return b
		}
		if n := len(serve(20).at()); n != 10 {
			t.Errorf("the first process sent %d", n)
		}
		members[0].Close(context.Background())
		if n := len(serve(16).at()); n != 6 {
			t.Errorf("the second process sent %d, want 6: 20 at the store, and 16 in the route", n)
		}
		members[1].Close(context.Background())
	})
}
