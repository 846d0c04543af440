package dispatch_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// ring is keys and what is known of them without the Dispatcher, which asks all of them all the time.
type ring struct {
	*rig
	now      time.Duration
	limiters []*limit.Rolling   // of each key, its own or the one that it shares
	shared   []*dispatch.Shared // of all keys; empty: each key has a limiter of its own
	room     []int              // in flight; 0: any number
	open     []dispatch.Attempt
	held     []mono.Time
	banned   []bool
}

func (r *ring) ready(i int, cost limit.Cost) mono.Time {
	t := max(r.limiters[i].Ready(at(r.now), cost), r.held[i])
	inFlight := 0
	for _, a := range r.open {
		if a.Key == i {
			inFlight++
		}
	}
	if r.room[i] > 0 && inFlight >= r.room[i] {
		t = max(t, limit.AfterSettle)
	}
	return t
}

// soonest is when the first of the keys in use is ready, and whether there is one.
func (r *ring) soonest(cost limit.Cost) (t mono.Time, any bool) {
	t = limit.Never
	for i := range r.limiters {
		if !r.banned[i] {
			t, any = min(t, r.ready(i, cost)), true
		}
	}
	return t, any
}

func (r *ring) step(rng *rand.Rand) {
	r.now += time.Duration(rng.IntN(3)/2*rng.IntN(200)) * ms
	i := rng.IntN(len(r.limiters))
	if len(r.shared) > 0 && rng.IntN(10) == 0 {
		s := r.shared[rng.IntN(len(r.shared))]
		if err := r.Share(at(r.now), i, s); err != nil {
			r.Fatal(err)
		}
		r.limiters[i] = s.Limiter.(*limit.Rolling)
	}
	switch rng.IntN(10) {
	case 0:
		r.Ban(i, "418")
		r.banned[i] = true
	case 1, 2:
		r.Resume(i)
		r.banned[i] = false
	case 3:
		until := at(r.now + time.Duration(rng.IntN(300))*ms)
		r.Hold(at(r.now), i, until)
		r.held[i] = max(r.held[i], until)
	case 4:
		r.Lift(at(r.now), i)
		r.held[i] = 0
	case 5:
		if err := r.limiters[i].SetLimit(at(r.now), int64(1+rng.IntN(6))); err != nil {
			r.Fatal(err)
		}
		r.Refresh()
	case 6, 7:
		for range 1 + rng.IntN(3) {
			id, cost := fmt.Sprint(r.queue.Counts().Submitted), limit.Cost{limit.Requests: 1}
			if rng.IntN(3) == 0 {
				cost[limit.Requests] += int64(rng.IntN(5))
			}
			if _, err := r.queue.Submit(at(r.now), queue.Request{ID: id, Cost: cost}); err != nil {
				r.Fatal(err)
			}
		}
	default:
		if len(r.open) > 0 {
			j := rng.IntN(len(r.open))
			r.done(r.now, r.open[j], accepted)
			r.open = slices.Delete(r.open, j, j+1)
		}
	}
}

// next has all go that may, and compares.
func (r *ring) next() error {
	for {
		ended := len(r.ended)
		var head *queue.Request
		wake, any := limit.Never, false
		var want []string
		for _, ticket := range r.queue.Waiting() {
			info := r.queue.Info(ticket)
			if wake, any = r.soonest(info.Request.Cost); !any || wake < limit.Never {
				head = info.Request
				break
			}
			want = append(want, info.Request.ID+" dead") // no key in use could ever
		}
		if !any || head == nil {
			wake = limit.Never
		}
		a, w, ok := r.Next(at(r.now))
		if got := r.ended[ended:]; fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("%v ended, want %v", got, want)
		}
		if ok != (wake <= at(r.now)) {
			return fmt.Errorf("sent %v, and the soonest key is ready at %v", ok, wake)
		}
		if !ok {
			if wake == limit.Never && len(r.open) > 0 {
				wake = limit.AfterSettle
			}
			early := len(r.shared) > 0 && w > at(r.now) && w < wake // a ticket that waits for one of two limits learns of the other there
			if w != wake && !early {
				return fmt.Errorf("wake %v, want %v", w, wake)
			}
			return nil
		}
		if a.Request.ID != head.ID || r.banned[a.Key] {
			return fmt.Errorf("%s went on key %d, banned %v; want %s", a.Request.ID, a.Key, r.banned[a.Key], head.ID)
		}
		r.open = append(r.open, a)
	}
}

func runRing(t *testing.T, seed uint64, n int, shared bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	r := &ring{held: make([]mono.Time, n), banned: make([]bool, n)}
	var keys []dispatch.Key
	for range n {
		l := perSecond(int64(1 + rng.IntN(4)))
		k := dispatch.Key{Limiter: l, InFlight: rng.IntN(2) * (1 + rng.IntN(3))}
		if shared {
			s := &dispatch.Shared{Limiter: l}
			r.shared = append(r.shared, s)
			s = r.shared[rng.IntN(len(r.shared))]
			l = s.Limiter.(*limit.Rolling)
			k.Limiter, k.Shared = nil, []*dispatch.Shared{s}
		}
		r.limiters, r.room, keys = append(r.limiters, l), append(r.room, k.InFlight), append(keys, k)
	}
	r.rig = newRig(t, queue.Config{KeepDead: -1}, keys...)
	for range 300 {
		r.step(rng)
		if err := r.next(); err != nil {
			t.Fatalf("%d keys, shared %v, seed %d, at %v: %v", n, shared, seed, r.now, err)
		}
	}
}

// Keys are banned, resumed, held, moved to other limits, changed and answered, and requests have
// any cost. The head of the queue goes if and only if some key is ready, with a ready one. The wake
// is when the first will be. A request that fits no key in use ends.
func TestSoonestOfManyKeys(t *testing.T) {
	for seed := range uint64(60) {
		for _, n := range []int{1, 2, 3, 9} {
			runRing(t, seed, n, false)
			runRing(t, seed, n, true)
		}
	}
}

func FuzzSoonestOfManyKeys(f *testing.F) {
	f.Add(uint64(1), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, keys uint8) { runRing(t, seed, int(keys%12)+1, seed%2 == 1) })
}

// Keys that are equal take turns, whether requests wait for them or they for requests.
func TestEqualsTakeTurns(t *testing.T) {
	for _, ahead := range []int{1, 50} {
		r := newRig(t, queue.Config{}, dispatch.Key{InFlight: 2}, dispatch.Key{InFlight: 2}, dispatch.Key{InFlight: 2})
		for range ahead {
			r.submit(0, "")
		}
		var open []dispatch.Attempt
		var got strings.Builder
		for i := range 60 {
			now := time.Duration(i) * ms
			if len(open) == 6 {
				r.done(now, open[0], accepted)
				r.done(now, open[1], accepted)
				r.done(now, open[2], accepted)
				open = open[3:]
			}
			a, _, ok := r.Next(at(now))
			if !ok {
				t.Fatalf("at %v nobody goes", now)
			}
			open = append(open, a)
			got.WriteString(fmt.Sprint(a.Key))
			r.submit(now, "")
		}
		if want := strings.Repeat("012", 20); got.String() != want {
			t.Errorf("%d wait: %s", ahead, got.String())
		}
	}
}

// Keys go round, whatever time passes without a request: the one that has been ready for longest is next.
func TestKeysKeepTheirTurn(t *testing.T) {
	key := func() dispatch.Key { return dispatch.Key{Limiter: limit.MustRolling(2, time.Second)} }
	r := newRig(t, queue.Config{}, key(), key(), key())
	now := time.Duration(0)
	var got []int
	for i := range 7 {
		r.submit(now, fmt.Sprint(i))
		a, _, ok := r.Next(at(now))
		if !ok {
			t.Fatalf("request %d does not go", i)
		}
		got = append(got, a.Key)
		r.Done(at(now+ms), a, dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted}})
		now += 5 * time.Second
		r.Next(at(now - time.Second)) // nothing to send
	}
	if want := []int{0, 1, 2, 0, 1, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
}
