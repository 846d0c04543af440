package fairshare

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func perMinute(n int64) limit.Rule {
	return limit.Rule{Name: "burst", N: n, Per: time.Minute}
}

var daily1000 = limit.Rule{Name: "daily", N: 1000, Per: 24 * time.Hour}

// goes sends as much as may go until end. Each answer comes after 10 ms and states the limits.
func goes(a *Auto, now, end mono.Time, states ...limit.Rule) (n int, last mono.Time) {
	for ; ; n++ {
		ready := max(now, a.Ready(now, limit.One))
		if ready >= end {
			return n, ready
		}
		s := limittest.Admit(a, ready, limit.One)
		now = ready.Add(10 * time.Millisecond)
		a.State(now, states)
		a.Settle(now, s, &limit.Outcome{Result: limit.Accepted})
	}
}

// An Auto that is alone uses all stated limits in full: 600 in the first minute, and 1000 in a day.
func TestAloneUsesStatedLimits(t *testing.T) {
	a := autoOf(t, AutoConfig{Alone: true})
	if n, next := goes(a, 0, second(59), perMinute(600), daily1000); n != 600 || next < second(60) {
		t.Errorf("%d went in the first minute, the next at %v", n, next)
	}
	if n, next := goes(a, second(59), second(3000), perMinute(600), daily1000); n != 400 || next < second(86400) {
		t.Errorf("%d went in the hour, the next at %v", n, next)
	}
}

// A bucket's burst goes at once, and then its refill.
func TestAloneAtABucket(t *testing.T) {
	a := autoOf(t, AutoConfig{Alone: true})
	q := limit.Rule{Name: "calls", N: 120, Per: time.Minute, Counts: limit.CountsBucket, Burst: 40}
	if n, _ := goes(a, 0, second(20), q); n < 76 || n > 80 {
		t.Errorf("%d went in 20 s of 40 at once and two a second", n)
	}
	o := limit.Outcome{Known: 1 << limit.Requests}
	if o.Reset[limit.Requests] = time.Minute; a.Refills(&o) != 1<<limit.Requests {
		t.Error("the reset of a bucket is taken for a wait")
	}
}

// What the server states replaces what its provider documents and what remainders suggest. A
// smaller limit holds at once, with what was used before.
func TestAloneFollowsTheServer(t *testing.T) {
	documented := perMinute(5)
	documented.Documented = true
	a := autoOf(t, AutoConfig{Alone: true})
	if n, _ := goes(a, 0, second(1), documented); n != 5 {
		t.Errorf("%d went of 5 documented ones", n)
	}
	if n, _ := goes(a, second(60.2), second(61), perMinute(20), documented); n < 5 || n > 20 {
		t.Errorf("%d went", n)
	}
	if n, _ := goes(a, second(61), second(110), perMinute(20)); n > 15 {
		t.Errorf("%d more went of 20", n)
	}
	a.State(second(110), []limit.Rule{perMinute(10)})
	if at := a.Ready(second(110), limit.One); at < second(120) {
		t.Errorf("20 went in this minute, and the next at %v of 10", at)
	}

	guess := autoOf(t, AutoConfig{Alone: true})
	o := limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests}
	o.Remaining[limit.Requests], o.Reset[limit.Requests] = 599, time.Minute
	guess.Settle(second(0), limittest.Admit(guess, 0, limit.One), &o)
	if n, _ := goes(guess, 0, second(59)); n != 599 {
		t.Errorf("%d more went of 600", n)
	}
	guess.State(second(59), []limit.Rule{perMinute(100)})
	if n, _ := goes(guess, second(61), second(170)); n > 200 {
		t.Errorf("%d went of 100 a minute, after a guess of 600", n)
	}
}

// A limit that is used up in less than a second is news: no answer would be for a long time.
func TestAloneUsedUpIsNews(t *testing.T) {
	a := autoOf(t, AutoConfig{Alone: true})
	hourly := limit.Rule{Name: "core", N: 50, Per: time.Hour}
	first := limittest.Admit(a, 0, limit.One)
	a.State(0, []limit.Rule{hourly})
	a.Settle(0, first, &limit.Outcome{Result: limit.Accepted})
	seen := a.News()
	for i := range 49 {
		a.Settle(second(0.5), limittest.Admit(a, second(0.5), limit.One), &limit.Outcome{Result: limit.Accepted})
		if news := a.News() - seen; (news > 0) != (i == 48) {
			t.Fatalf("%d news after %d more of 50 an hour", news, i+1)
		}
	}
}

// A stated limit that is wrong, or that strangers use after all, costs one refusal more than without
// Alone, and one more each time that the law for strangers ends. A restart does not forget that.
func TestAloneNoticesAWrongLimit(t *testing.T) {
	refusals := func(alone bool) (refused int) {
		a := autoOf(t, AutoConfig{Alone: alone})
		now, served := mono.Time(0), []mono.Time{}
		for now < second(1800) {
			now = max(now, a.Ready(now, limit.One))
			s := limittest.Admit(a, now, limit.One)
			o := limit.Outcome{Result: limit.Accepted}
			for len(served) > 0 && now.Sub(served[0]) > time.Minute {
				served = served[1:]
			}
			if len(served) < 100 {
				served = append(served, now)
			} else {
				o.Result = limit.Limited
				refused++
			}
			now = now.Add(10 * time.Millisecond)
			a.State(now, []limit.Rule{perMinute(600)})
			a.Settle(now, s, &o)
			if o.Result == limit.Limited { // in another process
				b := autoOf(t, AutoConfig{Alone: alone})
				if err := b.Recall(now, now, a.AppendMemory(nil, now), nil); err != nil {
					t.Fatal(err)
				}
				a = b
			}
		}
		return refused
	}
	if alone, with := refusals(true), refusals(false); alone > with+2 {
		t.Errorf("%d were refused in half an hour, of 100 a minute and 600 stated, and %d by the law for strangers", alone, with)
	}
}

// The next process knows what was used, what was in flight, and what was sent since.
func TestAloneAfterARestart(t *testing.T) {
	a := autoOf(t, AutoConfig{Alone: true})
	goes(a, 0, second(1), perMinute(600), daily1000) // about 100
	n := 0
	for ; n < 50; n++ {
		limittest.Admit(a, second(1), limit.One)
	}
	sent := []limit.Past{{Sent: second(2), At: second(2), Cost: limit.Cost{limit.Requests: 50}, Result: limit.Accepted}}
	written := a.AppendMemory(nil, second(1))
	b := autoOf(t, AutoConfig{Alone: true})
	if err := b.Recall(second(3), second(1), written, sent); err != nil {
		t.Fatal(err)
	}
	first := limittest.Admit(b, second(3), limit.One)
	if at := b.Ready(second(3), limit.One); at < limit.AfterSettle {
		t.Errorf("the second request after a restart goes at %v, beside the first", at)
	}
	b.Settle(second(3), first, &limit.Outcome{Result: limit.Accepted})
	more, next := goes(b, second(3), second(50), perMinute(600), daily1000)
	if used := int(second(1) / second(0.01)); more > 600-used-100+1 || more < 300 || next < second(60) {
		t.Errorf("%d went after the restart, the next at %v", more, next)
	}
	if err := autoOf(t, AutoConfig{}).Recall(second(3), second(1), written, sent); err == nil {
		t.Error("one with strangers takes up the memory of one that is alone")
	}
}

// A request of before that may still arrive counts no later than now: a limit's memory has nothing that is to come.
func TestAloneAfterARestartInAHurry(t *testing.T) {
	a := autoOf(t, AutoConfig{Alone: true})
	goes(a, 0, second(1), perMinute(600))
	sent := []limit.Past{{Sent: second(1), At: second(9), Cost: limit.One, Result: limit.Unknown}}
	b := autoOf(t, AutoConfig{Alone: true})
	if err := b.Recall(second(3), second(1), a.AppendMemory(nil, second(1)), sent); err != nil {
		t.Fatal(err)
	}
	for _, p := range b.alone.rules[0].past() {
		if p.At > second(3) || p.Sent > second(3) {
			t.Errorf("at %v it counts %+v", second(3), p)
		}
	}
}

// Whatever a server states and however it answers, over restarts too, no window has more than a
// limit that was stated all the time.
func FuzzAlone(f *testing.F) {
	f.Add(uint64(1), uint8(3))
	f.Add(uint64(2), uint8(40))
	f.Fuzz(func(t *testing.T, seed uint64, kinds uint8) {
		r := rand.New(rand.NewPCG(seed, uint64(kinds)))
		a := autoOf(t, AutoConfig{Alone: true})
		fixed := limit.Rule{Name: "fixed", N: int64(1 + r.IntN(30)), Per: time.Duration(1+r.IntN(90)) * time.Second}
		type flight struct {
			s  *limit.Sent
			at mono.Time // of its answer
		}
		var open []flight
		var sends []mono.Time
		now := mono.Time(0)
		for range 400 {
			next := a.Ready(now, limit.One)
			if len(open) > 0 && (next > open[0].at || r.IntN(3) == 0) {
				o := limit.Outcome{Result: []limit.Result{limit.Accepted, limit.Accepted, limit.Accepted, limit.Limited, limit.Failed}[r.IntN(5)]}
				now = max(now, open[0].at)
				if o.Known = uint8(r.IntN(2)); o.Known > 0 {
					o.Remaining[limit.Requests], o.Reset[limit.Requests] = r.Int64N(40), time.Duration(r.IntN(90))*time.Second
				}
				all := []limit.Rule{fixed}
				if kinds>>r.IntN(8)&1 == 1 {
					all = append(all, limit.Rule{Name: string(rune('a' + r.IntN(9))), Unit: limit.Unit(r.IntN(4)), N: r.Int64N(50) - 2,
						Per: time.Duration(r.Int64N(int64(time.Hour))) - time.Second, Counts: limit.Counting(r.IntN(4)), Burst: r.Int64N(60) - 5, Documented: r.IntN(3) == 0})
				}
				a.State(now, all)
				a.Settle(now, open[0].s, &o)
				open = open[1:]
			} else if next < now.Add(1e6*time.Hour) {
				now = max(now, next)
				open = append(open, flight{limittest.Admit(a, now, limit.One), now.Add(time.Duration(r.IntN(2000)) * time.Millisecond)})
				sends = append(sends, now)
			}
			if len(open) == 0 && r.IntN(50) == 0 {
				b := autoOf(t, AutoConfig{Alone: true})
				if err := b.Recall(now, now, a.AppendMemory(nil, now), nil); err != nil {
					t.Fatal(err)
				}
				a = b
			}
		}
		for i, at := range sends {
			if j := i + int(fixed.N); i > 0 && j < len(sends) && sends[j].Sub(at) < fixed.Per {
				t.Fatalf("%d requests in %v, of %d in %v", fixed.N+1, sends[j].Sub(at), fixed.N, fixed.Per)
			}
		}
	})
}
