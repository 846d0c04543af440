package fleet

import (
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/mono"
	"github.com/paceline-go/paceline/rule"
)

// quotaServer is a rule of package rule that starts with the first request, says what remains, and may become another one.
type quotaServer struct {
	quota    *Quota
	rule     rule.Rule
	first    mono.Time
	started  bool
	limit    int64 // as of the last change
	capacity int64
	hint     int64 // what remained last
	passed   []mono.Time
	keep     bool // passed: what a counting rule that changes has to be told again
}

func newQuotaServer(q *Quota) quotaServer {
	counts := q.Kind == Rolling || q.Kind == Calendar || q.Kind == Weighted
	return quotaServer{quota: q, limit: q.Limit, capacity: q.Capacity, hint: q.Level, keep: counts && len(q.Changes) > 0}
}

// arrive decides about a request.
func (s *quotaServer) arrive(now mono.Time) bool {
	if !s.started {
		s.started, s.first = true, now
		s.rule = s.must()
		// All start full, and lack what somebody has used before.
		s.rule.Arrive(now, s.most()-min(s.quota.Level, s.most()))
	}
	ok := s.rule.Arrive(now, 1)
	if ok && s.keep {
		s.remember(now)
	}
	return ok
}

// most is the largest cost that can pass.
func (s *quotaServer) most() int64 {
	switch s.quota.Kind {
	case Bucket, GCRA, DecreaseOnly:
		return s.capacity
	}
	return s.limit
}

// make returns the rule as it is now, unused.
func (s *quotaServer) make() (rule.Rule, error) {
	q := s.quota
	switch q.Kind {
	case Bucket:
		return rule.NewBucket(rule.BucketConfig{Limit: s.limit, Window: q.Window, Capacity: s.capacity, Tick: q.Tick})
	case GCRA:
		return rule.NewGCRA(rule.GCRAConfig{Limit: s.limit, Window: q.Window, Burst: s.capacity, Tick: q.Tick})
	case Rolling:
		return rule.NewRolling(rule.RollingConfig{Limit: s.limit, Window: q.Window, Tick: q.Tick})
	case Calendar:
		return rule.NewCalendar(rule.CalendarConfig{Limit: s.limit, Window: q.Window, Phase: s.first, Tick: q.Tick})
	case Weighted:
		return rule.NewWeighted(rule.WeightedConfig{Limit: s.limit, Window: q.Window, Phase: s.first, Tick: q.Tick})
	}
	return &finite{s.capacity}, nil
}

func (s *quotaServer) must() rule.Rule {
	r, err := s.make()
	if err != nil {
		panic("fleet: a quota that was checked: " + err.Error())
	}
	return r
}

// remaining returns the largest cost that would pass. It searches outwards from what remained last, which is seldom far.
func (s *quotaServer) remaining(now mono.Time) int64 {
	if !s.started {
		return min(s.quota.Level, s.most())
	}
	fits := func(n int64) bool { return s.rule.Fits(now, n) }
	lo, hi := int64(0), s.most()+1 // lo fits, hi does not
	if n := min(s.hint, hi-1); fits(n) {
		lo = n
		for step := int64(1); lo+step < hi; step *= 2 {
			if !fits(lo + step) {
				hi = lo + step
				break
			}
			lo += step
		}
	} else {
		hi = n
		for step := int64(1); hi-step > lo; step *= 2 {
			if fits(hi - step) {
				lo = hi - step
				break
			}
			hi -= step
		}
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; fits(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	s.hint = lo
	return lo
}

// change makes the quota another one and returns how much of what was left did not fit into it. A bucket keeps its level, to
// a whole token. What a counting rule let pass still counts, up to the new limit: more would not matter.
func (s *quotaServer) change(now mono.Time, factor float64) (lost int64) {
	level := s.remaining(now)
	s.limit, s.capacity = scaled(s.quota.Limit, factor), scaled(s.quota.Capacity, factor)
	if !s.started {
		return 0
	}
	s.rule = s.must()
	if !s.keep {
		s.rule.Arrive(now, s.capacity-min(level, s.capacity))
		return max(level-s.capacity, 0)
	}
	most := int(min(s.span()*s.limit, int64(len(s.passed))))
	for _, at := range s.passed[max(s.old(now), len(s.passed)-most):] {
		s.rule.Arrive(at, 1)
	}
	return 0
}

// scaled rounds to the nearest; a quota is 1 at least.
func scaled(n int64, factor float64) int64 { return max(int64(math.Round(float64(n)*factor)), 1) }

// span is for how many windows a counting rule remembers.
func (s *quotaServer) span() int64 {
	if s.quota.Kind == Weighted {
		return 2
	}
	return 1
}

// remember keeps what passed, in memory for at most twice what may be needed.
func (s *quotaServer) remember(now mono.Time) {
	if len(s.passed) == cap(s.passed) {
		if n := s.old(now); 2*n >= len(s.passed) {
			s.passed = slices.Delete(s.passed, 0, n)
		}
	}
	s.passed = append(s.passed, now)
}

// old returns how many of those that passed no longer matter.
func (s *quotaServer) old(now mono.Time) int {
	n, _ := slices.BinarySearch(s.passed, now.Add(-s.quota.Window*time.Duration(s.span())))
	return n
}

// refill returns how many requests a server without clients would have let pass at most from one instant to a later one, as far
// as they came back in that time, by the changes there are.
func (q *Quota) refill(first, from, to mono.Time) float64 {
	if q.Kind == DecreaseOnly || to <= from {
		return 0
	}
	sum := 0.0
	if q.Kind != Bucket && q.Kind != GCRA { // all of a window comes back when it is over
		for at := first.Add(q.Window); at <= to; at = at.Add(q.Window) {
			if at > from {
				sum += float64(scaled(q.Limit, q.factor(at)))
			}
		}
		return sum
	}
	for i := 0; i <= len(q.Changes); i++ {
		begin, end := from, to
		if i > 0 {
			begin = max(begin, mono.Time(q.Changes[i-1].At))
		}
		if i < len(q.Changes) {
			end = min(end, mono.Time(q.Changes[i].At))
		}
		if begin < end {
			sum += q.perSecond(begin) * end.Sub(begin).Seconds()
		}
	}
	return sum
}

// factor is what the last change by an instant says.
func (q *Quota) factor(at mono.Time) float64 {
	f := 1.0
	for _, c := range q.Changes {
		if mono.Time(c.At) <= at {
			f = c.Factor
		}
	}
	return f
}

// perSecond is the rate at an instant.
func (q *Quota) perSecond(at mono.Time) float64 {
	if q.Kind == DecreaseOnly {
		return 0
	}
	return float64(scaled(q.Limit, q.factor(at))) / q.Window.Seconds()
}

// finite is so many requests and no more.
type finite struct{ left int64 }

func (f *finite) Arrive(now mono.Time, cost int64) bool {
	ok := f.Fits(now, cost)
	f.Count(now, cost, ok)
	return ok
}

func (f *finite) Fits(_ mono.Time, cost int64) bool { return cost <= f.left }

func (f *finite) Count(_ mono.Time, cost int64, passed bool) {
	if passed {
		f.left -= cost
	}
}
