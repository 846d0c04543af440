package fleet

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// FieldError says that a value of a Scenario is not possible. Field is the path of the value, such
// as Groups[1].Processes or Server.Changes[0].At.
type FieldError struct{ Field, Problem string }

func (e *FieldError) Error() string { return "fleet: " + e.Field + " " + e.Problem }

// Most clients of a scenario, and most values of its series.
const (
	mostClients = 1_000_000
	mostValues  = 50_000_000
)

const (
	longestRun    = 366 * 24 * time.Hour
	highestDemand = 1e6 // per second
)

// check collects what is impossible in a scenario, which has its defaults filled in.
func (s *Scenario) check() error {
	var errs []error
	refuse := func(field, format string, a ...any) {
		errs = append(errs, &FieldError{field, fmt.Sprintf(format, a...)})
	}
	within := func(field string, d, least, most time.Duration) {
		if d < least || d > most {
			refuse(field, "%v is not from %v to %v", d, least, most)
		}
	}
	within("Duration", s.Duration, 1, longestRun)
	within("Sample", s.Sample, 0, longestRun)
	s.Server.check(s.Duration, refuse)
	if len(s.Groups) == 0 {
		refuse("Groups", "is empty: want one group of clients or more")
	}
	clients, sharing := 0, false
	for i := range s.Groups {
		g := &s.Groups[i]
		at := func(field string) string { return fmt.Sprintf("Groups[%d].%s", i, field) }
		if g.shares() {
			sharing = true
		} else if g.Strategy.New == nil && g.Strategy.NewLimiter == nil {
			refuse(at("Strategy"), "%q has neither New nor NewLimiter: want one of them", g.Strategy.Name)
		} else if _, _, err := g.process(rand.New(rand.NewPCG(0, 0))); err != nil {
			refuse(at("Params"), "do not suit strategy %q: %v", g.Strategy.Name, err)
		}
		number := func(field string, n int) {
			if n < 1 || n > mostClients {
				refuse(at(field), "%d is not from 1 to %d", n, mostClients)
			}
		}
		number("Processes", g.Processes)
		number("Threads", g.Threads)
		if g.Processes > 0 && g.Threads > 0 && g.Processes <= mostClients && g.Threads <= mostClients {
			clients += g.Processes * g.Threads
		}
		within(at("Work"), g.Work, 0, longestRun)
		within(at("Join"), g.Join, 0, longestRun)
		within(at("Spread"), g.Spread, 0, longestRun)
		within(at("Stagger"), g.Stagger, 0, longestRun)
		if g.Leave != 0 && (g.Leave <= g.Join || g.Leave > longestRun) {
			refuse(at("Leave"), "%v is not after Join %v and at most %v; 0 is never", g.Leave, g.Join, longestRun)
		}
		g.Demand.check(at, refuse)
		if most := s.Server.least(); most > 0 && !(g.Costs.Mean >= 1 && g.Costs.Mean <= float64(most)) {
			refuse(at("Costs.Mean"), "%v is not from 1 to what the quota holds, %d at its least", g.Costs.Mean, most)
		}
	}
	s.Store.check(s, sharing, refuse, within)
	if clients > mostClients {
		refuse("Groups", "has %d clients in all, more than %d", clients, mostClients)
	}
	if s.Sample > 0 && len(errs) == 0 && float64(clients)*float64(s.Duration)/float64(s.Sample) > mostValues {
		refuse("Sample", "%v makes series of more than %d values for %d clients in %v", s.Sample, mostValues, clients,
			s.Duration)
	}
	return errors.Join(errs...)
}

func (q *Quota) check(duration time.Duration, refuse func(field, format string, a ...any)) {
	if int(q.Kind) >= len(quotaKinds) {
		refuse("Server.Kind", "%v is none of %s", q.Kind, strings.Join(quotaKinds[:], ", "))
		return
	}
	for _, n := range []struct {
		field string
		value int64
		least int64
	}{{"Limit", q.Limit, 1}, {"Capacity", q.Capacity, 1}, {"Level", q.Level, 0}} {
		if n.value < n.least || n.value > mostQuota {
			refuse("Server."+n.field, "%d is not from %d to %d", n.value, n.least, int64(mostQuota))
			return
		}
	}
	if q.Kind.counts() && q.Capacity != q.Limit {
		refuse("Server.Capacity", "%d of a %v quota, which has none but its Limit of %d", q.Capacity, q.Kind, q.Limit)
	}
	if q.Level > q.Capacity {
		refuse("Server.Level", "%d is not from 0 to the capacity of %d", q.Level, q.Capacity)
	}
	if q.Kind == DecreaseOnly && len(q.Changes) > 0 {
		refuse("Server.Changes", "of a %v quota, to which nothing comes back", q.Kind)
	}
	if q.Window < time.Millisecond || q.Window > longestRun {
		refuse("Server.Window", "%v is not from 1ms to %v", q.Window, longestRun)
		return
	}
	if calendar := q.Kind == Calendar || q.Kind == Weighted; q.Into != 0 &&
		(!calendar || q.Into < 0 || q.Into >= q.Window) {
		refuse("Server.Into", "%v of a %v quota: want 0, or for a calendar's interval a time from 0 to less than its window", q.Into, q.Kind)
	}
	if int(q.Unit) >= len(limit.Cost{}) {
		refuse("Server.Unit", "%v is no unit of a cost", q.Unit)
	}
	q.checkHeaders(refuse)
	before := time.Duration(0)
	for i, c := range q.Changes {
		field := fmt.Sprintf("Server.Changes[%d].", i)
		if c.At <= before || c.At >= duration {
			what := "the change before"
			if i == 0 {
				what = "the beginning"
			}
			refuse(field+"At", "%v is not after %s at %v and before the end at %v", c.At, what, before, duration)
		}
		before = max(before, c.At)
		if !(c.Factor > 0) || math.IsInf(c.Factor, 1) || float64(max(q.Limit, q.Capacity))*c.Factor > mostQuota {
			refuse(field+"Factor", "%v is not above 0, or makes a quota of more than %d", c.Factor, int64(mostQuota))
		}
	}
	for _, factor := range append([]Change{{Factor: 1}}, q.Changes...) {
		server := quotaServer{quota: q, limit: scaled(q.Limit, factor.Factor), capacity: scaled(q.Capacity, factor.Factor)}
		if _, err := server.make(); err != nil {
			refuse("Server", "cannot be: %v", err)
			return
		}
	}
}

func (q *Quota) checkHeaders(refuse func(field, format string, a ...any)) {
	h := &q.Headers
	h.checkWrong(refuse)
	for _, p := range []struct {
		field string
		p     Precision
	}{{"Reset", h.Reset}, {"RetryAfter", h.RetryAfter}} {
		switch {
		case int(p.p) >= len(precisions):
			refuse("Server.Headers."+p.field, "%v is none of %s", p.p, strings.Join(precisions[:], ", "))
		case p.p != Untold && (q.Kind == GCRA || q.Kind == DecreaseOnly || q.Kind == Weighted):
			refuse("Server.Headers."+p.field, "%v of a %v quota, which does not tell it", p.p, q.Kind)
		}
	}
}

// checkWrong refuses values of Headers that are impossible.
func (h *Headers) checkWrong(refuse func(field, format string, a ...any)) {
	for _, d := range []struct {
		field string
		d     time.Duration
	}{{"Skew", h.Skew}, {"Stale", h.Stale}} {
		if d.d < 0 || d.d > longestRun {
			refuse("Server.Headers."+d.field, "%v is not from 0 to %v", d.d, longestRun)
		}
	}
	if h.Skew != 0 && h.Reset == Untold {
		refuse("Server.Headers.Skew", "%v of a reset that is not told", h.Skew)
	}
	if h.Replicas < 1 || h.Replicas > 1000 || h.Replicas > 1 && h.Stale == 0 {
		refuse("Server.Headers.Replicas", "%d is not from 1 to 1000, or has no Stale: %v", h.Replicas, h.Stale)
	}
	if h.Stale > 0 && h.Stale/time.Duration(max(h.Replicas, 1)) < time.Millisecond {
		refuse("Server.Headers.Stale", "%v of %d replicas: want a millisecond or more between two of their questions",
			h.Stale, h.Replicas)
	}
	if !(h.Factor > 0 && h.Factor <= 1e6) {
		refuse("Server.Headers.Factor", "%v is not above 0 and at most 1e6", h.Factor)
	}
	if !(h.Noise >= 0 && h.Noise <= mostQuota) {
		refuse("Server.Headers.Noise", "%v is not from 0 to %d", h.Noise, int64(mostQuota))
	}
	if h.Rounded < 1 || h.Rounded > mostQuota {
		refuse("Server.Headers.Rounded", "%d is not from 1 to %d", h.Rounded, int64(mostQuota))
	}
}

// mostQuota is so small that the sums of a run do not overflow.
const mostQuota = 1 << 40

func (d *Demand) check(at func(string) string, refuse func(field, format string, a ...any)) {
	is := func(field string, set, needed bool, value any, want string) {
		if set && !needed {
			refuse(at("Demand."+field), "%v is for other kinds of demand than %v", value, d.Kind)
		} else if needed && !set {
			refuse(at("Demand."+field), "%v is missing or wrong: %v wants %s", value, d.Kind, want)
		}
	}
	if int(d.Kind) >= len(demandKinds) {
		refuse(at("Demand.Kind"), "%v is none of %s", d.Kind, strings.Join(demandKinds[:], ", "))
		return
	}
	period := func(p time.Duration) bool { return p > 0 && p <= longestRun }
	onOff, light := d.Kind == OnOff, d.Kind == Light
	is("On", onOff && period(d.On) || !onOff && d.On != 0, onOff, d.On, "a period above 0")
	is("Off", onOff && period(d.Off) || !onOff && d.Off != 0, onOff, d.Off, "a period above 0")
	is("PerSecond", light && d.PerSecond > 0 && d.PerSecond <= highestDemand || !light && d.PerSecond != 0, light,
		d.PerSecond, "a rate above 0 and at most 1e6")
	if d.Total < 0 || d.Total > math.MaxInt32 {
		refuse(at("Demand.Total"), "%d is not from 0, for no end, to %d", d.Total, math.MaxInt32)
	}
}

var (
	quotaKinds  = [...]string{"bucket", "gcra", "decrease-only", "rolling", "calendar", "weighted", "anchored"}
	precisions  = [...]string{"untold", "exact", "whole-seconds"}
	demandKinds = [...]string{"always", "on-off", "light"}
)

func (k QuotaKind) String() string  { return nameOf(quotaKinds[:], int(k)) }
func (k DemandKind) String() string { return nameOf(demandKinds[:], int(k)) }
func (p Precision) String() string  { return nameOf(precisions[:], int(p)) }

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("kind %d", i)
}

// MarshalText implements encoding.TextMarshaler.
func (k QuotaKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalText implements encoding.TextMarshaler.
func (k DemandKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *QuotaKind) UnmarshalText(b []byte) error {
	i, err := indexOf(quotaKinds[:], b)
	*k = QuotaKind(i)
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (p Precision) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Precision) UnmarshalText(b []byte) error {
	i, err := indexOf(precisions[:], b)
	*p = Precision(i)
	return err
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *DemandKind) UnmarshalText(b []byte) error {
	i, err := indexOf(demandKinds[:], b)
	*k = DemandKind(i)
	return err
}

func indexOf(names []string, b []byte) (int, error) {
	for i, name := range names {
		if name == string(b) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is none of %s", b, strings.Join(names, ", "))
}
