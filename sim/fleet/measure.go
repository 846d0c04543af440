package fleet

import (
	"math"

	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/histogram"
	"github.com/paceline-go/paceline/mono"
)

// measures are what a Fleet counts as it runs.
type measures struct {
	now    mono.Time
	events uint64

	// at the server
	firstArrival, lastArrival mono.Time
	arrivals                  int
	passed                    int64 // in the quota's unit
	late                      int
	level, levelLeast         int64
	levelSum                  float64
	lost                      int64 // of the level, to changes
	concurrent, peak          int

	// at the clients
	firstSending    mono.Time
	sent            bool
	served, limited int
	sleeps          histogram.Histogram
	cleared         mono.Time

	optimum, optimumMost float64
	settling             settling
	series               Series
}

// start computes what can be told beforehand.
func (m *measures) start(f *Fleet) {
	s := &f.scenario
	m.level, m.levelLeast = s.Server.Level, s.Server.Level
	last := mono.Time(0) // change
	turns := []mono.Time{0}
	for _, c := range s.Server.Changes {
		turns = append(turns, mono.Time(c.At))
	}
	for _, g := range s.Groups {
		turns = append(turns, mono.Time(g.Join))
		if g.Leave > 0 {
			turns = append(turns, mono.Time(g.Leave))
		}
	}
	slices.Sort(turns)
	for _, at := range turns {
		if at >= f.end {
			break
		}
		n, rate := 0.0, s.Server.perSecond(at)
		for _, g := range s.Groups {
			if mono.Time(g.Join) <= at && (g.Leave == 0 || at < mono.Time(g.Leave)) && g.Demand.Kind != Light {
				n += float64(g.Processes*g.Threads) * g.Costs.Mean
			}
		}
		m.optimum = 0
		if rate > 0 {
			m.optimum = n / rate
		}
		m.optimumMost = max(m.optimumMost, m.optimum)
		last = at
	}
	saturated := m.optimum > 0
	for _, g := range s.Groups {
		stays := g.Join < s.Duration && (g.Leave == 0 || g.Leave >= s.Duration)
		saturated = saturated && (!stays || g.Demand.Kind == Always && g.Demand.Total == 0)
	}
	if last > 0 && saturated {
		rate := s.Server.perSecond(last)
		m.settling.start(last, f.end, rate, max(50/rate, 2*m.optimum))
	}
	if s.Sample > 0 {
		m.series.Sleep = make([][]float64, len(f.threads))
		m.series.ServedBy = make([][]int, len(f.threads))
	}
}

// arrival is a request that the server decided about.
func (m *measures) arrival(now mono.Time, cost int64, t *told) {
	if m.arrivals == 0 {
		m.firstArrival = now
	}
	m.arrivals++
	m.level, m.levelLeast = t.left, min(m.levelLeast, t.left)
	m.levelSum += float64(t.left)
	if !t.limited {
		m.passed += cost
	} else if now.Sub(m.firstArrival) > 2*time.Minute {
		m.late++
	}
	m.settling.count(now, cost)
}

func (m *measures) enterServer() {
	m.concurrent++
	m.peak = max(m.peak, m.concurrent)
}

// sameInstant counts the concurrent where the server works for no time.
func (m *measures) sameInstant(now mono.Time) {
	if now != m.lastArrival {
		m.concurrent = 0
	}
	m.lastArrival = now
	m.enterServer()
}

func (m *measures) sending(now mono.Time) {
	if !m.sent {
		m.sent, m.firstSending = true, now
	}
}

func (m *measures) answered(limited bool) {
	if limited {
		m.limited++
	} else {
		m.served++
	}
}

func (m *measures) slept(t *threadState, d time.Duration) {
	t.longest, t.last = max(t.longest, d), d
	m.sleeps.Add(d)
}

// sample adds an instant to the series.
func (m *measures) sample(f *Fleet, now mono.Time) {
	s := &m.series
	s.At = append(s.At, now.Sub(0).Seconds())
	s.Level = append(s.Level, f.server.remaining(now))
	s.Served = append(s.Served, m.served)
	for i := range f.threads {
		t := &f.threads[i]
		sleep := t.last
		switch p := &f.processes[t.process]; {
		case f.groups[t.group].gone:
			sleep = 0
		case t.thread != nil:
			sleep = t.thread.Sleep()
		case p.sleeper != nil:
			g := &f.scenario.Groups[t.group] // whose threads take turns
			sleep = p.sleeper.Sleep() * time.Duration(g.Threads)
		}
		s.Sleep[i] = append(s.Sleep[i], sleep.Seconds())
		s.ServedBy[i] = append(s.ServedBy[i], t.served)
	}
}

// settling counts arrivals from the last change on, in bins of a fortieth of the span that is looked at.
type settling struct {
	from   mono.Time
	bin    time.Duration
	wanted float64 // per span
	bins   []int64
}

const (
	binsPerSpan    = 40
	spansToBelieve = 10
)

func (s *settling) start(from, end mono.Time, perSecond, spanSeconds float64) {
	longest := end.Sub(from)
	if spanSeconds*1e9 > float64(longest) {
		return // no span fits
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

// settled returns from when on, counted from the change, every span that has passed by now held what it should. It takes
// ten spans to believe it: one may hold it by chance.
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
