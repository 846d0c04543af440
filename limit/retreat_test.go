package limit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// Two a second, with a promise that nothing takes more than 50 ms. One request breaks it.
func TestOneWayMaxRetreats(t *testing.T) {
	rolling := must(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: time.Second, Margin: -1, Arrivals: limit.Arrivals{OneWayMax: 50 * ms}}))
	l := newTimeline[limit.Limiter](t)(limit.Named("it", limit.NewAll(rolling)), nil)
	answer := func(now time.Duration, name string, rtt time.Duration, r limit.Result) {
		t.Helper()
		l.Settle(at(now), l.open[name], &limit.Outcome{Result: r, RTT: rtt})
	}
	retreats := func(now time.Duration, want ...limit.Retreat) {
		t.Helper()
		if got := limit.Retreats(l.Limiter, at(now)); !slices.Equal(got, want) {
			t.Errorf("at %v: %v, want %v", now, got, want)
		}
	}
	l.send(0, 1, "a")
	l.send(0, 1, "b")
	answer(200*ms, "a", 200*ms, limit.Accepted) // arrived by 50 ms, by the promise
	answer(220*ms, "b", 220*ms, limit.Accepted)
	l.ready(220*ms, 2, at(1050*ms))
	l.send(1050*ms, 1, "c")
	l.send(1050*ms, 1, "d")
	retreats(1060 * ms)
	answer(1070*ms, "c", 20*ms, limit.Limited)
	until := at(1070*ms + 10*time.Minute)
	retreats(1070*ms, limit.Retreat{Limit: "it", Option: "OneWayMax", Until: until, Times: 1})
	// Now a and b may have arrived as late as their answers, more than a window before d.
	l.ready(1070*ms, 1, at(2070*ms))
	answer(1300*ms, "d", 250*ms, limit.Limited) // sent before the proof, so no new proof
	retreats(1300*ms, limit.Retreat{Limit: "it", Option: "OneWayMax", Until: until, Times: 1})
	l.ready(1300*ms, 1, at(2070*ms))
	l.ready(1300*ms, 2, at(2300*ms))
	l.send(2300*ms, 1, "e")
	answer(2500*ms, "e", 200*ms, limit.Limited) // another cause: no opt-in was in use
	retreats(2500*ms, limit.Retreat{Limit: "it", Option: "OneWayMax", Until: until, Times: 1})
	l.ready(2500*ms, 2, at(3500*ms))
	limit.Trust(l.Limiter, at(2500*ms)) // asked
	retreats(2500 * ms)
	l.ready(2500*ms, 2, at(3350*ms))
	l.send(3350*ms, 2, "f")
	answer(3360*ms, "f", 10*ms, limit.Limited)
	retreats(3360*ms, limit.Retreat{Limit: "it", Option: "OneWayMax", Until: at(3360*ms + 20*time.Minute), Times: 2})
	if err := rolling.SetLimit(at(3360*ms), 3); err != nil { // both limiters change
		t.Fatal(err)
	}
	l.ready(3360*ms, 1, at(3500*ms))
	l.ready(3360*ms, 2, at(4360*ms))
	l.ready(3360*ms+20*time.Minute, 3, at(3360*ms+20*time.Minute))
	retreats(3360*ms + 20*time.Minute)
}

// A cost that waits beyond the end of the retreat gets the verdict of the opt-in.
func TestReadyAcrossTheEndOfARetreat(t *testing.T) {
	l := newTimeline[*limit.Rolling](t)(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Hour, Margin: -1, Arrivals: limit.Arrivals{OneWayMax: time.Second}}))
	l.send(0, 1, "a")
	l.Settle(at(time.Minute), l.open["a"], &limit.Outcome{Result: limit.Limited, RTT: time.Minute})
	l.ready(time.Minute, 1, at(time.Hour+time.Second))
	if got := l.Limiter.(*limit.Rolling).NotBefore(at(time.Minute), 1, limit.One, limit.One); got != at(2*time.Hour+time.Second) {
		t.Errorf("the one after that is forecast for %v", got)
	}
}

// A retreat is twice as long after each proof, up to 85 h. Each day without a proof halves it.
func TestRetreatsGrowAndShrink(t *testing.T) {
	s := must(limit.NewSequence(limit.SequenceConfig{Gap: 10 * ms}))
	now := mono.Time(0)
	refuted := func(want time.Duration) {
		t.Helper()
		l := limittest.Admit(s, now, limit.One)
		now = now.Add(ms)
		s.Settle(now, l, &limit.Outcome{Result: limit.Failed, Misordered: true})
		r := limit.Retreats(s, now)
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

// Two may be under way 10 ms apart, until one overtakes the other.
func TestAGivenGapRetreats(t *testing.T) {
	l := newTimeline[*limit.Sequence](t)(limit.NewSequence(limit.SequenceConfig{Gap: 10 * ms}))
	l.send(0, 1, "a")
	l.ready(0, 1, at(10*ms))
	l.send(10*ms, 1, "b")
	l.send(20*ms, 1, "c")
	l.answered(30*ms, "b", limit.Accepted)
	l.Settle(at(40*ms), l.open["a"], &limit.Outcome{Result: limit.Failed, Misordered: true})
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

// After a refusal nothing is learned for half of the pause, and the lead is not used for all of it.
func TestLearnLeadRetreats(t *testing.T) {
	l := must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Second, Margin: -1, Arrivals: limit.Arrivals{LearnLead: true}}))
	now := mono.Time(0)
	rtt := 20 * ms
	cycle := func(r limit.Result) time.Duration { // returns how much less than a window after the last answer it went
		sent := l.Ready(now, limit.One)
		early := now.Add(time.Second).Sub(sent)
		lease := limittest.Admit(l, sent, limit.One)
		now = sent.Add(rtt)
		l.Settle(now, lease, &limit.Outcome{Result: r, RTT: rtt})
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
	r := limit.Retreats(l, now)
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
	lead(0, 0, 50) // the lead is forgotten
	lead(0, 20*ms, 5)
	lead(20*ms, 20*ms, 5)
}

// Beside LearnLead a server's stamp has no effect: both would take the way back off.
func TestLearnLeadHeedsNoStamps(t *testing.T) {
	for _, ago := range []time.Duration{0, time.Millisecond, 500 * time.Millisecond} {
		l := must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Second, Margin: -1, Arrivals: limit.Arrivals{LearnLead: true}}))
		lease := limittest.Admit(l, 0, limit.One)
		l.Settle(at(800*ms), lease, &limit.Outcome{Result: limit.Accepted, RTT: 800 * ms, ArrivedAgo: ago})
		if got := l.Ready(at(800*ms), limit.One); got != at(1800*ms) {
			t.Errorf("it arrived %v ago, it is said: the next goes at %v", ago, got)
		}
	}
}
