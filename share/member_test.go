package share_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/node"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/share"
)

const ms = time.Millisecond

// memory is a store in this process, whose answers take a while.
type memory struct {
	mu      sync.Mutex
	blobs   map[string][]byte
	version map[string]int
	away    error
	turns   int
	again   string // incarnation
}

func newMemory() *memory { return &memory{blobs: map[string][]byte{}, version: map[string]int{}} }

func (s *memory) read(key string) (share.Reading, int, error) {
	time.Sleep(time.Duration(rand.Int64N(int64(3 * ms))))
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now().UnixNano()
	return share.Reading{Clock: now, Wall: now, Incarnation: "one" + s.again, Blob: s.blobs[key]}, s.version[key], s.away
}

func (s *memory) Turn(ctx context.Context, key string, f func(share.Reading) ([]byte, error)) error {
	for {
		r, version, err := s.read(key)
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		blob, err := f(r)
		if err != nil {
			return err
		}
		time.Sleep(time.Duration(rand.Int64N(int64(3 * ms))))
		s.mu.Lock()
		if s.version[key] == version {
			s.version[key]++
			s.blobs[key] = blob
			s.turns++
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
	}
}

func (s *memory) taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns
}

func (s *memory) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// server counts in a rolling window, strictly.
type server struct {
	mu            sync.Mutex
	base          time.Time
	rule          rule.Amendable
	sent, refused int
}

func newServer(n int64, w time.Duration) *server {
	r, err := rule.NewRolling(rule.RollingConfig{Limit: n, Window: w})
	if err != nil {
		panic(err)
	}
	return &server{base: time.Now(), rule: r}
}

func (s *server) request() {
	time.Sleep(time.Duration(rand.Int64N(int64(20 * ms))))
	s.mu.Lock()
	s.sent++
	if !s.rule.Arrive(mono.Of(s.base, time.Now()), 1) {
		s.refused++
	}
	s.mu.Unlock()
	time.Sleep(time.Duration(rand.Int64N(int64(20 * ms))))
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

func twenty() limit.Limiter { return limit.MustRolling(20, time.Second) }

func member(t *testing.T, c share.Config) (*share.Member, *paceline.Gate) {
	t.Helper()
	m, err := share.New(c)
	if err != nil {
		t.Fatal(err)
	}
	gate := paceline.NewGate(m)
	m.Attach(gate)
	return m, gate
}

// send has goroutines send through a gate until ctx is done, and returns how many went.
func send(ctx context.Context, wg *sync.WaitGroup, g *paceline.Gate, s *server, goroutines int, count *int) {
	for range goroutines {
		wg.Go(func() {
			for {
				p, err := g.Wait(ctx, limit.One)
				if err != nil {
					return
				}
				if !p.Fresh() {
					p.Settle(limit.Outcome{Result: limit.Unsent})
					continue
				}
				s.request()
				p.Settle(limit.Outcome{Result: limit.Accepted})
				s.mu.Lock()
				*count++
				s.mu.Unlock()
			}
		})
	}
}

// Three processes with a Gate each, all of which want everything, then one that has it alone.
func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := newMemory(), newServer(20, time.Second)
		var members []*share.Member
		var counts [3]int
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(context.Background(), 68*time.Second)
		defer cancel()
		for i := range counts {
			m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
			members = append(members, m)
			send(ctx, &wg, gate, s, 30, &counts[i])
		}
		for ctx.Err() == nil { // grants that hold from later on are not used now
			for _, u := range limit.AppendUsage(nil, members[0], 0) {
				if u.Used > u.Allowed || u.Open > u.Used {
					t.Errorf("%d of %d used, %d open", u.Used, u.Allowed, u.Open)
					cancel()
				}
			}
			time.Sleep(100 * ms)
		}
		wg.Wait()
		if s.refused > 0 {
			t.Errorf("%d of %d refused", s.refused, s.sent)
		}
		if s.sent < 60*18 { // a new store is quiet for 8 s; one process sends 19.2 a second on this path
			t.Errorf("%d sent in a minute of 20 a second", s.sent)
		}
		for i, n := range counts {
			if n < s.sent/4 || n > s.sent/2 {
				t.Errorf("process %d sent %d of %d", i, n, s.sent)
			}
		}
		// Two end, and the third has all, at once.
		for _, m := range members[1:] {
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		before, turns := s.count(), store.taken()
		gate := paceline.NewGate(members[0])
		members[0].Attach(gate)
		ctx, cancel = context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		send(ctx, &wg, gate, s, 30, new(int))
		wg.Wait()
		if n := s.sent - before; n < 180 || s.refused > 0 {
			t.Errorf("alone it sends %d in 10 s, %d refused", n, s.refused)
		}
		if n := store.taken() - turns; n > 50 {
			t.Errorf("alone it takes %d turns in 10 s", n)
		}
		// Without demand the Member does not call the store.
		time.Sleep(10 * time.Second)
		turns = store.taken()
		time.Sleep(time.Minute)
		if n := store.taken() - turns; n != 0 {
			t.Errorf("%d turns without demand", n)
		}
		if err := members[0].Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A Member that is closed as soon as it has sent leaves the store. It waits until others have seen
// it, and then reports its requests.
func TestClosedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := newMemory(), newServer(20, time.Second)
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		for range 3 {
			busy, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
			defer busy.Close(context.Background())
			send(ctx, &wg, gate, s, 30, new(int))
		}
		time.Sleep(15 * time.Second)
		m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty, Who: "brief"})
		permit, err := gate.Wait(ctx, limit.One)
		if err != nil {
			t.Fatal(err)
		}
		permit.Settle(limit.Outcome{Result: limit.Accepted})
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
		var b *node.Book
		store.set(func() { b, err = node.Decode(store.blobs["it"]) })
		if err != nil {
			t.Error(err)
			return
		}
		for _, e := range b.Nodes {
			if e.Name == "brief" {
				t.Errorf("it is still there: %+v", e)
			}
		}
		cancel()
		wg.Wait()
	})
}

// While the store is away no Member sends beyond its grants. All go on when it is back, also after
// it lost its state.
func TestMembersWithoutStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, s := newMemory(), newServer(20, time.Second)
		var wg sync.WaitGroup
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		defer cancel()
		var members []*share.Member
		for range 3 {
			m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
			members = append(members, m)
			send(ctx, &wg, gate, s, 30, new(int))
		}
		time.Sleep(20 * time.Second)
		gone := errors.New("the store is away")
		store.set(func() { store.away = gone })
		time.Sleep(5 * time.Second)
		before := s.count()
		if err := members[0].Err(); !errors.Is(err, gone) {
			t.Errorf("Err says %v", err)
		}
		time.Sleep(10 * time.Second)
		if s.count() != before {
			t.Errorf("%d sent without the store", s.count()-before)
		}
		store.set(func() { store.away = nil })
		time.Sleep(20 * time.Second)
		if n := s.count() - before; n < 300 {
			t.Errorf("%d sent in 20 s after it came back", n)
		}
		store.set(func() { clear(store.blobs); store.again = " more" })
		before = s.count()
		time.Sleep(1500 * time.Millisecond)
		if n := s.count() - before; n < 10 {
			t.Errorf("%d sent in the second and a half after the store forgot what all of them know", n)
		}
		store.set(func() { clear(store.blobs); store.again, store.away = " once more", gone })
		time.Sleep(4 * time.Second)
		before = s.count()
		store.set(func() { store.away = nil })
		time.Sleep(7 * time.Second)
		if s.count() != before {
			t.Errorf("%d sent of a store that forgot while nobody was there who knows", s.count()-before)
		}
		time.Sleep(11 * time.Second)
		if s.count() < before+150 {
			t.Errorf("%d sent long after it forgot", s.count()-before)
		}
		wg.Wait()
		if s.refused > 0 {
			t.Errorf("%d of %d refused", s.refused, s.sent)
		}
		for _, m := range members {
			m.Close(context.Background())
		}
	})
}

// A limit that is configured otherwise is refused, naming both, and sends nothing; SetLimit holds
// for all.
func TestConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		a, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
		other, others := member(t, share.Config{Store: store, Name: "it", Own: func() limit.Limiter { return limit.MustRolling(30, time.Second) }})
		b, gates := member(t, share.Config{Store: store, Name: "it", Own: twenty})
		p, err := gate.Wait(context.Background(), limit.One)
		if err != nil {
			t.Fatal(err)
		}
		p.Settle(limit.Outcome{Result: limit.Accepted})
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if _, err := others.Wait(ctx, limit.One); err == nil {
			t.Error("a limit that is configured otherwise lets something go")
		}
		if err := other.Err(); err == nil || !strings.Contains(err.Error(), "30 requests") || !strings.Contains(err.Error(), "20 requests") {
			t.Errorf("it is said: %v", err)
		}
		if err := a.SetLimit(func(l limit.Limiter, now mono.Time) error { return l.(*limit.Rolling).SetLimit(now, 2) }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if _, err := gates.Wait(context.Background(), limit.One); err != nil { // now it has heard
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if _, err := gates.Wait(context.Background(), limit.Cost{3}); !errors.Is(err, paceline.ErrNever) {
			t.Errorf("3 of a limit that was set to 2: %v", err)
		}
		if err := a.SetLimit(func(l limit.Limiter, now mono.Time) error { return l.(*limit.Rolling).SetLimit(now, 0) }); err == nil {
			t.Error("a limit of 0 is taken")
		}
		for _, m := range []*share.Member{a, b, other} {
			m.Close(context.Background())
		}
	})
}

func TestBadConfigs(t *testing.T) {
	store := newMemory()
	concurrency := func() limit.Limiter {
		c, _ := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})
		return limit.NewAll(c)
	}
	anchored := func() limit.Limiter {
		a, _ := limit.NewAnchored(limit.AnchoredConfig{Limit: 1, Window: time.Second})
		return a
	}
	alone := func() limit.Limiter {
		a, _ := limit.NewBucket(limit.BucketConfig{Limit: 1, Window: time.Second, Alone: true})
		return a
	}
	second := func() limit.Limiter { return limit.NewAll(twenty(), alone()) }
	for want, c := range map[string]share.Config{
		"the Store is nil":           {Name: "x", Own: twenty},
		"the Name":                   {Store: store, Own: twenty},
		"and 200 bytes long":         {Store: store, Name: strings.Repeat("x", 201), Own: twenty},
		"is no UTF-8":                {Store: store, Name: "\xff", Own: twenty},
		"has a zero byte":            {Store: store, Name: "a\x00", Own: twenty},
		"Own is nil":                 {Store: store, Name: "x"},
		"Own returns nil":            {Store: store, Name: "x", Own: func() limit.Limiter { return nil }},
		"Least 0.96":                 {Store: store, Name: "x", Own: twenty, Least: 0.96},
		"Least NaN":                  {Store: store, Name: "x", Own: twenty, Least: math.NaN()},
		"Weight -1":                  {Store: store, Name: "x", Own: twenty, Weight: -1},
		"Poll 1h":                    {Store: store, Name: "x", Own: twenty, Poll: time.Hour},
		"Poll 1ns":                   {Store: store, Name: "x", Own: twenty, Poll: 1},
		"*limit.Concurrency cannot":  {Store: store, Name: "x", Own: concurrency},
		"a *limit.Anchored cannot":   {Store: store, Name: "x", Own: anchored},
		"a Bucket with Alone cannot": {Store: store, Name: "x", Own: alone},
		"with Alone cannot be":       {Store: store, Name: "x", Own: second},
	} {
		if m, err := share.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
			if err == nil {
				m.Close(context.Background())
			}
		}
	}
}

func TestNamesAndFallbacks(t *testing.T) {
	if err := node.CheckName(strings.Repeat("x", 200)); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]share.Fallback{"wait": share.Wait, "split": share.Split} {
		if f, err := share.ParseFallback(text); f != want || err != nil {
			t.Errorf("%q: %v, %v", text, f, err)
		}
	}
	for _, text := range []string{"", "Wait", "wait "} {
		if f, err := share.ParseFallback(text); err == nil || !strings.Contains(err.Error(), "wait or split") {
			t.Errorf("%q: %v, %v", text, f, err)
		}
	}
}

// A process that was stopped between the grant and the write finds out.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		a, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
		p, err := gate.Wait(context.Background(), limit.One)
		if err != nil || !p.Fresh() {
			t.Fatal(err)
		}
		if !p.FreshFor(1900*time.Millisecond) || p.FreshFor(2*time.Second) {
			t.Errorf("a new grant is for 2 s: 1.9 s %t, 2 s %t", p.FreshFor(1900*time.Millisecond), p.FreshFor(2*time.Second))
		}
		store.set(func() { store.away = fmt.Errorf("away") })
		time.Sleep(1500 * time.Millisecond)
		if !p.Fresh() || p.FreshFor(600*time.Millisecond) {
			t.Errorf("after 1.5 s: fresh %t, and for 0.6 s %t", p.Fresh(), p.FreshFor(600*time.Millisecond))
		}
		time.Sleep(1500 * time.Millisecond)
		if p.Fresh() {
			t.Error("a permit is fresh after its grant has ended")
		}
		store.set(func() { store.away = nil })
		time.Sleep(2 * time.Second)
		if !p.Fresh() {
			t.Error("a permit is not fresh again, although nobody gave it up")
		}
		p.Settle(limit.Outcome{Result: limit.Unsent})
		a.Close(context.Background())
	})
}

// AppendUsage reports the usage of all together, and of each process, and changes nothing.
func TestUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		var members []*share.Member
		var permits []paceline.Permit
		for range 2 {
			m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
			members = append(members, m)
			if rules := m.Rules(); len(rules) != 1 || rules[0] != (limit.Rule{Name: "it", N: 20, Per: time.Second}) {
				t.Errorf("its rules are %+v", rules)
			}
			if rates, ok := limit.Rates(m); ok || len(rates) > 0 { // others use them, too, so a Fitted tests none
				t.Errorf("its rates are %v", rates)
			}
			if u := limit.AppendUsage(nil, m, 0); len(u) != 2 || u[0].Used != 0 || u[0].Allowed != 20 {
				t.Errorf("before the first turn: %+v", u)
			}
			before := limit.Usage{Limit: "of another"}
			if u := limit.AppendUsage([]limit.Usage{before, before}, m, 0); len(u) != 4 || u[1] != before || u[2].Limit != "it" || u[3].Limit != "it, here" {
				t.Errorf("behind the usage of another: %+v", u)
			}
			for range 3 {
				p, err := gate.Wait(context.Background(), limit.One)
				if err != nil {
					t.Fatal(err)
				}
				permits = append(permits, p)
			}
		}
		time.Sleep(3 * time.Second)
		for i, m := range members {
			u := limit.AppendUsage(nil, m, 0)
			if len(u) != 2 || u[0].Limit != "it" || u[0].Used < 6 || u[0].Used > 12 || u[0].Allowed != 20 || u[1].Limit != "it, here" || u[1].Open != 3 || u[1].Used < 3 || u[1].Used > 6 || u[1].Used > u[0].Used {
				t.Errorf("member %d, while 6 are in flight: %+v", i, u)
			}
		}
		for _, p := range permits {
			p.Settle(limit.Outcome{Result: limit.Accepted})
		}
		time.Sleep(12 * time.Second)
		for i, m := range members {
			if u := limit.AppendUsage(nil, m, 0); u[0].Used > 0 || u[1].Used > 0 {
				t.Errorf("member %d, at the end: %+v", i, u)
			}
			m.Close(context.Background())
		}
	})
}

// A Member that is closed while requests wait at its driver wants nothing any more, whatever the
// driver reports meanwhile. It leaves the store, and takes no grant with it.
func TestClosedWhileSomeWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		ctx, cancel := context.WithCancel(t.Context())
		m, gate := member(t, share.Config{Store: store, Name: "it", Own: twenty})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if permit, err := gate.Wait(ctx, limit.One); err == nil {
					permit.Settle(limit.Outcome{Result: limit.Accepted})
				}
			})
		}
		time.Sleep(9500 * time.Millisecond) // it was quiet for 8 s
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		b, err := node.Decode(store.blobs["it"])
		if err != nil || len(b.Nodes) > 0 {
			t.Errorf("%v; there are %+v", err, b.Nodes)
		}
		cancel()
		wg.Wait()
	})
}

// Hours of a place are shared: the store's scale begins in 1970, whatever Epoch the limiter has for
// another driver. Those of India begin at half past.
func TestMembersOfAZone(t *testing.T) {
	india, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		store, hours := newMemory(), map[string]int{}
		for range 2 {
			m, gate := member(t, share.Config{Store: store, Name: "it", Poll: time.Second, Own: func() limit.Limiter {
				l, err := limit.NewCalendar(limit.CalendarConfig{Limit: 3, Window: time.Hour, Zone: india, Epoch: time.Now().Add(20 * time.Minute)})
				if err != nil {
					t.Fatal(err)
				}
				return l
			}})
			defer m.Close(context.Background())
			for range 4 {
				p, err := gate.Wait(t.Context(), limit.One)
				if err != nil || !p.Fresh() {
					t.Fatal(err)
				}
				hours[time.Now().In(india).Format("15h")]++
				p.Settle(limit.Outcome{Result: limit.Accepted})
			}
		}
		// The store is new, so what may count in it is waited for.
		want := map[string]int{"09h": 3, "10h": 3, "11h": 2}
		if fmt.Sprint(hours) != fmt.Sprint(want) {
			t.Errorf("%v went, want %v", hours, want)
		}
	})
}

// asked counts the turns that are asked of a store, put or not.
type asked struct {
	share.Store
	times atomic.Int64
}

func (s *asked) Turn(ctx context.Context, key string, f func(share.Reading) ([]byte, error)) error {
	s.times.Add(1)
	return s.Store.Turn(ctx, key, f)
}

// A Member that was closed asks for no more turns, although its driver admits and settles what it had begun to send.
func TestClosedTakesNoMoreTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &asked{Store: newMemory()}
		m, _ := member(t, share.Config{Store: store, Name: "it", Own: twenty})
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := limit.Sent{Number: 1, Cost: limit.One}
		m.Admit(&s)
		synctest.Wait()
		m.Settle(0, &s, &limit.Outcome{Result: limit.Accepted})
		time.Sleep(time.Minute)
		if n := store.times.Load(); n > 0 {
			t.Errorf("it has asked for %d turns since it was closed", n)
		}
	})
}

// A bound on requests in flight has a Member of its own. The error says so.
func TestInFlightIsApart(t *testing.T) {
	_, err := share.Limiter(newMemory(), "it", func() limit.Limiter {
		five, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		return limit.NewAll(limit.MustRolling(20, time.Second), limit.Named("at once", five))
	})
	if err == nil || !strings.HasPrefix(err.Error(), "share: a *limit.Concurrency cannot be shared together with other limits") {
		t.Errorf("%v", err)
	}
}
