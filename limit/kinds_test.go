package limit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// timeline is a limiter with its requests by name.
type timeline struct {
	*testing.T
	limit.Limiter
	open map[string]*limit.Sent
}

func newTimeline[L limit.Limiter](t *testing.T) func(L, error) timeline {
	return func(l L, err error) timeline {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return timeline{t, l, map[string]*limit.Sent{}}
	}
}

func (t timeline) send(now time.Duration, n int64, name string) {
	t.Helper()
	if ready := t.Ready(at(now), limit.Cost{n}); ready > at(now) {
		t.Errorf("at %v: %s is ready only at %v", now, name, ready)
	}
	t.open[name] = limittest.Admit(t, at(now), limit.Cost{n})
}

func (t timeline) answered(now time.Duration, name string, r limit.Result) {
	t.Settle(at(now), t.open[name], &limit.Outcome{Result: r})
}

func (t timeline) ready(now time.Duration, n int64, want mono.Time) {
	t.Helper()
	if got := t.Ready(at(now), limit.Cost{n}); got != want {
		t.Errorf("at %v: %d ready at %v, want %v", now, n, got, want)
	}
}

// Minutes that begin at :30, known to 50 ms.
func TestCalendarTimeline(t *testing.T) {
	l := newTimeline[*limit.Calendar](t)(limit.NewCalendar(limit.CalendarConfig{Limit: 10, Window: time.Minute, Phase: at(-30 * time.Second)}))
	begins := at(30*time.Second + 50*ms)
	l.send(0, 6, "a")
	l.answered(1*time.Second, "a", limit.Accepted)
	l.ready(2*time.Second, 4, at(2*time.Second))
	l.ready(2*time.Second, 5, begins)
	l.ready(2*time.Second, 11, limit.Never)
	l.send(29*time.Second, 4, "b") // may arrive in this minute or the next
	l.ready(29*time.Second, 7, limit.AfterSettle)
	l.answered(29500*ms, "b", limit.Accepted)
	l.ready(30*time.Second, 10, begins)
	l.send(30050*ms, 10, "c")
	l.answered(89960*ms, "c", limit.Accepted) // within the skew: perhaps in the next minute
	l.ready(91*time.Second, 1, begins.Add(2*time.Minute))
	l.ready(85*time.Second, 1, begins.Add(2*time.Minute))
}

// An interval begins with the first message. At its end the whole limit is free at once, whatever
// the slow requests do.
func TestAnchoredTimeline(t *testing.T) {
	l := newTimeline[*limit.Anchored](t)(limit.NewAnchored(limit.AnchoredConfig{Limit: 4, Window: time.Second, Margin: 10 * ms}))
	l.send(0, 1, "a")
	l.send(0, 1, "b")
	l.send(0, 1, "c")
	l.send(0, 1, "d")
	l.answered(20*ms, "b", limit.Failed) // perhaps by a proxy in front of the server
	l.answered(30*ms, "a", limit.Accepted)
	l.ready(40*ms, 1, at(1030*ms)) // not 1040: the witness is over
	l.ready(40*ms, 2, at(1040*ms))
	l.answered(600*ms, "c", limit.Accepted)
	l.ready(600*ms, 3, at(1040*ms))
	l.ready(600*ms, 4, limit.AfterSettle)
	l.answered(995*ms, "d", limit.Accepted) // it may have arrived when the interval was over, at 990 or later
	l.ready(1000*ms, 3, at(1040*ms))
	l.ready(1000*ms, 4, at(2005*ms))
	l.send(1040*ms, 3, "e")
	l.answered(1050*ms, "e", limit.Accepted)
	l.ready(1100*ms, 1, at(2005*ms)) // d may have begun the interval, at 990: it is not over at 1990
	l.ready(1100*ms, 4, at(2060*ms))
}

// Our clock is set back by 500 ms at 30 ms. So the intervals end that much earlier by our clock.
// "slow" begins the second interval at 510 ms, and that ends at 1510 ms. So "late", which arrives
// at 1550 ms, begins the third. It is not over with the interval of the witness.
func TestAnchoredWhenTheClockIsSetBack(t *testing.T) {
	for _, stepped := range []bool{false, true} {
		l := newTimeline[*limit.Anchored](t)(limit.NewAnchored(limit.AnchoredConfig{Limit: 4, Window: time.Second, Margin: 10 * ms}))
		for _, ago := range []time.Duration{-20 * time.Second, -10 * time.Second} { // b could be derived from these
			l.send(ago, 1, "before")
			l.answered(ago, "before", limit.Accepted)
		}
		l.send(0, 1, "first")
		l.send(0, 1, "second")
		l.send(0, 1, "slow")
		l.answered(20*ms, "first", limit.Accepted)
		l.answered(25*ms, "second", limit.Accepted)
		l.send(30*ms, 1, "unsent")
		over := 20*ms + 1010*ms
		if stepped {
			l.answered(-400*ms, "unsent", limit.Unsent)
			l.ready(-400*ms, 3, at(over+5*ms)) // the second is not over with the first
		} else {
			l.answered(30*ms, "unsent", limit.Unsent)
			l.ready(30*ms, 3, at(over))
		}
		l.send(over, 1, "witness")
		l.answered(1040*ms, "witness", limit.Accepted)
		l.send(1060*ms, 1, "late")
		l.answered(1200*ms, "slow", limit.Accepted)
		l.answered(1600*ms, "late", limit.Accepted)
		if stepped {
			l.ready(2050*ms, 3, at(2210*ms))
			l.ready(2050*ms, 4, at(2610*ms))
		} else {
			l.ready(2050*ms, 4, at(2050*ms))
		}
	}
}

// A cost above a full bucket goes by itself when the bucket is full, and overdraws it.
func TestBucketAlone(t *testing.T) {
	l := newTimeline[*limit.Bucket](t)(limit.NewBucket(limit.BucketConfig{Limit: 1000, Window: time.Second, Margin: -1, Alone: true}))
	per := func(n time.Duration) time.Duration { return n * 1000201 } // the refill of n, by a clock that drifts
	l.send(0, 400, "small")
	l.ready(0, 2500, limit.AfterSettle) // something else is open
	if at := limit.ReadyAfter(l.Limiter, 0, limit.Cost{100}, limit.Cost{2500}); at != limit.AfterSettle {
		t.Errorf("after a small one, a large one is ready at %v", at)
	}
	l.answered(10*ms, "small", limit.Accepted)
	full := 10*ms + per(400)
	l.ready(20*ms, 2500, at(full))
	l.ready(20*ms, 600, at(20*ms))
	l.send(full, 2500, "large")
	l.ready(full, 1, limit.AfterSettle)
	l.ready(full, 0, at(full))
	l.answered(full+10*ms, "large", limit.Accepted)
	l.ready(full+10*ms, 1, at(full+10*ms+per(1501)))
	l.ready(full+10*ms, 1000, at(full+10*ms+per(2500)))
	l.ready(full+10*ms, 9000, at(full+10*ms+per(2500)))
}

// 10 per second, 3 at once.
func TestBucketTimeline(t *testing.T) {
	l := newTimeline[*limit.Bucket](t)(limit.NewBucket(limit.BucketConfig{Limit: 10, Window: time.Second, Burst: 3, Margin: -1}))
	per := 100*ms + 20_001 // 2e-4 for the drift
	l.send(0, 3, "abc")
	l.ready(0, 1, limit.AfterSettle)
	l.answered(50*ms, "abc", limit.Accepted)
	l.ready(50*ms, 1, at(50*ms+per))
	l.ready(50*ms, 3, at(50*ms+3*per))
	l.ready(50*ms, 4, limit.Never)
	l.send(200*ms, 1, "d")
	l.ready(200*ms, 1, at(50*ms+2*per)) // an open cost is out of the bucket, too
	l.answered(time.Second, "d", limit.Unknown)
	l.ready(time.Second, 3, at(6*time.Second+per)) // the request may arrive until 6 s
	l.ready(time.Second, 2, at(time.Second))
	b := l.Limiter.(*limit.Bucket)
	if err := b.SetBurst(at(time.Second), 4); err != nil {
		t.Fatal(err)
	}
	l.ready(time.Second, 3, at(time.Second+per)) // the fourth has to come in
	l.send(7*time.Second, 4, "e")
	l.answered(7*time.Second, "e", limit.Accepted)
	if err := b.SetLimit(at(7*time.Second), 20); err != nil {
		t.Fatal(err)
	}
	l.ready(7*time.Second, 4, at(7*time.Second+2*per+2)) // four are missing as before, and come twice as fast
}

// The rate is whole tokens of whole nanoseconds, rounded up, and the recursion is not cut. After
// 100,000 requests at the limiter's pace the bucket has not been overdrawn by a nanosecond.
func TestBucketNeverDrifts(t *testing.T) {
	l := must(limit.NewBucket(limit.BucketConfig{Limit: 7, Window: time.Second, Margin: -1}))
	var now mono.Time
	missing, last := 0.0, now
	for range 100_000 {
		now = l.Ready(now, limit.One)
		l.Settle(now, limittest.Admit(l, now, limit.One), &limit.Outcome{Result: limit.Accepted})
		missing = max(0, missing-now.Sub(last).Seconds()*7) + 1
		last = now
		if missing > 7 {
			t.Fatalf("%.9f of 7 are missing at %v", missing, now)
		}
	}
	if rate := 100_000 / now.Sub(0).Seconds(); rate < 7*0.9997 {
		t.Errorf("%.4f per second of 7", rate)
	}
}

// Ten requests in an interval that ends right after them. In the next interval their part falls
// with time.
func TestWeightedTimeline(t *testing.T) {
	l := newTimeline[*limit.Weighted](t)(limit.NewWeighted(limit.WeightedConfig{Limit: 10, Window: time.Second, Margin: -1, Grain: -1}))
	l.send(0, 10, "a")
	l.ready(0, 1, limit.AfterSettle)
	l.answered(100*ms, "a", limit.Accepted)
	// If the interval begins just after 100 ms, all of them are in the one before at 1100 ms. Then
	// 9.x of them count until 1200 ms.
	l.ready(100*ms, 1, at(1200*ms))
	l.ready(100*ms, 5, at(1600*ms))
	l.ready(100*ms, 10, at(2100*ms))
	l.send(1600*ms, 5, "b")
	l.answered(1600*ms, "b", limit.Accepted)
	l.ready(1600*ms, 1, at(1700*ms))
	l.ready(1600*ms, 6, at(2800*ms)) // if one ends just after 1600, the next ends at 2600 with the five in proportion
}

func TestWeightedRoundsDown(t *testing.T) {
	l := newTimeline[*limit.Weighted](t)(limit.NewWeighted(limit.WeightedConfig{Limit: 10, Window: time.Second, Margin: -1, Grain: -1, RoundsDown: true}))
	l.send(0, 10, "a")
	l.answered(100*ms, "a", limit.Accepted)
	l.ready(100*ms, 1, at(1100*ms+1)) // 10.999… is 10
	l.ready(100*ms, 5, at(1500*ms+1))
	l.ready(100*ms, 10, at(2000*ms+1))
}

// The learned lead is safe as long as no way is quicker than all before. When one is, the lead is
// given up at once.
func TestLearnedLead(t *testing.T) {
	learns := limit.Arrivals{LearnLead: true}
	t.Run("Rolling", func(t *testing.T) {
		testLearnedLead(t, must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Second, Margin: -1, Arrivals: learns})), time.Second)
	})
	t.Run("Weighted", func(t *testing.T) { // it counts in the next interval as well
		testLearnedLead(t, must(limit.NewWeighted(limit.WeightedConfig{Limit: 1, Window: time.Second, Margin: -1, Grain: -1, Arrivals: learns})), 2*time.Second)
	})
}

// testLearnedLead sends again and again with a limit of one. counts is how long one request counts.
func testLearnedLead(t *testing.T, l limit.Limiter, counts time.Duration) {
	rng := rand.New(rand.NewPCG(1, 1))
	now := mono.Time(0)
	cycle := func(rtt time.Duration) time.Duration {
		sent := l.Ready(now, limit.One)
		early := now.Add(counts).Sub(sent)
		lease := limittest.Admit(l, sent, limit.One)
		now = sent.Add(rtt)
		l.Settle(now, lease, &limit.Outcome{Result: limit.Accepted, RTT: rtt})
		return early
	}
	for i := range 50 {
		if early := cycle(20*ms + time.Duration(rng.IntN(2000))*time.Microsecond); i > 0 && early != 0 {
			t.Fatalf("answer %d: sent %v early with nothing known", i, early)
		}
	}
	for range 3000 {
		if early := cycle(20*ms + time.Duration(rng.IntN(2000))*time.Microsecond); early > 20*ms {
			t.Fatalf("sent %v early on a path of 20 ms", early)
		}
	}
	if early := cycle(20 * ms); early < 19*ms {
		t.Errorf("sent %v early where about 20 ms are safe", early)
	}
	cycle(5 * ms)
	if early := cycle(20 * ms); early != 0 {
		t.Errorf("sent %v early right after a round trip of 5 ms", early)
	}
}

// A lost request has no way back, from which the lead could be taken.
func TestLearnedLeadOfALostRequest(t *testing.T) {
	l := must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Second, Arrivals: limit.Arrivals{LearnLead: true}}))
	server := must(rule.NewRolling(rule.RollingConfig{Limit: 1, Window: time.Second}))
	now := mono.Time(0)
	send := func() *limit.Sent {
		now = l.Ready(now, limit.One)
		if !server.Arrive(now.Add(10*ms), 1) {
			t.Fatalf("refused: sent at %v", now)
		}
		return limittest.Admit(l, now, limit.One)
	}
	for range 100 {
		lease := send()
		now = now.Add(20 * ms)
		l.Settle(now, lease, &limit.Outcome{Result: limit.Accepted, RTT: 20 * ms})
	}
	now = l.Ready(now, limit.One)
	lost := limittest.Admit(l, now, limit.One)
	now = now.Add(time.Second)
	l.Settle(now, lost, &limit.Outcome{})
	server.Arrive(now.Add(4995*ms), 1) // within the 5 s that it may take
	send()
}

func TestSequenceTimeline(t *testing.T) {
	s := must(limit.NewSequence(limit.SequenceConfig{}))
	now := mono.Time(0)
	for i := range 100 { // between 200 and 240 ms
		if ready := s.Ready(now, limit.One); ready != now {
			t.Fatalf("answer %d: ready at %v, want %v", i, ready, now)
		}
		l := limittest.Admit(s, now, limit.One)
		if ready := s.Ready(now, limit.One); ready != limit.AfterSettle {
			t.Fatalf("answer %d: ready at %v with one in flight", i, ready)
		}
		now = now.Add(200*ms + time.Duration(i%41)*ms)
		s.Settle(now, l, &limit.Outcome{Result: limit.Accepted})
	}
	ready := func(want time.Duration) {
		t.Helper()
		if got := s.Ready(now, limit.One).Sub(now); got != want {
			t.Errorf("ready in %v, want %v", got, want)
		}
	}
	ready(0)
	a := limittest.Admit(s, now, limit.One)
	ready(51 * ms) // 40 and a quarter, and 1
	now = now.Add(51 * ms)
	b := limittest.Admit(s, now, limit.One)
	now = now.Add(150 * ms)
	c := limittest.Admit(s, now, limit.One)
	s.Settle(now, b, &limit.Outcome{Result: limit.Accepted})
	s.Settle(now, a, &limit.Outcome{Result: limit.Failed, Misordered: true})
	ready(10 * time.Minute)
	s.Settle(now.Add(ms), c, &limit.Outcome{Result: limit.Failed, Misordered: true}) // sent before the proof
	now = now.Add(ms)
	ready(0)
	d := limittest.Admit(s, now, limit.One)
	ready(10*time.Minute - ms)
	s.Settle(now, d, &limit.Outcome{Result: limit.Unknown})
	ready(5 * time.Second)
	now = now.Add(11 * time.Minute)
	e := limittest.Admit(s, now, limit.One)
	s.Settle(now.Add(200*ms), e, &limit.Outcome{Result: limit.Failed, Misordered: true})
	now = now.Add(200 * ms)
	f := limittest.Admit(s, now, limit.One)
	ready(20 * time.Minute)
	s.Settle(now, f, &limit.Outcome{Result: limit.Accepted})
}

func TestMemoryOfALargeLimit(t *testing.T) {
	l := must(limit.NewRolling(limit.RollingConfig{Limit: 100_000, Window: time.Second, Grain: 10 * ms}))
	now, sent, served := mono.Time(0), limit.Sent{Cost: limit.One}, limit.Outcome{Result: limit.Accepted}
	run := func() {
		for range 1_000_000 {
			now = max(now.Add(5*time.Microsecond), l.Ready(now, limit.One))
			sent.At = now
			sent.Number++
			l.Admit(&sent)
			l.Settle(now, &sent, &served)
		}
	}
	if allocs := testing.AllocsPerRun(1, run); allocs > 0 { // the first run, which is not counted, warms it up
		t.Errorf("%v allocations", allocs)
	}
	if n := limit.Entries(l); n > 104 {
		t.Errorf("%d entries for 101 grains", n)
	}
	if rate := 2_000_000 / now.Sub(0).Seconds(); rate < 0.985*100_000 {
		t.Errorf("%.0f per second of 100,000", rate)
	}
}
