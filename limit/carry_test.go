package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// The missing part of a bucket is carried as whole tokens: rounded up, and none more.
func TestCarriedIsNoMore(t *testing.T) {
	made := func() *limit.Produced {
		p, err := limit.NewProduced(limit.ProducedConfig{Limit: 6000, Window: time.Minute, PerSecond: -1, Margin: -1})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	draw := func(p *limit.Produced, now mono.Time, n int64) {
		cost := limit.Cost{limit.Output: n}
		p.Settle(now, limittest.Admit(p, now, cost), &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: cost})
	}
	for _, c := range []struct {
		ago  time.Duration
		want int64
	}{{0, 6100}, {5 * time.Millisecond, 6100}, {15 * time.Millisecond, 6099}, {time.Hour, 0}} {
		from, home, twin, now := made(), made(), made(), mono.Time(c.ago)
		draw(from, 0, 6100)
		from.CarryTo(now, home)(now)
		draw(twin, now, c.want)
		one := limit.Cost{limit.Output: 1}
		at, want := home.Ready(now, one), twin.Ready(now, one)
		if at != want || (c.want > 6000) != (at > now) {
			t.Errorf("6100 drawn %v ago: the next goes in %v, want %v, after %d", c.ago, at.Sub(now), want.Sub(now), c.want)
		}
	}
}

// The possible output of a lost request is carried while it is possible. After its end it is
// refilled like any other.
func TestCarriedLost(t *testing.T) {
	made := func() *limit.Produced {
		p, err := limit.NewProduced(limit.ProducedConfig{Limit: 6000, Window: time.Minute, PerSecond: 1000, Margin: -1, Late: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	cost := func(n int64) limit.Cost { return limit.Cost{limit.Output: n} }
	second := func(n float64) mono.Time { return mono.Time(n * float64(time.Second)) }
	from, home, twin := made(), made(), made()
	lost := limit.Outcome{Result: limit.Unknown}
	from.Settle(0, limittest.Admit(from, 0, cost(4500)), &lost)
	twin.Settle(0, limittest.Admit(twin, 0, cost(4500)), &lost)
	open, both := limittest.Admit(home, 0, cost(5000)), limittest.Admit(twin, 0, cost(5000))
	end := from.CarryTo(0, home)
	for _, now := range []mono.Time{0, second(2.5), second(4.9)} {
		if at, want := home.Ready(now, cost(10)), twin.Ready(now, cost(10)); at < want || (want > now) != (now > 0) {
			t.Errorf("carried, at %v: the next goes at %v, want %v", now, at, want)
		}
	}
	answered := limit.Outcome{Result: limit.Accepted, Metered: true}
	home.Settle(second(20), open, &answered)
	twin.Settle(second(20), both, &answered)
	end(second(20)) // 4500 as of now
	answered.Actual = cost(1650)
	home.Settle(second(22), limittest.Admit(home, second(22), answered.Actual), &answered)
	if at := home.Ready(second(22), cost(1)); at != second(22) {
		t.Errorf("200 of 4500 came back, 1650 were drawn, and the next goes at %v", at)
	}
}

// Two limiters share a bucket, and one is carried to the other when that is known. From then on
// nothing goes earlier than with one limiter that counted everything from the beginning.
func TestCarriedIsNoLess(t *testing.T) {
	for _, c := range []limit.ProducedConfig{{Limit: 6000, Window: time.Minute}, {Limit: 6000, Window: time.Minute, PerSecond: -1}, {Limit: 60_000, Window: time.Minute, Burst: 1000}} {
		random := rand.New(rand.NewPCG(1, 2))
		waits := 0
		for range 300 {
			made := func() *limit.Produced {
				p, err := limit.NewProduced(c)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			type open struct {
				of          *limit.Produced
				lease, both *limit.Sent
				cost        int64
			}
			home, from, both := made(), made(), made()
			var all []open
			now := mono.Time(0)
			settle := func(i int) {
				o := limit.Outcome{Result: limit.Accepted, Metered: true}
				if o.Actual[limit.Output] = random.Int64N(all[i].cost + 1); random.IntN(5) == 0 {
					o = limit.Outcome{Result: limit.Unknown}
				}
				all[i].of.Settle(now, all[i].lease, &o)
				both.Settle(now, all[i].both, &o)
				all[i] = all[len(all)-1]
				all = all[:len(all)-1]
			}
			looks := func(when string) {
				for _, n := range []int64{1, 100, 2000} {
					var cost limit.Cost
					cost[limit.Output] = n
					at, want := home.Ready(now, cost), both.Ready(now, cost)
					if want > now {
						waits++
					}
					if want > now && at < want && (want < limit.AfterSettle || at <= now) && want.Sub(at) > time.Millisecond {
						t.Fatalf("%s: %v: %d may go at %v, all told at %v", when, now, n, at, want)
					}
				}
			}
			some := func(of []*limit.Produced) {
				for range random.IntN(25) {
					now = now.Add(time.Duration(random.Int64N(int64(time.Second / 4))))
					var cost limit.Cost
					cost[limit.Output] = random.Int64N(1500)
					to := of[random.IntN(len(of))]
					all = append(all, open{to, limittest.Admit(to, now, cost), limittest.Admit(both, now, cost), cost[limit.Output]})
				}
			}
			some([]*limit.Produced{home, from})
			end := from.CarryTo(now, home)
			looks("carried")
			some([]*limit.Produced{home})
			looks("later")
			for len(all) > 0 {
				settle(0)
			}
			end(now)
			looks("settled")
			now = now.Add(4 * time.Second)
			looks("after that")
		}
		if waits < 100 {
			t.Errorf("%d waits", waits)
		}
	}
}
