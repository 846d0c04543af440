package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/ceiling"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

func named(t testing.TB, name string) sim.NamedPath {
	t.Helper()
	all := sim.HostilePaths()
	i := slices.IndexFunc(all, func(p sim.NamedPath) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no path %q", name)
	}
	return all[i]
}

func trip(l ceiling.Leg) time.Duration { return l.Forward + l.Back }

// TestMeansOfPaths: by hand, in milliseconds, there and back.
func TestMeansOfPaths(t *testing.T) {
	lognormal := 10 * math.Exp(math.Pow(math.Log(10)/2.3263478740408408, 2)/2)
	// Pareto with cap c: scale·(α − (scale/c)^(α−1))/(α − 1)
	pareto := 2 * (1.1 - math.Pow(2./60_000, 0.1)) / 0.1
	sawtooth := 1 + 1700./2
	for name, want := range map[string][2]float64{
		"constant 20 ms":                 {20, 20},
		"uniform 0–50 ms":                {25, 25},
		"2 ms + exponential 20 ms":       {22, 22},
		"lognormal 10 ms, p99 100 ms":    {lognormal, lognormal},
		"0, or 3 s one time in fifty":    {60, 60},
		"Pareto 2 ms, 1.1, up to 60 s":   {pareto, pareto},
		"sawtooth of 1.7 s":              {sawtooth, 0},
		"bunches of 250 ms":              {2.5 + 125, 2.5},
		"slow there, answered at once":   {50, 0},
		"there at once, answered slowly": {0, 50},
		"steps between 5 and 400 ms":     {202.5, 202.5},
		"answers stalled for 700 ms":     {10, 10 + 0.14*350},
		"two routes, 1 and 120 ms":       {60.5, 60.5},

		"there within 2 s, answered at once": {1000, 0},
	} {
		p := named(t, name)
		const n = 1_000_000
		tolerance := 0.01
		if name == "Pareto 2 ms, 1.1, up to 60 s" { // σ is 15 times the mean
			tolerance = 0.05
		}
		backs := time.Duration(0)
		forth := expect(p, n, 1, func(l ceiling.Leg) time.Duration {
			backs += l.Back
			return l.Forward
		})
		for i, mean := range []time.Duration{forth, backs / n} {
			got := float64(mean) / 1e6
			if math.Abs(got-want[i]) > tolerance*want[i] {
				t.Errorf("%s: way %d takes %.3f ms, want %.3f", name, i, got, want[i])
			}
		}
	}
	if n := len(sim.HostilePaths()); n != 14 {
		t.Errorf("%d paths, 14 were looked at", n)
	}
}

// TestStationaryPathsDoNotDependOnTime: the same draws at any instant; those that are not stationary differ, but for the
// one without a mean worth the name, and the one as long as windows.
func TestStationaryPathsDoNotDependOnTime(t *testing.T) {
	for _, p := range sim.HostilePaths() {
		same := true
		for at := mono.Time(-7e9); at < 20e9; at += 77e6 {
			f, b := p.Draw(at, rand.New(rand.NewPCG(1, 2)))
			f0, b0 := p.Draw(-7e9, rand.New(rand.NewPCG(1, 2)))
			same = same && f == f0 && b == b0
			if f < 0 || b < 0 || f > time.Minute || b > time.Minute {
				t.Fatalf("%s at %v: %v, %v", p.Name, at, f, b)
			}
		}
		if p.Stationary != same && p.Name != "Pareto 2 ms, 1.1, up to 60 s" && p.Name != "there within 2 s, answered at once" {
			t.Errorf("%s: stationary %v, the same at all times %v", p.Name, p.Stationary, same)
		}
	}
}

// legs draws at instants from −10 s to 50 s, a few milliseconds apart.
func legs(p sim.Path, each func(sent, arrived, answered mono.Time)) {
	rng := rand.New(rand.NewPCG(7, 8))
	for now := mono.Time(-10 * time.Second); now < mono.Time(50*time.Second); {
		f, b := p.Draw(now, rng)
		each(now, now.Add(f), now.Add(f).Add(b))
		now = now.Add(time.Duration(rng.IntN(int(7 * time.Millisecond))))
	}
}

func TestBunches(t *testing.T) {
	for name, c := range map[string]struct{ period, offset time.Duration }{
		"bunches of 250 ms": {250 * time.Millisecond, 0},
		"sawtooth of 1.7 s": {1700 * time.Millisecond, time.Millisecond},
	} {
		together := map[mono.Time]int{}
		legs(named(t, name), func(sent, arrived, _ mono.Time) {
			if arrived.Add(-c.offset)%mono.Time(c.period) != 0 {
				t.Fatalf("%s: %v arrives at %v", name, sent, arrived)
			}
			if gone := arrived.Sub(sent); gone > c.period+5*time.Millisecond {
				t.Fatalf("%s: %v arrives at %v, a bunch late", name, sent, arrived)
			}
			together[arrived]++
		})
		for at, n := range together { // one each 3.5 ms
			if want := int(c.period / (7 * time.Millisecond)); n < want && at > mono.Time(-9*time.Second) && at < mono.Time(48*time.Second) {
				t.Errorf("%s: %d at %v, want %d at least", name, n, at, want)
			}
		}
	}
}

func TestBunchTimeline(t *testing.T) {
	p := sim.Bunched(sim.Asymmetric(latency.Constant(3), latency.Constant(4)), 10)
	for at, want := range map[mono.Time]time.Duration{0: 10, 6: 4, 7: 3, 8: 12, -3: 3, -2: 12, -13: 3} {
		if f, b := p.Draw(at, nil); f != want || b != 4 {
			t.Errorf("at %d: %d, %d, want %d, 4", at, f, b, want)
		}
	}
}

func TestStallsHoldAnswers(t *testing.T) {
	atEnd, during := 0, 0
	legs(named(t, "answers stalled for 700 ms"), func(sent, arrived, answered mono.Time) {
		const every, stall = 5 * time.Second, 700 * time.Millisecond
		in := (time.Duration(answered)%every + every) % every
		switch {
		case in < stall:
			t.Fatalf("%v is answered at %v, in a stall", sent, answered)
		case in == stall:
			atEnd++
		}
		if arrived.Sub(sent) > 20*time.Millisecond {
			t.Fatalf("%v arrives at %v", sent, arrived)
		}
		if (time.Duration(sent)%every+every)%every < stall-40*time.Millisecond {
			during++
		}
	})
	if during < 12*150 || atEnd < during {
		t.Errorf("%d were answered at the end of a stall, %d sent during one", atEnd, during)
	}
}

func TestOvertaking(t *testing.T) {
	for name, want := range map[string]int{"two routes, 1 and 120 ms": 4000, "steps between 5 and 400 ms": 9, "constant 20 ms": 0} {
		overtaken, last := 0, mono.Min
		legs(named(t, name), func(_, arrived, _ mono.Time) {
			if arrived < last {
				overtaken++
			}
			last = max(last, arrived)
		})
		if overtaken < want || want == 0 && overtaken > 0 {
			t.Errorf("%s: %d overtaken, want %d", name, overtaken, want)
		}
	}
}

func TestStepsTimeline(t *testing.T) {
	const s = mono.Time(time.Second)
	p := sim.Steps(sim.Symmetric(latency.Constant(1)), sim.Symmetric(latency.Constant(9)), time.Second)
	for at, want := range map[mono.Time]time.Duration{0: 1, s - 1: 1, s: 9, 2*s - 1: 9, 2 * s: 1, -1: 9, -s: 9, -s - 1: 1} {
		if f, b := p.Draw(at, nil); f != want || b != want {
			t.Errorf("at %v: %d, %d, want %d", at, f, b, want)
		}
	}
}

func TestSampleIsTheSameForTheSameSeed(t *testing.T) {
	for _, p := range sim.HostilePaths() {
		one, two := sample(p, 1000, 5), sample(p, 1000, 5)
		if !slices.Equal(one, two) {
			t.Errorf("%s: two samples of one seed differ", p.Name)
		}
		if p.Name != "constant 20 ms" && slices.Equal(one, sample(p, 1000, 6)) {
			t.Errorf("%s: samples of two seeds are equal", p.Name)
		}
		sum := time.Duration(0)
		for _, l := range one {
			sum += trip(l)
		}
		if mean := expect(p, 1000, 5, trip); mean != sum/1000 {
			t.Errorf("%s: the mean trip of a sample is %v, Expect says %v", p.Name, sum/1000, mean)
		}
	}
}

// TestSampledCeilings: a client that plays the sampled legs gets what the formula makes of the expected trip.
func TestSampledCeilings(t *testing.T) {
	for _, p := range sim.HostilePaths() {
		if !p.Stationary {
			continue
		}
		const n = 200_000
		most, err := ceiling.Config{}.Most(time.Hour, sample(p, n, 9))
		if err != nil {
			t.Fatal(err)
		}
		want := 20 * 3600 / (1001*time.Millisecond + expect(p, n, 9, trip)).Seconds()
		if math.Abs(float64(most)-want) > 0.01*want {
			t.Errorf("%s: %d an hour, want %.0f", p.Name, most, want)
		}
	}
}

func TestDrawsDoNotAllocate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range sim.HostilePaths() {
		now := mono.Time(0)
		if n := testing.AllocsPerRun(1000, func() {
			now += 1e6
			p.Draw(now, rng)
		}); n != 0 {
			t.Errorf("%s: %v allocations", p.Name, n)
		}
	}
}

func BenchmarkPaths(b *testing.B) {
	for _, p := range sim.HostilePaths() {
		b.Run(p.Name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			now := mono.Time(0)
			for b.Loop() {
				now += 1e6
				p.Draw(now, rng)
			}
		})
	}
}

// sample draws the latencies of n requests that are sent one after the other, 50 ms apart on average, so that the phases of a path that
// depends on time are met in proportion. ceiling.Config.Most computes a ceiling from them. The same seed draws the same.
func sample(p sim.Path, n int, seed uint64) []ceiling.Leg {
	legs := make([]ceiling.Leg, n)
	i := 0
	draw(p, n, seed, func(l ceiling.Leg) {
		legs[i] = l
		i++
	})
	return legs
}

// expect estimates the mean of any figure of a request's latencies, over a sample of n. With a standard deviation of σ it is off by σ/√n:
// a million requests are within 1 % if σ is below five times the mean. The mean of f + b:
//
//	expect(p, 1e6, 1, func(l ceiling.Leg) time.Duration { return l.Forward + l.Back })
func expect(p sim.Path, n int, seed uint64, of func(ceiling.Leg) time.Duration) time.Duration {
	sum := 0.0
	draw(p, n, seed, func(l ceiling.Leg) { sum += float64(of(l)) })
	return time.Duration(sum / float64(n))
}

func draw(p sim.Path, n int, seed uint64, each func(ceiling.Leg)) {
	rng := rand.New(rand.NewPCG(seed, 0x5a3f))
	now := mono.Time(0)
	for range n {
		forward, back := p.Draw(now, rng)
		each(ceiling.Leg{Forward: forward, Back: back})
		now = now.Add(time.Duration(rng.Uint64N(uint64(100 * time.Millisecond))))
	}
}
