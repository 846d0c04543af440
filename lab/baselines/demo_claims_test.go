package baselines

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

const demoName = "demo"

// crowd is a scenario of so many processes of five threads, which start together at an empty bucket.
func crowd(law strategy.Strategy, processes int, d time.Duration) fleet.Scenario {
	return fleet.Scenario{Duration: d,
		Groups: []fleet.Group{{Strategy: law, Processes: processes, Threads: 5, Link: around60ms}}}
}

// slowAndFast is five clients that start at a sleep of 20 s beside five at 4 s, for which an empty
// bucket has half of what they want.
func slowAndFast(law strategy.Strategy) fleet.Scenario {
	s := fleet.Scenario{Duration: 2 * time.Minute, Server: fleet.Quota{Limit: 2250}}
	for _, start := range []time.Duration{20 * time.Second, 4 * time.Second} {
		s.Groups = append(s.Groups,
			fleet.Group{Strategy: law, Params: strategy.Params{Start: start}, Processes: 5, Link: around60ms})
	}
	return s
}

// beside runs a slow client that starts at a sleep of 20 s beside a fast one at 4 s, on a quota of
// 600 an hour, which they use up at 12 s each. It returns the mean sleep of each, in seconds, over
// the five minutes from after on.
func beside(s strategy.Strategy, seed uint64, after time.Duration) (slow, fast float64, err error) {
	client := func(start time.Duration) fleet.Group {
		return fleet.Group{Strategy: s, Params: strategy.Params{Start: start}, Link: around60ms}
	}
	const every = 15 * time.Second
	end := after + 5*time.Minute
	f, err := fleet.New(fleet.Scenario{Duration: end, Seed: seed, Server: fleet.Quota{Limit: 600, Level: 60},
		Sample: every,
		Groups: []fleet.Group{client(20 * time.Second), client(4 * time.Second)}})
	if err != nil {
		return 0, 0, err
	}
	f.Advance(end)
	series := f.Report().Series
	mean := func(i int) (m float64) {
		late := series.Sleep[i][after/every:]
		for _, v := range late {
			m += v / float64(len(late))
		}
		return m
	}
	return mean(0), mean(1), nil
}

// decrease returns by how much one served answer shortens a sleep. since is how long ago the sleep
// was doubled; 0: it never was.
func decrease(name string, from time.Duration, remaining float64, since time.Duration) (float64, error) {
	p, err := named(name).New(strategy.Params{Rate: 1.25, Burst: 4500, Start: from, Jitter: -1})
	if err != nil {
		return 0, err
	}
	t, now := p.Thread(rand.New(rand.NewPCG(1, 1))), mono.Time(0)
	t.Send(now)
	if since > 0 { // only the second refusal in a row doubles the sleep
		for range 2 {
			t.Answer(now, strategy.Answer{Limited: true, Known: true, Sent: now})
			t.Send(now)
		}
		now = now.Add(since)
	}
	before := t.Sleep()
	t.Answer(now, strategy.Answer{Known: true, Remaining: remaining, Sent: now})
	return (before - t.Sleep()).Seconds(), nil
}

// processes counts the refusals that each process of five threads met.
func processes(r *fleet.Report) (counts []int) {
	for threads := range slices.Chunk(r.Groups[0].Limited, 5) {
		sum := 0
		for _, n := range threads {
			sum += n
		}
		counts = append(counts, sum)
	}
	return counts
}

func mostToLeast(r *fleet.Report) float64 {
	counts := processes(r)
	return float64(slices.Max(counts)) / float64(max(slices.Min(counts), 1))
}

var demoJitters = map[string]float64{"none": -1, "1 %": 0.01, "10 %": 0.1}

// demoScenarios are the scenarios that are run for the demo, by name.
func demoScenarios() (all []fleet.Scenario) {
	add := func(name string, s fleet.Scenario) {
		s.Name = name
		all = append(all, s)
	}
	for name, law := range map[string]strategy.Strategy{
		"5 × 5": named(demoName), "5 × 5 without the time": named("demo-remaining-sleep"),
		"5 × 5, each thread": strategy.DemoEachThread} {
		s := crowd(law, 5, 5*time.Hour)
		s.Server.Full, s.Sample = true, 5*time.Hour
		add(name, s)
	}
	add("2 × 5", crowd(named(demoName), 2, 2*time.Hour))
	add("2 × 5 by the change", crowd(named("demo-change"), 2, 2*time.Hour))
	for _, name := range demoLadder {
		add(name, crowd(named(name), 2, 30*time.Minute))
	}
	for _, name := range []string{demoName, "demo-remaining-sleep-count"} {
		add("a day, "+name, crowd(named(name), 2, 24*time.Hour))
	}
	for _, name := range []string{"demo-limit", "demo-remaining", "demo-remaining-sleep", "demo-remaining-sleep-20",
		demoName, "demo-change"} {
		add("alone, "+name, cleared(name))
	}
	for name, jitter := range demoJitters {
		s := crowd(named(demoName), 5, time.Hour)
		s.Server.Service = latency.Constant(40 * time.Millisecond)
		s.Groups[0].Params.Jitter = jitter
		add("jitter "+name, s)
	}
	add("slow and fast", slowAndFast(named(demoName)))
	add("slow and fast, at first", slowAndFast(strategy.DemoAtFirst))
	return all
}

// demo is the demo that came before the gem: how its author came to a law, and which behaviours could not be tested.
func demo(r *run, _ *Page) (Document, error) {
	d := Document{Name: "the demo before it",
		About: "The gem's author describes the way to a first strategy, on the same bucket. All threads of a process " +
			"share a sleep. The second refusal in a row doubles the sleep, and each served request makes it " +
			"shorter. The figures are asides in the text and a snippet of a log. Ours are the 5th, 50th and 95th " +
			"percentile over the seeds, at 60 ms a request."}
	scenarios := demoScenarios()
	reports, err := r.fleets(scenarios)
	if err != nil {
		return d, err
	}
	by := map[string][]fleet.Report{}
	for i, s := range scenarios {
		by[s.Name] = reports[i]
	}
	d.Claims = append(d.Claims, crowdClaims(by)...)
	d.Claims = append(d.Claims, ladderClaims(by)...)
	for _, claim := range []func() (Claim, error){timeFactors, steps,
		func() (Claim, error) { return slowComesDown(r.seeds) }} {
		c, err := claim()
		if err != nil {
			return d, err
		}
		d.Claims = append(d.Claims, c)
	}
	d.Claims = append(d.Claims, fastIsHit(by), atFirst(by), eachThread(by), jitterClaim(by), quickly(by), whatIf(by),
		untestable(by))
	return d, nil
}

// crowdClaims are claims about 25 clients in five processes.
func crowdClaims(by map[string][]fleet.Report) []Claim {
	refused := of(by["5 × 5"], retry)
	with, without := of(by["5 × 5"], mostToLeast), of(by["5 × 5 without the time"], mostToLeast)
	level := of(by["5 × 5"], func(r *fleet.Report) float64 { return float64(r.Level.Last) })
	atEnd := func(pick func(...float64) float64) Quantiles {
		return of(by["5 × 5"], func(r *fleet.Report) float64 {
			v := r.Series.Sleep[0][len(r.Series.At)-1]
			for _, of := range r.Series.Sleep {
				v = pick(v, of[len(of)-1])
			}
			return v
		})
	}
	shortest, longest := atEnd(func(v ...float64) float64 { return slices.Min(v) }),
		atEnd(func(v ...float64) float64 { return slices.Max(v) })
	return []Claim{
		claim("not doubling at the first refusal, about", judge(refused.has(2)), refused.text(1)),
		claim("first simulations had 2", judge(refused.P5 <= 3, refused.P50 <= 3), refused.text(1)),
		claim("without the time factor", judge(without.has(5), with.has(1.6)),
			without.text(1), with.text(1)),
		claim("some moment of a", judge(level.has(112), shortest.P50 < 20 && longest.P50 > 40),
			level.text(0), shortest.text(0), longest.text(0)),
	}
}

// timeFactors computes how much smaller the decrease is soon after the sleep was doubled.
func timeFactors() (Claim, error) {
	factor := func(since time.Duration) (float64, error) {
		with, err := decrease(demoName, 20*time.Second, 100, since)
		if err != nil {
			return 0, err
		}
		without, err := decrease("demo-remaining-sleep", 20*time.Second, 100, since)
		return without / with, err
	}
	soon, err := factor(30 * time.Second)
	if err != nil {
		return Claim{}, err
	}
	late, err := factor(time.Hour)
	return claim("the time factor is", judge(near(soon, 120, 0.01), near(late, 1.5819767068693265, 0.001)),
		soon, late), err
}

// steps computes the two decreases that the text works out.
func steps() (Claim, error) {
	slow, err := decrease("demo-remaining-sleep", 20*time.Second, 100, 0)
	if err != nil {
		return Claim{}, err
	}
	fast, err := decrease("demo-remaining-sleep", 4*time.Second, 100, 0)
	return claim("with 100 left, a", judge(near(slow, 0.4, 0.15) && near(fast, 0.08, 0.15)), slow, fast), err
}

// slowComesDown reruns the first behaviour that could not be tested.
func slowComesDown(seeds int) (Claim, error) {
	var slow, fast []float64
	for seed := range seeds {
		a, b, err := beside(named(demoName), uint64(seed+1), 10*time.Minute)
		if err != nil {
			return Claim{}, err
		}
		slow, fast = append(slow, a), append(fast, b)
	}
	a, b := quantiles(slow), quantiles(fast)
	return claim("beside a fast client", judge(a.P50 < 16, b.P50 > 8), a.text(1), b.text(1)), nil
}

// fastIsHit tells which clients the refusals hit.
func fastIsHit(by map[string][]fleet.Report) Claim {
	sum := func(counts []int) (n float64) {
		for _, c := range counts {
			n += float64(c)
		}
		return n
	}
	share := of(by["slow and fast"], func(r *fleet.Report) float64 {
		a, b := sum(r.Groups[0].Limited), sum(r.Groups[1].Limited)
		return 100 * a / max(a+b, 1)
	})
	return claim("one refusal in five", judge(near(share.P50, 20, 0.25)), share.text(0))
}

func jitterClaim(by map[string][]fleet.Report) Claim {
	peak := func(name string) Quantiles {
		return of(by["jitter "+name], func(r *fleet.Report) float64 { return float64(r.PeakConcurrent) })
	}
	none, little, much := peak("none"), peak("1 %"), peak("10 %")
	return claim("without jitter more requests", judge(much.P50 < none.P50, little.P50 > much.P50),
		none.text(0), little.text(0), much.text(0))
}

// untestable reruns what the text says about tests.
func untestable(by map[string][]fleet.Report) Claim {
	events := of(by["5 × 5"], func(r *fleet.Report) float64 { return float64(r.Events) })
	return claim("such behaviour cannot be", judge(!by["5 × 5"][0].Complete),
		Quantiles{events.P5 / 1000, events.P50 / 1000, events.P95 / 1000}.text(0))
}
