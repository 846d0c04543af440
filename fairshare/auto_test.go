package fairshare_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

const minute = time.Minute

var (
	hourly5000 = limit.Rule{N: 5000, Per: time.Hour, Counts: limit.CountsWindow}
	hourly4500 = limit.Rule{N: 4500, Per: time.Hour, Counts: limit.CountsBucket, Documented: true}
)

func auto(t testing.TB) *fairshare.Auto {
	t.Helper()
	a, err := fairshare.NewAuto(fairshare.AutoConfig{Rng: rand.New(rand.NewPCG(1, 1))})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// autoSpec is the specification of an Auto with or without stated limits.
func autoSpec(states ...limit.Rule) limittest.Spec {
	return limittest.Spec{
		New: func() limit.Limiter {
			a := must(fairshare.NewAuto(fairshare.AutoConfig{Rng: rand.New(rand.NewPCG(1, 1))}))
			a.State(0, states)
			return a
		},
		Scale: 20 * time.Second, ClosedLoop: true, Burst: 400,
	}
}

func TestAutoLaws(t *testing.T) {
	limittest.Laws(t, autoSpec())
	limittest.Laws(t, autoSpec(hourly5000))
}

func FuzzAutoLaws(f *testing.F) { limittest.Fuzz(f, autoSpec()) }

// Under any answers no wait is longer than MaxWait. As long as no limit is stated, nothing goes
// right after a refusal. No more is refused than was served or can have come.
func FuzzAutoHostileServer(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x01\x00\x00\x02\x00\x00"), false)
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		program := make([]byte, 1500)
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		f.Add(program, seed%2 == 0)
	}
	f.Fuzz(func(t *testing.T, program []byte, states bool) {
		a := must(fairshare.NewAuto(fairshare.AutoConfig{MaxWait: 2 * time.Hour, Rng: rand.New(rand.NewPCG(1, 1))}))
		told := func() bool { by := a.Found().By; return by != "nobody" && by != "refusals" }
		h := hostile{t: t, name: "auto", longest: 2 * time.Hour, l: a, told: told}
		for i := 0; i+2 < len(program); i += 3 {
			if states && program[i]&0x0e == 0x0e {
				a.State(h.now, []limit.Rule{{N: int64(program[i+1]), Per: time.Duration(int8(program[i+2])) * time.Minute, Counts: limit.Counting(program[i] >> 4), Burst: int64(int8(program[i+1]))}})
			}
			h.step(i/3, program[i], program[i+1], program[i+2])
			_ = a.Found().String()
		}
	})
}

// drive sends all that may go until an instant, at a server that answers after 50 ms, and returns
// when it sent.
type drive struct {
	t      *testing.T
	auto   *fairshare.Auto
	now    mono.Time
	flying []drivenRequest
	sent   []mono.Time
	most   int // the most in flight
}

type drivenRequest struct {
	arrives, ends mono.Time
	lease         *limit.Sent
	outcome       limit.Outcome
	arrived       bool
}

func (d *drive) until(t time.Duration, serve func(at mono.Time) limit.Outcome) {
	d.t.Helper()
	for end := mono.Time(0).Add(t); ; {
		next := end
		if ready := d.auto.Ready(d.now, limit.One); ready <= d.now {
			d.flying = append(d.flying, drivenRequest{arrives: d.now.Add(25 * ms), ends: d.now.Add(50 * ms), lease: limittest.Admit(d.auto, d.now, limit.One)})
			d.sent = append(d.sent, d.now)
			d.most = max(d.most, len(d.flying))
			continue
		} else {
			next = min(next, ready)
		}
		for i := range d.flying {
			r := &d.flying[i]
			if !r.arrived && r.arrives <= d.now {
				r.arrived, r.outcome = true, serve(r.arrives)
			}
			if r.arrived {
				next = min(next, r.ends)
			} else {
				next = min(next, r.arrives)
			}
		}
		if len(d.flying) > 0 && d.flying[0].ends <= d.now {
			r := d.flying[0]
			d.flying = d.flying[1:]
			r.outcome.RTT = 50 * ms
			d.auto.Settle(d.now, r.lease, &r.outcome)
			continue
		}
		if next >= end {
			return
		}
		d.now = next
	}
}

func accepts(mono.Time) limit.Outcome { return limit.Outcome{Result: limit.Accepted} }
func refuses(mono.Time) limit.Outcome { return limit.Outcome{Result: limit.Limited} }

// rollingOf accepts n in any time of that length.
func rollingOf(n int, per time.Duration) func(mono.Time) limit.Outcome {
	var taken []mono.Time
	return func(at mono.Time) limit.Outcome {
		for len(taken) > 0 && taken[0] <= at.Add(-per) {
			taken = taken[1:]
		}
		if len(taken) >= n {
			return limit.Outcome{Result: limit.Limited}
		}
		taken = append(taken, at)
		return limit.Outcome{Result: limit.Accepted}
	}
}

// The first request goes alone. At a server that refuses nothing more and more are in flight, but
// slowly: so many are refused at once where the end comes.
func TestAutoBegins(t *testing.T) {
	d := drive{t: t, auto: auto(t)}
	d.until(49*ms, accepts)
	if d.most != 1 {
		t.Errorf("before the first answer %d are in flight", d.most)
	}
	d.until(time.Second, accepts)
	if d.most < 4 || d.most > 5 {
		t.Errorf("after a second %d are in flight", d.most)
	}
	d.until(2*minute, accepts)
	if d.most < 30 {
		t.Errorf("after two minutes at most %d are in flight", d.most)
	}
	if got := d.auto.Found(); got.By != "nobody" || !strings.Contains(got.String(), "nothing was refused") {
		t.Errorf("%v", got)
	}
}

// Where all is refused one asks at a time, more and more rarely: in a day few more than ten times.
func TestAutoRefusedForADay(t *testing.T) {
	d := drive{t: t, auto: auto(t)}
	d.until(24*time.Hour, refuses)
	if n := len(d.sent); n < 15 || n > 35 || d.most != 1 {
		t.Errorf("asked %d times, %d at once", n, d.most)
	}
	early := 0
	for _, at := range d.sent {
		if at < mono.Time(time.Hour) {
			early++
		}
	}
	if early > 8 {
		t.Errorf("asked %d times in the first hour", early)
	}
	if got := d.auto.Found().String(); !strings.HasPrefix(got, "no rate yet") {
		t.Error(got)
	}
}

// Alone, refused at the same pace again and again, it tries ever more rarely whether there is more.
func TestAutoTriesMoreRarely(t *testing.T) {
	d := drive{t: t, auto: auto(t)}
	serve, count := rollingOf(20, time.Second), 0
	counted := func(at mono.Time) limit.Outcome {
		o := serve(at)
		if o.Result == limit.Limited {
			count++
		}
		return o
	}
	var hours []int
	for h := range 3 {
		before := count
		d.until(time.Duration(h+1)*time.Hour, counted)
		hours = append(hours, count-before)
	}
	if hours[0] > 30 || hours[2] > 8 {
		t.Errorf("refused by the hour: %v", hours)
	}
	f := d.auto.Found()
	if f.By != "refusals" || f.Rule.N < 19 || f.Rule.N > 21 || f.Rule.Per != time.Second || f.Soon+f.Later != count || f.Soon < 1 {
		t.Errorf("found %v after %d refusals", f, count)
	}
	if n := float64(len(d.sent)) / (3 * 3600); n < 19 {
		t.Errorf("%.1f a second were sent", n)
	}
}

// While there is nothing to send, it learns nothing: no burst follows.
func TestAutoAfterAnIdleHour(t *testing.T) {
	d, refused := drive{t: t, auto: auto(t)}, 0
	serve := rollingOf(20, time.Second)
	counted := func(at mono.Time) limit.Outcome {
		o := serve(at)
		if o.Result == limit.Limited {
			refused++
		}
		return o
	}
	d.until(3*minute, counted)
	for _, r := range d.flying {
		d.auto.Settle(r.ends, r.lease, &limit.Outcome{Result: limit.Accepted})
	}
	d.flying, d.now, d.most, refused = nil, d.now.Add(time.Hour), 0, 0
	d.until(time.Duration(d.now)+10*time.Second, counted)
	if refused > 1 || d.most > 3 {
		t.Errorf("after an idle hour %d are refused in ten seconds, with %d in flight", refused, d.most)
	}
}

// A server that begins to state its limit does not make the pace leap: the remainders make it
// quicken.
func TestAutoKeepsItsPace(t *testing.T) {
	d := drive{t: t, auto: auto(t)}
	d.until(3*minute, rollingOf(20, time.Second))
	d.auto.State(d.now, []limit.Rule{{N: 6000, Per: minute}})
	at := d.auto.Ready(d.now, limit.One)
	limittest.Admit(d.auto, at, limit.One)
	if gap := d.auto.Ready(at, limit.One).Sub(at); gap < 40*ms || gap > 80*ms {
		t.Errorf("after 20 a second, the next goes after %v", gap)
	}
}

// A Retry-After is kept to, and not by much more.
func TestAutoRetryAfter(t *testing.T) {
	d := drive{t: t, auto: auto(t)}
	d.until(5*time.Second, func(mono.Time) limit.Outcome {
		return limit.Outcome{Result: limit.Limited, RetryAfter: 3 * time.Second}
	})
	if len(d.sent) != 2 || d.sent[1] < mono.Time(3*time.Second) || d.sent[1] > mono.Time(4500*ms) {
		t.Errorf("sent at %v", d.sent)
	}
}

// A stated limit counts at once, and the remainders from then on.
func TestAutoIsTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		states []limit.Rule
		want   string
	}{
		{"a limit", []limit.Rule{hourly5000}, "5000 requests per 1h0m0s, as the server says"},
		{"a documented one", []limit.Rule{hourly4500}, "4500 requests per 1h0m0s, as its provider documents"},
		{"two", []limit.Rule{{N: 20, Per: time.Second}, hourly4500, hourly5000}, "4500 requests per 1h0m0s"},
		{"another unit", []limit.Rule{{Unit: limit.Tokens, N: 1, Per: time.Hour}, hourly5000}, "5000 requests"},
		{"no window", []limit.Rule{{N: 5000}}, "no limit"},
		{"nonsense", []limit.Rule{{N: -1, Per: time.Hour}, {N: 1 << 60, Per: time.Hour}, {N: 1, Per: -1}}, "no limit"},
	} {
		a := auto(t)
		a.State(0, c.states)
		if got := a.Found().String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Of a limit that its server stated, an Auto for one client leaves a part free. Before it is known, and
// for a fair share, there is no such part.
func TestAutoLeaves(t *testing.T) {
	for _, alone := range []bool{false, true} {
		a := must(fairshare.NewAuto(fairshare.AutoConfig{Alone: alone, Rng: rand.New(rand.NewPCG(1, 2))}))
		leaving := func() mono.Time { return limit.ReadyLeaving(a, 0, nil, limit.One, 0.25) }
		if at := leaving(); at != a.Ready(0, limit.One) {
			t.Errorf("alone %v: an unknown limit keeps a request until %v", alone, at)
		}
		a.State(0, []limit.Rule{{Name: "x", N: 8, Per: time.Minute}})
		for i := uint64(1); i <= 6 && alone; i++ {
			if at := leaving(); at > 0 {
				t.Fatalf("request %d goes at %v", i, at)
			}
			s := limit.Sent{Number: i, Cost: limit.One}
			a.Admit(&s)
			a.Settle(0, &s, &limit.Outcome{Result: limit.Accepted})
		}
		if at := leaving(); alone && at < mono.Time(time.Minute) || !alone && at != a.Ready(0, limit.One) {
			t.Errorf("alone %v: with two of 8 left, it goes at %v", alone, at)
		}
	}
}

// Answers about two limits under two names do not have it change its mind all the time: the
// narrower one stays.
func TestAutoOfTwoNames(t *testing.T) {
	core := limit.Rule{Name: "core", N: 5000, Per: time.Hour}
	search := limit.Rule{Name: "search", N: 30, Per: time.Minute}
	a := auto(t)
	for range 3 {
		a.State(0, []limit.Rule{search})
		a.State(0, []limit.Rule{core})
	}
	if got := a.Found(); got.Rule != search {
		t.Errorf("found %v", got)
	}
	search.N = 60 // it became larger
	a.State(0, []limit.Rule{search})
	if got := a.Found(); got.Rule != search {
		t.Errorf("found %v", got)
	}
}

// Without a stated limit, the remainder until a reset shows the limit: round numbers, and windows
// of usual lengths.
func TestAutoFromWhatRemains(t *testing.T) {
	for _, c := range []struct {
		left  int64
		reset time.Duration
		want  limit.Rule
	}{
		{4999, 59*minute + 59*time.Second, limit.Rule{N: 5000, Per: time.Hour}},
		{74, 60 * time.Second, limit.Rule{N: 75, Per: time.Minute}},
		{74, 61 * time.Second, limit.Rule{N: 75, Per: time.Minute}}, // in whole seconds, rounded up
		{9, 700 * ms, limit.Rule{N: 10, Per: time.Second}},
		{1233, 20 * time.Hour, limit.Rule{N: 1300, Per: 24 * time.Hour}},
		{1, 100 * time.Hour, limit.Rule{N: 2, Per: 100 * time.Hour}},
	} {
		a := auto(t)
		o := limit.Outcome{Result: limit.Accepted, Known: 1, Remaining: limit.Cost{c.left}}
		o.Reset[limit.Requests] = c.reset
		a.Settle(0, limittest.Admit(a, 0, limit.One), &o)
		f := a.Found()
		if f.By != "remains" || f.Rule.N != c.want.N || f.Rule.Per != c.want.Per {
			t.Errorf("%d left for %v: %v", c.left, c.reset, f)
		}
		a.State(0, []limit.Rule{hourly5000}) // goes before the concluded limit
		if f := a.Found(); f.By != "server" {
			t.Errorf("%v", f)
		}
	}
}

func TestAutoAllocates(t *testing.T) {
	a, now := auto(t), mono.Time(0)
	k, sent, o := 0, limit.Sent{Cost: limit.One}, limit.Outcome{}
	if n := testing.AllocsPerRun(1000, func() {
		now = a.Ready(now, limit.One)
		limittest.Again(a, now, &sent)
		now = now.Add(100 * ms)
		o = limit.Outcome{Result: limit.Accepted}
		if k++; k%30 == 0 {
			o.Result = limit.Limited
		}
		a.Settle(now, &sent, &o)
	}); n != 0 {
		t.Errorf("%v allocations per request", n)
	}
}

func TestAutoConfig(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for want, c := range map[string]fairshare.AutoConfig{
		"Rng is nil": {}, "Weight -1": {Weight: -1, Rng: rng}, "Sharers -1": {Sharers: -1, Rng: rng},
		"MaxWait -1s": {MaxWait: -time.Second, Rng: rng}, "Unit 99": {Unit: 99, Rng: rng},
	} {
		if _, err := fairshare.NewAuto(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if !ability.Learns(limit.Named("x", limit.NewAll(auto(t)))) {
		t.Error("it has to hear of refusals")
	}
}
