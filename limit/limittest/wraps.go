package limittest

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Wraps tests a Limiter that is made of another one. wrap returns a new wrapper around l. Every
// question of package limit to a wrapper must reach the limiter inside. Otherwise a wrong answer
// goes unnoticed. A wrapper needs Ready, Admit, Settle and
//
//	Unwrap() []limit.Limiter
//
// It also needs ReadyAfter and NotBefore, since it may add a bound of its own. Wraps also writes the
// state of a wrapper that is a Keeper (limit.Keeps).
func Wraps(t *testing.T, wrap func(l limit.Limiter) limit.Limiter) {
	t.Helper()
	for _, what := range hides(wrap) {
		t.Errorf("%s; the wrapper hides it (see limittest.Wraps)", what)
	}
}

// hides returns the questions that do not reach the limiter inside, sorted by the names of
// interfaces.
func hides(wrap func(l limit.Limiter) limit.Limiter) (all []string) {
	for _, name := range asked() {
		p := newProbe()
		w := wrap(p)
		sent := Admit(w, 0, limit.One)
		if what := questions[name](w, sent, p); what != "" {
			all = append(all, name+": "+what)
		}
	}
	return all
}

// asked returns the names of the optional interfaces of package limit that Wraps tests, and Unwrap. A
// test compares them with the sources of limit. So a new interface without a question fails there.
func asked() []string { return slices.Sorted(maps.Keys(questions)) }

// questions question a wrapper around a probe that has admitted one request at 0. The answer is
// empty, or names the fault.
var questions = map[string]func(w limit.Limiter, sent *limit.Sent, p *probe) string{
	"Describer": func(w limit.Limiter, _ *limit.Sent, _ *probe) string {
		if _, r := limit.Explain(w, 0, limit.One); r.N != probeLimit {
			return "Explain does not name the limit inside"
		}
		inside := func(r limit.Rule) bool { return r.N == probeLimit && r.Per == 2*time.Second }
		if all, ok := limit.Rates(w); !ok || !slices.ContainsFunc(all, inside) {
			return "Rates leaves out the limit inside"
		}
		used := func(u limit.Usage) bool { return u.Allowed == probeLimit && u.Used == 1 }
		if !slices.ContainsFunc(limit.AppendUsage(nil, w, 0), used) {
			return "AppendUsage leaves out the limit inside"
		}
		if limit.Unsettled(w) != 1 {
			return "Unsettled does not count the request in flight"
		}
		if all := limit.Retreats(w, 0); len(all) != 1 || all[0].Option != probeName {
			return "Retreats does not report that of the limiter inside"
		}
		return ""
	},
	"Forecaster": func(w limit.Limiter, _ *limit.Sent, p *probe) string {
		if !limit.Forecasts(w) || !limit.Foresees(w) {
			return "Forecasts or Foresees says no, and the limiter inside does"
		}
		ahead := limit.Cost{limit.Requests: 3}
		if at := p.NotBefore(0, 3, ahead, limit.One); at == 0 || limit.NotBefore(w, 0, 3, ahead, limit.One) != at {
			return "NotBefore is not that of the limiter inside"
		}
		return ""
	},
	"Keeper": func(w limit.Limiter, sent *limit.Sent, p *probe) string { return restores(w, sent, p) },
	"Unwrap": func(w limit.Limiter, _ *limit.Sent, p *probe) string {
		found := false
		if limit.Ask(w, func(part *probe) { found = part == p }); !found {
			return "Ask does not find the limiter inside"
		}
		limit.Trust(w, 0)
		limit.Replay(w, 0, mono.Min, nil)
		limit.ReadyLeaving(w, 0, nil, limit.One, 0.5)
		return cmp.Or(p.reached("Trust"), p.reached("Resume"), p.reached("ReadyLeaving"))
	},
}

// restores writes the state of a wrapper with nothing in flight, and reads it into another one.
func restores(w limit.Limiter, sent *limit.Sent, p *probe) string {
	w.Settle(0, sent, &limit.Outcome{Result: limit.Accepted})
	if limit.Keeps(w) != nil { // it does not claim to be a Keeper
		return ""
	}
	limit.AppendState(nil, w)
	return p.reached("AppendState")
}

const (
	probeName  = "probe"
	probeLimit = 1
)

// probe is a Limiter with every optional method. Its answers are like those of no other limiter.
type probe struct {
	*limit.Rolling
	asked []string
}

func newProbe() *probe { return &probe{Rolling: limit.MustRolling(probeLimit, 2*time.Second)} }

// reached names the fault unless the probe's method was called.
func (p *probe) reached(method string) string {
	if slices.Contains(p.asked, method) {
		return ""
	}
	return method + " does not reach the limiter inside"
}

func (p *probe) note(method string)             { p.asked = append(p.asked, method) }
func (p *probe) Trust(mono.Time)                { p.note("Trust") }
func (p *probe) Resume(mono.Time, []limit.Past) { p.note("Resume") }
func (p *probe) ReadyLeaving(now mono.Time, first *limit.Cost, c limit.Cost, free float64) mono.Time {
	p.note("ReadyLeaving")
	return limit.ReadyLeaving(p.Rolling, now, first, c, free)
}

func (p *probe) AppendState(b []byte) []byte { p.note("AppendState"); return p.Rolling.AppendState(b) }

func (p *probe) AppendUsage(to []limit.Usage, now mono.Time) []limit.Usage {
	to = p.Rolling.AppendUsage(to, now)
	to[len(to)-1].Retreat = limit.Retreat{Option: probeName}
	return to
}
