package fleet

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit/mono"
)

// quotaServer is a rule of package rule that starts with the first request, says what remains, and
// may become another one.
type quotaServer struct {
	quota    *Quota
	rule     rule.Rule
	first    mono.Time
	started  bool
	limit    int64 // as of the last change, like capacity
	capacity int64
	hint     int64 // what remained when remaining was last asked
	passed   []pass
	begun    mono.Time // when the interval of an Anchored quota began, if anything passed in it
	replicas []view    // set if Headers are stale
	keep     bool      // passed is needed, because a counting rule that changes has to be told again
}

// pass is a request that passed.
type pass struct {
	at   mono.Time
	cost int64
}

func newQuotaServer(q *Quota) quotaServer {
	s := quotaServer{quota: q, limit: q.Limit, capacity: q.Capacity, hint: q.Level, keep: q.Kind.counts() &&
		len(q.Changes) > 0}
	if q.Headers.Stale > 0 {
		s.replicas = make([]view, q.Headers.Replicas)
	}
	return s
}

// counts tells kinds that count the requests that passed from kinds that are refilled.
func (k QuotaKind) counts() bool {
	return k == Rolling || k == Calendar || k == Weighted || k == Anchored
}

// arrive decides about a request.
func (s *quotaServer) arrive(now mono.Time, cost int64) bool {
	if !s.started {
		s.started, s.first = true, now
		s.rule = s.must()
		// Every rule starts full. What somebody has used before the run is taken out of it.
		if used := s.most() - min(s.quota.Level, s.most()); used > 0 {
			s.rule.Arrive(now, used)
			s.remember(now, used)
		}
	}
	ok := s.rule.Arrive(now, cost)
	if ok {
		s.remember(now, cost)
	}
	return ok
}

// most returns the largest cost that can ever pass.
func (s *quotaServer) most() int64 {
	switch s.quota.Kind {
	case Bucket, GCRA, DecreaseOnly:
		return s.capacity
	}
	return s.limit
}

// make returns a new rule for the quota as it is now.
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
		return rule.NewCalendar(rule.CalendarConfig{Limit: s.limit, Window: q.Window, Phase: s.first.Add(-q.Into),
			Tick: q.Tick})
	case Weighted:
		return rule.NewWeighted(rule.WeightedConfig{Limit: s.limit, Window: q.Window, Phase: s.first.Add(-q.Into),
			Tick: q.Tick})
	case Anchored:
		return rule.NewAnchored(rule.AnchoredConfig{Limit: s.limit, Window: q.Window, Tick: q.Tick})
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

// remaining returns the largest cost that would pass now.
func (s *quotaServer) remaining(now mono.Time) int64 {
	if !s.started {
		return min(s.quota.Level, s.most())
	}
	s.hint = rule.Left(s.rule, now, s.most(), s.hint)
	return s.hint
}

// ready returns when a request of that cost would pass if no other came. If the rule cannot tell, it returns now.
func (s *quotaServer) ready(now mono.Time, cost int64) mono.Time {
	if timed, ok := s.rule.(rule.Timed); ok {
		if at, ok := timed.Ready(now, cost); ok {
			return max(at, now)
		}
	}
	return now
}

// more returns the instant that Headers.Reset names, where so much remains.
func (s *quotaServer) more(now mono.Time, remaining int64) mono.Time {
	if s.quota.Kind == Rolling {
		return s.ready(now, min(remaining+1, s.limit))
	}
	return s.ready(now, s.most())
}

// change multiplies the quota's original size by factor, and returns how much of what was left did
// not fit into the new one. A bucket keeps its level, to a whole token. Requests that a counting
// rule let pass still count, up to the new limit, beyond which they make no difference.
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
	for _, p := range s.counted(now) {
		if n := rule.Left(s.rule, p.at, s.limit, p.cost); n > 0 {
			s.rule.Arrive(p.at, min(n, p.cost))
		}
	}
	return 0
}

// counted returns the requests that passed and may still count. If they are more than a smaller
// limit holds, it returns the latest, which will count for longest. In an Anchored interval all end
// together, at a time that the first of them sets, so it returns all.
func (s *quotaServer) counted(now mono.Time) []pass {
	passed := s.passed[s.old(now):]
	if s.quota.Kind == Anchored {
		return passed
	}
	room := s.span() * s.limit
	for i := len(passed) - 1; i >= 0; i-- {
		if room -= passed[i].cost; room <= 0 {
			return passed[i:]
		}
	}
	return passed
}

// scaled multiplies and rounds to the nearest whole number. A quota is at least 1.
func scaled(n int64, factor float64) int64 { return max(int64(math.Round(float64(n)*factor)), 1) }

// span is for how many windows a counting rule remembers what passed.
func (s *quotaServer) span() int64 {
	if s.quota.Kind == Weighted {
		return 2
	}
	return 1
}

// remember keeps a request that passed if the rule may have to be told of it again. The memory is
// at most twice what that needs.
func (s *quotaServer) remember(now mono.Time, cost int64) {
	if !s.keep {
		return
	}
	if s.quota.Kind == Anchored && (len(s.passed) == 0 || now.Sub(s.begun) >= s.quota.Window) {
		s.begun, s.passed = now, s.passed[:0]
	}
	if len(s.passed) == cap(s.passed) {
		if n := s.old(now); 2*n >= len(s.passed) {
			s.passed = slices.Delete(s.passed, 0, n)
		}
	}
	s.passed = append(s.passed, pass{now, cost})
}

// old returns how many of the requests that passed no longer matter.
func (s *quotaServer) old(now mono.Time) int {
	since := now.Add(-s.quota.Window * time.Duration(s.span()))
	if s.quota.Kind == Anchored {
		since = s.begun
	}
	n, _ := slices.BinarySearchFunc(s.passed, since, func(p pass, at mono.Time) int { return cmp.Compare(p.at, at) })
	return n
}

// refill returns how many requests more could pass at a server without clients from one instant to
// a later one, because of what came back in that time, with the changes that the quota goes
// through.
func (q *Quota) refill(first, from, to mono.Time) float64 {
	if q.Kind == DecreaseOnly || to <= from {
		return 0
	}
	if q.Kind != Bucket && q.Kind != GCRA { // all of a window's requests come back when it is over
		sum := 0.0
		for at := first.Add(q.Window - q.Into); at <= to; at = at.Add(q.Window) {
			if at > from {
				sum += float64(scaled(q.Limit, q.factor(at)))
			}
		}
		return sum
	}
	return q.rated(from, to)
}

// rated is how many requests the rate of the quota comes to in a span, with the changes that it goes through.
func (q *Quota) rated(from, to mono.Time) (sum float64) {
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

// least returns how many can pass at once while the quota is smallest.
func (q *Quota) least() int64 {
	least := q.Capacity
	for _, c := range q.Changes {
		least = min(least, scaled(q.Capacity, c.Factor))
	}
	return least
}

// factor returns the factor of the last change up to an instant.
func (q *Quota) factor(at mono.Time) float64 {
	f := 1.0
	for _, c := range q.Changes {
		if mono.Time(c.At) <= at {
			f = c.Factor
		}
	}
	return f
}

// perSecond is the rate of the quota at an instant.
func (q *Quota) perSecond(at mono.Time) float64 {
	if q.Kind == DecreaseOnly {
		return 0
	}
	return float64(scaled(q.Limit, q.factor(at))) / q.Window.Seconds()
}

// finite is a rule that lets so many requests pass in all.
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
