package paceline_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// keysWorld is a server that counts requests and tokens of each key in rolling windows, some 25 ms away, and more requests than it takes.
type keysWorld struct {
	keys             int
	requests, tokens int64 // 0: not counted
	window, lasts    time.Duration
	size             func(*rand.Rand) int64
}

func prompt(rng *rand.Rand) int64 {
	return min(int64(100+600*rng.ExpFloat64()*rng.ExpFloat64()), 20_000)
}

// judges are those of one key. Each of them counts what it counts in.
type judges struct{ requests, tokens rule.Amendable }

func (j judges) arrive(now mono.Time, tokens int64) bool {
	fits := j.requests == nil || j.requests.Fits(now, 1)
	fits = fits && (j.tokens == nil || j.tokens.Fits(now, tokens))
	if j.requests != nil {
		j.requests.Count(now, 1, fits)
	}
	if j.tokens != nil {
		j.tokens.Count(now, tokens, fits)
	}
	return fits
}

func (w keysWorld) limiters(t *testing.T) (own limit.Limiter, judged judges) {
	var all []limit.Limiter
	for _, c := range []struct {
		n    int64
		unit limit.Unit
		to   *rule.Amendable
	}{{w.requests, limit.Requests, &judged.requests}, {w.tokens, limit.Tokens, &judged.tokens}} {
		if c.n == 0 {
			continue
		}
		l, err := limit.NewRolling(limit.RollingConfig{Limit: c.n, Window: w.window, Unit: c.unit})
		try(t, err)
		all = append(all, l)
		*c.to, err = rule.NewRolling(rule.RollingConfig{Limit: c.n, Window: w.window})
		try(t, err)
	}
	return limit.NewAll(all...), judged
}

// run returns the percentage of what the server takes, in whichever unit it takes more of its limit, and how many requests it refused.
func (w keysWorld) run(t *testing.T, fill int, seed uint64) (percent float64, refused int) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 1))
		j, err := paceline.NewGroup(paceline.GroupConfig{Fill: fill})
		try(t, err)
		var ways [][]*paceline.Limit
		var server []judges
		for range w.keys {
			own, judged := w.limiters(t)
			ways, server = append(ways, []*paceline.Limit{j.Limit(paceline.LimitConfig{Limiter: own})}), append(server, judged)
		}
		lane := j.Lane(paceline.LaneConfig{}, ways...)
		begin := time.Now()
		var mu sync.Mutex
		var taken limit.Cost
		var all sync.WaitGroup
		ask := func(n time.Duration) {
			mu.Lock()
			cost := limit.Cost{limit.Requests: 1, limit.Tokens: w.size(rng)}
			there, back := time.Duration(rng.Int64N(int64(50*time.Millisecond))), time.Duration(rng.Int64N(int64(50*time.Millisecond)))
			mu.Unlock()
			p, err := lane.Wait(t.Context(), cost)
			if err != nil {
				t.Error(err)
				return
			}
			time.Sleep(there)
			mu.Lock()
			if now := time.Since(begin); !server[p.Way()].arrive(mono.Time(now), cost[limit.Tokens]) {
				refused++
			} else if now >= w.window && now < w.window+w.lasts {
				taken[limit.Requests]++
				taken[limit.Tokens] += cost[limit.Tokens]
			}
			mu.Unlock()
			back -= (time.Since(begin) + back) % time.Microsecond // and n: no two are in line at one instant, in an order that the machine chooses
			back += n
			time.Sleep(back)
			p.Settle(limit.Outcome{Result: limit.Accepted, ArrivedAgo: back})
		}
		for n := range 400 * time.Nanosecond { // so many are always in line or on the way
			all.Go(func() {
				time.Sleep(n)
				for time.Since(begin) < w.window+w.lasts {
					ask(n)
				}
			})
		}
		all.Wait()
		for u, n := range map[limit.Unit]int64{limit.Requests: w.requests, limit.Tokens: w.tokens} {
			if n > 0 {
				percent = max(percent, 100*float64(taken[u])/(float64(w.keys)*float64(n)*float64(w.lasts/w.window)))
			}
		}
	})
	return percent, refused
}

// With several keys, requests that fit go ahead of one that has to wait, as with one key, and more of the limits is used:
//
//	go test -v -run TestKeysAreFilled .
func TestKeysAreFilled(t *testing.T) {
	race.Without(t) // TestStress has the same crowd
	one := func(*rand.Rand) int64 { return 1 }
	for _, c := range []struct {
		name  string
		world keysWorld
		least float64 // percent
	}{
		{"20 requests a second", keysWorld{3, 20, 0, time.Second, time.Minute, one}, 98},
		{"500 requests and 30,000 tokens a minute", keysWorld{3, 500, 30_000, time.Minute, 10 * time.Minute, prompt}, 98.5},
		{"100 requests and 60,000 tokens in 10 s", keysWorld{3, 100, 60_000, 10 * time.Second, 2 * time.Minute, prompt}, 99},
	} {
		for _, fill := range []int{0, 64} {
			sum, refused := 0.0, 0
			const seeds = 3
			for seed := range uint64(seeds) {
				p, n := c.world.run(t, fill, seed)
				sum, refused = sum+p/seeds, refused+n
			}
			t.Logf("%d keys, %s each, Fill %d: %.2f %% used, %d refused", c.world.keys, c.name, fill, sum, refused)
			if refused > 0 || fill > 0 && sum < c.least {
				t.Errorf("%s, Fill %d: %.2f %% used, want %v, and %d were refused", c.name, fill, sum, c.least, refused)
			}
		}
	}
}
