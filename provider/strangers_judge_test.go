package provider_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/provider"
)

// fact is a limit and what is left of it. A zero span is not known, and so is a count that is not OK.
type fact struct {
	units      []provider.Unit
	limit      provider.Count
	left       [2]provider.Count
	per, reset time.Duration
}

// wanted is what has to be said of an answer.
type wanted struct {
	host, provider string
	must, may      []fact
	rates          []fact // so many in so much time
	refusals       []provider.Refusal
	whom           []provider.Scope
	said, never    bool // of back
	from, to       time.Duration
}

// seen is a limit as a reading has it, with its policy.
type seen struct {
	unit        provider.Unit
	limit       int64 // 0: not known
	left        provider.Count
	window      time.Duration
	reset       time.Duration
	resets      bool
	fromTheBook bool // the published limit, and not the answer's
}

func sight(o provider.Observation, now time.Time) []seen {
	var all []seen
	joined := map[int]bool{}
	for _, l := range o.Limits {
		base := seen{unit: l.Unit, left: l.Remaining, resets: !l.Reset.IsZero(), reset: l.Reset.Sub(now)}
		alone := true
		for i, p := range o.Policies {
			if p.Name != l.Policy || p.Unit != l.Unit || p.Partition != l.Partition {
				continue
			}
			alone, joined[i] = false, true
			s := base
			s.limit, s.window, s.fromTheBook = p.Limit, p.Window, p.Source == provider.Documented
			if !s.left.OK && l.Used.OK && p.Limit > 0 {
				s.left = provider.Count{N: max(0, p.Limit-l.Used.N), OK: true}
			}
			all = append(all, s)
		}
		if alone {
			all = append(all, base)
		}
	}
	for i, p := range o.Policies {
		if !joined[i] {
			all = append(all, seen{unit: p.Unit, limit: p.Limit, window: p.Window, fromTheBook: p.Source == provider.Documented})
		}
	}
	return all
}

// near allows for the second in which clocks tick, and for what is rounded to it.
func near(a, b time.Duration) bool { return (a - b).Abs() <= time.Second }

// far: a client would wait for more than twice as long, and for more than a minute longer.
func far(said, is time.Duration) bool { return said > 2*is && said > is+time.Minute }

func (f fact) inLeft(n int64) bool { return f.left[0].N <= n && n <= f.left[1].N }

func (f fact) saidBy(s seen) bool {
	return slices.Contains(f.units, s.unit) &&
		(!f.limit.OK || s.limit == f.limit.N) &&
		(!f.left[0].OK || s.left.OK && f.inLeft(s.left.N)) &&
		(f.per == 0 || s.window == f.per) &&
		(f.reset == 0 || s.resets && near(s.reset, f.reset))
}

// likeness is how much of a fact is in what was seen.
func (f fact) likeness(s seen) int {
	n := 0
	for _, same := range []bool{
		f.limit.OK && s.limit == f.limit.N,
		f.left[0].OK && s.left.OK && f.inLeft(s.left.N),
		f.per > 0 && s.window == f.per,
		f.reset > 0 && s.resets && near(s.reset, f.reset),
	} {
		if same {
			n++
		}
	}
	return n
}

// falseIn is what of that which was seen is not so, and harms.
func (f fact) falseIn(s seen) string {
	switch {
	case f.left[0].OK && s.left.OK && s.left.N > f.left[1].N:
		return fmt.Sprintf("%d %s left, not %d", s.left.N, s.unit, f.left[1].N)
	case f.reset > 0 && s.resets && far(s.reset, f.reset):
		return fmt.Sprintf("%s again in %v, not %v", s.unit, s.reset, f.reset)
	case f.reset > 0 && s.resets && s.reset < f.reset-time.Second:
		return fmt.Sprintf("%s again in %v already, not %v", s.unit, s.reset, f.reset)
	case s.fromTheBook || s.limit == 0 || !f.limit.OK:
		return ""
	case s.limit > f.limit.N && (s.window == 0 || f.per == 0):
		return fmt.Sprintf("a limit of %d %s, not %d", s.limit, s.unit, f.limit.N)
	case f.per > 0 && s.window > 0 && float64(s.limit)/s.window.Seconds() > 1.02*float64(f.limit.N)/f.per.Seconds():
		return fmt.Sprintf("%d %s per %v, not %d per %v", s.limit, s.unit, s.window, f.limit.N, f.per)
	case f.per > 0 && s.limit <= f.limit.N && far(s.window, f.per):
		return fmt.Sprintf("%d %s per %v, not per %v", s.limit, s.unit, s.window, f.per)
	}
	return ""
}

// judge grades a reading, and says why it is not better.
func (w wanted) judge(now time.Time, o provider.Observation) (string, []string) {
	falsehoods, missing := w.judgeRefusal(now, o)
	all := sight(o, now)
	for _, f := range w.must {
		if !slices.ContainsFunc(all, f.saidBy) {
			missing = append(missing, "no "+f.String())
		}
	}
	for _, r := range w.rates {
		fast, same := r.compare(all)
		if fast {
			falsehoods = append(falsehoods, "faster than "+r.String())
		}
		if !same {
			missing = append(missing, "no "+r.String())
		}
	}
	known := append(slices.Clone(w.must), w.may...)
	for _, s := range all {
		var closest *fact
		for i, f := range known {
			if slices.Contains(f.units, s.unit) && (closest == nil || f.likeness(s) > closest.likeness(s)) {
				closest = &known[i]
			}
		}
		var why string
		if closest != nil {
			why = closest.falseIn(s)
		}
		if why == "" && s.resets && far(s.reset, w.longest()) {
			why = fmt.Sprintf("%s again in %v", s.unit, s.reset)
		}
		if why != "" {
			falsehoods = append(falsehoods, why)
		}
	}
	empty := len(o.Policies)+len(o.Limits) == 0 && o.RetryAfter == 0 && o.Refusal == provider.None
	switch {
	case empty && len(falsehoods)+len(missing) > 0:
		return nothing, append(falsehoods, missing...)
	case len(falsehoods) > 0:
		return wrong, append(falsehoods, missing...)
	case len(missing) > 0:
		return part, missing
	}
	return right, nil
}

func (w wanted) judgeRefusal(now time.Time, o provider.Observation) (falsehoods, missing []string) {
	final := func(r provider.Refusal) bool {
		return r == provider.Unpaid || r == provider.Banned || r == provider.TooLarge
	}
	if !slices.Contains(w.refusals, o.Refusal) {
		why := fmt.Sprintf("refusal %q, not %q", o.Refusal, w.refusals)
		if final(o.Refusal) || !slices.ContainsFunc(w.refusals, func(r provider.Refusal) bool { return !final(r) }) {
			falsehoods = append(falsehoods, why)
		} else {
			missing = append(missing, why)
		}
	}
	told := []provider.Scope{}
	for _, p := range o.Policies {
		if p.Scope != "" && (len(o.RefusedBy) == 0 || slices.Contains(o.RefusedBy, p.Name)) {
			told = append(told, p.Scope)
		}
	}
	if len(w.whom) > 0 && len(told) > 0 && !slices.ContainsFunc(told, func(s provider.Scope) bool { return slices.Contains(w.whom, s) }) {
		missing = append(missing, fmt.Sprintf("concerns %q, not %q", told, w.whom))
	}
	at, ok := o.ComeBack(now)
	wait := at.Sub(now)
	switch {
	case w.never && ok:
		falsehoods = append(falsehoods, fmt.Sprintf("come back in %v, though waiting does not help", wait))
	case w.never || !ok && !w.said:
	case !ok:
		missing = append(missing, "when to come back")
	case wait < w.from || far(wait, w.to):
		falsehoods = append(falsehoods, fmt.Sprintf("come back in %v, not %v to %v", wait, w.from, w.to))
	case wait > w.to:
		missing = append(missing, fmt.Sprintf("come back in %v, at the latest %v", wait, w.to))
	}
	return falsehoods, missing
}

// compare reports whether anything is faster than a rate, and whether anything is it.
func (f fact) compare(all []seen) (fast, same bool) {
	for _, s := range all {
		if !slices.Contains(f.units, s.unit) || s.limit == 0 || s.window == 0 || s.fromTheBook {
			continue
		}
		of := float64(s.limit) / s.window.Seconds() / (float64(f.limit.N) / f.per.Seconds())
		fast = fast || of > 1.02
		same = same || of > 0.98 && of <= 1.02
	}
	return fast, same
}

// longest is the longest span ahead in the answer.
func (w wanted) longest() time.Duration {
	most := w.to
	for _, f := range append(slices.Clone(w.must), w.may...) {
		most = max(most, cmp.Or(f.reset, f.per))
	}
	return most
}

func (f fact) String() string {
	return fmt.Sprintf("%q limit %v left %v per %v reset %v", f.units, f.limit, f.left[0], f.per, f.reset)
}

// TestStrangersJudge: the judge of the strangers notices what it is there for.
func TestStrangersJudge(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := func(d time.Duration) time.Time { return now.Add(d) }
	read := func(limit, left int64, window, reset time.Duration, r provider.Refusal) provider.Observation {
		return provider.Observation{Refusal: r,
			Policies: []provider.Policy{{Unit: provider.Requests, Limit: limit, Window: window, Scope: provider.Key}},
			Limits:   []provider.ServiceLimit{{Unit: provider.Requests, Remaining: provider.Count{N: left, OK: true}, Reset: in(reset)}}}
	}
	refused := "limit: requests; 60; left 0; per 1m; reset 30s\nrefusal: rate limited\nwhom: key\nback: 29s 31s"
	served := "limit: requests; 60; left 7; per 1m; reset 30s\nback: 0s 1s"
	day := 24 * time.Hour
	for i, c := range []struct {
		want  string
		o     provider.Observation
		grade string
	}{
		{refused, read(60, 0, time.Minute, 30*time.Second, provider.RateLimited), right},
		{refused, provider.Observation{}, nothing},
		{refused, read(60, 0, time.Minute, 31*day, provider.RateLimited), wrong},
		{refused, read(60, 0, time.Minute, 5*time.Second, provider.RateLimited), wrong},
		{refused, read(60, 5, time.Minute, 30*time.Second, provider.None), wrong},
		{refused, read(60, 0, time.Minute, 30*time.Second, provider.Unpaid), wrong},
		{refused, read(60, 0, 0, 30*time.Second, provider.RateLimited), part},
		{refused, read(60, 0, time.Minute, 30*time.Second, provider.Overloaded), part},
		{refused, provider.Observation{Refusal: provider.RateLimited, RetryAfter: 30 * time.Second}, part},
		{refused, provider.Observation{Refusal: provider.RateLimited, RetryAfter: time.Hour}, wrong},
		{"whom: ip\n" + strings.Replace(refused, "whom: key\n", "", 1), read(60, 0, time.Minute, 30*time.Second, provider.RateLimited), part},
		{served, read(60, 7, time.Minute, 30*time.Second, provider.None), right},
		{served, read(60, 7, time.Minute, 31*day, provider.None), wrong},
		{served, read(60, 7, time.Minute, 5*time.Second, provider.None), wrong},
		{served, read(60, 7, time.Second, 30*time.Second, provider.None), wrong},
		{served, read(60, 7, day, 30*time.Second, provider.None), wrong},
		{served, read(600, 7, 0, 30*time.Second, provider.None), wrong},
		{served, read(60, 50, time.Minute, 30*time.Second, provider.None), wrong},
		{served, read(60, 0, time.Minute, 30*time.Second, provider.None), part},
		{served, provider.Observation{Refusal: provider.RateLimited, RetryAfter: 5 * time.Minute}, wrong},
		{"refusal: insufficient quota\nback: never", provider.Observation{Refusal: provider.Unpaid}, right},
		{"refusal: insufficient quota\nback: never", provider.Observation{Refusal: provider.RateLimited}, wrong},
		{"refusal: banned\nback: maybe 1s 1h", provider.Observation{Refusal: provider.RateLimited, RetryAfter: time.Minute}, wrong},
		{"refusal: rate limited\nback: maybe 1ms 1h", provider.Observation{Refusal: provider.RateLimited}, right},
		{"refusal: rate limited\nback: maybe 1ms 1h", provider.Observation{Limits: []provider.ServiceLimit{{Unit: provider.Requests}}}, wrong},
		{"refusal: none\nback: 0s 1s", provider.Observation{}, right},
		{"refusal: none\nback: 0s 1s", provider.Observation{Refusal: provider.Banned}, wrong},
		{"refusal: none\nback: 0s 1s", provider.Observation{Limits: []provider.ServiceLimit{{Unit: provider.Tokens, Remaining: provider.Count{N: 5, OK: true}, Reset: in(31 * day)}}}, wrong},
		{"refusal: rate limited\nback: 29s 31s", provider.Observation{Refusal: provider.RateLimited, RetryAfter: 50 * time.Second}, part},
		{"rate: requests; 0.5/s\nback: 0s 1s", provider.Observation{Policies: []provider.Policy{{Unit: provider.Requests, Limit: 1, Window: 2 * time.Second}}}, right},
		{"rate: requests; 0.5/s\nback: 0s 1s", provider.Observation{Policies: []provider.Policy{{Unit: provider.Requests, Limit: 1, Window: time.Second}}}, wrong},
	} {
		var w wanted
		for line := range strings.SplitSeq(c.want, "\n") {
			if err := w.add(line); err != nil {
				t.Fatal(i, err)
			}
		}
		if len(w.refusals) == 0 {
			w.refusals = []provider.Refusal{provider.None}
		}
		if grade, why := w.judge(now, c.o); grade != c.grade {
			t.Errorf("%d: %q is graded %s, want %s: %q", i, c.want, grade, c.grade, why)
		}
	}
}

// TestStrangersCanBeRight: a reading that says just what is wanted of a set is right, so no set wants what cannot be said.
func TestStrangersCanBeRight(t *testing.T) {
	for _, path := range strangerSets(t) {
		now := corpus.File(t, path).Now
		w := readWanted(t, strings.TrimSuffix(path, ".http")+".want")
		o := provider.Observation{Refusal: w.refusals[0]}
		if w.said && o.Refusal != provider.None {
			o.RetryAfter = (w.from + w.to) / 2
		}
		for i, f := range append(slices.Clone(w.must), w.rates...) {
			name := fmt.Sprint(i)
			if f.limit.OK || f.per > 0 {
				o.Policies = append(o.Policies, provider.Policy{Name: name, Unit: f.units[0], Limit: f.limit.N, Window: f.per})
			}
			l := provider.ServiceLimit{Policy: name, Unit: f.units[0], Remaining: f.left[0]}
			if f.reset > 0 {
				l.Reset = now.Add(f.reset)
			}
			o.Limits = append(o.Limits, l)
		}
		if grade, why := w.judge(now, o); grade != right {
			t.Errorf("a set of %s cannot be read: %s %q", filepath.Dir(path), grade, why)
		}
	}
}
