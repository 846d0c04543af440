package share_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/share"
)

// atOnce counts the requests that are in flight.
type atOnce struct {
	mu         sync.Mutex
	open, peak int
}

func (s *atOnce) count(by int) (open int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += by
	s.peak = max(s.peak, s.open)
	return s.open
}

func fourAtOnce() limit.Limiter {
	four, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})
	if err != nil {
		panic(err) // cannot fail: it is above 0
	}
	return four
}

func fourOf(t *testing.T, store *memory, j *journal) (*share.Member, *paceline.Gate) {
	t.Helper()
	return member(t, share.Config{Store: store, Name: "it", Own: fourAtOnce, Logger: j.logger()})
}

// send sends a request that takes so long, whatever it costs.
func (s *atOnce) send(gate *paceline.Gate, lasts time.Duration, how limit.Result) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	p, err := gate.Wait(ctx, limit.Cost{limit.Requests: 7})
	if err != nil {
		return err
	}
	s.count(1)
	time.Sleep(lasts)
	s.count(-1)
	p.Settle(limit.Outcome{Result: how})
	return nil
}

// Three processes have four requests in flight together, and all of them come to an end. What each has is shown.
func TestAtOnceIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := newMemory(), new(atOnce)
		var wg sync.WaitGroup
		var members []*share.Member
		for range 3 {
			m, gate := fourOf(t, store, new(journal))
			members = append(members, m)
			for range 20 {
				wg.Go(func() {
					for range 5 {
						if err := s.send(gate, time.Duration(rand.Int64N(int64(time.Second))), limit.Accepted); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		time.Sleep(20 * time.Second)
		rules, _ := limit.Rules(members[0])
		all := limit.AppendUsage(nil, members[0], 0)
		if len(all) != 2 || all[0].Limit != "it" || all[1].Limit != "it, here" || !all[1].InFlight || all[0].Used < 3 || all[1].Used > 2 ||
			len(rules) != 1 || rules[0].String() != "4 requests at once" {
			t.Errorf("it shows %+v, %v", all, rules)
		}
		wg.Wait()
		for _, m := range members {
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if s.peak != 4 {
			t.Errorf("%d at once, want 4", s.peak)
		}
	})
}

// A process that cannot reach its store goes on with the places that it has for a minute, and says so. Its requests
// count until they end.
func TestAtOnceWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s, j := newMemory(), new(atOnce), new(journal)
		m, gate := fourOf(t, store, j)
		if err := s.send(gate, time.Second, limit.Accepted); err != nil {
			t.Error(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _ = s.send(gate, time.Second, limit.Accepted) })
		}
		time.Sleep(500 * time.Millisecond)
		j.lines()
		began := time.Now()
		store.set(func() { store.away = errors.New("no way there") })
		wg.Wait()
		for time.Since(began) < 55*time.Second {
			if err := s.send(gate, time.Second, limit.Accepted); err != nil {
				t.Error(err)
			}
		}
		j.expect(t, "without the store", "WARN the shared limit cannot be fetched: this process goes on with the places that it has, for a minute")
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if _, err := gate.Wait(ctx, limit.One); err == nil {
			t.Error("it goes on for longer than a minute")
		}
		store.set(func() { store.away = nil })
		if err := s.send(gate, time.Second, limit.Accepted); err != nil {
			t.Error(err)
		}
		m.Close(context.Background())
	})
}

// A process that ends leaves its places to the others at once, and those of requests that may still arrive 5 s later.
func TestAtOnceOfTheClosed(t *testing.T) {
	for how, within := range map[limit.Result]time.Duration{limit.Accepted: time.Second, limit.Unknown: 7 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			store, s := newMemory(), new(atOnce)
			m, gate := fourOf(t, store, new(journal))
			other, next := fourOf(t, store, new(journal))
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { _ = s.send(gate, 20*time.Second, how) })
			}
			time.Sleep(10 * time.Second)
			for range 4 {
				wg.Go(func() { _ = s.send(next, 10*time.Second, limit.Accepted) })
			}
			for s.count(0) > 0 {
				time.Sleep(100 * time.Millisecond)
			}
			began := time.Now()
			m.Close(context.Background())
			for s.count(0) < 4 {
				time.Sleep(100 * time.Millisecond)
			}
			took := time.Since(began)
			wg.Wait()
			other.Close(context.Background())
			if took > within || how == limit.Unknown && took < 4*time.Second || s.peak != 4 {
				t.Errorf("%v: the next has all places after %v, %d at once", how, took, s.peak)
			}
		})
	}
}

// Requests that come at once have their places a quarter of the usual time between turns later.
func TestAtOnceGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, gate := fourOf(t, newMemory(), new(journal))
		s := new(atOnce)
		if err := s.send(gate, time.Second, limit.Accepted); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { _ = s.send(gate, time.Second, limit.Accepted) })
		}
		time.Sleep(150 * time.Millisecond)
		if open := s.count(0); open != 4 {
			t.Errorf("%d are in flight, want 4", open)
		}
		wg.Wait()
		m.Close(context.Background())
	})
}
