package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

const ms = time.Millisecond

func at(d time.Duration) mono.Time { return mono.Time(d) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func pick[T any](rng *rand.Rand, xs ...T) T { return xs[rng.IntN(len(xs))] }

// risk is a limit with an opt-in, and a server that enforces it.
type risk struct {
	name    string
	limiter func(limit.Arrivals) (limit.Limiter, error)
	server  func() rule.Server
	leads   bool // LearnLead is for it
}

func risks() []risk {
	const n = 20
	return []risk{
		{"Rolling", func(a limit.Arrivals) (limit.Limiter, error) {
			return limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Second, Arrivals: a})
		}, func() rule.Server { return must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: time.Second})) }, true},
		{"Bucket", func(a limit.Arrivals) (limit.Limiter, error) {
			return limit.NewBucket(limit.BucketConfig{Limit: n, Window: time.Second, Burst: 10, Arrivals: a})
		}, func() rule.Server {
			return must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: time.Second, Capacity: 10}))
		}, true},
		{"Weighted", func(a limit.Arrivals) (limit.Limiter, error) {
			return limit.NewWeighted(limit.WeightedConfig{Limit: n, Window: time.Second, Arrivals: a})
		}, func() rule.Server { return must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: time.Second})) }, true},
		{"Calendar", func(a limit.Arrivals) (limit.Limiter, error) {
			return limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: time.Second, Skew: 2 * ms, Arrivals: a})
		}, func() rule.Server { return must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: time.Second})) }, false},
		{"Anchored", func(a limit.Arrivals) (limit.Limiter, error) {
			return limit.NewAnchored(limit.AnchoredConfig{Limit: n, Window: time.Second, Arrivals: a})
		}, func() rule.Server { return must(rule.NewAnchored(rule.AnchoredConfig{Limit: n, Window: time.Second})) }, false},
	}
}

// refusals plays requests over a path, and returns how many were refused, and of those that were sent after a proof had
// been read and before its retreat was over, an instant.
func (k risk) refusals(a limit.Arrivals, path sim.Path, requests int, seed uint64, lost float64) (refused int, within []mono.Time) {
	l := must(k.limiter(a))
	from, until := mono.Min, mono.Min
	sim.Proof{Limiter: l, Servers: []sim.ProofServer{{Server: k.server()}}, Path: path, Requests: requests, Seed: seed, Lost: lost,
		Know: func(o *limit.Outcome, sent, _, now mono.Time) {
			if r := limit.Retreats(l, now); len(r) > 0 {
				until = r[0].Until
			}
			if o.Result != limit.Limited {
				return
			}
			refused++
			switch {
			case sent > from && sent < until:
				within = append(within, sent)
			case sent >= until: // a proof
				from, until = now, now
			}
		}}.Run()
	return refused, within
}

// FuzzRetreat: however wrong an opt-in is, after the first proof nothing is refused within the retreat.
func FuzzRetreat(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		requests := 3000
		if testing.Short() {
			requests = 300
		}
		rng := rand.New(rand.NewPCG(seed, 31))
		k := risks()[rng.IntN(len(risks()))]
		a := limit.Arrivals{OneWayMax: pick(rng, ms, 5*ms, 50*ms)}
		if k.leads && rng.IntN(2) == 0 {
			a = limit.Arrivals{LearnLead: true}
		}
		law := func() latency.Law {
			d := time.Duration(rng.IntN(200)) * ms
			return pick(rng, latency.Constant(d/8), latency.Uniform(0, d), latency.Exponential(d, ms), latency.Bimodal(d/10, d, 0.1))
		}
		path := sim.Steps(sim.Asymmetric(law(), law()), sim.Asymmetric(law(), law()), time.Duration(5+rng.IntN(60))*time.Second)
		lost := pick(rng, 0, 0.01)
		if _, within := k.refusals(a, path, requests, seed, lost); len(within) > 0 {
			t.Errorf("%s, %+v: %d refused within the retreat, the first sent at %v", k.name, a, len(within), within[0])
		}
	})
}

// What the opt-ins risk, in an hour of a key of 20 per second that always has something to send: as their docs say.
func TestWhatOptInsRisk(t *testing.T) {
	requests := 72_000
	if testing.Short() {
		requests = 5000
	}
	way := func(f, b time.Duration) sim.Path { return sim.Asymmetric(latency.Constant(f), latency.Constant(b)) }
	loaded := sim.Asymmetric(latency.Bimodal(20*ms, 300*ms, 0.05), latency.Uniform(0, 50*ms))
	for _, c := range []struct {
		name     string
		arrivals limit.Arrivals
		path     sim.Path
		most     int // refused
		before   int // that were refused when there was no retreat
	}{
		{"the way there becomes quicker and the way back slower, once", limit.Arrivals{LearnLead: true}, sim.Steps(way(25*ms, 5*ms), way(5*ms, 25*ms), 30*time.Minute), 20, 20},
		{"and back again, every 10 s", limit.Arrivals{LearnLead: true}, sim.Steps(way(25*ms, 5*ms), way(5*ms, 25*ms), 10*time.Second), 60, 3600},
		{"a loaded server", limit.Arrivals{OneWayMax: 50 * ms}, loaded, 5, 2083},
		{"a loaded server, nothing relied on", limit.Arrivals{}, loaded, 0, 0},
	} {
		refused, within := risks()[0].refusals(c.arrivals, c.path, requests, 1, 0)
		t.Logf("%s: %d refused, %d without a retreat", c.name, refused, c.before)
		if refused > c.most || len(within) > 0 {
			t.Errorf("%s: %d refused, %d within the retreat; want at most %d", c.name, refused, len(within), c.most)
		}
	}
}

// Every kind with a OneWayMax stays away from it after a refusal, and one without has nothing to stay away from.
func TestEveryKindRetreats(t *testing.T) {
	for _, k := range risks() {
		for _, promised := range []time.Duration{0, ms} {
			l := must(k.limiter(limit.Arrivals{OneWayMax: promised}))
			l.Settle(at(20*ms), limittest.Admit(l, 0, limit.One), &limit.Outcome{Result: limit.Limited, RTT: 20 * ms})
			got := limit.Retreats(l, at(20*ms))
			if promised == 0 && len(got) > 0 || promised > 0 && (len(got) != 1 || got[0].Option != "OneWayMax" || got[0].Until != at(20*ms+10*time.Minute)) {
				t.Errorf("%s, promised %v: %v", k.name, promised, got)
			}
		}
	}
}
