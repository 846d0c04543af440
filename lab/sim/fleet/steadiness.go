package fleet

import (
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/core/histogram"
	"github.com/paceline-go/paceline/limit/mono"
)

// measures are what a Fleet counts as it runs.
type measures struct {
	now    mono.Time
	events uint64

	// Counted at the server.
	firstArrival, lastArrival mono.Time
	arrivals                  int
	passed                    int64 // in the quota's unit
	late                      int
	steadyFrom                mono.Time
	steady                    Steady
	windows                   windows
	level, levelLeast         int64
	levelSum                  float64
	lost                      int64 // what did not fit into the level because of changes
	concurrent, peak          int

	// Counted at the clients.
	firstSending    mono.Time
	sent            bool
	served, limited int
	sleeps          histogram.Histogram
	cleared         mono.Time

	optimum, optimumMost float64
	settling             settling
	lastChange           mono.Time
	paced                bool // clients have a fair interval since the last change
	series               Series
}

// Steady counts the answers to requests that arrived in the last two thirds of the run.
type Steady struct {
	Requests int `json:"requests"`
	Limited  int `json:"limited"`
	// Percent is what percentage of Requests were Limited.
	Percent float64 `json:"limited_percent"`
}

func (s *Steady) count(limited bool) {
	s.Requests++
	if limited {
		s.Limited++
	}
}

// start computes what is known before the run.
func (m *measures) start(f *Fleet) {
	s := &f.scenario
	m.level, m.levelLeast = s.Server.Level, s.Server.Level
	last := mono.Time(0) // of the last change
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
	m.lastChange, m.steadyFrom = last, mono.Time(s.Duration/3)
	saturated := m.optimum > 0
	for _, g := range s.Groups {
		stays := g.Join < s.Duration && (g.Leave == 0 || g.Leave >= s.Duration)
		saturated = saturated && (!stays || g.Demand.Kind == Always && g.Demand.Total == 0)
	}
	if saturated {
		m.paced = f.fairIntervals(s.Server.perSecond(last))
	}
	if last > 0 && saturated {
		rate := s.Server.perSecond(last)
		m.settling.start(last, f.end, rate, max(50/rate, 2*m.optimum))
	}
	if s.Sample > 0 {
		m.series.Sleep = make([][]float64, len(f.threads))
		m.series.Slept = make([][]float64, len(f.threads))
		m.series.ServedBy = make([][]int, len(f.threads))
	}
}

// arrival counts a request that the server has decided about.
func (m *measures) arrival(f *Fleet, now mono.Time, who int32) {
	client := &f.threads[who]
	cost, t := client.cost, &client.told
	if m.arrivals == 0 {
		m.firstArrival = now
		m.windows.start(f, now)
	}
	m.windows.until(f, now)
	if now >= m.steadyFrom {
		m.steady.count(t.limited)
	}
	m.arrivals++
	m.level, m.levelLeast = t.left, min(m.levelLeast, t.left)
	m.levelSum += float64(t.left)
	if !t.limited {
		m.passed += cost
		client.taken.add(cost, now < m.steadyFrom)
	} else if now.Sub(m.firstArrival) > 2*time.Minute {
		m.late++
	}
	m.settling.count(now, cost)
}

func (m *measures) enterServer() {
	m.concurrent++
	m.peak = max(m.peak, m.concurrent)
}

// sameInstant counts concurrent requests where the server takes no time: those that arrive at one instant.
func (m *measures) sameInstant(now mono.Time) {
	if now != m.lastArrival {
		m.concurrent = 0
	}
	m.lastArrival = now
	m.enterServer()
}

func (m *measures) sending(f *Fleet, now mono.Time, who int32) {
	if !m.sent {
		m.sent, m.firstSending = true, now
	}
	t := &f.threads[who]
	if fair := f.groups[t.group].fair; fair > 0 && now >= m.lastChange {
		t.pace.send(now, fair)
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
	t.longest, t.lately, t.last = max(t.longest, d), max(t.lately, d), d
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
			g := &f.scenario.Groups[t.group] // its threads take turns
			sleep = p.sleeper.Sleep() * time.Duration(g.Threads)
		}
		s.Sleep[i] = append(s.Sleep[i], sleep.Seconds())
		s.Slept[i] = append(s.Slept[i], f.sleptLately(int32(i)).Seconds())
		t.lately = 0
		s.ServedBy[i] = append(s.ServedBy[i], t.served)
	}
}
