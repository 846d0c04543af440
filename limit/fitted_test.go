package limit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/need"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

var fittedSpec = limittest.Spec{
	New:        func() limit.Limiter { return limit.NewFitted(limit.MustRolling(5, time.Second)) },
	Promise:    limittest.Rolling(5, time.Second, limit.Requests),
	ClosedLoop: true,
	Burst:      1 << 20, // an unsent request gives its place back
}

func TestFittedLaws(t *testing.T)   { limittest.Laws(t, fittedSpec) }
func FuzzFittedLaws(f *testing.F)   { limittest.Fuzz(f, fittedSpec) }
func fitted(l limit.Limiter) fitter { return fitter{limit.NewFitted(l), nil} }

// fitter is a client of a server. The server accepts a number of requests per second, counted from
// the first request after a second without any.
type fitter struct {
	*limit.Fitted
	ended []limit.Result
}

// burst sends as many requests as may go at once. The server accepts some of them and refuses the
// rest, 10 ms later.
func (f *fitter) burst(now mono.Time, accepted int) (sent int) {
	var leases []*limit.Sent
	for f.Ready(now, limit.One) <= now {
		leases = append(leases, limittest.Admit(f, now, limit.One))
	}
	for i, l := range leases {
		o := limit.Outcome{Result: limit.Accepted}
		if i >= accepted {
			o.Result = limit.Limited
		}
		f.Settle(now.Add(10*ms), l, &o)
	}
	return len(leases)
}

func (f *fitter) misfits(t *testing.T, want ...limit.Misfit) {
	t.Helper()
	if got := f.Misfits(); !slices.Equal(got, want) {
		t.Errorf("misfits %+v, want %+v", got, want)
	}
}

var twentyFive = limit.Rule{Name: "requests", N: 25, Per: time.Second}

// A server of 20 a second whose configured limit is 25.
func TestFittedTimeline(t *testing.T) {
	f := fitted(limit.MustRolling(25, time.Second))
	bursts := func(now time.Duration, accepted, want int) {
		t.Helper()
		if got := f.burst(at(now), accepted); got != want {
			t.Errorf("%v: %d sent, want %d", now, got, want)
		}
	}
	bursts(0, 25, 25)
	bursts(2*time.Second, 20, 25) // not in the first window
	declared := limit.Misfit{Rule: twentyFive, Fits: 20, Until: at(10*time.Minute + 2*time.Second + 10*ms), Times: 1, Refusals: 1}
	f.misfits(t, declared)
	bursts(4*time.Second, 10, 10) // half of it beside each other
	bursts(4*time.Second+10*ms, 1, 1)
	bursts(time.Minute+6*time.Second, 10, 10) // a minute without a refusal is enough, and a request that ends then
	bursts(time.Minute+6*time.Second+20*ms, 10, 10)
	bursts(time.Minute+8*time.Second, 20, 20)
	declared.Sure = true
	f.misfits(t, declared)

	bursts(11*time.Minute, 20, 20) // 21 may go a minute after the search found 20
	bursts(12*time.Minute, 10, 10)
	for i := range 10 {
		bursts(12*time.Minute+time.Duration(i+1)*20*ms, 1, 1)
	}
	if got := f.Misfits()[0].Fits; got != 21 {
		t.Errorf("a minute of growing: %d fit, want 21", got)
	}
	bursts(13*time.Minute, 9, 10) // one is refused: 20 did hold, and hold for twice as long
	f.misfits(t, limit.Misfit{Rule: twentyFive, Fits: 20, Until: at(33*time.Minute + 10*ms), Times: 2, Refusals: 2})

	f.Trust(at(14 * time.Minute))
	f.misfits(t)
	bursts(14*time.Minute, 25, 25)
}

// Within the first window the accepted part may be what other clients left.
func TestFittedAtFirst(t *testing.T) {
	f := fitted(limit.MustRolling(25, time.Second))
	f.burst(0, 5)
	f.misfits(t)
	sent := []int{}
	for i := range 6 {
		sent = append(sent, f.burst(at(time.Duration(2+i)*1100*ms), 25))
		for j := range 30 {
			now := at(time.Duration(2+i)*1100*ms + time.Duration(j+1)*20*ms)
			sent[i] += f.burst(now, 25)
		}
	}
	if want := []int{6, 8, 12, 20, 25, 25}; !slices.Equal(sent, want) {
		t.Errorf("%v were sent a second, want %v", sent, want)
	}
	f.misfits(t)

	f = fitted(limit.MustRolling(500, time.Hour)) // a wait of a day for trust is too long
	f.burst(0, 100)
	f.misfits(t)
	if ready := f.Ready(at(30*time.Minute), limit.One); ready != at(time.Hour+361100*time.Microsecond+10*ms) { // refused requests count
		t.Errorf("another is ready at %v", ready)
	}
	f = fitted(limit.MustRolling(500, time.Hour))
	f.Settle(0, limittest.Admit(f, 0, limit.Cost{100}), &limit.Outcome{Result: limit.Accepted})
	f.Settle(at(time.Minute), limittest.Admit(f, at(time.Minute), limit.One), &limit.Outcome{Result: limit.Limited})
	if ready := f.Ready(at(30*time.Minute), limit.Cost{399}); ready != at(30*time.Minute) {
		t.Errorf("the rest is ready at %v", ready)
	}
}

// Misfits reports a fit once the fit is known. A fit grows only while it is used.
func TestFittedTakesItsTime(t *testing.T) {
	f := fitted(limit.MustRolling(25, time.Second))
	f.burst(0, 25)
	var leases []*limit.Sent
	for range 25 {
		leases = append(leases, limittest.Admit(f, at(2*time.Second), limit.One))
	}
	settle := func(i int, r limit.Result) {
		f.Settle(at(2100*ms), leases[i], &limit.Outcome{Result: r})
	}
	settle(0, limit.Accepted)
	settle(24, limit.Limited)
	for i := 1; i < 20; i++ {
		settle(i, limit.Accepted)
	}
	for i := 20; i < 24; i++ {
		f.misfits(t)
		settle(i, limit.Limited)
	}
	until := at(2100*ms + 10*time.Minute)
	f.misfits(t, limit.Misfit{Rule: twentyFive, Fits: 20, Until: until, Times: 1, Refusals: 1})
	for i := range 30 {
		now := at(time.Duration(i+1) * time.Minute)
		f.Settle(now, limittest.Admit(f, now, limit.One), &limit.Outcome{Result: limit.Accepted})
	}
	f.misfits(t, limit.Misfit{Rule: twentyFive, Fits: 20, Until: until, Times: 1, Refusals: 1, Sure: true})
}

// If not even one request a window fits, one goes in longer and longer gaps, and in shorter ones
// after 10 min.
func TestFittedGaps(t *testing.T) {
	f := fitted(limit.MustRolling(2, time.Second))
	f.burst(0, 2)
	now := 2 * time.Second
	gaps := []time.Duration{}
	for _, accepted := range []int{1, 1, 0, 1, 0, 1} { // of each that goes alone
		f.burst(at(now), accepted)
		if all := f.Misfits(); len(all) > 0 {
			gaps = append(gaps, all[0].Gap)
		}
		now = time.Duration(f.Ready(at(now+20*ms), limit.One))
	}
	if want := []time.Duration{0, 0, 2 * time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second}; !slices.Equal(gaps, want) {
		t.Errorf("gaps of %v, want %v", gaps, want)
	}
	until := time.Duration(f.Misfits()[0].Until)
	for end := until + 5*time.Minute; now < end; now = time.Duration(f.Ready(at(now+20*ms), limit.One)) {
		if m := f.Misfits(); now < until && m[0].Gap != 4*time.Second {
			t.Fatalf("%v: %+v", now, m)
		}
		f.burst(at(now), 2)
		if next := f.Ready(at(now+20*ms), limit.One); now < until-time.Minute && next != at(now+4*time.Second) {
			t.Fatalf("%v: the next goes at %v", now, next)
		}
	}
	f.misfits(t)
}

// Two pieces of evidence come soon after each other. The server counts in other windows, and half
// of the accepted cost is safe.
func TestFittedSearch(t *testing.T) {
	f := fitted(limit.MustRolling(100, time.Second))
	f.burst(0, 100)
	f.burst(at(2*time.Second), 40)
	f.burst(at(4*time.Second), 19)
	fits := func(want int64) {
		t.Helper()
		if got := f.Misfits()[0].Fits; got != want {
			t.Errorf("%d fit, want %d", got, want)
		}
	}
	fits(10)
	server := func(now time.Duration) {
		taken := 0
		for i := range 3000 {
			if i%50 == 0 {
				taken = 0
			}
			if f.Ready(at(now), limit.One) <= at(now) {
				o := limit.Outcome{Result: limit.Accepted}
				if taken++; taken > 20 {
					o.Result = limit.Limited
				}
				f.Settle(at(now), limittest.Admit(f, at(now), limit.One), &o)
			}
			now += 20 * ms
		}
	}
	for i := range 6 {
		server(time.Duration(i+1)*time.Minute + 5*time.Second)
	}
	fits(19) // less than a tenth below the true limit
}

// A refusal with another explanation is no evidence against a limit.
func TestFittedNoEvidence(t *testing.T) {
	rolling := func() limit.Limiter { return limit.MustRolling(25, time.Second) }
	refused := limit.Outcome{Result: limit.Limited}
	said := func(u limit.Unit, left int64) (o limit.Outcome) {
		o = refused
		o.Known, o.Remaining[u] = 1<<u, left
		return o
	}
	bold := func() limit.Limiter {
		l, err := limit.NewRolling(limit.RollingConfig{Limit: 25, Window: time.Second, Arrivals: limit.Arrivals{OneWayMax: 50 * ms}})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, c := range []struct {
		name   string
		l      limit.Limiter
		before limit.Outcome // of a request in the second before
		o      limit.Outcome
		says   bool
	}{
		{"a refusal", rolling(), limit.Outcome{Result: limit.Accepted}, refused, true},
		{"a failure", rolling(), limit.Outcome{Result: limit.Accepted}, limit.Outcome{Result: limit.Failed}, false},
		{"another limit's", rolling(), limit.Outcome{Result: limit.Accepted}, limit.Outcome{Result: limit.Limited, Elsewhere: true}, false},
		{"something is left", rolling(), limit.Outcome{Result: limit.Accepted}, said(limit.Requests, 3), false},
		{"nothing is left", rolling(), limit.Outcome{Result: limit.Accepted}, said(limit.Requests, 0), true},
		{"no tokens are left", rolling(), limit.Outcome{Result: limit.Accepted}, said(limit.Tokens, 0), false},
		{"nothing was accepted", rolling(), refused, refused, false},
		{"the server had asked to wait", rolling(), limit.Outcome{Result: limit.Failed, RetryAfter: time.Minute}, refused, false},
		{"an opt-in", bold(), limit.Outcome{Result: limit.Accepted}, refused, false},
		{"something in it is not known", limit.NewAll(rolling(), stranger{limit.MustRolling(99, time.Second)}), limit.Outcome{Result: limit.Accepted}, refused, false},
		{"all of it is known", limit.NewAll(rolling(), limit.MustRolling(99, time.Minute)), limit.Outcome{Result: limit.Accepted}, refused, true},
	} {
		f := fitted(c.l)
		f.Settle(0, limittest.Admit(f, 0, limit.One), &limit.Outcome{Result: limit.Accepted})
		f.Settle(at(2*time.Second), limittest.Admit(f, at(2*time.Second), limit.One), &c.before)
		f.Settle(at(2500*ms), limittest.Admit(f, at(2500*ms), limit.One), &c.o)
		if got := len(f.Misfits()) > 0; got != c.says {
			t.Errorf("%s: %+v", c.name, f.Misfits())
		}
	}
}

// stranger is a limiter of another package.
type stranger struct{ limit.Limiter }

// A cost larger than the fit goes all the same, alone.
func TestFittedLargeCost(t *testing.T) {
	f := fitted(limit.MustRolling(25, time.Second))
	f.burst(0, 25)
	f.burst(at(2*time.Second), 3)
	if ready := f.Ready(at(3*time.Second), limit.Cost{20}); ready >= limit.AfterSettle || ready <= at(3*time.Second) {
		t.Errorf("20 are ready at %v", ready)
	}
	if ready := f.Ready(at(4*time.Second), limit.Cost{26}); ready != limit.Never {
		t.Errorf("26 are ready at %v", ready)
	}
}

// fittedStory runs a program against a Fitted and against the limiter in it alone. A list of all
// events is the judge. The Fitted is never looser than its limiter, and as loose while there is no
// evidence. The fit is at most the requests answered otherwise in the window before the evidence,
// and those in flight.
func fittedStory(program []byte) error {
	const n, per = 8, time.Second
	f, bare := limit.NewFitted(limit.MustRolling(n, per)), limit.MustRolling(n, per)
	type deed struct {
		sent, ended mono.Time
		o           limit.Outcome
		f, bare     *limit.Sent
	}
	var all, open []*deed
	now, began, evidence, asked := mono.Time(0), mono.Min, false, mono.Min
	for i := 0; i+2 < len(program); i += 3 {
		op, a, b := program[i], program[i+1], program[i+2]
		switch ready := f.Ready(now, limit.One); {
		case op%4 == 0:
			now = now.Add(time.Duration(a) * []time.Duration{ms, 10 * ms, 100 * ms, 10 * time.Second}[b%4])
		case op%4 == 1 && ready < limit.AfterSettle:
			now = ready
			fallthrough
		case op%4 == 2 && ready <= now:
			if began == mono.Min {
				began = now
			}
			d := &deed{sent: now, ended: limit.Never, f: limittest.Admit(f, now, limit.One), bare: limittest.Admit(bare, now, limit.One)}
			all, open = append(all, d), append(open, d)
		case op%4 == 3 && len(open) > 0:
			k := int(a) % len(open)
			d := open[k]
			open = slices.Delete(open, k, k+1)
			d.ended, d.o.Result = now, limit.Result(b%5)
			d.o.Elsewhere = d.o.Result == limit.Limited && b&32 != 0
			if b&192 == 192 {
				d.o.RetryAfter = time.Duration(a) * 10 * ms
			}
			f.Settle(now, d.f, &d.o)
			bare.Settle(now, d.bare, &d.o)
			answered := slices.ContainsFunc(all, func(e *deed) bool {
				counts := e.ended
				if e.o.Result == limit.Unknown && e.ended != limit.Never {
					counts = e.ended.Add(5 * time.Second)
				}
				return e.ended <= now && counts > now.Add(-per-2*ms) && e.o.Result != limit.Limited && e.o.Result != limit.Unsent
			})
			evidence = evidence || d.o.Result == limit.Limited && !d.o.Elsewhere && d.sent >= asked && answered
			if d.o.RetryAfter > 0 {
				asked = max(asked, now.Add(d.o.RetryAfter))
			}
		}
		got, want := f.Ready(now, limit.One), bare.Ready(now, limit.One)
		if got < want || !evidence && got != want {
			return fmt.Errorf("step %d at %v: ready at %v, without it at %v, evidence %v", i/3, now, got, want, evidence)
		}
		if m := f.Misfits(); len(m) > 0 && (!evidence || m[0].Fits < 1 || m[0].Fits >= n || m[0].Times < 1) {
			return fmt.Errorf("step %d at %v: %+v, evidence %v", i/3, now, m, evidence)
		}
	}
	return nil
}

func TestFittedStory(t *testing.T) {
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 21))
		program := make([]byte, 3*(20+rng.IntN(150)))
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		if err := fittedStory(program); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzFittedStory(f *testing.F) {
	f.Add([]byte{1, 0, 0, 3, 0, 1, 1, 0, 0, 0, 15, 2, 3, 0, 2})
	f.Fuzz(func(t *testing.T, program []byte) {
		if err := fittedStory(program[:min(len(program), 3000)]); err != nil {
			t.Fatal(err)
		}
	})
}

// A server with too much load, in all or from this client, proves nothing about a rate.
func TestFittedOverload(t *testing.T) {
	f := fitted(limit.MustRolling(25, time.Second))
	for i := range 25 {
		now := at(2*time.Second + time.Duration(i)*ms)
		o := limit.Outcome{Result: limit.Accepted}
		if i == 20 {
			o = limit.Outcome{Result: limit.Limited, Overloaded: true, RetryAfter: ms}
		}
		f.Settle(now, limittest.Admit(f, now, limit.One), &o)
	}
	f.misfits(t)
	if sent := f.burst(at(4*time.Second), 25); sent != 25 {
		t.Errorf("%d go in the next second, want 25", sent)
	}
}

// A window too long to matter is not watched. The others are, each for itself.
func TestFittedBesideEternity(t *testing.T) {
	ever, err := limit.NewRolling(limit.RollingConfig{Limit: limit.MaxCost, Window: math.MaxInt64, Margin: -1})
	if err != nil {
		t.Fatal(err)
	}
	f := fitted(limit.NewAll(ever, limit.MustRolling(25, time.Second)))
	f.burst(0, 25)
	f.burst(at(2*time.Second), 20)
	f.misfits(t, limit.Misfit{Rule: twentyFive, Fits: 20, Until: at(10*time.Minute + 2*time.Second + 10*ms), Times: 1, Refusals: 1})
}

// A window changes while a fit holds. The fit was of another window, and ends with the next answer.
func TestFittedHeldAndSetWindow(t *testing.T) {
	own := limit.MustRolling(25, time.Second)
	f := fitted(own)
	f.burst(0, 25)
	f.burst(at(2*time.Second), 20)
	now := at(5 * time.Minute)
	if err := own.SetWindow(now, 100*ms); err != nil {
		t.Fatal(err)
	}
	f.misfits(t)
	f.Settle(now, limittest.Admit(f, now, limit.One), &limit.Outcome{Result: limit.Accepted})
	if sent := f.burst(now.Add(time.Second), 25); sent != 25 {
		t.Errorf("%d go, want 25", sent)
	}
	if sent := f.burst(now.Add(time.Second+200*ms), 25); sent != 25 {
		t.Errorf("%d go in the next window, want 25", sent)
	}
}

// A server refuses 1.5 % of the requests at random, whatever the rate. Fitted must not become
// slower and slower. The first refusal may be evidence. Refusals that go on at an eighth, with
// nearly all served, are none.
func TestRefusalsAtRandom(t *testing.T) {
	for seed := range need.Fewer(uint64(4), 20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		f := limit.NewFitted(limit.MustRolling(40, time.Second))
		now, served := mono.Time(0), map[int]int{}
		for now < at(2*time.Hour) {
			if ready := f.Ready(now, limit.One); ready > now {
				now = ready
			}
			l := limittest.Admit(f, now, limit.One)
			now = now.Add(time.Duration(5+rng.IntN(30)) * ms)
			o := limit.Outcome{Result: limit.Accepted}
			if rng.IntN(1000) < 15 {
				o.Result = limit.Limited
			} else {
				served[int(now/at(10*time.Minute))]++
			}
			f.Settle(now, l, &o)
		}
		all := 0
		for _, n := range served {
			all += n
		}
		if all < 20*7200 { // one after the other, of 20 ms on average: 40 a second are never reached
			t.Errorf("seed %d: %d served, %.1f a second: %v", seed, all, float64(all)/7200, served)
		}
	}
}

// A refusal in the first window may be due to an earlier process, so Misfits reports nothing. A
// later refusal is reported. A first window longer than a minute is no evidence at all.
func TestFittedFirstWindow(t *testing.T) {
	for _, c := range []struct {
		per, sent  time.Duration // the request that is refused
		held, told bool
	}{
		{time.Second, time.Second - 1, true, false},
		{time.Second, time.Second, true, true},
		{time.Minute, time.Minute - 1, true, false},
		{time.Minute, time.Minute, true, true},
		{time.Minute + 1, time.Minute, false, false},
		{time.Minute + 1, time.Minute + 1, true, true},
	} {
		f := fitted(limit.MustRolling(50, c.per))
		f.Settle(0, limittest.Admit(f, 0, limit.Cost{}), &limit.Outcome{Result: limit.Accepted}) // the first window begins
		for range 10 {
			f.Settle(at(c.sent-ms), limittest.Admit(f, at(c.sent-ms), limit.One), &limit.Outcome{Result: limit.Accepted})
		}
		f.Settle(at(c.sent), limittest.Admit(f, at(c.sent), limit.One), &limit.Outcome{Result: limit.Limited})
		if held := f.Ready(at(c.sent), limit.One) > at(c.sent); held != c.held || (len(f.Misfits()) > 0) != c.told {
			t.Errorf("window of %v, refused at %v: held %v, want %v; told %v", c.per, c.sent, held, c.held, f.Misfits())
		}
	}
}

// However often a single request is refused, the gap is an hour at most.
func TestFittedLongestGap(t *testing.T) {
	f := fitted(limit.MustRolling(2, time.Second))
	f.burst(0, 2)
	now, longest := 2*time.Second, time.Duration(0)
	for i := range 60 {
		f.burst(at(now), (i+1)%2)
		if all := f.Misfits(); len(all) > 0 {
			longest = max(longest, all[0].Gap)
		}
		now = time.Duration(f.Ready(at(now+20*ms), limit.One))
	}
	if longest != time.Hour {
		t.Errorf("the longest gap is %v", longest)
	}
}

// Half of a fit of tokens must be used in a window before more is tried. The tokens of requests in
// flight are not known.
func TestFittedTokens(t *testing.T) {
	for used, want := range map[int64]int64{159: 320, 160: 340, 320: 340} {
		f := limit.NewFitted(must(limit.NewRolling(limit.RollingConfig{Limit: 1000, Window: time.Second, Unit: limit.Tokens, Margin: -1})))
		send := func(now time.Duration, n int64, r limit.Result) {
			f.Settle(at(now), limittest.Admit(f, at(now), limit.Cost{limit.Requests: 1, limit.Tokens: n}), &limit.Outcome{Result: r})
		}
		send(0, 320, limit.Accepted)
		send(ms, 400, limit.Limited) // 320 fit; a sixteenth more is tried when a window has shown it
		send(1200*ms, used-1, limit.Accepted)
		send(1300*ms, 1, limit.Accepted)
		send(10*time.Second, 1, limit.Accepted) // a cost larger than the fit goes if nothing else is in flight
		room := int64(1)
		for room < 1000 && f.Ready(at(10*time.Second), limit.Cost{limit.Requests: 1, limit.Tokens: room}) <= at(10*time.Second) {
			room++
		}
		if room != want {
			t.Errorf("%d of 320 were used, and now %d fit, want %d", used, room, want)
		}
	}
}
