package limit_test

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// One version writes the memory of a limiter, and another reads it: after an update, or between
// machines that share a limit. So each kind must keep its behaviour: verdicts, forecasts, usage,
// and the very bytes of its state. After an intended change, write the file anew, and read at which
// step the behaviour first differs.
func TestKindsDoWhatTheyDid(t *testing.T) {
	all := maps.Clone(specs)
	all["Fitted"] = fittedSpec
	for name, l := range lessons {
		all["Fitted/"+name] = lessonSpec(l)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "\n%s\n", name)
		tr := transcript{Spec: all[name], rng: rand.New(rand.NewPCG(11, 17)), now: at(time.Hour), slow: 1}
		tr.limiter = tr.New()
		if len(tr.Costs) == 0 {
			tr.Costs = []limit.Cost{limit.One}
		}
		for range 16 {
			for range 12 {
				tr.step()
			}
			b.WriteString(tr.line())
		}
	}
	golden.CompareFloats(t, "kinds.golden", b.String())
}

// The same for longer runs, with one line for each. Clients here behave badly. Costs are nothing,
// below zero or above any limit. Requests go without a call of Ready. Instants are before zero or
// nanoseconds apart. A third of the runs begins anew from its
// state after each line.
func TestKindsDoWhatTheyDidAtTheirEdges(t *testing.T) {
	all := maps.Clone(specs)
	all["Fitted"] = fittedSpec
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "\n%s\n", name)
		for seed := range uint64(9) {
			tr := transcript{Spec: all[name], rng: rand.New(rand.NewPCG(seed, 23)), now: at([]time.Duration{0, -time.Hour, 1e6 * time.Hour}[seed%3]), rash: 3 + int(seed)}
			tr.Costs = append(slices.Clone(tr.Costs), limit.One, limit.Cost{}, limit.Cost{-1, -1, -1}, limit.Cost{limit.MaxCost + 1, 3, 3, 3, 3}, limit.Cost{2, limit.MaxCost, 0, limit.MaxCost})
			if tr.slow = 1; seed >= 6 {
				tr.slow = 1e-7
			}
			tr.limiter = tr.New()
			var said strings.Builder
			for range 15 {
				for range 14 {
					tr.step()
				}
				said.WriteString(tr.line())
				if seed%3 == 2 {
					tr.resume(t)
				}
			}
			fmt.Fprintf(&b, "  %d: %d sent, %d open after %v; all it said: %s\n", seed, tr.sent, len(tr.open), tr.now.Sub(0), golden.Sum(said.String()))
		}
	}
	golden.CompareFloats(t, "edges.golden", b.String())
}

// resume continues with a limiter made of the written state and the open leases, if the limiter is
// a Keeper.
func (tr *transcript) resume(t *testing.T) {
	if limit.Keeps(tr.limiter) != nil {
		return
	}
	next := tr.New()
	for i := range tr.open {
		tr.open[i].lease = limittest.Admit(next, tr.open[i].at, tr.open[i].cost)
	}
	if err := limit.Restore(next, limit.AppendState(nil, tr.limiter)); err != nil {
		t.Fatal(err)
	}
	tr.limiter = next
}

// transcript drives a limiter with random steps of a client.
type transcript struct {
	limittest.Spec
	rng     *rand.Rand
	limiter limit.Limiter
	now     mono.Time
	open    []underWay
	sent    int
	slow    float64 // how long its steps are
	rash    int     // of twenty, how often it sends without a call of Ready
}

type underWay struct {
	lease *limit.Sent
	at    mono.Time
	cost  limit.Cost
}

func (tr *transcript) span(parts float64) time.Duration {
	return time.Duration(float64(max(tr.Scale, time.Second)) * tr.slow * parts * tr.rng.Float64())
}

func (tr *transcript) step() {
	cost := tr.Costs[tr.rng.IntN(len(tr.Costs))]
	switch k := tr.rng.IntN(20); {
	case k == 0 && tr.Change != nil:
		tr.Change(tr.limiter, tr.now, byte(tr.rng.IntN(256)))
	case k <= 1 && tr.News != nil:
		tr.News(tr.limiter, tr.now, byte(tr.rng.IntN(256)))
	case k <= 3:
		tr.now = tr.now.Add(tr.span(0.7))
	case k <= 13 && len(tr.open) < 9:
		if ready := tr.limiter.Ready(tr.now, cost); ready < tr.now.Add(10*max(tr.Scale, time.Second)) {
			tr.now = ready
			tr.send(cost)
		} else if tr.rash > 0 && tr.rng.IntN(20) < tr.rash {
			tr.send(cost)
		}
	default:
		if n := len(tr.open); n > 0 {
			tr.answer(tr.rng.IntN(n))
		}
	}
}

func (tr *transcript) send(cost limit.Cost) {
	tr.open = append(tr.open, underWay{limittest.Admit(tr.limiter, tr.now, cost), tr.now, cost})
	tr.sent++
}

// answer settles an open request, in any of the ways in which a request can end.
func (tr *transcript) answer(i int) {
	u := tr.open[i]
	tr.open = slices.Delete(tr.open, i, i+1)
	if tr.rng.IntN(2) == 0 {
		tr.now = tr.now.Add(tr.span(0.2))
	}
	o := limit.Outcome{Result: limit.Accepted, RTT: min(tr.now.Sub(u.at), tr.span(0.2))}
	switch tr.rng.IntN(12) {
	case 0:
		o.Result = limit.Limited
	case 1:
		o.Result, o.RetryAfter = limit.Limited, tr.span(2)
	case 2:
		o.Result, o.Elsewhere = limit.Limited, tr.rng.IntN(2) == 0
	case 3:
		o.Result = limit.Unsent
	case 4:
		o.Result, o.RTT = limit.Unknown, 0
	case 5:
		o.Result, o.Overloaded = limit.Failed, tr.rng.IntN(2) == 0
	case 6:
		o.Metered, o.Actual = true, u.cost
		for k := range o.Actual {
			o.Actual[k] /= 2
		}
	}
	tr.limiter.Settle(tr.now, u.lease, &o)
}

// line returns all answers of the limiter, most of them as a hash.
func (tr *transcript) line() string {
	var all, when strings.Builder
	for _, c := range tr.Costs {
		fmt.Fprintln(&all, tr.limiter.Ready(tr.now, c), tr.limiter.Ready(tr.now.Add(tr.Scale/3), c))
		if at, r := limit.Explain(tr.limiter, tr.now, c); at > tr.now {
			fmt.Fprintln(&all, at, tr.bound(at, r, &c))
		}
		for n, ahead := range []limit.Cost{{}, limit.One, {limit.Requests: 7, limit.Input: 90}} {
			fmt.Fprintln(&all, limit.NotBefore(tr.limiter, tr.now, n, ahead, c))
		}
		if l := tr.limiter; limit.Foresees(l) {
			fmt.Fprintln(&all, limit.ReadyAfter(l, tr.now, limit.One, c), limit.ReadyAfter(l, tr.now, tr.Costs[len(tr.Costs)-1], c))
		}
		switch d := tr.limiter.Ready(tr.now, c).Sub(tr.now); {
		case d >= limit.AfterSettle.Sub(tr.now):
			when.WriteString(" -")
		default:
			fmt.Fprintf(&when, " %v", d)
		}
	}
	fmt.Fprintln(&all, usages(limit.AppendUsage(nil, tr.limiter, tr.now)), limit.Retreats(tr.limiter, tr.now))
	if f, ok := tr.limiter.(*limit.Fitted); ok {
		all.WriteString(strings.ReplaceAll(fmt.Sprintf("%+v %+v\n", f.Misfits(), f.Lessons()), "Rule:", "Rate:"))
	}
	if k := tr.limiter; limit.Keeps(k) == nil {
		fmt.Fprintf(&all, "%x %s %v\n", limit.AppendState(nil, k), limit.Configuration(k), limit.Span(k))
	}
	sum := fnv.New32a()
	sum.Write([]byte(all.String()))
	return fmt.Sprintf("  at %v, %d sent, %d open, ready in%s; all it says: %08x\n", tr.now.Sub(at(time.Hour)), tr.sent, len(tr.open), when.String(), sum.Sum32())
}

// The golden files are of a version with other types. bound and usages write the same facts in the
// form of those.

// bound writes a rule with the size of the cost that waits for it.
func (tr *transcript) bound(at mono.Time, r limit.Rule, c *limit.Cost) string {
	size := min(max(c[r.Unit], 0), limit.MaxCost)
	if r.Per == 0 { // each request counts as one
		size = 1
	}
	if _, is := tr.limiter.(*limit.Fitted); is && at != limit.Never {
		size = min(size, r.Most()) // a cost above a fit takes the whole fit
	}
	return fmt.Sprint(struct {
		Name       string
		Unit       limit.Unit
		Size, Most int64
	}{r.Name, r.Unit, size, r.Most()})
}

func usages(all []limit.Usage) string {
	type usage struct {
		Limit               string
		Unit                limit.Unit
		InFlight            bool
		Used, Open, Allowed int64
		Window              time.Duration
		PerWindow           int64
		Total, Recent, Fits int64
	}
	var was []usage
	for _, u := range all {
		was = append(was, usage{u.Limit, u.Unit, u.InFlight, u.Used, u.Open, u.Allowed, u.Window, u.PerWindow, u.Total, u.Recent, u.Fits})
	}
	return fmt.Sprint(was)
}
