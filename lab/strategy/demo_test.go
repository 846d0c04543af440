package strategy_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
)

// One thread of the demo from a sleep of 20 s, without jitter: what it sleeps after each answer.
//
// The time factor is 1/(1 − e^(−t/3600)): 120.5 after 30 s, 1.58 after an hour, so that with a full bucket an answer takes
// 1/120.5 or 1/1.58 of the sleep.
func TestDemoSteps(t *testing.T) {
	type step struct {
		at     time.Duration
		answer strategy.Answer
		sleep  time.Duration // afterwards
	}
	full, halfFull := served(4500), served(2250)
	factor := func(t time.Duration) float64 { return 1 / (1 - math.Exp(-t.Seconds()/3600)) }
	if f := factor(30 * s); math.Abs(f-120.5) > 0.01 {
		t.Fatalf("the test's factor at 30 s is %v", f)
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"the first limit is forgiven, each one more in a row doubles", []step{
			{0, limited(), 20 * s},
			{20 * s, limited(), 40 * s},
			{60 * s, limited(), 80 * s},
			{60 * s, served(0), 80 * s},
			{140 * s, limited(), 80 * s},
			{220 * s, limited(), 160 * s},
		}},
		{"a limit after a served request is a first one again", []step{
			{0, limited(), 20 * s},
			{20 * s, served(0), 20 * s},
			{40 * s, limited(), 20 * s},
			{60 * s, served(0), 20 * s},
			{80 * s, limited(), 20 * s},
		}},
		{"factor 120.5 at 30 s", []step{
			{0, limited(), 20 * s},
			{20 * s, limited(), 40 * s},
			{50 * s, full, 40*s - 331948295},
		}},
		{"factor 1.58 at an hour", []step{
			{0, limited(), 20 * s},
			{20 * s, limited(), 40 * s},
			{3620 * s, full, 14715177647}, // 40/e
		}},
		{"half as much remaining, half the decrease", []step{
			{0, limited(), 20 * s},
			{20 * s, limited(), 40 * s},
			{50 * s, halfFull, 40*s - 331948295/2},
		}},
		{"infinite factor at once", []step{
			{0, limited(), 20 * s},
			{20 * s, limited(), 40 * s},
			{20 * s, full, 40 * s},
			{10 * s, full, 40 * s}, // and before
		}},
		{"before any doubling the factor is that of half an hour", []step{
			{0, full, 12130613194}, // 20·e^(−1/2)
		}},
		{"never below a tenth of min_sleep", []step{
			{200 * time.Hour, served(1e9), 80 * ms},
			{200 * time.Hour, limited(), 80 * ms},
			{200 * time.Hour, limited(), 160 * ms},
		}},
	} {
		p := hourly
		p.Start, p.Jitter = 20*s, -1
		th := process(t, "demo", p).Thread(source(1))
		if got := th.Send(0); got != at(20*s) {
			t.Errorf("%s: the first send at %v", c.name, got)
		}
		for i, x := range c.steps {
			now := at(x.at)
			th.Answer(now, x.answer)
			if got := th.Send(now).Sub(now); !near(got, x.sleep) || !near(th.Sleep(), x.sleep) {
				t.Errorf("%s: after step %d sleeps %v and shows %v, want %v", c.name, i, got, th.Sleep(), x.sleep)
			}
		}
	}
}

// Without its two rules for doubling the demo doubles at the first limit, or once for each thread that is limited twice.
func TestDemoWithoutItsRules(t *testing.T) {
	p := hourly
	p.Start, p.Jitter = 4*s, -1
	for _, c := range []struct {
		law   strategy.Strategy
		sleep []time.Duration // of the process, as threads 1 and 3 are limited in turns
	}{
		{strategy.DemoAtFirst, []time.Duration{8 * s, 8 * s, 16 * s, 16 * s}},
		{strategy.DemoEachThread, []time.Duration{4 * s, 4 * s, 8 * s, 16 * s}},
	} {
		proc, err := c.law.New(p)
		if err != nil {
			t.Fatal(err)
		}
		threads := []strategy.Thread{proc.Thread(source(1)), proc.Thread(source(2))}
		for i, want := range c.sleep {
			th := threads[i%2]
			th.Answer(th.Send(at(time.Duration(i)*time.Minute)), limited())
			if got := th.Sleep(); got != want {
				t.Errorf("%s: after %d limits the process sleeps %v, want %v", c.law.Name, i+1, got, want)
			}
		}
		if slices.ContainsFunc(strategy.All(), func(s strategy.Strategy) bool { return s.Name == c.law.Name }) {
			t.Errorf("%s is among those that are compared", c.law.Name)
		}
	}
}

// Of the threads of a process only the first to be limited doubles, until it is served; other processes double by themselves.
func TestNoDoubleDip(t *testing.T) {
	p := hourly
	p.Start, p.Jitter = 4*s, -1
	proc := process(t, "demo", p)
	rng := source(1)
	threads := map[string]strategy.Thread{"1": proc.Thread(rng), "3": proc.Thread(rng), "stranger": process(t, "demo", p).Thread(rng)}
	for _, th := range threads {
		th.Send(0)
	}
	for i, x := range []struct {
		thread  string
		limited bool
		sleep   time.Duration // of the process
	}{
		{"1", true, 4 * s},
		{"3", true, 4 * s},
		{"1", true, 8 * s},
		{"3", true, 8 * s},
		{"3", true, 8 * s},
		{"1", true, 16 * s},
		{"3", false, 16 * s}, // thread 1 still retries for the process
		{"3", true, 16 * s},
		{"1", false, 16 * s},
		{"3", true, 16 * s}, // now it is thread 3
		{"1", true, 16 * s},
		{"3", true, 32 * s},
	} {
		th := threads[x.thread]
		now := th.Send(at(time.Duration(i) * time.Minute))
		a := served(0)
		a.Limited = x.limited
		th.Answer(now, a)
		for _, name := range []string{"1", "3"} {
			if got := threads[name].Sleep(); got != x.sleep {
				t.Errorf("step %d: thread %s sleeps %v, want %v", i, name, got, x.sleep)
			}
		}
	}
	if got := threads["stranger"].Sleep(); got != 4*s {
		t.Errorf("a thread of another process sleeps %v", got)
	}
}

// The ladder: from a sleep of 20 s that was doubled twice to get there, 100 requests remaining, an hour later.
func TestDemoLadder(t *testing.T) {
	for name, decrease := range map[string]float64{
		"demo-second":                1,
		"demo-half-second":           0.5,
		"demo-limit":                 1. / 4500,
		"demo-remaining":             100. / 4500,
		"demo-remaining-sleep":       20 * 100. / 4500, // 0.44 s; from 4 s 0.089
		"demo-remaining-sleep-20":    20 * 100. / (4500 * 20),
		"demo-remaining-sleep-count": 20 * 100. / (4500 * 3),
		"demo":                       20 * 100. / 4500 * (1 - 1/math.E),
	} {
		p := hourly
		p.Start, p.Jitter = 5*s, -1
		th := process(t, name, p).Thread(source(1))
		th.Send(0)
		for range 3 {
			th.Answer(0, limited())
			th.Send(0)
		}
		th.Answer(at(time.Hour), served(100))
		want := 20*s - time.Duration(decrease*1e9)
		if got := th.Sleep(); !near(got, want) {
			t.Errorf("%s: sleeps %v, want %v", name, got, want)
		}
	}
}

// The idea of going by the change: what is left is compared with one less than after the thread's own answer before, a limited
// one counting as none left. A gain of 100 takes ten times what one of 10 takes, and a falling count nothing.
func TestDemoByTheChange(t *testing.T) {
	p := hourly
	p.Start, p.Jitter = 45*s, -1
	proc := process(t, "demo-change", p)
	threads := []strategy.Thread{proc.Thread(source(1)), proc.Thread(source(1))}
	sleep := 45.
	for i, x := range []struct {
		thread int
		answer strategy.Answer
		gain   float64
	}{
		{0, served(4000), 0}, // nothing to compare with
		{1, served(100), 0},  // nor has the other thread
		{0, served(4099), 100},
		{0, served(4098), 0},
		{0, served(4098), 1}, // as much as before, and one less would do
		{0, served(4107), 10},
		{0, served(3000), 0},
		{1, served(119), 20}, // its own before
		{1, limited(), 0},
		{1, served(5), 6},
	} {
		th := threads[x.thread]
		th.Send(0)
		th.Answer(0, x.answer)
		sleep -= sleep * x.gain / 4500
		if got, want := th.Sleep(), time.Duration(sleep*1e9); !near(got, want) {
			t.Fatalf("step %d: sleeps %v, want %v", i, got, want)
		}
	}
}

// Defaults: starts at min_sleep, doubles, and the gem's constants stay the gem's.
func TestDemoDefaults(t *testing.T) {
	th := process(t, "demo", hourly).Thread(source(1))
	if got := th.Send(0); got < at(800*ms) || got > at(880*ms) || th.Sleep() != 800*ms {
		t.Errorf("sends at %v and shows %v", got, th.Sleep())
	}
	p := hourly
	p.Multiplier, p.MinSleep = 3, s
	th = process(t, "demo", p).Thread(source(1))
	th.Send(0)
	th.Answer(0, limited())
	th.Answer(0, limited())
	if th.Sleep() != 3*s {
		t.Errorf("1 s times 3 is %v", th.Sleep())
	}
}

// What the demo's text tells of its ladder, in two hours of ten threads; and of its client, in five hours of 25 threads in 5
// processes: some 2 % of requests are limited (3.9 here), and the guess hovers about their number, far off as often as not.
func TestDemoRuns(t *testing.T) {
	for _, c := range []struct {
		name               string
		retryMin, retryMax float64 // percent
		served             int     // at least, of 9000
		story              string
	}{
		{"demo-second", 90, 98, 8900, "a lot of limits, each client comes down too quickly"},
		{"demo-half-second", 90, 98, 8900, "still bad"},
		{"demo-limit", 0, 1.5, 0, "no huge problem, but it takes long to come down"},
		{"demo-remaining", 0, 6, 8500, "eats up excess capacity"},
		{"demo-remaining-sleep", 0, 6, 8500, "and the slow come down as well"},
		{"demo-remaining-sleep-20", 0, 5, 8500, "more slowly"},
		{"demo-remaining-sleep-count", 0, 5, 8500, "and the flappy more slowly yet"},
		{"demo", 0, 4, 8500, ""},
		{"demo-change", 0, 2, 8500, "the idea that was not tried"},
	} {
		r := demoRun(t, c.name, 1, 2, 5, 2*time.Hour, hourly)
		t.Logf("%s: retry %.2f %%, longest sleep %v, sd %.1f, served %d, left %.0f", c.name, r.retry, r.maxSleep, r.sd, r.served, r.left)
		if r.retry < c.retryMin || r.retry > c.retryMax || r.served < c.served {
			t.Errorf("%s (%s): want %v–%v %% and %d served", c.name, c.story, c.retryMin, c.retryMax, c.served)
		}
		if unused := r.left > 2000; unused != (c.name == "demo-limit") {
			t.Errorf("%s (%s): %.0f are left", c.name, c.story, r.left)
		}
	}
	r := demoRun(t, "demo", 1, 5, 5, 5*time.Hour, hourly)
	guess := r.sleep.Seconds() * hourly.Rate
	t.Logf("25 threads: retry %.2f %%, guess %.1f, served %d", r.retry, guess, r.served)
	if r.retry < 1 || r.retry > 6 || r.served < 22000 || guess < 5 || guess > 125 {
		t.Errorf("want 1–6 %%, a guess of 25 within a factor of 5 and 22000 served")
	}
}
