package rule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// server decides about arrivals: an Exchange, or one with a fault.
type server func(now mono.Time, key int, nonce uint64) rule.Verdict

// run sends 20,000 requests of two keys, crowded, and some at the edge of a window. Nonces rise
// nine times in ten. It returns the judge's opinion under config.
func run(t testing.TB, config rule.ExchangeConfig, seed uint64, s server) rule.Report {
	t.Helper()
	j, err := rule.NewJudge(config, 0)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	now := mono.Time(rng.IntN(int(ms)))
	nonces := [3]uint64{1000, 1000, 1000}
	var past []mono.Time
	for range 20_000 {
		switch rng.IntN(4) {
		case 0: // at once
		case 1: // about the end of an earlier window
			edge := now
			if len(past) > 5 {
				edge = past[len(past)-1-rng.IntN(5)] + 999*ms + mono.Time(rng.Int64N(3*int64(ms)))
			}
			now = max(now, edge)
		default:
			now += mono.Time(rng.Int64N(int64(time.Second) / 3))
		}
		past = append(past, now)
		key := rng.IntN(3) // the third does not exist
		nonce := nonces[key] + 1
		if rng.IntN(10) == 0 {
			nonce = nonces[key] - uint64(rng.IntN(2))
		}
		nonces[key] = max(nonces[key], nonce)
		j.Hear(rule.Arrival{At: now, Key: key, Nonce: nonce, Verdict: s(now, key, nonce)})
	}
	return j.Report()
}

var strict = rule.ExchangeConfig{Keys: 2, Limit: 4, BanAfter: -1}

func TestJudgeFindsNoFaultInTheRule(t *testing.T) {
	for seed := range uint64(20) {
		for _, c := range []rule.ExchangeConfig{strict, {Keys: 2, Limit: 4}, {Keys: 2, Limit: 1, Window: 7 * time.Millisecond, BanAfter: 300, AnyNonce: true}} {
			x := newExchange(t, c)
			r := run(t, c, seed, x.Arrive)
			if r.Faults != 0 {
				t.Fatalf("seed %d, %+v: %d faults:\n%s", seed, c, r.Faults, strings.Join(r.FirstFaults, "\n"))
			}
			if r.Total != x.Total() || r.Keys[1].Counts != x.Counts(1) || r.Keys[0].Banned != x.Banned(0) {
				t.Fatalf("seed %d: %+v; the exchange counted %v", seed, r, x.Total())
			}
			if r.Keys[0].Worst.Requests != c.Limit {
				t.Fatalf("seed %d: the worst window has %d of %d", seed, r.Keys[0].Worst.Requests, c.Limit)
			}
		}
	}
}

func TestJudgeCatchesFaultyRules(t *testing.T) {
	with := func(change func(*rule.ExchangeConfig)) server {
		c := strict
		change(&c)
		return newExchange(t, c).Arrive
	}
	after := func(change func(now mono.Time, key int, nonce uint64, v rule.Verdict) rule.Verdict) server {
		x := newExchange(t, strict)
		return func(now mono.Time, key int, nonce uint64) rule.Verdict {
			return change(now, key, nonce, x.Arrive(now, key, nonce))
		}
	}
	n := 0
	free := newExchange(t, strict) // bad nonces never reach it, so they use no slot
	high := map[int]uint64{}
	halfway := newExchange(t, strict)
	for name, faulty := range map[string]struct {
		server server
		says   string
	}{
		"one more":           {with(func(c *rule.ExchangeConfig) { c.Limit++ }), "in its window"},
		"one less":           {with(func(c *rule.ExchangeConfig) { c.Limit-- }), "but there were"},
		"a half-open window": {with(func(c *rule.ExchangeConfig) { c.Window = 999 * time.Millisecond }), "in its window"},
		"a longer window":    {with(func(c *rule.ExchangeConfig) { c.Window = 1001 * time.Millisecond }), "but there were"},
		"bans too early":     {with(func(c *rule.ExchangeConfig) { c.BanAfter = 9 }), "is banned after"},
		"no nonces":          {with(func(c *rule.ExchangeConfig) { c.AnyNonce = true }), "the last nonce was"},
		"a third key":        {with(func(c *rule.ExchangeConfig) { c.Keys = 3 }), "no such key"},
		"a key gone":         {with(func(c *rule.ExchangeConfig) { c.Keys = 1 }), "the key exists"},
		"rounds to the nearest millisecond": {func(now mono.Time, key int, nonce uint64) rule.Verdict {
			return halfway.Arrive(now+ms/2, key, nonce)
		}, ""},
		"lets one in a hundred through": {after(func(_ mono.Time, _ int, _ uint64, v rule.Verdict) rule.Verdict {
			if n++; v == rule.Limited && n%100 == 0 {
				return rule.Accepted
			}
			return v
		}), "in its window"},
		"bad nonces use no slot": {func(now mono.Time, key int, nonce uint64) rule.Verdict {
			if last, seen := high[key]; seen && nonce <= last {
				return rule.BadNonce
			}
			v := free.Arrive(now, key, nonce)
			if v == rule.Accepted {
				high[key] = nonce
			}
			return v
		}, "in its window"},
	} {
		r := run(t, strict, 1, faulty.server)
		if r.Faults == 0 || len(r.FirstFaults) == 0 || !strings.Contains(strings.Join(r.FirstFaults, "\n"), faulty.says) {
			t.Errorf("%s: %d faults: %s", name, r.Faults, strings.Join(r.FirstFaults, "\n"))
		}
	}
}

func TestJudgeTimeline(t *testing.T) {
	j, err := rule.NewJudge(rule.ExchangeConfig{Keys: 1, Limit: 2, BanAfter: 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []rule.Arrival{
		{At: 0, Nonce: 5, Verdict: rule.Accepted},
		{At: 1, Digits: "173263680012313996437203660801123", Verdict: rule.Accepted},
		{At: 1000 * ms, Nonce: 6, Verdict: rule.Limited},
		{At: 1001 * ms, Nonce: 7, Verdict: rule.Banned},
	} {
		j.Hear(a)
	}
	r := j.Report()
	want := rule.KeyReport{
		Counts:    rule.Counts{Accepted: 2, Limited: 1, Banned: 1},
		Banned:    true,
		Worst:     rule.Fullest{Requests: 2, End: 1},
		WorstSent: rule.Fullest{Requests: 3, End: 1000 * ms},
	}
	if r.Faults != 0 || r.Keys[0] != want || r.First != 0 || r.Last != 1001*ms {
		t.Errorf("%+v, want %+v", r, want)
	}
	if kept := j.Arrivals(); len(kept) != 2 || kept[0].At != 1000*ms || kept[1].At != 1001*ms {
		t.Errorf("kept %v", kept)
	}
	j.Hear(rule.Arrival{At: 500 * ms, Verdict: rule.Banned})
	j.Hear(rule.Arrival{At: 2000 * ms, Verdict: 99})
	j.Hear(rule.Arrival{At: 3000 * ms, Verdict: rule.BadNonce, Nonce: 8})
	r = j.Report()
	text := strings.Join(r.FirstFaults, "\n")
	for _, says := range []string{"500ms key 0 nonce 0: banned, but the arrival before it was at 1.001s", "Verdict(99), but there is no such verdict",
		"3s key 0 nonce 8: bad nonce, but the key had 1 limited requests and is banned after 1"} {
		if !strings.Contains(text, says) {
			t.Errorf("no %q in:\n%s", says, text)
		}
	}
}

func TestJudgeKeeps(t *testing.T) {
	for keep, want := range map[int]int{0: 0, 1: 1, 10: 10, 1000: 250, -1: 250} {
		j, err := rule.NewJudge(rule.ExchangeConfig{Keys: 1, Limit: 300}, keep)
		if err != nil {
			t.Fatal(err)
		}
		var all []rule.Arrival
		for i := range 250 {
			a := rule.Arrival{At: mono.Time(i), Nonce: uint64(i)}
			all = append(all, a)
			j.Hear(a)
		}
		if got := j.Arrivals(); !slices.Equal(got, all[250-want:]) {
			t.Errorf("keep %d: %d arrivals, want the last %d", keep, len(got), want)
		}
	}
}

// FuzzJudge: on any arrivals the judge agrees with the exchange, and with a count over all pairs of
// the log.
func FuzzJudge(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0, 1, 255, 3, 9, 10, 20, 30})
	f.Add([]byte{3, 200, 1, 3, 200, 2, 3, 200, 3, 3, 200, 4, 1, 0, 0, 2, 0, 0})
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 900 {
			steps = steps[:900]
		}
		config := rule.ExchangeConfig{Keys: 2, Limit: 3, Window: 10 * time.Millisecond, BanAfter: 6}
		x := newExchange(t, config)
		j, err := rule.NewJudge(config, -1)
		if err != nil {
			t.Fatal(err)
		}
		now := -5 * ms
		for i := 0; i+2 < len(steps); i += 3 {
			now += mono.Time(steps[i]) * mono.Time(steps[i]) * 100_000 / 3
			a := rule.Arrival{At: now, Key: int(steps[i+1] % 3)}
			if steps[i+1]&4 == 0 {
				a.Nonce = uint64(steps[i+2])
				a.Verdict = x.Arrive(now, a.Key, a.Nonce)
			} else {
				a.Digits = fmt.Sprintf("%d%018d", steps[i+2]%3, steps[i+2])
				a.Verdict = x.ArriveDigits(now, a.Key, a.Digits)
			}
			j.Hear(a)
		}
		r := j.Report()
		if r.Faults > 0 {
			t.Fatal(strings.Join(r.FirstFaults, "\n"))
		}
		log := j.Arrivals()
		for key := range 2 {
			worst := 0
			for _, last := range log {
				n := 0
				for _, a := range log {
					d := floor(last.At) - floor(a.At)
					if a.Key == key && a.Verdict.Counted() && d >= 0 && d <= 10 {
						n++
					}
				}
				worst = max(worst, n)
			}
			if got := r.Keys[key].Worst.Requests; got != worst || got > 3 {
				t.Fatalf("key %d: worst window %d, counted over all pairs %d", key, got, worst)
			}
		}
	})
}

func floor(t mono.Time) int64 {
	n := int64(t / ms)
	if t%ms < 0 {
		n--
	}
	return n
}
