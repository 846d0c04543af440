package limit_test

import (
	"math"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

const ms = time.Millisecond

func at(d time.Duration) mono.Time { return mono.Time(d) }

// The example of a published client: it keeps windows by send times. The first request is sent at 0
// and counted at 40 ms. The twenty-first is sent at 1000 and counted at 1036, only 996 ms later:
// refused.
func TestSentAtZeroAndThousandArrived996Apart(t *testing.T) {
	const n, window = 20, time.Second
	server := func(sends, latencies []time.Duration) (refused int) {
		var counted []time.Duration
		for i, s := range sends {
			a := s + latencies[i]
			if k := len(counted); k >= n && a.Milliseconds()-counted[k-n].Milliseconds() <= window.Milliseconds() {
				refused++
				continue
			}
			counted = append(counted, a)
		}
		return refused
	}
	latencies := make([]time.Duration, n+1)
	for i := range latencies {
		latencies[i] = 40 * ms
	}
	latencies[n] = 36 * ms

	bySend := make([]time.Duration, n+1)
	for i := range bySend {
		if i >= n {
			bySend[i] = bySend[i-n] + window
		}
	}
	if refused := server(bySend, latencies); refused != 1 {
		t.Errorf("a window kept by send times: %d refused, want 1", refused)
	}

	l := limit.MustRolling(n, window)
	var byLease []time.Duration
	var leases []*limit.Sent
	for range n {
		if ready := l.Ready(0, limit.One); ready != 0 {
			t.Fatalf("request %d ready at %v, want at once", len(byLease), ready)
		}
		leases = append(leases, limittest.Admit(l, 0, limit.One))
		byLease = append(byLease, 0)
	}
	if ready := l.Ready(at(time.Hour), limit.One); ready != limit.AfterSettle {
		t.Fatalf("with %d unanswered: ready at %v, want AfterSettle", n, ready)
	}
	for _, lease := range leases {
		l.Settle(at(80*ms), lease, &limit.Outcome{Result: limit.Accepted}) // answered after a round trip of 80 ms
	}
	ready := l.Ready(at(80*ms), limit.One)
	if want := at(80*ms + window + 1200*time.Microsecond); ready != want {
		t.Errorf("ready at %v, want %v: a window after the answer, plus a tick, drift and 0.1 ms", ready, want)
	}
	byLease = append(byLease, time.Duration(ready))
	if refused := server(byLease, latencies); refused != 0 {
		t.Errorf("leases: %d refused, want 0", refused)
	}
}

func TestRollingSettlesByOutcome(t *testing.T) {
	span := time.Second + 1200*time.Microsecond
	for _, c := range []struct {
		name     string
		arrivals limit.Arrivals
		outcome  limit.Outcome
		ready    time.Duration // of a second request; limit 1, and the first was sent at 0 and settled at 100 ms
	}{
		{"accepted", limit.Arrivals{}, limit.Outcome{Result: limit.Accepted}, 100*ms + span},
		{"failed", limit.Arrivals{}, limit.Outcome{Result: limit.Failed}, 100*ms + span},
		{"limited, rejects count", limit.Arrivals{}, limit.Outcome{Result: limit.Limited}, 100*ms + span},
		{"limited, rejects are free", limit.Arrivals{RejectsFree: true}, limit.Outcome{Result: limit.Limited}, 100 * ms},
		{"unsent", limit.Arrivals{}, limit.Outcome{Result: limit.Unsent}, 100 * ms},
		{"unknown may arrive 5 s later", limit.Arrivals{}, limit.Outcome{}, 5100*ms + span},
		{"unknown, late known", limit.Arrivals{Late: time.Second}, limit.Outcome{}, 1100*ms + span},
		{"unknown, never late", limit.Arrivals{Late: -1}, limit.Outcome{}, 100*ms + span},
		{"a server's timestamp", limit.Arrivals{}, limit.Outcome{Result: limit.Accepted, ArrivedAgo: 60 * ms}, 40*ms + span},
		{"a timestamp before the send", limit.Arrivals{}, limit.Outcome{Result: limit.Accepted, ArrivedAgo: time.Hour}, span},
		{"may still arrive", limit.Arrivals{}, limit.Outcome{Result: limit.Accepted, ArrivedAgo: -time.Second}, 1100*ms + span},
		{"largest latency known", limit.Arrivals{OneWayMax: 50 * ms}, limit.Outcome{Result: limit.Accepted, RTT: 90 * ms}, 60*ms + span},
		{"largest latency known, answered sooner", limit.Arrivals{OneWayMax: 50 * ms}, limit.Outcome{Result: limit.Accepted, RTT: 30 * ms}, 100*ms + span},
		{"largest latency known, round trip not measured", limit.Arrivals{OneWayMax: 50 * ms}, limit.Outcome{Result: limit.Accepted}, 100*ms + span},
		{"cost nothing after all", limit.Arrivals{}, limit.Outcome{Result: limit.Accepted, Metered: true}, 100 * ms},
		{"absurd durations", limit.Arrivals{}, limit.Outcome{ArrivedAgo: -1 << 63, RTT: -1 << 63}, time.Duration(mono.Max)},
	} {
		l := must(limit.NewRolling(limit.RollingConfig{Limit: 1, Window: time.Second, Arrivals: c.arrivals}))
		l.Settle(at(100*ms), limittest.Admit(l, 0, limit.One), &c.outcome)
		if ready := l.Ready(at(100*ms), limit.One); ready != at(c.ready) {
			t.Errorf("%s: ready at %v, want %v", c.name, ready, c.ready)
		}
	}
}

func TestRollingTimeline(t *testing.T) {
	l := must(limit.NewRolling(limit.RollingConfig{Limit: 3, Window: time.Second, Margin: -1}))
	two := limit.Cost{limit.Requests: 2}
	ready := func(now, want time.Duration, c limit.Cost) {
		t.Helper()
		if got := l.Ready(at(now), c); got != at(want) {
			t.Errorf("at %v: ready at %v, want %v", now, got, want)
		}
	}
	ready(0, 0, limit.One)
	if got := l.Ready(0, limit.Cost{limit.Requests: 4}); got != limit.Never {
		t.Errorf("cost 4 of 3: %v, want Never", got)
	}
	a := limittest.Admit(l, at(0), limit.One)
	b := limittest.Admit(l, at(10*ms), two)
	l.Settle(at(100*ms), b, &limit.Outcome{Result: limit.Accepted})
	l.Settle(at(150*ms), a, &limit.Outcome{Result: limit.Accepted})
	ready(200*ms, 1100*ms, limit.One) // the first answered is the first to go
	ready(200*ms, 1100*ms, two)
	ready(200*ms, 1150*ms, limit.Cost{limit.Requests: 3})
	ready(100*ms, 1100*ms, limit.One) // a clock that went back

	if err := l.SetLimit(at(300*ms), 5); err != nil {
		t.Fatal(err)
	}
	ready(300*ms, 300*ms, two)
	if err := l.SetLimit(at(300*ms), 2); err != nil {
		t.Fatal(err)
	}
	ready(300*ms, 1100*ms, limit.One) // history stays: 3 of 2 in the window
	ready(300*ms, 300*ms, limit.Cost{limit.Input: 9})
	if err := l.SetLimit(at(300*ms), 0); err == nil {
		t.Error("a limit of 0 was taken")
	}

	// An overrun is debt: later, but not never.
	c := limittest.Admit(l, at(1200*ms), limit.One)
	l.Settle(at(1300*ms), c, &limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 50}})
	ready(1300*ms, 2300*ms, limit.One)
	// An answer in the last nanosecond of a window does not end it.
	d := limittest.Admit(l, at(2300*ms-1), limit.One)
	l.Settle(at(2300*ms-1), d, &limit.Outcome{Result: limit.Unsent})
	ready(2300*ms-1, 2300*ms, limit.One)
	// A clock that went back is the last instant.
	e := limittest.Admit(l, at(2300*ms), limit.Cost{limit.Requests: 2})
	l.Settle(0, e, &limit.Outcome{Result: limit.Accepted})
	ready(2300*ms, 3300*ms, limit.One)
}

// The windows that a dead process filled still count: its sends are admitted again, at negative
// instants.
func TestReplayOfADeadProcess(t *testing.T) {
	l := must(limit.NewRolling(limit.RollingConfig{Limit: 2, Window: time.Second, Margin: -1}))
	answered := limittest.Admit(l, at(-400*ms), limit.One)
	l.Settle(at(-400*ms), answered, &limit.Outcome{Result: limit.Accepted})
	unanswered := limittest.Admit(l, at(-200*ms), limit.One)
	l.Settle(0, unanswered, &limit.Outcome{})
	if got := l.Ready(0, limit.One); got != at(600*ms) {
		t.Errorf("ready at %v, want 600ms", got)
	}
	if got := l.Ready(0, limit.Cost{limit.Requests: 2}); got != at(6*time.Second) {
		t.Errorf("two are ready at %v, want 6s: the unanswered one may arrive until 5s", got)
	}
}

func TestBadConfigNamesTheField(t *testing.T) {
	type config = struct {
		limit, burst    int64
		window, m, more time.Duration // more: Grain or Skew
		unit            limit.Unit
		limit.Arrivals
	}
	kinds := map[string]func(config) error{
		"Rolling": func(c config) error {
			_, err := limit.NewRolling(limit.RollingConfig{Limit: c.limit, Window: c.window, Margin: c.m, Grain: c.more, Unit: c.unit, Arrivals: c.Arrivals})
			return err
		},
		"Calendar": func(c config) error {
			_, err := limit.NewCalendar(limit.CalendarConfig{Limit: c.limit, Window: c.window, Skew: c.more, Unit: c.unit, Arrivals: c.Arrivals})
			return err
		},
		"Anchored": func(c config) error {
			_, err := limit.NewAnchored(limit.AnchoredConfig{Limit: c.limit, Window: c.window, Margin: c.m, Unit: c.unit, Arrivals: c.Arrivals})
			return err
		},
		"Bucket": func(c config) error {
			_, err := limit.NewBucket(limit.BucketConfig{Limit: c.limit, Window: c.window, Burst: c.burst, Margin: c.m, Unit: c.unit, Arrivals: c.Arrivals})
			return err
		},
		"Weighted": func(c config) error {
			_, err := limit.NewWeighted(limit.WeightedConfig{Limit: c.limit, Window: c.window, Margin: c.m, Grain: c.more, Unit: c.unit, Arrivals: c.Arrivals})
			return err
		},
	}
	wrong := func(kind, want string, c config) {
		t.Helper()
		if err := kinds[kind](c); err == nil || err.Error() != "limit: "+kind+": "+want {
			t.Errorf("%+v: %v, want limit: %s: %s", c, err, kind, want)
		}
	}
	const forever = 1<<63 - 1
	for kind, try := range kinds {
		if err := try(config{limit: 1, window: time.Second}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		wrong(kind, "Limit 0 is not between 1 and 17592186044416", config{window: time.Second})
		wrong(kind, "Limit -3 is not between 1 and 17592186044416", config{limit: -3, window: time.Second})
		wrong(kind, "Limit 17592186044417 is not between 1 and 17592186044416", config{limit: limit.MaxCost + 1, window: time.Second})
		wrong(kind, "Window 0s is not positive", config{limit: 1})
		wrong(kind, "Window 60ns is shorter than 1µs; want a unit, as in 60*time.Second", config{limit: 1, window: 60})
		wrong(kind, "no such Unit: 9", config{limit: 1, window: time.Second, unit: 9})
		wrong(kind, "OneWayMax -1ns is negative", config{limit: 1, window: time.Second, Arrivals: limit.Arrivals{OneWayMax: -1}})
		wrong(kind, "OneWayMax 1ms and LearnLead: each takes the way back off, so only one may", config{limit: 1, window: time.Second, Arrivals: limit.Arrivals{OneWayMax: ms, LearnLead: true}})
	}
	if _, err := limit.NewProduced(limit.ProducedConfig{Limit: 100, Window: time.Second, Unit: 9}); err == nil || err.Error() != "limit: Produced: no such Unit: 9" {
		t.Error(err)
	}
	if _, err := limit.NewProduced(limit.ProducedConfig{Limit: 100, Window: time.Second, Unit: limit.Unit(len(limit.Cost{}))}); err == nil {
		t.Error("a Unit after the last one is none")
	}
	for _, kind := range []string{"Rolling", "Anchored", "Weighted"} {
		wrong(kind, "Window 2562047h47m16.854775807s and Margin 0s overflow", config{limit: 1, window: forever})
	}
	wrong("Rolling", "Grain 2s is negative or longer than Window 1s", config{limit: 1, window: time.Second, more: 2 * time.Second})
	wrong("Weighted", "Grain 2s is longer than Window 1s", config{limit: 1, window: time.Second, more: 2 * time.Second})
	wrong("Calendar", "Skew 2s is longer than Window 1s: then the phase is not known", config{limit: 1, window: time.Second, more: 2 * time.Second})
	wrong("Bucket", "Burst -1 is not between 1 and 17592186044416", config{limit: 1, window: time.Second, burst: -1})
	wrong("Bucket", "Burst 4000 at 1 per 720h0m0s takes longer than 640511h56m49.213693952s to fill", config{limit: 1, window: 30 * 24 * time.Hour, burst: 4000})
	for _, kind := range []string{"Calendar", "Anchored"} {
		wrong(kind, "LearnLead is not for this kind of limit", config{limit: 1, window: time.Second, Arrivals: limit.Arrivals{LearnLead: true}})
	}
}

func TestMisuse(t *testing.T) {
	a := limit.MustRolling(1, time.Second)
	var book limit.Book[int]
	book.Open(7, 1)
	book.Open(15, 2)
	book.Close(7)
	const twice = "limit: a request is settled twice, or was never admitted"
	for _, c := range []struct {
		want string
		do   func()
	}{
		{twice, func() { book.Close(7) }},
		{twice, func() { book.Open(8, 3); book.Close(7) }}, // with another request in its place
		{twice, func() { book.Close(9) }},
		{twice, func() { new(limit.Book[int]).Close(0) }},
		{"limit: All: limiter 0 is nil", func() { limit.NewAll(nil) }},
		{"limit: All: limiters 0 and 1 are the same", func() { limit.NewAll(a, a) }},
	} {
		func() {
			defer func() {
				if got := recover(); got != c.want {
					t.Errorf("panic %v, want %q", got, c.want)
				}
			}()
			c.do()
		}()
	}
}

func TestCostsOutOfRange(t *testing.T) {
	l := limit.MustRolling(2, time.Second)
	limittest.Admit(l, 0, limit.Cost{limit.Requests: -5})
	limittest.Admit(l, 0, limit.Cost{limit.Requests: 2})
	if ready := l.Ready(0, limit.One); ready != limit.AfterSettle {
		t.Errorf("2 of 2 are open, ready at %v: a cost below 0 made room", ready)
	}
	l = must(limit.NewRolling(limit.RollingConfig{Limit: limit.MaxCost, Window: time.Second}))
	limittest.Admit(l, 0, limit.Cost{math.MaxInt64})
	limittest.Admit(l, 0, limit.Cost{math.MaxInt64})
	if ready := l.Ready(0, limit.One); ready != limit.AfterSettle {
		t.Errorf("all is open twice over, ready at %v", ready)
	}
}

// The history is a ring that grows. Here its oldest entry is not its first.
func TestHistoryGrowsInOrder(t *testing.T) {
	l := must(limit.NewRolling(limit.RollingConfig{Limit: 1000, Window: time.Second, Margin: -1}))
	answered := func(now time.Duration) {
		l.Settle(at(now), limittest.Admit(l, at(now), limit.One), &limit.Outcome{Result: limit.Accepted})
	}
	for i := range 8 {
		answered(time.Duration(i) * 100 * ms)
	}
	for i := range 5 { // the first four are over by the last of these
		answered(1000*ms + time.Duration(i)*100*ms)
	}
	for i := range 20 {
		answered(1450*ms + time.Duration(i)*ms)
	}
	// In the window of (450 ms, 1470 ms]: 500, 600, 700, 1000 to 1400, 1450 to 1469.
	for n, want := range map[int64]time.Duration{28: 1500 * ms, 27: 1600 * ms, 26: 1700 * ms, 25: 2000 * ms, 21: 2400 * ms, 20: 2450 * ms, 1: 2469 * ms} {
		if err := l.SetLimit(at(1470*ms), n); err != nil {
			t.Fatal(err)
		}
		if ready := l.Ready(at(1470*ms), limit.One); ready != at(want) {
			t.Errorf("limit %d: ready at %v, want %v", n, ready, want)
		}
	}
}

// An Outcome is passed by value at every layer. If its size were not a multiple of 16, each copy of
// a copy would wait for the first. The first three cache lines of a Rolling hold the fields that
// every request needs.
func TestLayout(t *testing.T) {
	if reflect.TypeFor[uintptr]().Size() != 8 {
		t.Skip("laid out for 64 bits")
	}
	if n := reflect.TypeFor[limit.Outcome]().Size(); n > 224 || n%16 != 0 {
		t.Errorf("an Outcome has %d bytes", n)
	}
	rolling := reflect.TypeFor[limit.Rolling]()
	account, _ := rolling.FieldByName("account")
	lead, _ := rolling.FieldByName("lead")
	if seldom := account.Offset + lead.Offset; seldom > 192 || rolling.Size() != 256 {
		t.Errorf("a Rolling has %d bytes, what is seldom needed begins at %d", rolling.Size(), seldom)
	}
}

// Far from the limit, old entries are removed when their room is needed. Entries outside the window
// do not count.
func TestFarFromTheLimitHistoryIsBounded(t *testing.T) {
	l := must(limit.NewRolling(limit.RollingConfig{Limit: limit.MaxCost, Window: 100 * ms, Margin: -1}))
	now, before := at(0), 0
	for i := range 10_000 {
		now = at(time.Duration(i) * ms)
		l.Settle(now, limittest.Admit(l, now, limit.One), &limit.Outcome{Result: limit.Accepted})
		n := limit.Entries(l)
		if n > 128 || n < before && n != 100 { // at most a power of two; after a sweep the window's 100
			t.Fatalf("%d entries at %v", n, now)
		}
		before = n
	}
	for n, want := range map[int64]mono.Time{101: now, 100: at(10_000 * ms), 99: at(10_001 * ms), 1: at(10_099 * ms)} {
		if err := l.SetLimit(now, n); err != nil {
			t.Fatal(err)
		}
		if ready := l.Ready(now, limit.One); ready != want {
			t.Errorf("limit %d: ready at %v, want %v", n, ready, want)
		}
	}
}

func TestAllSettlesEachOfThem(t *testing.T) {
	for _, result := range []limit.Result{limit.Unsent, limit.Accepted} {
		spacing := must(limit.NewSpacing(time.Second))
		l := limit.NewAll(limit.NewAll(), limit.NewAll(), limit.NewAll(), spacing)
		l.Settle(0, limittest.Admit(l, 0, limit.One), &limit.Outcome{Result: result})
		want := map[limit.Result]mono.Time{limit.Unsent: 0, limit.Accepted: at(time.Second)}[result]
		if ready := l.Ready(0, limit.One); ready != want {
			t.Errorf("%v: ready at %v, want %v", result, ready, want)
		}
	}
}

func TestConcurrencyHoldsUnknownOnes(t *testing.T) {
	c := must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 1, Late: time.Second}))
	a := limittest.Admit(c, 0, limit.One)
	if got := c.Ready(at(ms), limit.One); got != limit.AfterSettle {
		t.Errorf("one in flight: ready at %v, want AfterSettle", got)
	}
	c.Settle(at(10*ms), a, &limit.Outcome{Result: limit.Accepted})
	if got := c.Ready(at(10*ms), limit.One); got != at(10*ms) {
		t.Errorf("answered: ready at %v, want at once", got)
	}
	b := limittest.Admit(c, at(10*ms), limit.One)
	c.Settle(at(20*ms), b, &limit.Outcome{})
	if got := c.Ready(at(20*ms), limit.One); got != at(1020*ms) {
		t.Errorf("timed out: ready at %v, want 1.02s", got)
	}
}

func TestSpacingGivesBackWhatWasNeverSent(t *testing.T) {
	s := must(limit.NewSpacing(50 * ms))
	a := limittest.Admit(s, 0, limit.One)
	b := limittest.Admit(s, at(50*ms), limit.One)
	s.Settle(at(60*ms), b, &limit.Outcome{Result: limit.Unsent})
	if got := s.Ready(at(60*ms), limit.One); got != at(60*ms) {
		t.Errorf("the second was never sent: ready at %v, want 60ms, 50 after the first", got)
	}
	limittest.Admit(s, at(60*ms), limit.One)
	s.Settle(at(61*ms), a, &limit.Outcome{Result: limit.Unsent})
	if got := s.Ready(at(61*ms), limit.One); got != at(110*ms) {
		t.Errorf("ready at %v, want 110ms, 50 after the latest", got)
	}
}

func TestCooldownTimeline(t *testing.T) {
	c := must(limit.NewCooldown(time.Second))
	ready := func(now, want time.Duration) {
		t.Helper()
		if got := c.Ready(at(now), limit.One); got != at(want) {
			t.Errorf("at %v: ready at %v, want %v", now, got, want)
		}
	}
	settle := func(now time.Duration, o limit.Outcome) {
		c.Settle(at(now), limittest.Admit(c, at(now), limit.One), &o)
	}
	ready(0, 0)
	for _, r := range []limit.Result{limit.Unknown, limit.Accepted, limit.Failed, limit.Unsent} {
		settle(0, limit.Outcome{Result: r})
	}
	ready(0, 0)
	settle(0, limit.Outcome{Result: limit.Limited})
	ready(10*ms, 1000*ms) // its own pause
	settle(900*ms, limit.Outcome{Result: limit.Limited, RetryAfter: 200 * ms})
	ready(900*ms, 1100*ms) // the server's pause, though shorter than its own
	settle(1100*ms, limit.Outcome{Result: limit.Limited, RetryAfter: 1920 * ms})
	ready(1200*ms, 3020*ms)
	settle(1200*ms, limit.Outcome{Result: limit.Accepted, RetryAfter: time.Second})
	ready(1200*ms, 3020*ms) // never sooner
	settle(3*time.Second, limit.Outcome{Result: limit.Limited, RetryAfter: 1<<63 - 1})
	if got := c.Ready(at(4*time.Second), limit.One); got != mono.Max {
		t.Errorf("for ever: %v, want the last instant, which is no verdict", got)
	}
}

// Leases and history are used again. The memory of a limiter does not grow with the number of
// requests.
func TestMemoryIsBounded(t *testing.T) {
	for name, spec := range specs {
		l, now := spec.New(), at(0)
		sent, unknown := limit.Sent{Cost: limit.One}, limit.Outcome{}
		run := func(n int) {
			for range n {
				now = now.Add(60 * ms)
				sent.At = now
				sent.Number++
				l.Admit(&sent)
				l.Settle(now, &sent, &unknown)
			}
		}
		run(5_000) // the memory for unknown outcomes, up to a minute, is there
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run(50_000)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 50_000 {
			t.Errorf("%s: %d bytes for 50,000 requests", name, grown)
		}
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	for name, spec := range specs {
		l := spec.New()
		now := mono.Time(0)
		sent, served := limit.Sent{Cost: limit.One}, limit.Outcome{Result: limit.Accepted}
		cycle := func() {
			for range 4 {
				now = max(now.Add(ms), l.Ready(now, limit.One))
				sent.At = now
				sent.Number++
				l.Admit(&sent)
				l.Settle(now.Add(ms), &sent, &served)
			}
		}
		for range 100 {
			cycle()
		}
		if n := testing.AllocsPerRun(100, cycle); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
