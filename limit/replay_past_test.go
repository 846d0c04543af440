package limit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// replayed returns new limiters of several kinds.
func replayed(t *testing.T) map[string]func() limit.Limiter {
	must := func(l limit.Limiter, err error) limit.Limiter {
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	rolling := func() limit.Limiter {
		l, err := limit.NewRolling(limit.RollingConfig{Limit: 20, Window: time.Second})
		return must(l, err)
	}
	bucket := func() limit.Limiter {
		l, err := limit.NewBucket(limit.BucketConfig{Limit: 20, Window: time.Second, Burst: 10})
		return must(l, err)
	}
	return map[string]func() limit.Limiter{
		"rolling": rolling,
		"bucket":  bucket,
		"calendar": func() limit.Limiter {
			l, err := limit.NewCalendar(limit.CalendarConfig{Limit: 20, Window: time.Second})
			return must(l, err)
		},
		"weighted": func() limit.Limiter {
			l, err := limit.NewWeighted(limit.WeightedConfig{Limit: 20, Window: time.Second})
			return must(l, err)
		},
		"produced": func() limit.Limiter {
			l, err := limit.NewProduced(limit.ProducedConfig{Limit: 20, Window: time.Second, Burst: 10, PerSecond: -1})
			return must(l, err)
		},
		"all":   func() limit.Limiter { return limit.NewAll(limit.Named("window", rolling()), bucket()) },
		"wrong": func() limit.Limiter { return limit.NewFitted(rolling()) },
	}
}

// A limiter in a new process answers as the old one would, if all requests were answered and are
// known.
func TestReplaySaysTheSame(t *testing.T) {
	for name, make := range replayed(t) {
		for seed := range uint64(50) {
			rng := rand.New(rand.NewPCG(seed, 1))
			before, after := make(), make()
			var past []limit.Past
			now := mono.Time(0)
			for range 200 {
				n := 1 + rng.Int64N(3)
				cost := limit.Cost{limit.Requests: n, limit.Output: n}
				if now = now.Add(time.Duration(rng.Int64N(int64(100 * time.Millisecond)))); before.Ready(now, cost) > now {
					continue
				}
				result := []limit.Result{limit.Accepted, limit.Failed, limit.Limited}[rng.IntN(3)]
				if name == "wrong" { // it learns from refusals: a Lesson keeps that
					result = limit.Accepted
				}
				l := limittest.Admit(before, now, cost)
				now = now.Add(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
				before.Settle(now, l, &limit.Outcome{Result: result, Metered: true, Actual: cost})
				past = append(past, limit.Past{At: now, Cost: cost, Result: result})
			}
			limit.Replay(after, now, mono.Min, past)
			for range 50 {
				now = now.Add(time.Duration(rng.Int64N(int64(50 * time.Millisecond))))
				n := 1 + rng.Int64N(10)
				cost := limit.Cost{limit.Requests: n, limit.Output: n}
				if a, b := before.Ready(now, cost), after.Ready(now, cost); a != b {
					t.Fatalf("%s, seed %d at %v: %v, and %v when replayed", name, seed, now, a, b)
				}
			}
		}
	}
}

// Requests before the beginning of a history may have emptied a bucket. Requests under way at its
// end may still arrive.
func TestReplayOfAHistoryThatIsCut(t *testing.T) {
	at := func(d time.Duration) mono.Time { return mono.Time(d) }
	one := limit.Cost{limit.Requests: 1, limit.Output: 1}
	for name, make := range replayed(t) {
		l := make()
		limit.Replay(l, 0, at(-10*time.Second), nil)
		if ready := l.Ready(0, one); ready > 0 {
			t.Errorf("%s: %v although nothing was sent in 10 s", name, ready)
		}
		l = make()
		limit.Replay(l, 0, at(-time.Millisecond), nil)
		if empty := l.Ready(0, one) > 0; empty != (name == "bucket" || name == "produced" || name == "all") {
			t.Errorf("%s: empty is %v where nothing is known", name, empty)
		}
		l = make()
		limit.Replay(l, 0, mono.Min, []limit.Past{{At: at(3 * time.Second), Cost: limit.Cost{limit.Requests: 10, limit.Output: 10}}})
		if ready := l.Ready(0, limit.Cost{limit.Requests: 11, limit.Output: 11}); ready <= 0 {
			t.Errorf("%s: %v although 10 may still arrive for 3 s", name, ready)
		}
	}
}

// A bucket replayed from one with a higher limit is empty, and not in debt for hours.
func TestReplayOfAHigherLimit(t *testing.T) {
	small, err := limit.NewBucket(limit.BucketConfig{Limit: 1, Window: time.Second, Burst: 2})
	if err != nil {
		t.Fatal(err)
	}
	var past []limit.Past
	for i := range 100 {
		past = append(past, limit.Past{At: mono.Time(-time.Second).Add(time.Duration(i) * time.Millisecond), Cost: limit.One, Result: limit.Accepted})
	}
	past = append(past, limit.Past{At: mono.Time(2 * time.Second), Cost: limit.Cost{limit.Requests: 100}})
	limit.Replay(small, 0, mono.Min, past)
	if ready := small.Ready(mono.Time(5*time.Second), limit.One); ready > mono.Time(8*time.Second) {
		t.Errorf("it is ready at %v", ready)
	}
}

// What may still arrive takes no more than the bucket has then: beyond that, the earlier process had a higher limit.
func TestReplayOfMoreThanTheBucketHas(t *testing.T) {
	var ready []mono.Time
	for _, n := range []int{10, 50} {
		b, err := limit.NewBucket(limit.BucketConfig{Limit: 10, Window: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		limit.Replay(b, 0, mono.Min, slices.Repeat([]limit.Past{{At: mono.Time(time.Second), Cost: limit.One}}, n))
		ready = append(ready, b.Ready(mono.Time(time.Minute), limit.One))
	}
	if ready[0] <= mono.Time(time.Minute) || ready[0] != ready[1] {
		t.Errorf("ready at %v after 10 requests, at %v after 50; want the same", ready[0], ready[1])
	}
}

// A process that knows nothing of the one before counts each window as used up, of every kind. A longer window, and what is in flight,
// are left alone.
func TestReplayFull(t *testing.T) {
	for name, l := range replayed(t) {
		for _, c := range []struct {
			longest time.Duration
			used    bool
		}{{time.Second, true}, {time.Second - 1, false}} {
			l := l()
			limit.ReplayFull(l, at(time.Hour+time.Millisecond), c.longest)
			now := at(time.Hour + 2*time.Millisecond)
			// A bucket has a new request each 50 ms.
			if ready := l.Ready(now, limit.Cost{limit.Requests: 1, limit.Output: 1}); ready >= now.Add(40*time.Millisecond) != c.used {
				t.Errorf("%s, up to %v: one may go after %v", name, c.longest, ready.Sub(now))
			}
			if ready := l.Ready(now, limit.Cost{limit.Requests: 10, limit.Output: 10}); ready > now.Add(3*time.Second) {
				t.Errorf("%s, up to %v: ten may go after %v only", name, c.longest, ready.Sub(now))
			}
		}
	}
	c := must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1}))
	if limit.ReplayFull(c, 0, time.Hour); c.Ready(0, limit.One) != 0 {
		t.Error("a request in flight of the process before counts")
	}
}

// Requests in flight end with their process. Limiters that learn from answers still get the
// answers.
func TestReplayLeavesAlone(t *testing.T) {
	c, err := limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []limit.Limiter{c, &resuming{Limiter: c}} {
		limit.Replay(l, 0, mono.Min, []limit.Past{{At: 1e9, Cost: limit.One}})
		if ready := l.Ready(0, limit.One); ready != 0 {
			t.Error(fmt.Sprintf("%T", l), ready)
		}
	}
}

// resuming records its calls.
type resuming struct {
	limit.Limiter
	now  mono.Time
	told []limit.Past
}

func (r *resuming) State(mono.Time, []limit.Rule) {}
func (r *resuming) Refills(*limit.Outcome) uint8  { return 0 }

func (r *resuming) Resume(now mono.Time, all []limit.Past) { r.now, r.told = now, all }

// A limiter that continues by itself gets all sent requests, at any place, also inside a Varying.
// Nothing is counted for it.
func TestReplayResumes(t *testing.T) {
	all := []limit.Past{{At: at(-time.Second), Sent: at(-2 * time.Second), Cost: limit.One}}
	for name, in := range map[string]func(l limit.Limiter) limit.Limiter{
		"itself":  func(l limit.Limiter) limit.Limiter { return l },
		"All":     func(l limit.Limiter) limit.Limiter { return limit.NewAll(l) },
		"Varying": func(l limit.Limiter) limit.Limiter { return limit.NewVarying(l) },
		"Named":   func(l limit.Limiter) limit.Limiter { return limit.Named("it", l) },
		"Fitted":  func(l limit.Limiter) limit.Limiter { return limit.NewFitted(l) },
	} {
		r := &resuming{Limiter: must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1}))}
		limit.Replay(in(r), at(time.Second), mono.Min, all)
		if r.now != at(time.Second) || len(r.told) != 1 || r.told[0] != all[0] {
			t.Errorf("%s: at %v it was told %v", name, r.now, r.told)
		}
	}
}

// A bucket in a Varying forgets as little over a restart as any other. Requests before the known
// history may have emptied it.
func TestReplayOfWhatVaries(t *testing.T) {
	b := must(limit.NewBucket(limit.BucketConfig{Limit: 10, Window: time.Minute}))
	limit.Replay(limit.NewVarying(b), 0, at(-6*time.Second), nil)
	if ready := b.Ready(0, limit.Cost{limit.Requests: 2}); ready < at(5*time.Second) {
		t.Errorf("two go at %v, and one came since the instant from which all is known", ready)
	}
}
