package dispatch_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/dispatch"
	"github.com/paceline-go/paceline/internal/core/queue"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/backoff"
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
		{"accepted, with more to come", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Accepted}, More: true}, "", at(100 * ms), "x/1 on 0"},
		{"failed, whatever comes", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}, More: true}, "", at(1100 * ms), "x/2 on 0"},
		{"failed", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed}}, "", at(1100 * ms), "x/2 on 0"},
		{"limited: the key pauses", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited}}, "", at(1100 * ms), "x/2 on 0"},
		{"limited: the server's word", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Limited, RetryAfter: 7 * time.Second}}, "", at(7100 * ms), "x/2 on 0"},
		{"unavailable: the server's word", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Failed, RetryAfter: 7 * time.Second}}, "", at(7100 * ms), "x/2 on 0"},
		{"unknown", dispatch.Answer{}, "", at(1100 * ms), "x/2 on 0"},
		{"unsent is no attempt, and waits", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent}}, "", at(1100 * ms), "x/1 on 0"},
		{"unsent, by a fault of its own", dispatch.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Link: limit.Silent}}, "", at(1100 * ms), "x/2 on 0"},
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

// A request was ready at 10 ms and is examined at 30 ms. The limiter is asked again, and it is no
// longer ready then: law 10 of limittest.
func TestWhatHasLapsedIsNotSent(t *testing.T) {
	for late, want := range map[time.Duration][]string{20 * ms: {"x/1 on 0"}, 30 * ms: nil} {
		r := newRig(t, queue.Config{}, dispatch.Key{Limiter: lapsing{limit.MustRolling(1, time.Second)}})
		r.submit(0, "x")
		r.sends(0, at(10*ms))
		r.sends(late, limit.AfterSettle, want...)
	}
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

func TestBadConfig(t *testing.T) {
	q, err := queue.New(queue.Config{})
	if err != nil {
		t.Fatal(err)
	}
	one := []dispatch.Key{{Name: "k"}}
	shared := perSecond(1)
	for want, c := range map[string]dispatch.Config{
		"dispatch: Queue is nil":                                                                                {Keys: one},
		"dispatch: Keys is empty":                                                                               {Queue: q},
		"dispatch: Keys[0] \"k\": InFlight -1 is negative":                                                      {Queue: q, Keys: []dispatch.Key{{Name: "k", InFlight: -1}}},
		"dispatch: Keys[0] \"k\": limit: Spacing: gap -1ns is not positive":                                     {Queue: q, Keys: []dispatch.Key{{Name: "k", Gap: -1}}},
		"dispatch: Keys[0] \"k\": limit: Sequence: Gap -1ns is negative":                                        {Queue: q, Keys: []dispatch.Key{{Name: "k", Gap: -1, Nonce: &dispatch.NonceConfig{}}}},
		"dispatch: Keys[0] \"k\": Nonce: Unit -1ns is negative":                                                 {Queue: q, Keys: []dispatch.Key{{Name: "k", Nonce: &dispatch.NonceConfig{Unit: -1}}}},
		"dispatch: Keys[0] \"k\": Nonce: After 18446744073709551615 is the largest there is":                    {Queue: q, Keys: []dispatch.Key{{Name: "k", Nonce: &dispatch.NonceConfig{After: math.MaxUint64}}}},
		"dispatch: Keys[2] \"c\": Limiter is that of Keys[0] \"a\"; what keys have together is given as Shared": {Queue: q, Keys: []dispatch.Key{{Name: "a", Limiter: shared}, {Name: "b"}, {Name: "c", Limiter: shared}}},
		"dispatch: Keys[0] \"k\": LearnGap with Gap or InFlight":                                                {Queue: q, Keys: []dispatch.Key{{Name: "k", LearnGap: true, InFlight: 1}}},
		"dispatch: Backoff: backoff: Max -1ns is negative":                                                      {Queue: q, Keys: one, Backoff: backoff.Policy{Max: -1}},
	} {
		if _, err := dispatch.New(c); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzDispatcher drives keys with different limits by random programs. It checks that no window of
// a key's arrivals is over its limit, and no more are in flight than allowed. Nonces must rise, and
// counts must add up. No driver may sleep while a request could go.
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

// A dead letter has its reason, in a word at least: the end of the last attempt, if no other is
// given.
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
