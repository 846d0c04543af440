package dispatch_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/backoff"
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/queue"
)

const ms = time.Millisecond

func at(d time.Duration) mono.Time { return mono.Time(d) }

// rig is a Dispatcher with a hand on everything.
type rig struct {
	*dispatch.Dispatcher
	*testing.T
	queue *queue.Queue
	ended []string
}

func newRig(t *testing.T, q queue.Config, keys ...dispatch.Key) *rig {
	t.Helper()
	r := &rig{T: t}
	var err error
	if r.queue, err = queue.New(q); err != nil {
		t.Fatal(err)
	}
	r.Dispatcher, err = dispatch.New(dispatch.Config{
		Queue: r.queue, Keys: keys, Backoff: backoff.Policy{Base: time.Second, Jitter: -1},
		Ended: func(e queue.Ended) { r.ended = append(r.ended, e.Request.ID+" "+e.State.String()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) submit(now time.Duration, ids ...string) {
	r.Helper()
	for _, id := range ids {
		if _, err := r.queue.Submit(at(now), queue.Request{ID: id, Cost: limit.One}); err != nil {
			r.Fatal(err)
		}
	}
}

// sends expects attempts in this order, as "id/attempt on key", and then the wake.
func (r *rig) sends(now time.Duration, wake mono.Time, want ...string) []dispatch.Attempt {
	r.Helper()
	var attempts []dispatch.Attempt
	for {
		a, w, ok := r.Next(at(now))
		if !ok {
			if w != wake {
				r.Errorf("at %v: wake %v, want %v", now, w, wake)
			}
			break
		}
		attempts = append(attempts, a)
	}
	var got []string
	for _, a := range attempts {
		got = append(got, fmt.Sprintf("%s/%d on %d", a.Request.ID, a.Number, a.Key))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.Errorf("at %v: sends %v, want %v", now, got, want)
	}
	return attempts
}

func (r *rig) done(now time.Duration, a dispatch.Attempt, ans dispatch.Answer) {
	r.Done(at(now), a, ans)
}

func (r *rig) has(ended ...string) {
	r.Helper()
	if fmt.Sprint(r.ended) != fmt.Sprint(ended) {
		r.Errorf("ended %v, want %v", r.ended, ended)
	}
	r.ended = nil
	if err := r.queue.Counts().Check(); err != nil {
		r.Error(err)
	}
}

var accepted = dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted}}

func perSecond(n int64) *limit.Rolling {
	l, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Second, Margin: -1})
	if err != nil {
		panic(err)
	}
	return l
}

func TestTheKeyThatCanGoSoonest(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a", Limiter: perSecond(1)}, dispatch.Key{Name: "b", Limiter: perSecond(2)})
	r.submit(0, "1", "2", "3", "4", "5")
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 1", "3/1 on 1")
	r.done(50*ms, as[0], accepted)
	r.sends(50*ms, at(1050*ms))
	r.done(100*ms, as[1], accepted)
	r.sends(100*ms, at(1050*ms))
	r.done(80*ms, as[2], accepted) // a clock that steps back stands still
	r.sends(1050*ms, at(1100*ms), "4/1 on 0")
	r.sends(1100*ms, limit.AfterSettle, "5/1 on 1")
	r.has("1 done", "2 done", "3 done")
}

func TestIdleAndWake(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Limiter: perSecond(1)})
	r.sends(0, limit.Never)
	r.submit(0, "1")
	a := r.sends(0, limit.AfterSettle, "1/1 on 0")[0]
	if _, err := r.queue.Submit(0, queue.Request{ID: "short", Cost: limit.One, TTL: 300 * ms}); err != nil {
		t.Fatal(err)
	}
	r.sends(0, at(300*ms)) // a deadline is a reason to wake
	r.sends(300*ms, limit.AfterSettle)
	r.has("short expired")
	r.done(400*ms, a, dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}})
	r.sends(400*ms, at(1400*ms)) // the backoff of 1 s
	r.sends(1400*ms, limit.AfterSettle, "1/2 on 0")
}

func TestHowAttemptsEnd(t *testing.T) {
	for _, c := range []struct {
		name  string
		ans   dispatch.Answer
		ended string    // after the first attempt; empty: it waits
		again mono.Time // when it is sent again
		next  string
	}{
		{"accepted", accepted, "x done", 0, ""},
		{"failed", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}}, "", at(1100 * ms), "x/2 on 0"},
		{"limited: the key pauses", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited}}, "", at(1100 * ms), "x/2 on 0"},
		{"limited: the server's word", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: 7 * time.Second}}, "", at(7100 * ms), "x/2 on 0"},
		{"unavailable: the server's word", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed, RetryAfter: 7 * time.Second}}, "", at(7100 * ms), "x/2 on 0"},
		{"unknown", dispatch.Answer{}, "", at(1100 * ms), "x/2 on 0"},
		{"unsent is no attempt, and waits", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent}}, "", at(1100 * ms), "x/1 on 0"},
		{"unsent, by a fault of its own", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Sight: limit.Silent}}, "", at(1100 * ms), "x/2 on 0"},
		{"returned does not", dispatch.Answer{Returned: true}, "", at(100 * ms), "x/1 on 0"},
		{"invalid", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Invalid: true}, "x dead", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, queue.Config{}, dispatch.Key{})
			r.submit(0, "x")
			a := r.sends(0, limit.AfterSettle, "x/1 on 0")[0]
			r.done(100*ms, a, c.ans)
			if c.ended != "" {
				r.has(c.ended)
				r.sends(time.Hour, limit.Never)
				return
			}
			r.has()
			if c.again > at(100*ms) {
				if _, w, ok := r.Next(at(100 * ms)); ok || w > c.again {
					t.Fatalf("asked at 100 ms: sent %v, wake %v, want %v", ok, w, c.again)
				}
				if _, _, ok := r.Next(c.again - 1); ok {
					t.Errorf("sent before %v", c.again)
				}
			}
			r.sends(time.Duration(c.again), limit.AfterSettle, c.next)
		})
	}
}

func TestCostAboveEveryKeyIsDeadAtOnce(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Limiter: perSecond(3)}, dispatch.Key{Limiter: perSecond(5)})
	for id, n := range map[string]int64{"dear": 6} {
		if _, err := r.queue.Submit(0, queue.Request{ID: id, Cost: limit.Cost{limit.Requests: n}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.queue.Submit(0, queue.Request{ID: "fits one", Cost: limit.Cost{limit.Requests: 4}}); err != nil {
		t.Fatal(err)
	}
	r.submit(0, "cheap")
	r.sends(0, limit.AfterSettle, "fits one/1 on 1", "cheap/1 on 0")
	r.has("dear dead")
	if dead := r.queue.DeadLetters(); len(dead) != 1 || dead[0].Reason != "cost 6 requests exceeds what any key allows" {
		t.Errorf("dead letters %+v", dead)
	}
}

func TestCostThatOnlyABannedKeyAllows(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Limiter: perSecond(3)}, dispatch.Key{Limiter: perSecond(5)})
	r.Ban(1, "for a while")
	if _, err := r.queue.Submit(0, queue.Request{ID: "dear", Cost: limit.Cost{limit.Requests: 4}}); err != nil {
		t.Fatal(err)
	}
	r.submit(0, "cheap")
	r.sends(0, limit.AfterSettle, "cheap/1 on 0") // not held up behind it
	if dead := r.queue.DeadLetters(); len(dead) != 1 || dead[0].Reason != "cost 4 requests exceeds what any key in use allows (1 of 2 are banned)" {
		t.Errorf("dead letters %+v", dead)
	}
}

func TestBackoffGrowsWithAttempts(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Pause: -1})
	r.submit(0, "x")
	limited := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited}}
	r.done(0, r.sends(0, limit.AfterSettle, "x/1 on 0")[0], limited)
	r.sends(0, at(time.Second))
	if k := r.KeyInfo(0, 0); k.State != dispatch.OK {
		t.Errorf("a key with Pause −1 is %v after a refusal", k.State)
	}
	r.done(time.Second, r.sends(time.Second, limit.AfterSettle, "x/2 on 0")[0], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}})
	r.sends(time.Second, at(3*time.Second))
	r.sends(3*time.Second, limit.AfterSettle, "x/3 on 0")
}

// Late is how long the place of an attempt without an answer is kept.
func TestLateIsTheKeys(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Nonce: &dispatch.NonceConfig{}, Late: 300 * ms})
	r.submit(0, "x", "y")
	r.done(0, r.sends(0, limit.AfterSettle, "x/1 on 0")[0], dispatch.Answer{})
	r.sends(0, at(300*ms))
	r.sends(300*ms, at(time.Second), "y/1 on 0") // x comes again at 1 s
}

// lapsing may be used from 10 to 20 ms.
type lapsing struct{ limit.Limiter }

func (l lapsing) Ready(now mono.Time, c limit.Cost) mono.Time {
	if now > at(20*ms) {
		return limit.AfterSettle
	}
	return max(at(10*ms), l.Limiter.Ready(now, c))
}

// What was ready at 10 ms and is looked at at 30 ms is asked again, and no more ready then: law 10 of limittest.
func TestWhatHasLapsedIsNotSent(t *testing.T) {
	for late, want := range map[time.Duration][]string{20 * ms: {"x/1 on 0"}, 30 * ms: nil} {
		r := newRig(t, queue.Config{}, dispatch.Key{Limiter: lapsing{limit.MustRolling(1, time.Second)}})
		r.submit(0, "x")
		r.sends(0, at(10*ms))
		r.sends(late, limit.AfterSettle, want...)
	}
}

func TestLearnedGap(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Nonce: &dispatch.NonceConfig{}, LearnGap: true})
	now := time.Duration(0)
	for range 50 {
		r.submit(now, "", "") // one in flight
		a := r.sends(now, limit.AfterSettle, "/1 on 0")[0]
		now += 200 * ms
		r.done(now, a, accepted)
		a = r.sends(now, limit.AfterSettle, "/1 on 0")[0]
		now += 210 * ms
		r.done(now, a, accepted)
	}
	r.submit(now, "x", "y")
	r.sends(now, at(now+13500*time.Microsecond), "x/1 on 0")
	r.sends(now+13500*time.Microsecond, limit.AfterSettle, "y/1 on 0")
}

func TestExpiryThatRetriesEndsAsADeadLetter(t *testing.T) {
	r := newRig(t, queue.Config{OnExpiry: queue.Retry, MaxAttempts: 2}, dispatch.Key{InFlight: 1})
	r.submit(0, "first")
	a := r.sends(0, limit.AfterSettle, "first/1 on 0")[0]
	if _, err := r.queue.Submit(0, queue.Request{ID: "x", TTL: time.Second}); err != nil {
		t.Fatal(err)
	}
	if wake := r.Expire(at(time.Second)); wake != at(2*time.Second) {
		t.Errorf("wake %v, want the fresh deadline", wake)
	}
	r.has()
	if wake := r.Expire(at(2 * time.Second)); wake != limit.AfterSettle {
		t.Errorf("wake %v, want AfterSettle", wake)
	}
	r.has("x dead")
	r.done(3*time.Second, a, accepted)
	if wake := r.Expire(at(3 * time.Second)); wake != limit.Never {
		t.Errorf("wake %v with nothing there", wake)
	}
}

func TestInvalidAndBannedAtOnce(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{})
	r.submit(0, "x")
	r.done(0, r.sends(0, limit.AfterSettle, "x/1 on 0")[0], dispatch.Answer{Invalid: true, Banned: true, Reason: "no such account"})
	r.has("x dead")
	if r.Exhausted() == nil {
		t.Error("the key is still in use")
	}
}

// ring is keys and what is known of them without the Dispatcher, which asks all of them all the time.
type ring struct {
	*rig
	now      time.Duration
	limiters []*limit.Rolling
	room     []int // in flight; 0: any number
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
			if w != wake {
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

func runRing(t *testing.T, seed uint64, n int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	r := &ring{held: make([]mono.Time, n), banned: make([]bool, n)}
	var keys []dispatch.Key
	for range n {
		l := perSecond(int64(1 + rng.IntN(4)))
		k := dispatch.Key{Limiter: l, InFlight: rng.IntN(2) * (1 + rng.IntN(3))}
		r.limiters, r.room, keys = append(r.limiters, l), append(r.room, k.InFlight), append(keys, k)
	}
	r.rig = newRig(t, queue.Config{KeepDead: -1}, keys...)
	for range 300 {
		r.step(rng)
		if err := r.next(); err != nil {
			t.Fatalf("%d keys, seed %d, at %v: %v", n, seed, r.now, err)
		}
	}
}

// Whatever is banned, resumed, held, changed and answered, and whatever requests cost: the head of the queue goes if and only if some
// key is ready, on one that is; the wake is when the first will be; and who fits no key in use ends.
func TestSoonestOfManyKeys(t *testing.T) {
	for seed := range uint64(60) {
		for _, n := range []int{1, 2, 3, 9} {
			runRing(t, seed, n)
		}
	}
}

func FuzzSoonestOfManyKeys(f *testing.F) {
	f.Add(uint64(1), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, keys uint8) { runRing(t, seed, int(keys%12)+1) })
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

func TestBannedKeys(t *testing.T) {
	r := newRig(t, queue.Config{MaxAttempts: 1}, dispatch.Key{Name: "a", InFlight: 2}, dispatch.Key{Name: "b", InFlight: 2})
	banned := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Banned: true, Reason: "ten 429s"}
	r.submit(0, "1", "2", "3", "4", "5")
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 1", "3/1 on 0", "4/1 on 1") // equals take turns
	r.done(10*ms, as[0], banned)
	if err := r.Exhausted(); err != nil {
		t.Errorf("b is left, but: %v", err)
	}
	r.sends(10*ms, limit.AfterSettle) // 1 waits again, for b alone
	r.done(20*ms, as[1], accepted)
	again := r.sends(20*ms, limit.AfterSettle, "1/1 on 1") // this attempt is its first: the ban was not its fault
	r.done(30*ms, as[2], banned)                           // what else was in flight on a
	r.done(30*ms, as[3], banned)
	r.done(30*ms, again[0], banned)
	r.has("2 done")
	err := r.Exhausted()
	if !errors.Is(err, dispatch.ErrExhausted) || !strings.Contains(err.Error(), "key a: ten 429s") || !strings.Contains(err.Error(), "key b: ten 429s") {
		t.Errorf("both are banned: %v", err)
	}
	r.sends(time.Hour, limit.Never)
	if c := r.queue.Counts(); c.Waiting != 4 || c.InFlight != 0 {
		t.Errorf("%+v, want the four others to wait", c)
	}

	r.Resume(0)
	as = r.sends(time.Hour, limit.AfterSettle, "1/1 on 0", "3/1 on 0")
	if info := r.KeyInfo(at(time.Hour), 0); info.State != dispatch.OK || info.InFlight != 2 || info.Sent != 4 {
		t.Errorf("%+v", info)
	}
	// News of before the ban was lifted bans nobody.
	late := as[0]
	r.Ban(0, "by hand")
	r.Resume(0)
	r.done(time.Hour+ms, late, banned)
	if info := r.KeyInfo(at(time.Hour), 0); info.State != dispatch.OK {
		t.Errorf("late news banned the key again: %+v", info)
	}
}

func TestCoolingKeyIsNamed(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a"}, dispatch.Key{Name: "b"})
	r.submit(0, "1", "2")
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 1")
	r.done(0, as[0], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: time.Minute}})
	if info := r.KeyInfo(at(ms), 0); info.State != dispatch.Cooling || info.Until != at(time.Minute) {
		t.Errorf("%+v, want cooling until 1m", info)
	}
	if info := r.KeyInfo(at(time.Minute), 0); info.State != dispatch.OK {
		t.Errorf("%+v, want ok at the instant it may go again", info)
	}
	r.sends(time.Second, limit.AfterSettle, "1/2 on 1") // the work goes on on the other
	r.Hold(at(time.Second), 1, at(time.Hour))
	if info := r.KeyInfo(at(ms), 1); info.State != dispatch.Cooling || info.State.String() != "cooling" {
		t.Errorf("%+v, want cooling", info)
	}
}

// A pause can be looked at and lifted; after an hour of one that is longer a request finds out whether it still holds.
func TestLongPause(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a"})
	r.submit(0, "1", "2", "3")
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 0", "3/1 on 0")
	tenYears := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: 87600 * time.Hour}}
	r.done(0, as[0], tenYears)
	r.done(0, as[1], tenYears)
	r.done(0, as[2], accepted)
	if info := r.KeyInfo(0, 0); info.State != dispatch.Cooling || info.Until != at(87600*time.Hour) || info.Next != at(time.Hour) {
		t.Errorf("%+v", info)
	}
	r.sends(time.Minute, at(time.Hour))
	probe := r.sends(time.Hour, at(87600*time.Hour), "1/2 on 0")[0]
	r.done(time.Hour, probe, tenYears)
	r.sends(time.Hour, at(time.Hour+2*time.Second)) // for the one that backs off
	r.sends(time.Hour+2*time.Second, at(3*time.Hour))
	r.Lift(at(2*time.Hour), 0)
	if info := r.KeyInfo(at(2*time.Hour), 0); info.State != dispatch.OK {
		t.Errorf("%+v", info)
	}
	again := r.sends(2*time.Hour, limit.AfterSettle, "1/3 on 0", "2/2 on 0")
	r.done(2*time.Hour, again[0], tenYears)
	probe = r.sends(3*time.Hour, limit.AfterSettle, "1/4 on 0")[0]
	r.done(3*time.Hour, probe, accepted) // it no longer holds
	if info := r.KeyInfo(at(3*time.Hour), 0); info.State != dispatch.OK {
		t.Errorf("%+v", info)
	}
}

// Requests that were in flight together are refused together; pauses in a row grow, and one request goes after them, until one is
// served.
func TestPausesOfAKey(t *testing.T) {
	r := newRig(t, queue.Config{KeepDead: -1}, dispatch.Key{Pause: 2 * time.Second})
	limited := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited}, Invalid: true}
	now := time.Duration(0)
	refuse := func(want time.Duration, as ...dispatch.Attempt) {
		t.Helper()
		for i, a := range as {
			r.done(now+time.Duration(i)*time.Second, a, limited)
		}
		if info := r.KeyInfo(at(now+time.Second), 0); info.Until != at(now+want) {
			t.Errorf("at %v: %+v, want until %v", now, info, now+want)
		}
		now += want
	}
	r.submit(0, "x", "y")
	refuse(2*time.Second, r.sends(0, limit.AfterSettle, "x/1 on 0", "y/1 on 0")...)
	r.submit(now, "x", "y")
	refuse(4*time.Second, r.sends(now, limit.AfterSettle, "x/1 on 0", "y/1 on 0")...)
	r.submit(now, "z", "z1", "z2", "z3", "z4", "z5", "z6", "z7", "z8", "z9", "z10")
	for i, want := range []time.Duration{8, 16, 32, 64, 128, 256, 512, 600, 600} {
		name := fmt.Sprint("z", i)
		if i == 0 {
			name = "z"
		}
		refuse(want*time.Second, r.sends(now, limit.AfterSettle, name+"/1 on 0")...)
	}
	if info := r.KeyInfo(at(now), 0); info.Refusals != 11 {
		t.Errorf("%d refusals in a row, want 11", info.Refusals)
	}
	r.done(now, r.sends(now, limit.AfterSettle, "z9/1 on 0")[0], accepted)
	r.submit(now, "v")
	refuse(2*time.Second, r.sends(now, limit.AfterSettle, "z10/1 on 0", "v/1 on 0")...)
}

// What an answer says is left is heeded, by the key that it is of.
func TestWhatIsLeftOfAKey(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Name: "a"}, dispatch.Key{Name: "b"})
	r.submit(0, "1", "2", "3", "4")
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 1", "3/1 on 0", "4/1 on 1")
	said := accepted
	said.Known, said.Remaining[limit.Requests], said.Reset[limit.Requests] = 1<<limit.Requests, 0, 10*time.Second
	r.done(0, as[0], said)
	r.done(0, as[2], accepted)
	r.submit(0, "5", "6")
	for _, a := range r.sends(0, limit.AfterSettle, "5/1 on 1", "6/1 on 1") {
		r.done(0, a, accepted)
	}
	r.Ban(1, "for the test")
	r.submit(0, "7")
	r.sends(0, at(10*time.Second))
}

// A bucket that says when it will be full again has more before that.
func TestWhatABucketHolds(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{})
	r.submit(0, "1", "2", "3")
	said := accepted
	said.Known, said.Remaining[limit.Requests], said.Reset[limit.Requests] = 1<<limit.Requests, 0, time.Minute
	said.Capacity = limit.Cost{60}
	as := r.sends(0, limit.AfterSettle, "1/1 on 0", "2/1 on 0", "3/1 on 0")
	for _, a := range as {
		r.done(0, a, said)
	}
	r.submit(0, "4")
	r.sends(0, at(time.Second))
}

// A request that does not say what it costs counts as one.
func TestNoCostIsNoPass(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Limiter: perSecond(20)})
	for range 1000 {
		if _, err := r.queue.Submit(0, queue.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	sent := 0
	for _, _, ok := r.Next(0); ok; _, _, ok = r.Next(0) {
		sent++
	}
	if sent != 20 {
		t.Errorf("%d sent at once through 20 a second", sent)
	}
	if _, err := r.queue.Submit(0, queue.Request{Free: true, Priority: 1}); err != nil {
		t.Fatal(err)
	}
	if a, _, ok := r.Next(0); !ok || !a.Request.Free {
		t.Error("one that is free waits")
	}
}

func TestNoncesRise(t *testing.T) {
	epoch := time.UnixMilli(1_800_000_000_000)
	n, err := dispatch.NewNonce(epoch, dispatch.NonceConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		now  time.Duration
		want uint64
	}{
		{0, 1_800_000_000_000},
		{0, 1_800_000_000_001}, // two in one millisecond
		{ms, 1_800_000_000_002},
		{time.Second, 1_800_000_001_000},
		{-time.Hour, 1_800_000_001_001}, // a clock that went back
	} {
		if got := n.Next(at(c.now)); got != c.want {
			t.Errorf("at %v: %d, want %d", c.now, got, c.want)
		}
	}
	// A process that starts on a clock that was set back an hour goes on from the last number of the one before.
	after, err := dispatch.NewNonce(epoch.Add(-time.Hour), dispatch.NonceConfig{After: n.Last()})
	if err != nil {
		t.Fatal(err)
	}
	if got := after.Next(0); got != n.Last()+1 {
		t.Errorf("after a restart: %d, want %d", got, n.Last()+1)
	}
	micro, err := dispatch.NewNonce(epoch, dispatch.NonceConfig{Unit: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	if got := micro.Next(at(5 * time.Microsecond)); got != 1_800_000_000_000_005 {
		t.Errorf("in microseconds: %d", got)
	}
}

func TestZeroNonce(t *testing.T) {
	var n dispatch.Nonce
	if a, b, c := n.Next(at(5*ms)), n.Next(at(5*ms)), n.Next(at(9*ms)); a != 5 || b != 6 || c != 9 {
		t.Errorf("nonces %d, %d, %d at 5, 5 and 9 ms", a, b, c)
	}
}

func TestNoncesKeepOneInFlight(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Nonce: &dispatch.NonceConfig{After: 7}})
	last := func(now time.Duration, want uint64) {
		t.Helper()
		if k := r.KeyInfo(at(now), 0); k.Nonce != want {
			t.Errorf("at %v the last nonce is %d, want %d", now, k.Nonce, want)
		}
	}
	last(0, 7)
	r.submit(0, "1", "2", "3")
	a := r.sends(0, limit.AfterSettle, "1/1 on 0")[0]
	last(0, 8)
	r.done(70*ms, a, accepted)
	b := r.sends(70*ms, limit.AfterSettle, "2/1 on 0")[0]
	if b.Nonce <= a.Nonce {
		t.Errorf("nonces %d, %d", a.Nonce, b.Nonce)
	}
	last(70*ms, b.Nonce)
	// Nobody knows whether the second has arrived: the third must not overtake it.
	r.done(100*ms, b, dispatch.Answer{})
	r.sends(100*ms, at(1100*ms)) // 2 is back after its backoff, and asks for its key
	r.sends(5100*ms-1, at(5100*ms))
	r.sends(5100*ms, limit.AfterSettle, "2/2 on 0")

	gap := newRig(t, queue.Config{}, dispatch.Key{Nonce: &dispatch.NonceConfig{}, Gap: 50 * ms})
	gap.submit(0, "1", "2", "3")
	gap.sends(0, at(50*ms), "1/1 on 0")
	gap.sends(50*ms, at(100*ms), "2/1 on 0")
}

// A gap that is too small: the first bad nonce sends the key back to one in flight, and the other key is as it was.
func TestAGapEndsAtABadNonce(t *testing.T) {
	key := dispatch.Key{Nonce: &dispatch.NonceConfig{}, Gap: 50 * ms}
	r := newRig(t, queue.Config{}, key, key)
	r.submit(0, "1", "2", "3", "4")
	first := r.sends(0, at(50*ms), "1/1 on 0", "2/1 on 1")
	second := r.sends(50*ms, limit.AfterSettle, "3/1 on 0", "4/1 on 1")
	r.done(60*ms, second[0], accepted)
	r.done(60*ms, second[1], accepted)
	r.done(70*ms, first[0], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed, Misordered: true}, Invalid: true})
	r.done(70*ms, first[1], accepted)
	r.submit(80*ms, "5", "6", "7", "8")
	r.sends(80*ms, at(130*ms), "5/1 on 0", "6/1 on 1")
	r.sends(130*ms, at(180*ms), "7/1 on 1")
	r.sends(180*ms, limit.AfterSettle, "8/1 on 1")
}

func TestBadConfig(t *testing.T) {
	q, err := queue.New(queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	one := []dispatch.Key{{Name: "k"}}
	shared := perSecond(1)
	for want, c := range map[string]dispatch.Config{
		"dispatch: Queue is nil":                                                             {Keys: one},
		"dispatch: Keys is empty":                                                            {Queue: q},
		"dispatch: Keys[0] \"k\": InFlight -1 is negative":                                   {Queue: q, Keys: []dispatch.Key{{Name: "k", InFlight: -1}}},
		"dispatch: Keys[0] \"k\": limit: Spacing: gap -1ns is not positive":                  {Queue: q, Keys: []dispatch.Key{{Name: "k", Gap: -1}}},
		"dispatch: Keys[0] \"k\": limit: Sequence: Gap -1ns is negative":                     {Queue: q, Keys: []dispatch.Key{{Name: "k", Gap: -1, Nonce: &dispatch.NonceConfig{}}}},
		"dispatch: Keys[0] \"k\": Nonce: Unit -1ns is negative":                              {Queue: q, Keys: []dispatch.Key{{Name: "k", Nonce: &dispatch.NonceConfig{Unit: -1}}}},
		"dispatch: Keys[0] \"k\": Nonce: After 18446744073709551615 is the largest there is": {Queue: q, Keys: []dispatch.Key{{Name: "k", Nonce: &dispatch.NonceConfig{After: math.MaxUint64}}}},
		"dispatch: Keys[2] \"c\": Limiter is that of Keys[0] \"a\"":                          {Queue: q, Keys: []dispatch.Key{{Name: "a", Limiter: shared}, {Name: "b"}, {Name: "c", Limiter: shared}}},
		"dispatch: Keys[0] \"k\": LearnGap with Gap or InFlight":                             {Queue: q, Keys: []dispatch.Key{{Name: "k", LearnGap: true, InFlight: 1}}},
		"dispatch: Backoff: backoff: Max -1ns is negative":                                   {Queue: q, Keys: one, Backoff: backoff.Policy{Max: -1}},
	} {
		if _, err := dispatch.New(c); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzDispatcher drives keys with different limits by random programs and checks what must hold whatever happens: no
// window of a key's arrivals over its limit, no more in flight than allowed, nonces that rise, counts that add up, and
// nobody asleep while a request could go.
func FuzzDispatcher(f *testing.F) {
	f.Add([]byte{0, 0, 1, 9, 1, 0, 0, 2, 30, 0, 1, 3, 4, 0, 0, 9, 5, 77})
	f.Add([]byte("the quick brown fox jumps over the lazy dog, again and again and again and again"))
	f.Fuzz(func(t *testing.T, program []byte) {
		keys := []dispatch.Key{
			{Name: "plain", Limiter: perSecond(3)},
			{Name: "nonces", Limiter: perSecond(5), Nonce: &dispatch.NonceConfig{}},
			{Name: "two", Limiter: perSecond(4), InFlight: 2},
		}
		q, err := queue.New(queue.Config{MaxLen: 50, MaxAttempts: 3, Host: func(r *queue.Request) string { return fmt.Sprint(r.Priority) }})
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		d, err := dispatch.New(dispatch.Config{Queue: q, Keys: keys, Backoff: backoff.Policy{Jitter: -1}, Ended: func(queue.Ended) { ended++ }})
		if err != nil {
			t.Fatal(err)
		}
		var now mono.Time
		var open []dispatch.Attempt
		arrivals := make([][]limittest.Arrival, len(keys))
		nonces := make([]uint64, len(keys))
		submitted := 0
		for i := 0; i+1 < min(len(program), 2000); i += 2 {
			op, b := program[i], program[i+1]
			switch op % 4 {
			case 0:
				now = now.Add(time.Duration(b) * 10 * ms)
			case 1:
				r := queue.Request{Cost: limit.Cost{limit.Requests: int64(b % 7)}, Priority: int(b % 3)}
				if b > 200 {
					r.TTL = time.Duration(b) * ms
				}
				if _, err := q.Submit(now, r); err == nil {
					submitted++
				}
			default:
				if len(open) == 0 {
					continue
				}
				n := int(b) % len(open)
				a := open[n]
				open = append(open[:n], open[n+1:]...)
				ans := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Result(b % 5)}, Invalid: op == 250, Banned: op == 251, Returned: op == 252}
				if ans.Result != limit.Unsent {
					arrivals[a.Key] = append(arrivals[a.Key], limittest.Arrival{At: now, Cost: a.Request.Cost})
				}
				d.Done(now, a, ans)
			}
			for {
				a, wake, ok := d.Next(now)
				if !ok {
					if wake <= now {
						t.Fatalf("at %v: nothing to send, but wake %v", now, wake)
					}
					break
				}
				if a.Key == 1 {
					if a.Nonce <= nonces[1] {
						t.Fatalf("nonce %d after %d", a.Nonce, nonces[1])
					}
					nonces[1] = a.Nonce
				}
				open = append(open, a)
				inFlight := 0
				for _, o := range open {
					if o.Key == a.Key {
						inFlight++
					}
				}
				if a.Key == 1 && inFlight > 1 || a.Key == 2 && inFlight > 2 {
					t.Fatalf("%d in flight on %s", inFlight, keys[a.Key].Name)
				}
			}
			c := q.Counts()
			if err := c.Check(); err != nil || c.Submitted != submitted || c.InFlight != len(open) || submitted != ended+c.Waiting+c.InFlight {
				t.Fatalf("%+v (%v), %d submitted, %d in flight, %d ended", c, err, submitted, len(open), ended)
			}
		}
		for k, n := range []int64{3, 5, 4} {
			if err := limittest.Rolling(n, time.Second-1, limit.Requests)(arrivals[k]); err != nil {
				t.Fatalf("key %s: %v", keys[k].Name, err)
			}
		}
	})
}

func TestNoAllocationPerRequest(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{Limiter: limit.MustRolling(20, time.Second)}, dispatch.Key{Limiter: limit.MustRolling(20, time.Second)})
	now := time.Duration(0)
	one := func() {
		now += 100 * ms
		if _, err := r.queue.Submit(at(now), queue.Request{Cost: limit.One}); err != nil {
			t.Fatal(err)
		}
		a, _, ok := r.Next(at(now))
		if !ok {
			t.Fatal("not ready")
		}
		r.Done(at(now), a, accepted)
	}
	for range 100 {
		one()
	}
	r.ended = make([]string, 0, 1000)
	if n := testing.AllocsPerRun(100, one); n > 1 { // the rig's own string
		t.Errorf("%v allocations", n)
	}
}

// One request at a time, and as fast as the keys allow: all cost the same, or each what no other does.
func BenchmarkDispatcher(b *testing.B) {
	for _, n := range []int{1, 5, 500} {
		run := func(name string, sizes int64, one func(b *testing.B, q *queue.Queue, d *dispatch.Dispatcher, cost func() limit.Cost)) {
			b.Run(fmt.Sprintf("%s/keys=%d", name, n), func(b *testing.B) {
				q, _ := queue.New(queue.Config{})
				keys := make([]dispatch.Key, n)
				for i := range keys {
					keys[i].Limiter = limit.MustRolling(20*(sizes+1)/2, time.Second)
				}
				d, err := dispatch.New(dispatch.Config{Queue: q, Keys: keys})
				if err != nil {
					b.Fatal(err)
				}
				size := int64(0)
				b.ReportAllocs()
				one(b, q, d, func() limit.Cost {
					size++
					return limit.Cost{limit.Requests: 1 + size%sizes}
				})
			})
		}
		alone := func(b *testing.B, q *queue.Queue, d *dispatch.Dispatcher, cost func() limit.Cost) {
			now := mono.Time(0)
			for b.Loop() {
				now = now.Add(60 * ms)
				_, _ = q.Submit(now, queue.Request{Cost: cost()})
				a, _, ok := d.Next(now)
				if !ok {
					b.Fatal("not ready")
				}
				d.Done(now, a, accepted)
			}
		}
		busy := func(b *testing.B, q *queue.Queue, d *dispatch.Dispatcher, cost func() limit.Cost) {
			now, open := mono.Time(0), make([]dispatch.Attempt, 0, 100_000)
			for range 100 {
				_, _ = q.Submit(now, queue.Request{Cost: cost()})
			}
			for b.Loop() {
				a, wake, ok := d.Next(now)
				for ; !ok; a, wake, ok = d.Next(now) {
					for _, a := range open {
						d.Done(now, a, accepted)
					}
					if open = open[:0]; wake < limit.AfterSettle {
						now = wake
					}
				}
				open = append(open, a)
				_, _ = q.Submit(now, queue.Request{Cost: cost()})
			}
		}
		run("alone", 1, alone)
		run("busy", 1, busy)
		run("sizes", 100, busy)
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

// A key that is back can be banned again, and only by what was sent since.
func TestBannedAgain(t *testing.T) {
	r := newRig(t, queue.Config{}, dispatch.Key{})
	banned := dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Banned: true, Reason: "answered 401"}
	state := func(now time.Duration, want dispatch.KeyState) {
		t.Helper()
		if got := r.KeyInfo(at(now), 0).State; got != want {
			t.Errorf("at %v the key is %v, want %v", now, got, want)
		}
	}
	r.submit(0, "a", "b")
	old := r.sends(0, limit.AfterSettle, "a/1 on 0", "b/1 on 0")
	r.Done(at(ms), old[0], banned)
	state(ms, dispatch.Banned)
	r.Resume(0)
	state(ms, dispatch.OK)
	again := r.sends(2*ms, limit.AfterSettle, "a/1 on 0")
	r.Done(at(3*ms), old[1], banned) // of before
	state(3*ms, dispatch.OK)
	r.Done(at(4*ms), again[0], banned)
	state(4*ms, dispatch.Banned)
}

// A dead letter says why it is one, in a word at least: what became of the last attempt, where nobody has said more.
func TestDeadLettersHaveReasons(t *testing.T) {
	for reason, want := range map[string]string{"": "failed", "no such account": "no such account"} {
		r := newRig(t, queue.Config{}, dispatch.Key{Limiter: perSecond(3)})
		r.submit(0, "x")
		r.done(0, r.sends(0, limit.AfterSettle, "x/1 on 0")[0], dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, Invalid: true, Reason: reason})
		if dead := r.queue.DeadLetters(); len(dead) != 1 || dead[0].Reason != want {
			t.Errorf("%+v, want %q", dead, want)
		}
	}
}
