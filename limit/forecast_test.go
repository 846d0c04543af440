package limit_test

import (
	"math"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// A window begins at an answer. So once the answers are known to take 100 ms, the guess for the third window is that
// much later twice, and the bound is not.
func TestExpectedByAnswers(t *testing.T) {
	l, err := limit.NewRolling(limit.RollingConfig{Limit: 10, Window: time.Second, Margin: -1})
	if err != nil {
		t.Fatal(err)
	}
	now := mono.Time(0)
	for range 40 {
		sent := limittest.Admit(l, now, limit.One)
		now = now.Add(100 * time.Millisecond)
		l.Settle(now, sent, &limit.Outcome{Result: limit.Accepted})
		now = l.Ready(now, limit.One)
	}
	now = now.Add(time.Hour)
	for range 10 {
		limittest.Admit(l, now, limit.One)
	}
	ahead := limit.Cost{limit.Requests: 10}
	if bound := limit.NotBefore(l, now, 10, ahead, limit.One).Sub(now); bound != 2*time.Second {
		t.Errorf("the bound is %v, want 2s", bound)
	}
	for name, l := range map[string]limit.Limiter{"alone": l, "named": limit.Named("tier", l), "fitted": limit.NewFitted(l)} {
		if at := limit.Expected(l, now, 10, ahead, limit.One).Sub(now); at < 2190*time.Millisecond || at > 2200*time.Millisecond {
			t.Errorf("%s: expected after %v, want 2.2s", name, at)
		}
	}
}

// A thousand requests wait at once, and 100 go per 6 s. Each gets its own instant, except for the
// margins of the windows in between.
func TestForecastOfAThousand(t *testing.T) {
	const margin = 1700 * time.Microsecond
	l := limit.MustRolling(100, 6*time.Second)
	now := mono.Time(0)
	for k := range 1000 {
		said := limit.NotBefore(l, 0, k, limit.Cost{limit.Requests: int64(k)}, limit.One)
		if want := at(time.Duration(k/100) * (6*time.Second + margin)); said != want {
			t.Fatalf("with %d ahead: %v, want %v", k, said, want)
		}
	}
	for k := range 1000 {
		now = l.Ready(now, limit.One)
		if said := limit.NotBefore(l, now, 999-k, limit.Cost{limit.Requests: int64(999 - k)}, limit.One); said != at(9*(6*time.Second+margin)) {
			t.Fatalf("when %d have gone, the last is forecast for %v", k, said)
		}
		l.Settle(now, limittest.Admit(l, now, limit.One), &limit.Outcome{Result: limit.Accepted})
	}
}

// On a path with latency the forecast is a little early: the open requests may have arrived at
// once.
func TestForecastWithLatency(t *testing.T) {
	const rtt = 30 * ms
	for name, c := range map[string]struct {
		limit.Forecaster
		tolerance time.Duration // for each of ten windows
	}{
		"Rolling":  {limit.MustRolling(100, 6*time.Second), rtt + ms},
		"Bucket":   {must(limit.NewBucket(limit.BucketConfig{Limit: 100, Window: 6 * time.Second, Burst: 10})), rtt + 2*ms},
		"Calendar": {must(limit.NewCalendar(limit.CalendarConfig{Limit: 100, Window: 6 * time.Second})), 0},
		"Spacing":  {must(limit.NewSpacing(60 * ms)), 0},
	} {
		const n = 1000
		now := at(time.Second)
		var said [n]mono.Time
		var open []*limit.Sent
		for k := range n {
			said[k] = c.NotBefore(now, k, limit.Cost{limit.Requests: int64(k)}, limit.One)
		}
		var sent []mono.Time
		for k := range n {
			for len(open) > 0 && sent[0].Add(rtt) <= c.Ready(now, limit.One) {
				now = sent[0].Add(rtt)
				c.Settle(now, open[0], &limit.Outcome{Result: limit.Accepted})
				open, sent = open[1:], sent[1:]
			}
			now = c.Ready(now, limit.One)
			open, sent = append(open, limittest.Admit(c, now, limit.One)), append(sent, now)
			if early := now.Sub(said[k]); early < 0 || early > c.tolerance*time.Duration(1+k/100) {
				t.Fatalf("%s: number %d went at %v, %v after it was forecast", name, k, now, early)
			}
		}
	}
}

// The cost ahead may be below zero, or above the largest cost.
func TestForecastAtTheEnds(t *testing.T) {
	huge := limit.Cost{limit.Requests: math.MaxInt64, limit.Input: math.MaxInt64}
	tiny := limit.Cost{limit.Requests: math.MinInt64, limit.Input: math.MinInt64}
	for name, kind := range specs {
		l := kind.New()
		if !limit.Forecasts(l) {
			continue
		}
		for _, open := range []bool{false, true} {
			if open {
				limittest.Admit(l, 0, limit.One)
			}
			one := limit.NotBefore(l, 0, 0, limit.Cost{}, limit.One)
			for _, c := range kind.Costs {
				least, most := limit.NotBefore(l, 0, math.MinInt, tiny, c), limit.NotBefore(l, 0, math.MaxInt, huge, c)
				mid := limit.NotBefore(l, 0, 40_000, limit.Cost{limit.Requests: 40_000 * limit.MaxCost, limit.Input: 40_000 * limit.MaxCost}, c)
				if least < 0 || least > mid || mid > most || most == limit.AfterSettle {
					t.Errorf("%s, %v: %v with less than nothing ahead, %v with 40,000 of the largest, %v with all there is", name, c, least, mid, most)
				}
				if least == limit.Never != (l.Ready(0, c) == limit.Never) {
					t.Errorf("%s, %v: %v", name, c, least)
				}
			}
			if late := limit.NotBefore(l, mono.Max, 0, limit.Cost{}, limit.One); one < 0 || late < mono.Max {
				t.Errorf("%s: %v, at the end of time %v", name, one, late)
			}
		}
	}
}

// 40 of 100 tokens are reserved, and the request surely uses 10 of them. A cost of 75 waits at most
// for its answer.
func TestForecastOfWhatIsReserved(t *testing.T) {
	_, l, _ := llm(9, 100, 9)
	l.Settle(0, limittest.Admit(l, 0, tokens(15)), &limit.Outcome{Result: limit.Accepted})
	limittest.Admit(l, at(time.Second), tokens(40))
	for _, c := range []struct {
		ahead, cost int64
		want        time.Duration
	}{
		{0, 45, 2 * time.Second},
		{0, 46, 60 * time.Second},
		{0, 61, 61 * time.Second}, // when the open one was sent, and a window
		{-30, 75, 2 * time.Second},
		{-30, 76, 60 * time.Second},
		{-30 + 20, 55, 2 * time.Second},
		{-30 + 20, 60, 60 * time.Second},
		{-30 + 20, 72, 61 * time.Second},
		{-30 + 90, 40, 61 * time.Second},
		{-30 + 100, 75, 62 * time.Second},
	} {
		if got := limit.NotBefore(l, at(2*time.Second), 1, tokens(c.ahead), tokens(c.cost)); got != at(c.want) {
			t.Errorf("%d ahead, %d: %v, want %v", c.ahead, c.cost, got, c.want)
		}
	}
}

// A request of unknown outcome counts for longer than a window, whatever goes before.
func TestNotBeforeOfWhatLingers(t *testing.T) {
	lost := limit.Outcome{Result: limit.Unknown}
	rolling := must(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: 10 * time.Second, Margin: -1, Arrivals: limit.Arrivals{Late: 30 * time.Second}}))
	rolling.Settle(0, limittest.Admit(rolling, 0, limit.One), &lost)
	for n := range 3 { // these need all the room
		if got := rolling.NotBefore(0, n, limit.Cost{limit.Requests: int64(n)}, limit.Cost{limit.Requests: 2}); got != at(40*time.Second) {
			t.Errorf("with %d ahead: %v, want 40 s", n, got)
		}
	}
	produced := must(limit.NewProduced(limit.ProducedConfig{Limit: 1000, Window: time.Minute, Late: 30 * time.Second, Margin: -1}))
	produced.Settle(0, limittest.Admit(produced, 0, costing(5000)), &lost)
	ready := produced.Ready(at(time.Second), costing(5000))
	for n := range 3 {
		if got := produced.NotBefore(at(time.Second), n, costing(int64(n)), costing(5000)); got != ready || got < at(30*time.Second) {
			t.Errorf("with %d ahead: %v, want %v", n, got, ready)
		}
	}
	limittest.Admit(produced, at(time.Second), costing(5)) // the open request may be answered with nothing
	if got := produced.NotBefore(at(time.Second), 0, limit.Cost{}, costing(5000)); got != at(time.Second) {
		t.Errorf("beside one that is open: %v", got)
	}
}

func TestNotBeforeOfAStranger(t *testing.T) {
	rpm, _, c := llm(2, 100, 1)
	l := limit.NewAll(opaque{rpm}, limit.Named("flights", c))
	for i, want := range []mono.Time{0, 0, at(time.Minute)} {
		if got := limit.NotBefore(l, 0, 5, limit.Cost{limit.Requests: 5}, limit.One); got != want {
			t.Errorf("with %d in flight: %v, want %v", i, got, want)
		}
		l.Settle(0, limittest.Admit(l, 0, limit.One), &limit.Outcome{Result: limit.Accepted})
	}
	limittest.Admit(rpm, 0, limit.One)
	if got := limit.NotBefore(opaque{rpm}, at(time.Minute), 0, limit.Cost{}, limit.Cost{limit.Requests: 2}); got != at(time.Minute) {
		t.Errorf("after a settle nobody knows of: %v", got)
	}
	if got := limit.NotBefore(opaque{rpm}, 0, 0, limit.Cost{}, limit.Cost{limit.Requests: 3}); got != limit.Never {
		t.Errorf("what never fits: %v", got)
	}
}

func TestLeast(t *testing.T) {
	all := limit.Cost{1, 2, 3, 4, 5, 9, 7, 8}
	if got, want := all.Least(), (limit.Cost{1, 2, 3, 4, 0, 4}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := tokens(9).Least(), limit.One; got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// prophet is a limiter whose forecasts have one fault.
type prophet struct {
	limit.Limiter
	fault string
}

func (p prophet) NotBefore(now mono.Time, n int, ahead, cost limit.Cost) mono.Time {
	switch p.fault {
	case "a nanosecond late":
		if t := limit.NotBefore(p.Limiter, now, n, ahead, cost); t > now && t < limit.AfterSettle {
			return t + 1
		}
	case "one more ahead":
		ahead[limit.Requests]++
		n++
	case "counts what is open in full":
		for u := range ahead {
			ahead[u] = max(ahead[u], 0)
		}
	case "asks Ready":
		ahead[limit.Requests] += cost[limit.Requests]
		return limit.NotBefore(opaque{p.Limiter}, now, 0, limit.Cost{}, cost)
	case "forgets Never":
		return min(limit.NotBefore(p.Limiter, now, n, ahead, cost), mono.Max)
	case "in the past":
		return limit.NotBefore(p.Limiter, now, n, ahead, cost) - 1
	}
	return limit.NotBefore(p.Limiter, now, n, ahead, cost)
}

func (p prophet) ReadyAfter(now mono.Time, first, cost limit.Cost) mono.Time {
	return limit.ReadyAfter(p.Limiter, now, first, cost)
}

func TestLawsKillFalseProphets(t *testing.T) {
	for _, kind := range []string{"Rolling", "Bucket/burst of 1", "Calendar", "Weighted", "Spacing", "All"} {
		for _, fault := range []string{"a nanosecond late", "one more ahead", "counts what is open in full", "asks Ready", "forgets Never", "in the past"} {
			spec := specs[kind]
			switch {
			case kind == "Spacing" && fault != "a nanosecond late" && fault != "one more ahead" && fault != "in the past",
				(kind == "Calendar" || kind == "Bucket/burst of 1") && fault == "asks Ready":
				continue // there it is none
			}
			spec.New = func() limit.Limiter { return prophet{specs[kind].New(), fault} }
			if !killed(spec) {
				t.Errorf("%s, %s, passes the laws", kind, fault)
			}
		}
	}
}

func TestForecastDoesNotAllocate(t *testing.T) {
	for _, kind := range benchKinds {
		l := must(kind.new(300))
		for range 200 {
			l.Settle(0, limittest.Admit(l, 0, benchCost), &limit.Outcome{Result: limit.Accepted})
		}
		for range 50 {
			limittest.Admit(l, 0, benchCost)
		}
		ahead := limit.Cost{700, 700, 700, 700, 700, 700}
		if n := testing.AllocsPerRun(100, func() { limit.NotBefore(l, 0, 700, ahead, benchCost) }); n > 0 {
			t.Errorf("%s: %v allocations", kind.name, n)
		}
	}
}

// BenchmarkForecast is NotBefore with 40,000 ahead, when the window is full.
func BenchmarkForecast(b *testing.B) {
	for _, kind := range benchKinds {
		b.Run(kind.name, func(b *testing.B) {
			l := must(kind.new(6000))
			now := mono.Time(0)
			for l.Ready(now, benchCost) == now {
				l.Settle(now, limittest.Admit(l, now, benchCost), &limit.Outcome{Result: limit.Accepted})
				now += 1000
			}
			ahead := limit.Cost{40_000, 40_000, 40_000, 40_000, 40_000, 40_000}
			b.ReportAllocs()
			for b.Loop() {
				limit.NotBefore(l, now, 40_000, ahead, benchCost)
			}
		})
	}
}

// A Sequence forecasts for requests behind others. The requests in flight may be answered at once,
// and a learned gap may become the smallest. A lost request and a given gap stay.
func TestSequenceForetells(t *testing.T) {
	for name, c := range map[string]struct {
		config              limit.SequenceConfig
		open, lost, ordered time.Duration // with one in flight; and one lost before it; and the two in the wrong order
	}{
		"given":   {limit.SequenceConfig{Gap: 50 * ms}, 10500 * time.Microsecond, 60 * ms, 5010500 * time.Microsecond},
		"learned": {limit.SequenceConfig{}, 10500 * time.Microsecond, 11 * ms, 5010500 * time.Microsecond},
	} {
		s := must(limit.NewSequence(c.config))
		says := func(now time.Duration, n int, want time.Duration) {
			t.Helper()
			if got := s.NotBefore(at(now), n, limit.Cost{int64(n)}, limit.One); got != at(want) {
				t.Errorf("%s: at %v, with %d ahead, not before %v, want %v", name, now, n, time.Duration(got), want)
			}
		}
		says(7*ms, 0, 7*ms)
		says(7*ms, 1, 7*ms)
		a := limittest.Admit(s, 0, limit.One)
		b := limittest.Admit(s, at(10*ms), limit.One)
		says(10500*time.Microsecond, 0, c.open)
		says(0, 0, 10*ms) // time that went back
		s.Settle(at(10500*time.Microsecond), a, &limit.Outcome{})
		says(10500*time.Microsecond, 0, c.lost)
		says(10500*time.Microsecond, 3, c.lost)
		says(4*time.Second, 3, 4*time.Second)
		says(6*time.Second, 3, 6*time.Second)
		s.Settle(at(10500*time.Microsecond), b, &limit.Outcome{Result: limit.Failed, Misordered: true})
		says(20*ms, 1, c.ordered)
		says(20*ms, 0, c.ordered) // nothing is in flight, so the instant is known
		says(6*time.Second, 0, 6*time.Second)
	}
	s := must(limit.NewSequence(limit.SequenceConfig{}))
	s.Settle(at(ms/4), limittest.Admit(s, 0, limit.One), &limit.Outcome{})
	if alone, behind := s.NotBefore(at(ms/2), 0, limit.Cost{}, limit.One), s.NotBefore(at(ms/2), 1, limit.One, limit.One); alone != at(5*time.Second+ms/4) || behind != at(ms) {
		t.Errorf("after one that was lost the next goes at %v, and none behind it before %v", time.Duration(alone), time.Duration(behind))
	}
}
