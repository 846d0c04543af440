package limit_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/rule"
)

// Two a second, and nothing takes more than 50 ms, it is said: until one does.
func TestOneWayMaxRetreats(t *testing.T) {
	rolling := must(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: time.Second, Margin: -1, Arrivals: limit.Arrivals{OneWayMax: 50 * ms}}))
	l := newTimeline[limit.Limiter](t)(limit.Named("it", limit.NewAll(rolling)), nil)
	answer := func(now time.Duration, name string, rtt time.Duration, r limit.Result) {
		t.Helper()
		l.Settle(at(now), l.open[name], limit.Outcome{Result: r, RTT: rtt})
	}
	retreats := func(now time.Duration, want ...limit.Retreat) {
		t.Helper()
		if got := limit.Retreats(l.Limiter, at(now)); !slices.Equal(got, want) {
			t.Errorf("at %v: %v, want %v", now, got, want)
		}
	}
	l.send(0, 1, "a")
	l.send(0, 1, "b")
	answer(200*ms, "a", 200*ms, limit.Accepted) // arrived by 50 ms, or so it was promised
	answer(220*ms, "b", 220*ms, limit.Accepted)
	l.ready(220*ms, 2, at(1050*ms))
	l.send(1050*ms, 1, "c")
	l.send(1050*ms, 1, "d")
	retreats(1060 * ms)
	answer(1070*ms, "c", 20*ms, limit.Limited)
	until := at(1070*ms + 10*time.Minute)
	retreats(1070*ms, limit.Retreat{Limit: "it", Option: "OneWayMax", Until: until, Times: 1})
	// Now a and b may have arrived until they were answered, which is more than a window before d.
	l.ready(1070*ms, 1, at(2070*ms))
	answer(1300*ms, "d", 250*ms, limit.Limited) // had been sent before it knew: the same proof
	retreats(1300*ms, limit.Retreat{Limit: "it", Option: "OneWayMax", Until: until, Times: 1})
	l.ready(1300*ms, 1, at(2070*ms))
	l.ready(1300*ms, 2, at(2300*ms))
	l.send(2300*ms, 1, "e")
	answer(2500*ms, "e", 200*ms, limit.Limited) // somebody else's fault: nothing was relied on
	retreats(2500*ms, limit.Retreat{Limit: "it", Option: "OneWayMax", Until: until, Times: 1})
	l.ready(2500*ms, 2, at(3500*ms))
	limit.Trust(l.Limiter, at(2500*ms)) // asked
	retreats(2500 * ms)
	l.ready(2500*ms, 2, at(3350*ms))
	l.send(3350*ms, 2, "f")
	answer(3360*ms, "f", 10*ms, limit.Limited)
	retreats(3360*ms, limit.Retreat{Limit: "it", Option: "OneWayMax", Until: at(3360*ms + 20*time.Minute), Times: 2})
	if err := rolling.SetLimit(at(3360*ms), 3); err != nil { // both know
		t.Fatal(err)
	}
	l.ready(3360*ms, 1, at(3500*ms))
	l.ready(3360*ms, 2, at(4360*ms))
	l.ready(3360*ms+20*time.Minute, 3, at(3360*ms+20*time.Minute))
	retreats(3360*ms + 20*time.Minute)
}

// What waits for longer than the retreat lasts gets what is relied on then.
func TestReadyAcrossTheEndOfARetreat(t *testing.T) {
	l := newTimeline[*limit.Rolling](t)(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Hour, Margin: -1, Arrivals: limit.Arrivals{OneWayMax: time.Second}}))
	l.send(0, 1, "a")
	l.Settle(at(time.Minute), l.open["a"], limit.Outcome{Result: limit.Limited, RTT: time.Minute})
	l.ready(time.Minute, 1, at(time.Hour+time.Second))
	if got := l.Limiter.(*limit.Rolling).NotBefore(at(time.Minute), 1, limit.One, limit.One); got != at(2*time.Hour+time.Second) {
		t.Errorf("the one after that is forecast for %v", got)
	}
}

// Twice as long each time, up to 85 h, and half as long again for each day without.
func TestRetreatsGrowAndShrink(t *testing.T) {
	s := must(limit.NewSequence(limit.SequenceConfig{Gap: 10 * ms}))
	now := mono.Time(0)
	refuted := func(want time.Duration) {
		t.Helper()
		l := s.Admit(now, limit.One)
		now = now.Add(ms)
		s.Settle(now, l, limit.Outcome{Result: limit.Failed, Misordered: true})
		r := s.Retreats(now)
		if len(r) != 1 || r[0].Until.Sub(now) != want || r[0].Option != "Gap" {
			t.Fatalf("%v, want %v", r, want)
		}
		now = r[0].Until
	}
	for k := range 12 {
		refuted(10 * time.Minute << min(k, 9))
	}
	now = now.Add(24*time.Hour - 2*ms)
	refuted(10 * time.Minute << 9)
	now = now.Add(7 * 24 * time.Hour)
	refuted(10 * time.Minute << 3)
	now = now.Add(100 * 24 * time.Hour)
	refuted(10 * time.Minute)
	refuted(20 * time.Minute)
	now = now.Add(24*time.Hour - 2*ms) // a day less a millisecond, to the proof
	refuted(40 * time.Minute)
	now = now.Add(24*time.Hour - ms)
	refuted(40 * time.Minute)
}

// Two may be under way 10 ms apart, until one comes before the other.
func TestAGivenGapRetreats(t *testing.T) {
	l := newTimeline[*limit.Sequence](t)(limit.NewSequence(limit.SequenceConfig{Gap: 10 * ms}))
	l.send(0, 1, "a")
	l.ready(0, 1, at(10*ms))
	l.send(10*ms, 1, "b")
	l.send(20*ms, 1, "c")
	l.answered(30*ms, "b", limit.Accepted)
	l.Settle(at(40*ms), l.open["a"], limit.Outcome{Result: limit.Failed, Misordered: true})
	l.ready(40*ms, 1, at(40*ms+10*time.Minute)) // or when c is answered
	l.answered(50*ms, "c", limit.Accepted)
	l.send(50*ms, 1, "d") // one in flight, as soon as may be
	l.ready(51*ms, 1, at(40*ms+10*time.Minute))
	limit.Trust(l.Limiter, at(52*ms))
	l.ready(52*ms, 1, at(60*ms))
	l.answered(53*ms, "d", limit.Unknown) // may still be under way
	l.ready(53*ms, 1, at(60*ms))
	if _, err := limit.NewSequence(limit.SequenceConfig{Gap: -1}); err == nil {
		t.Error("a negative Gap is taken")
	}
}

// After a refusal nothing is learned for half the time, nor relied on for all of it.
func TestLearnLeadRetreats(t *testing.T) {
	l := must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Second, Margin: -1, Arrivals: limit.Arrivals{LearnLead: true}}))
	now := mono.Time(0)
	rtt := 20 * ms
	cycle := func(r limit.Result) time.Duration { // returns how much less than a window after the last answer it went
		sent := l.Ready(now, limit.One)
		early := now.Add(time.Second).Sub(sent)
		lease := l.Admit(sent, limit.One)
		now = sent.Add(rtt)
		l.Settle(now, lease, limit.Outcome{Result: r, RTT: rtt})
		return early
	}
	lead := func(min, max time.Duration, cycles int) {
		t.Helper()
		for i := range cycles {
			if early := cycle(limit.Accepted); i > 0 && (early < min || early > max) {
				t.Fatalf("at %v, in cycle %d: sent %v early", now, i, early)
			}
		}
	}
	lead(0, 0, 50)
	lead(15*ms, 20*ms, 50) // it took a second or two
	lead(20*ms, 20*ms, 50)
	cycle(limit.Limited)
	r := l.Retreats(now)
	if len(r) != 1 || r[0] != (limit.Retreat{Limit: "requests", Option: "LearnLead", Until: now.Add(10 * time.Minute), Times: 1}) {
		t.Fatalf("%v", r)
	}
	for now < r[0].Until.Add(-time.Second) {
		if rtt = 5 * ms; now > r[0].Until.Add(-5*time.Minute-3*time.Second) {
			rtt = 20 * ms
		}
		lead(0, 0, 2)
	}
	lead(0, 20*ms, 5)
	lead(20*ms, 20*ms, 5)
	cycle(limit.Limited)
	l.Trust(now)
	lead(0, 0, 50) // what was learned is forgotten
	lead(0, 20*ms, 5)
	lead(20*ms, 20*ms, 5)
}

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

// Beside LearnLead, what a server's stamp says of an arrival is no news: both would take the way back off.
func TestLearnLeadHeedsNoStamps(t *testing.T) {
	for _, ago := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond} {
		l := must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Second, Margin: -1, Arrivals: limit.Arrivals{LearnLead: true}}))
		lease := l.Admit(0, limit.One)
		l.Settle(at(800*ms), lease, limit.Outcome{Result: limit.Accepted, RTT: 800 * ms, ArrivedAgo: ago})
		if got := l.Ready(at(800*ms), limit.One); got != at(1800*ms) {
			t.Errorf("it arrived %v ago, it is said: the next goes at %v", ago, got)
		}
	}
}

// Every kind with a OneWayMax stays away from it after a refusal, and one without has nothing to stay away from.
func TestEveryKindRetreats(t *testing.T) {
	for _, k := range risks() {
		for _, promised := range []time.Duration{0, ms} {
			l := must(k.limiter(limit.Arrivals{OneWayMax: promised}))
			l.Settle(at(20*ms), l.Admit(0, limit.One), limit.Outcome{Result: limit.Limited, RTT: 20 * ms})
			got := limit.Retreats(l, at(20*ms))
			if promised == 0 && len(got) > 0 || promised > 0 && (len(got) != 1 || got[0].Option != "OneWayMax" || got[0].Until != at(20*ms+10*time.Minute)) {
				t.Errorf("%s, promised %v: %v", k.name, promised, got)
			}
		}
	}
}
