package nodesim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/lab/nodesim"
	"github.com/paceline-go/paceline/limit"
)

const ms = time.Millisecond

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// kind is a limit and the server that enforces it.
type kind struct {
	name   string
	limit  func() limit.Limiter
	server func() map[limit.Unit]rule.Server
	cost   func(*rand.Rand) limit.Cost
	full   float64 // requests in a second, if it is used to the last
	phased bool    // its intervals begin at instants that are known
}

func requests[S rule.Server](make func() (S, error)) func() map[limit.Unit]rule.Server {
	return func() map[limit.Unit]rule.Server { return map[limit.Unit]rule.Server{limit.Requests: must(make())} }
}

func rolling(n int64, w time.Duration) kind {
	return kind{fmt.Sprintf("Rolling %d/%v", n, w),
		func() limit.Limiter { return limit.MustRolling(n, w) },
		requests(func() (rule.Amendable, error) { return rule.NewRolling(rule.RollingConfig{Limit: n, Window: w}) }), nil, float64(n) / w.Seconds(), false}
}

func calendar(n int64, w time.Duration) kind {
	return kind{fmt.Sprintf("Calendar %d/%v", n, w),
		func() limit.Limiter {
			return must(limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: w}))
		},
		requests(func() (rule.Timed, error) { return rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: w}) }), nil, float64(n) / w.Seconds(), true}
}

func bucket(n, burst int64, w time.Duration) kind {
	return kind{fmt.Sprintf("Bucket %d/%v burst %d", n, w, burst),
		func() limit.Limiter {
			return must(limit.NewBucket(limit.BucketConfig{Limit: n, Window: w, Burst: burst}))
		},
		requests(func() (rule.Amendable, error) {
			return rule.NewBucket(rule.BucketConfig{Limit: n, Window: w, Capacity: burst})
		}), nil, float64(n) / w.Seconds(), false}
}

func weighted(n int64, w time.Duration) kind {
	return kind{fmt.Sprintf("Weighted %d/%v", n, w),
		func() limit.Limiter {
			return must(limit.NewWeighted(limit.WeightedConfig{Limit: n, Window: w}))
		},
		requests(func() (rule.Rule, error) { return rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: w}) }), nil, float64(n) / w.Seconds(), false}
}

// tokens is 500 requests and 30,000 tokens a minute; requests cost 20 + Exp(60) tokens.
func tokens(w time.Duration) kind {
	return kind{fmt.Sprintf("All 500 requests + 30000 tokens/%v", w),
		func() limit.Limiter {
			return limit.NewAll(limit.MustRolling(500, w), must(limit.NewRolling(limit.RollingConfig{Limit: 30_000, Window: w, Unit: limit.Tokens})))
		},
		func() map[limit.Unit]rule.Server {
			return map[limit.Unit]rule.Server{
				limit.Requests: must(rule.NewRolling(rule.RollingConfig{Limit: 500, Window: w})),
				limit.Tokens:   must(rule.NewRolling(rule.RollingConfig{Limit: 30_000, Window: w})),
			}
		},
		func(rng *rand.Rand) limit.Cost {
			return limit.Cost{limit.Requests: 1, limit.Tokens: 20 + int64(rng.ExpFloat64()*60)}
		}, 30_000 / 80 / w.Seconds(), false}
}

func even(rng *rand.Rand) time.Duration { return time.Duration(rng.Int64N(int64(50 * ms))) }

// sharp takes no time, but for one in twenty.
func sharp(rng *rand.Rand) time.Duration {
	if rng.IntN(20) > 0 {
		return 0
	}
	return even(rng)
}

// near is the way to a store: a turn takes 1 to 20 ms.
func near(rng *rand.Rand) time.Duration { return ms/4 + time.Duration(rng.Int64N(int64(19*ms/4))) }

var long = need.Long()

// base is all want all.
func base(k kind, nodes int, seed uint64) nodesim.Config {
	return nodesim.Config{Seed: seed, Nodes: nodes, Limit: k.limit, Server: k.server, Cost: k.cost, Way: even, StoreWay: near,
		Demand: 1000, Length: 60 * time.Second}
}

// TestAims measures what the aims of package share are stated in: how much of what one process reaches on the same
// path n reach together, how evenly, and with how many turns.
func TestAims(t *testing.T) {
	counts := []int{8}
	if long {
		counts = []int{1, 3, 8, 64}
	}
	for i, a := range []struct {
		kind
		least float64 // of one process, with 8 nodes
		jain  float64
		many  float64 // of one process, with 64 nodes
		even  float64 // Jain's index of those
	}{
		{rolling(20, time.Second), 0.98, 0.99, 0.98, 0.99},
		{rolling(300, time.Second), 0.98, 0.99, 0.98, 0.99},
		{rolling(1000, time.Second), 0.98, 0.99, 0.98, 0.99},
		{rolling(600, 10*time.Second), 0.995, 0.99, 0.995, 0.99},
		{calendar(600, 10*time.Second), 0.995, 0.96, 0.995, 0.96},
		{bucket(100, 50, time.Second), 0.99, 0.96, 0.99, 0.99},
		{weighted(200, time.Second), 0.97, 0.99, 0.94, 0.99},
		{tokens(time.Minute), 0.985, 0.99, 0.985, 0.99},
	} {
		if need.Fewer(1 <= i && i <= 3, false) {
			continue // they are rolling windows, as the first is, with up to 60,000 requests
		}
		for _, n := range counts {
			c := base(a.kind, n, 1)
			c.Warm = 20 * time.Second
			if a.kind.cost != nil {
				c.Length, c.Warm = 680*time.Second, 80*time.Second // in fewer windows the parts are chance
				if n == 64 {
					c.Length += 600 * time.Second
				}
			}
			one, r := nodesim.Alone(c), nodesim.Run(c)
			unit := limit.Requests
			if a.kind.cost != nil { // how many requests that makes is chance
				unit = limit.Tokens
			}
			of := float64(r.Units[unit]) / float64(one.Units[unit])
			t.Logf("%-34s n=%-2d %5.1f%% of one process (%.1f/s), Jain %.3f, %.2f permits/turn, %.1f turns/s, blob %d", a.name, n, 100*of, one.Rate, r.Jain(),
				float64(r.Sent)/float64(r.Turns), float64(r.Turns)/(c.Length-c.Warm).Seconds(), r.BlobBytes)
			least, jain := 0.0, 0.0
			switch n {
			case 8:
				least, jain = a.least, a.jain
			case 64:
				least, jain = a.many, a.even
			}
			if r.Refused > 0 || of < least || r.Jain() < jain {
				t.Errorf("%s, %d nodes: %.3f of one process, Jain %.3f, %d refused", a.name, n, of, r.Jain(), r.Refused)
			}
		}
	}
}
