package fleet

import (
	"math"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// settling counts arrivals since the last change in bins. Spans are looked at whose length is forty bins.
type settling struct {
	from   mono.Time
	bin    time.Duration
	wanted float64 // how many should arrive in a span
	bins   []int64
}

const (
	binsPerSpan    = 40
	spansToBelieve = 10
)

func (s *settling) start(from, end mono.Time, perSecond, spanSeconds float64) {
	longest := end.Sub(from)
	if spanSeconds*1e9 > float64(longest) {
		return // no span fits into the run
	}
	span := time.Duration(spanSeconds * 1e9)
	s.from, s.bin = from, max(span/binsPerSpan, longest/maxBins, 1)
	s.wanted = perSecond * (s.bin * binsPerSpan).Seconds()
	s.bins = make([]int64, longest/s.bin+1)
}

const maxBins = 1 << 17

func (s *settling) count(now mono.Time, cost int64) {
	if s.bin == 0 || now < s.from {
		return
	}
	if i := int(now.Sub(s.from) / s.bin); i < len(s.bins) {
		s.bins[i] += cost
	}
}

// settled returns how long after the change the first span began since which every span up to now
// had about as many arrivals as it should. It is believed after ten spans: one may be right by
// chance.
func (s *settling) settled(now mono.Time) (time.Duration, bool) {
	if s.bin == 0 || now < s.from {
		return 0, false
	}
	whole := min(int(now.Sub(s.from)/s.bin), len(s.bins))
	sum, since := 0, -1
	for i, n := range s.bins[:whole] {
		sum += int(n)
		begin := i - binsPerSpan + 1
		if begin > 0 {
			sum -= int(s.bins[begin-1])
		}
		if begin < 0 {
			continue
		}
		if math.Abs(float64(sum)-s.wanted) > 0.1*s.wanted {
			since = -1
		} else if since < 0 {
			since = begin
		}
	}
	return time.Duration(max(since, 0)) * s.bin, since >= 0 && whole-since >= spansToBelieve*binsPerSpan
}

// pace is how a client's sendings follow each other since the last change. The client is settled
// once the mean of any three intervals in a row stays at the fair interval, give or take a quarter.
type pace struct {
	at     mono.Time // when it sent last
	before [2]time.Duration
	n      int // number of intervals
	since  mono.Time
	calm   bool // it is settled
}

const paceTolerance = 0.25

// fairIntervals computes the fair time between two sendings of a client, for each group, if the
// clients that stay share perSecond evenly. It returns false if that cannot be told: the costs of
// all requests have to be known.
func (f *Fleet) fairIntervals(perSecond float64) bool {
	weights := 0.0
	stays := func(g *Group) bool {
		return g.Join < f.scenario.Duration && (g.Leave == 0 || g.Leave >= f.scenario.Duration)
	}
	for i := range f.scenario.Groups {
		g := &f.scenario.Groups[i]
		if g.Costs.Exponential && stays(g) {
			return false
		}
		if stays(g) {
			weights += g.weight() * float64(g.Processes)
		}
	}
	for i := range f.scenario.Groups {
		if g := &f.scenario.Groups[i]; stays(g) {
			each := perSecond * g.weight() / weights / float64(g.Threads) / g.Costs.Mean
			f.groups[i].fair = time.Duration(min(1e9/each, 1e18))
		}
	}
	return true
}

// paced returns how long after the last change the last client was settled. It returns false if some client is not.
func (f *Fleet) paced() (time.Duration, bool) {
	latest, ok := f.m.lastChange, f.m.paced
	for i := range f.threads {
		t := &f.threads[i]
		if fair := f.groups[t.group].fair; fair > 0 && ok {
			var since mono.Time
			since, ok = t.pace.settled(f.m.now, fair)
			latest = max(latest, since)
		}
	}
	return latest.Sub(f.m.lastChange), ok
}

// send notes a sending of a client. fair is the client's fair interval.
func (p *pace) send(now mono.Time, fair time.Duration) {
	if d := now.Sub(p.at); p.at > 0 {
		begin := p.at.Add(-p.before[0] - p.before[1])
		mean := float64(p.before[0]+p.before[1]+d) / 3
		switch p.n++; {
		case p.n < 3:
		case math.Abs(mean-float64(fair)) > paceTolerance*float64(fair):
			p.calm = false
		case !p.calm:
			p.calm, p.since = true, begin
		}
		p.before[0], p.before[1] = p.before[1], d
	}
	p.at = max(now, 1)
}

// settled returns since when the client is settled. It is not if the interval that still lasts is already too long.
func (p *pace) settled(now mono.Time, fair time.Duration) (mono.Time, bool) {
	late := float64(p.before[0]+p.before[1]+now.Sub(p.at))/3 > (1+paceTolerance)*float64(fair)
	return p.since, p.calm && !late
}
