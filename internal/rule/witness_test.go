package rule_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// past is one arrival of a log: at in whole ticks, and the cost that counts after it.
type past struct {
	at, cost int64
	passed   bool
	counted  int64
}

// oracle answers from the whole log whether cost fits at t. It is the definition of the rule, word
// by word, on small integers.
type oracle func(log []past, t, cost int64) bool

// kind is a server, its witness and the definition.
type kind struct {
	rule    rule.Rule
	witness rule.Witness
	oracle  oracle
	limit   int64
	tick    int64
	refused bool
	back    bool // it follows a clock that is set back
	start   []past
}

// figures are the numbers of a configuration: small, so that edges meet.
type figures struct {
	limit, window, other, phase int64
	tick                        time.Duration
	a, b                        bool
}

func (f figures) span() time.Duration { return time.Duration(f.window) }

var kinds = map[string]func(f figures) kind{
	"rolling": func(f figures) kind {
		c := rule.RollingConfig{Limit: f.limit, Window: f.span(), Tick: f.tick, RefusedCount: f.a}
		return kind{rule: must(rule.NewRolling(c)), witness: must(c.Witness()), limit: f.limit, refused: f.a,
			oracle: func(log []past, t, cost int64) bool {
				for _, p := range log {
					if t-p.at <= f.window {
						cost += p.counted
					}
				}
				return cost <= f.limit
			}}
	},
	"calendar": func(f figures) kind {
		c := rule.CalendarConfig{Limit: f.limit, Window: f.span(), Phase: mono.Time(f.phase), Tick: f.tick, RefusedCount: f.a}
		id := func(t int64) int64 { return int64(math.Floor(float64(t-f.phase) / float64(f.window))) }
		return kind{rule: must(rule.NewCalendar(c)), witness: must(c.Witness()), limit: f.limit, refused: f.a, back: true,
			oracle: func(log []past, t, cost int64) bool {
				// The counters: of the last two intervals of the clock.
				type counter struct{ id, used int64 }
				var counters []counter
				for _, p := range append(log, past{at: t, counted: cost}) {
					c := counter{id: id(p.at)}
					if i := slices.IndexFunc(counters, func(o counter) bool { return o.id == c.id }); i >= 0 {
						c = counters[i]
						counters = slices.Delete(counters, i, i+1)
					}
					c.used += p.counted
					counters = append(counters[max(0, len(counters)-1):], c)
				}
				return counters[len(counters)-1].used <= f.limit
			}}
	},
	"anchored": func(f figures) kind {
		c := rule.AnchoredConfig{Limit: f.limit, Window: f.span(), Tick: f.tick, Closed: f.a}
		return kind{rule: must(rule.NewAnchored(c)), witness: must(c.Witness()), limit: f.limit,
			oracle: func(log []past, t, cost int64) bool {
				first, sum := int64(math.MinInt32), int64(0)
				for _, p := range append(log, past{at: t, counted: cost}) {
					if over := p.at - first; p.counted > 0 && (over > f.window || over == f.window && !f.a) {
						first, sum = p.at, 0
					}
					sum += p.counted
				}
				return sum <= f.limit
			}}
	},
	"bucket": func(f figures) kind {
		c := rule.BucketConfig{Limit: f.limit, Window: f.span(), Capacity: f.other, Tick: f.tick}
		k := kind{limit: f.other}
		if f.a {
			c.Missing, c.Start = min(f.phase&7, f.other), mono.Time(f.phase)
		}
		if c.Missing > 0 {
			k.start = []past{{at: f.phase, cost: c.Missing, passed: true, counted: c.Missing}}
		}
		k.rule, k.witness = must(rule.NewBucket(c)), must(c.Witness())
		k.oracle = func(log []past, t, cost int64) bool {
			sum := cost
			for i := len(log) - 1; i >= 0; i-- { // from i to now, of all i
				sum += log[i].counted
				if sum*f.window-f.limit*(t-log[i].at) > f.other*f.window {
					return false
				}
			}
			return cost <= f.other
		}
		return k
	},
	"gcra": func(f figures) kind {
		c := rule.GCRAConfig{Limit: f.limit, Window: f.span(), Burst: f.other, Tick: f.tick}
		return kind{rule: must(rule.NewGCRA(c)), witness: must(c.Witness()), limit: f.other,
			oracle: func(log []past, t, cost int64) bool {
				tat := int64(math.MinInt32) // in 1/limit ns
				for _, p := range log {
					for range p.counted {
						tat = max(tat, p.at*f.limit) + f.window
					}
				}
				for range cost { // cell by cell
					if tat > t*f.limit+(f.other-1)*f.window {
						return false
					}
					tat = max(tat, t*f.limit) + f.window
				}
				return true
			}}
	},
	"weighted": func(f figures) kind {
		c := rule.WeightedConfig{Limit: f.limit, Window: f.span(), Tick: f.tick, Rotating: f.b, RefusedCount: f.a, RoundsDown: f.other%2 == 1}
		if !f.b {
			c.Phase = mono.Time(f.phase)
		}
		return kind{rule: must(rule.NewWeighted(c)), witness: must(c.Witness()), limit: f.limit, refused: f.a,
			oracle: func(log []past, t, cost int64) bool {
				begins := make([]int64, len(log)+1) // of the interval of each
				last := int64(math.MinInt32)
				for i, p := range append(log, past{at: t, counted: cost}) {
					begin := int64(math.Floor(float64(p.at-f.phase)/float64(f.window)))*f.window + f.phase
					if f.b {
						switch gone := p.at - last; {
						case gone < f.window:
							begin = last
						case gone < 2*f.window:
							begin = last + f.window
						default:
							begin = p.at
						}
					}
					if begins[i] = begin; p.counted > 0 {
						last = begin
					}
				}
				begin, sum := begins[len(log)], cost*f.window
				for i, p := range log {
					switch begins[i] {
					case begin:
						sum += p.counted * f.window
					case begin - f.window:
						sum += p.counted * (begin + f.window - t)
					}
				}
				if c.RoundsDown {
					return sum/f.window <= f.limit
				}
				return sum <= f.limit*f.window
			}}
	},
}

// play sends the requests in data to a server of that kind. The server must answer as the oracle
// does, alone and inside All. Its witness must find nothing.
func play(t *testing.T, name string, data []byte) {
	if len(data) < 6 {
		return
	}
	f := figures{
		limit: 1 + int64(data[0]%7), window: 1 + int64(data[1]%60), other: 1 + int64(data[2]%9),
		phase: int64(int8(data[3])), a: data[4]&1 > 0, b: data[4]&2 > 0, tick: time.Duration(data[5]%8) - 1,
	}
	if data[5]%8 == 1 { // the default, in milliseconds
		f.window, f.phase, f.tick = f.window*int64(time.Millisecond)/4, f.phase*int64(time.Millisecond)/3, 0
	}
	k, twin := kinds[name](f), kinds[name](f)
	k.tick = int64(f.tick)
	unit := int64(1)
	switch {
	case f.tick < 0:
		k.tick = 1
	case f.tick == 0:
		k.tick, unit = 1e6, 1e6/4
	}
	cut := func(t int64) int64 { return int64(math.Floor(float64(t)/float64(k.tick))) * k.tick }
	log, last, most := k.start, int64(math.MinInt64), int64(0)
	for i := range log {
		log[i].at = cut(log[i].at)
		last = log[i].at
	}
	both := rule.All(rule.All(), twin.rule)
	now, passed, refused := f.phase-f.window, 0, 0
	data = data[6:]
	for i := 0; i+1 < len(data) && i < 300; i += 2 {
		step := int64(data[i] % 32)
		if data[i] >= 250 {
			step = -step
		} else if data[i] >= 224 {
			step = f.window / unit
		}
		now += step * unit
		cost := int64(data[i+1] % 4)
		at := cut(now)
		if !k.back {
			at = max(at, last)
		}
		if cost > 0 { // a free request does not even set the time
			last = at
		}
		want := cost == 0 || k.oracle(log, at, cost)
		what := fmt.Sprintf("%s %+v: number %d, %d ns cost %d", name, f, i/2, now, cost)
		if got := k.rule.Arrive(mono.Time(now), cost); got != want {
			t.Fatalf("%s: %v, want %v after\n%v", what, got, want, log)
		}
		if got := both.Arrive(mono.Time(now), cost); got != want {
			t.Fatalf("%s: %v inside All, want %v", what, got, want)
		}
		k.witness.Hear(mono.Time(now), cost, want)
		if cost == 0 {
			continue
		}
		p := past{at: at, cost: cost, passed: want}
		if want {
			passed++
			p.counted = cost
			most = max(most, cost)
		} else if refused++; k.refused {
			p.counted = min(cost, k.limit)
		}
		log = append(log, p)
		if found := k.witness.Finding(); !found.Kept() || found.Needless > 0 || found.Passed != passed || found.Refused != refused || found.Most < most || found.Limit != k.limit {
			t.Fatalf("%s, passed %v: the witness found %+v; %d passed, %d refused, the dearest for %d, after\n%v", what, want, found, passed, refused, most, log)
		}
		// An arrival that would not fit, but passed, is found at once: the witness knows the limit
		// to the unit.
		if i%8 == 0 {
			more := int64(1)
			for k.oracle(log, at, more) {
				more++
			}
			spare := replay(name, f, log[len(k.start):])
			spare.Hear(mono.Time(at), more, true)
			if found := spare.Finding(); found.Kept() {
				t.Fatalf("%s: another %d passes, and the witness found %+v", what, more, found)
			}
		}
	}
}

// replay returns a witness that has read the log.
func replay(name string, f figures, log []past) rule.Witness {
	w := kinds[name](f).witness
	for _, p := range log {
		w.Hear(mono.Time(p.at), p.cost, p.passed)
	}
	return w
}

func fuzzKind(f *testing.F, name string) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 3))
		data := make([]byte, 6+rng.IntN(200))
		dense := rng.IntN(30) // steps are mostly small, so that the limit is met
		for i := range data {
			data[i] = byte(rng.Uint32())
			if i >= 6 && i%2 == 0 && rng.IntN(32) < dense {
				data[i] %= 3
			}
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { play(t, name, data) })
}

func FuzzRolling(f *testing.F)  { fuzzKind(f, "rolling") }
func FuzzCalendar(f *testing.F) { fuzzKind(f, "calendar") }
func FuzzAnchored(f *testing.F) { fuzzKind(f, "anchored") }
func FuzzBucket(f *testing.F)   { fuzzKind(f, "bucket") }
func FuzzGCRA(f *testing.F)     { fuzzKind(f, "gcra") }
func FuzzWeighted(f *testing.F) { fuzzKind(f, "weighted") }

// crowd sends n requests to a server, crowded, and some at the edge of a window of a second. The
// witness reads them.
func crowd(s rule.Server, w rule.Witness, seed uint64, n int) rule.Finding {
	rng := rand.New(rand.NewPCG(seed, 1))
	now := mono.Time(rng.IntN(int(ms)))
	var recent [16]mono.Time
	for i := range n {
		switch rng.IntN(4) {
		case 0: // at once
		case 1: // about the end of an earlier window
			now = max(now, recent[rng.IntN(16)]+999*ms+mono.Time(rng.Int64N(3*int64(ms))))
		default:
			now += mono.Time(rng.Int64N(int64(150 * ms)))
		}
		recent[i%16] = now
		cost := int64(rng.IntN(3))
		w.Hear(now, cost, s.Arrive(now, cost))
	}
	return w.Finding()
}

func TestWitnessesFindNoFaultInServers(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		server  rule.Server
		witness rule.Witness
	}{
		"rolling":           {must(rule.NewRolling(rule.RollingConfig{Limit: 7, Window: s})), must(rule.RollingConfig{Limit: 7, Window: s}.Witness())},
		"rolling, refused":  {must(rule.NewRolling(rule.RollingConfig{Limit: 15, Window: s, RefusedCount: true})), must(rule.RollingConfig{Limit: 15, Window: s, RefusedCount: true}.Witness())},
		"calendar":          {must(rule.NewCalendar(rule.CalendarConfig{Limit: 7, Window: s, Phase: 77})), must(rule.CalendarConfig{Limit: 7, Window: s, Phase: 77}.Witness())},
		"anchored":          {must(rule.NewAnchored(rule.AnchoredConfig{Limit: 7, Window: s})), must(rule.AnchoredConfig{Limit: 7, Window: s}.Witness())},
		"bucket":            {must(rule.NewBucket(rule.BucketConfig{Limit: 7, Window: s})), must(rule.BucketConfig{Limit: 7, Window: s}.Witness())},
		"bucket by GCRA":    {must(rule.NewBucket(rule.BucketConfig{Limit: 7, Window: s, Tick: -1})), must(rule.GCRAConfig{Limit: 7, Window: s, Tick: -1}.Witness())},
		"gcra":              {must(rule.NewGCRA(rule.GCRAConfig{Limit: 7, Window: s})), must(rule.GCRAConfig{Limit: 7, Window: s}.Witness())},
		"weighted":          {must(rule.NewWeighted(rule.WeightedConfig{Limit: 7, Window: s})), must(rule.WeightedConfig{Limit: 7, Window: s}.Witness())},
		"weighted, refused": {must(rule.NewWeighted(rule.WeightedConfig{Limit: 15, Window: s, RefusedCount: true})), must(rule.WeightedConfig{Limit: 15, Window: s, RefusedCount: true}.Witness())},
		"rotating":          {must(rule.NewWeighted(rule.WeightedConfig{Limit: 7, Window: s, Rotating: true})), must(rule.WeightedConfig{Limit: 7, Window: s, Rotating: true}.Witness())},
	} {
		const n = 100_000
		f := crowd(c.server, c.witness, 1, n)
		if !f.Kept() || f.Needless > 0 || f.Utilisation() != 1 || f.Refused < n/20 || f.Passed < n/20 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestWitnessesCatchFaultyServers(t *testing.T) {
	const n, s = 7, time.Second
	for _, c := range []struct {
		name    string
		server  rule.Server
		witness rule.Witness
		lax     bool // it passes too much; otherwise it refuses without need
	}{
		{"rolling, one more", must(rule.NewRolling(rule.RollingConfig{Limit: n + 1, Window: s})), must(rule.RollingConfig{Limit: n, Window: s}.Witness()), true},
		{"rolling, one less", must(rule.NewRolling(rule.RollingConfig{Limit: n - 1, Window: s})), must(rule.RollingConfig{Limit: n, Window: s}.Witness()), false},
		{"rolling, half-open", must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s - 1})), must(rule.RollingConfig{Limit: n, Window: s}.Witness()), true},
		{"rolling, a longer window", must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s + time.Millisecond})), must(rule.RollingConfig{Limit: n, Window: s}.Witness()), false},
		{"rolling, finer ticks", must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s, Tick: -1})), must(rule.RollingConfig{Limit: n, Window: s}.Witness()), true},
		{"rolling, refused are free", must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s})), must(rule.RollingConfig{Limit: n, Window: s, RefusedCount: true}.Witness()), true},
		{"rolling, refused are not", must(rule.NewRolling(rule.RollingConfig{Limit: n, Window: s, RefusedCount: true})), must(rule.RollingConfig{Limit: n, Window: s}.Witness()), false},
		{"calendar, one more", must(rule.NewCalendar(rule.CalendarConfig{Limit: n + 1, Window: s})), must(rule.CalendarConfig{Limit: n, Window: s}.Witness()), true},
		{"calendar, another phase", must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: s})), must(rule.CalendarConfig{Limit: n, Window: s, Phase: 1 * ms}.Witness()), true},
		{"anchored, one more", must(rule.NewAnchored(rule.AnchoredConfig{Limit: n + 1, Window: s})), must(rule.AnchoredConfig{Limit: n, Window: s}.Witness()), true},
		{"anchored, closed", must(rule.NewAnchored(rule.AnchoredConfig{Limit: n, Window: s})), must(rule.AnchoredConfig{Limit: n, Window: s, Closed: true}.Witness()), true},
		{"anchored, not aligned", must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: s})), must(rule.AnchoredConfig{Limit: n, Window: s}.Witness()), true},
		{"bucket, one more", must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: s, Capacity: n + 1})), must(rule.BucketConfig{Limit: n, Window: s}.Witness()), true},
		{"bucket, one less", must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: s, Capacity: n - 1})), must(rule.BucketConfig{Limit: n, Window: s}.Witness()), false},
		{"gcra, one more", must(rule.NewGCRA(rule.GCRAConfig{Limit: n, Window: s, Burst: n + 1})), must(rule.GCRAConfig{Limit: n, Window: s}.Witness()), true},
		{"weighted, one more", must(rule.NewWeighted(rule.WeightedConfig{Limit: n + 1, Window: s})), must(rule.WeightedConfig{Limit: n, Window: s}.Witness()), true},
		{"weighted, not at all", must(rule.NewCalendar(rule.CalendarConfig{Limit: n, Window: s})), must(rule.WeightedConfig{Limit: n, Window: s}.Witness()), true},
		{"weighted, aligned", must(rule.NewWeighted(rule.WeightedConfig{Limit: n, Window: s})), must(rule.WeightedConfig{Limit: n, Window: s, Rotating: true}.Witness()), true},
	} {
		f := crowd(c.server, c.witness, 2, 100_000)
		if f.Kept() == c.lax || !c.lax && f.Needless == 0 {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// TestWitnessesCatchRounding: one request each nanosecond, of 7 per µs.
func TestWitnessesCatchRounding(t *testing.T) {
	const n, us = 7, time.Microsecond
	for name, c := range map[string]struct {
		server    rule.Server
		lax, hard bool
	}{
		"bucket":             {must(rule.NewBucket(rule.BucketConfig{Limit: n, Window: us, Tick: -1})), false, false},
		"gcra":               {must(rule.NewGCRA(rule.GCRAConfig{Limit: n, Window: us, Tick: -1})), false, false},
		"bucket, rounded up": {must(rule.NewBucket(rule.BucketConfig{Limit: 7_001, Capacity: n, Window: 1000 * us, Tick: -1})), true, false},
		"bucket, truncated":  {must(rule.NewBucket(rule.BucketConfig{Limit: 6_999, Capacity: n, Window: 1000 * us, Tick: -1})), false, true},
		"gcra, truncated":    {must(rule.NewGCRA(rule.GCRAConfig{Limit: 1, Window: us / n, Burst: n, Tick: -1})), true, false},
		"gcra, rounded up":   {must(rule.NewGCRA(rule.GCRAConfig{Limit: 1, Window: us/n + 1, Burst: n, Tick: -1})), false, true},
	} {
		bucket := must(rule.BucketConfig{Limit: n, Window: us, Tick: -1}.Witness())
		gcra := must(rule.GCRAConfig{Limit: n, Window: us, Tick: -1}.Witness())
		for now := range mono.Time(5000) {
			ok := c.server.Arrive(now, 1)
			bucket.Hear(now, 1, ok)
			gcra.Hear(now, 1, ok)
		}
		if f := bucket.Finding(); f != gcra.Finding() || f.Kept() == c.lax || f.Needless > 0 != c.hard {
			t.Errorf("%s: %+v, %+v", name, f, gcra.Finding())
		}
	}
}

func TestFindingTimeline(t *testing.T) {
	w := must(rule.BucketConfig{Limit: 3, Window: 10, Tick: -1}.Witness())
	w.Hear(0, 2, true)
	w.Hear(3, 1, true)
	w.Hear(4, 2, true) // 5 − 12/10 = 3.8
	w.Hear(4, 1, false)
	w.Hear(20, 3, false)
	w.Hear(20, 0, true)
	if got, want := w.Finding(), (rule.Finding{Most: 4, Limit: 3, At: 4, Passed: 3, Refused: 2, Needless: 1}); got != want || got.Kept() || got.Utilisation() != 4.0/3 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// FuzzDensest: for any list, the same closed window as a count over all pairs.
func FuzzDensest(f *testing.F) {
	f.Add([]byte{9, 1, 0, 1, 9, 1, 1, 1, 0, 1, 9, 1})
	for seed := range uint64(200) {
		data := make([]byte, 2+seed*2)
		rng := rand.New(rand.NewPCG(seed, 5))
		for i := range data {
			data[i] = byte(rng.IntN(1 + int(seed)))
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 || len(data) > 600 {
			return
		}
		window, tick := 1+int64(data[0]), 1+int64(data[1]%5)
		d := must(rule.NewDensest(time.Duration(window), time.Duration(tick)))
		type arrival struct{ at, cost int64 }
		var log []arrival
		now := int64(-300)
		for i := 2; i+1 < len(data); i += 2 {
			now += int64(data[i])
			a := arrival{now, int64(data[i+1])}
			d.Hear(mono.Time(a.at), a.cost)
			log = append(log, a)
		}
		cut := func(t int64) int64 { return int64(math.Floor(float64(t)/float64(tick))) * tick }
		most := int64(0)
		for _, first := range log {
			sum := int64(0)
			for _, a := range log {
				if age := cut(a.at) - cut(first.at); age >= 0 && age <= window {
					sum += a.cost
				}
			}
			most = max(most, sum)
		}
		got, from, to := d.Most()
		sum := int64(0)
		for _, a := range log {
			if c := mono.Time(cut(a.at)); c >= from && c <= to {
				sum += a.cost
			}
		}
		if got != most || to.Sub(from) > time.Duration(window) || most > 0 && sum < most || d.Disorder() != 0 {
			t.Fatalf("window %d, tick %d: %d from %d to %d, where there are %d; over all pairs %d; disorder %d\n%v", window, tick, got, from, to, sum, most, d.Disorder(), log)
		}
	})
}

func TestDensestTellsOfDisorder(t *testing.T) {
	d := must(rule.NewDensest(10, -1))
	for _, at := range []mono.Time{5, 30, 29, 30} {
		d.Hear(at, 2)
	}
	if most, from, to := d.Most(); most != 6 || from != 30 || to != 30 || d.Disorder() != 1 {
		t.Errorf("%d from %d to %d, disorder %d", most, from, to, d.Disorder())
	}
}

func witnesses() map[string]rule.Witness {
	const n, s = 100, time.Second
	return map[string]rule.Witness{
		"rolling":  must(rule.RollingConfig{Limit: n, Window: s}.Witness()),
		"calendar": must(rule.CalendarConfig{Limit: n, Window: s}.Witness()),
		"anchored": must(rule.AnchoredConfig{Limit: n, Window: s}.Witness()),
		"bucket":   must(rule.BucketConfig{Limit: n, Window: s}.Witness()),
		"weighted": must(rule.WeightedConfig{Limit: n, Window: s}.Witness()),
		"rotating": must(rule.WeightedConfig{Limit: n, Window: s, Rotating: true, RefusedCount: true}.Witness()),
	}
}

func TestWitnessesDoNotAllocate(t *testing.T) {
	for name, w := range witnesses() {
		rng := rand.New(rand.NewPCG(1, 2))
		now := mono.Time(0)
		hear := func() {
			now += mono.Time(rng.IntN(int(15 * ms)))
			w.Hear(now, int64(rng.IntN(3)), rng.IntN(2) > 0)
		}
		for range 20_000 {
			hear()
		}
		if n := testing.AllocsPerRun(10_000, hear); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// BenchmarkWitnesses: an arrival of cost 1 that passed.
func BenchmarkWitnesses(b *testing.B) {
	for name, w := range witnesses() {
		b.Run(name, func(b *testing.B) {
			now := mono.Time(0)
			for b.Loop() {
				now += 11 * ms
				w.Hear(now, 1, true)
			}
		})
	}
}
