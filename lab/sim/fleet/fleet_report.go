package fleet

import (
	"math"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Report is what became of a Scenario, or of the part of it that has run. Times are in seconds.
// Fields are only ever added; pointers are nil, and null in JSON, where there is nothing to
// measure.
type Report struct {
	Scenario string  `json:"scenario"`
	Seed     uint64  `json:"seed"`
	Seconds  float64 `json:"seconds"` // how long it has run
	Complete bool    `json:"complete"`
	Clients  int     `json:"clients"`

	// Requests is how many requests were answered, Served and Limited. GivenUp is how many limited
	// ones the client did not try again.
	Requests int `json:"requests"`
	Served   int `json:"served"`
	Limited  int `json:"limited"`
	GivenUp  int `json:"given_up"`
	// RetryPercent is how many percent of a client's requests were limited, averaged over the clients,
	// whatever their number of requests, as in the published simulations. The pooled figure is the
	// percentage of all requests together.
	RetryPercent       float64 `json:"retry_percent"`
	RetryPercentPooled float64 `json:"retry_percent_pooled"`
	// LimitedLate is how many requests were refused more than two minutes after the first request arrived.
	LimitedLate int `json:"limited_late"`
	// Steady is about the last two thirds of the run only.
	Steady Steady `json:"steady"`

	// Sleep is how long the tries waited, including jitter. A sleep that would last beyond the end
	// counts as planned, as in the published simulations.
	Sleep Sleeps `json:"sleep_s"`
	// OptimumSleep is n/μ, the time between two requests of a client at the end, if all clients that
	// are Always or OnOff share evenly; OptimumSleepMost is the largest that it ever was. They are 0
	// if nothing comes back or nobody is there.
	OptimumSleep     float64 `json:"optimum_sleep_s"`
	OptimumSleepMost float64 `json:"optimum_sleep_most_s"`

	// RequestSD is the sample standard deviation of the numbers of requests of the clients, and Jain
	// is Jain's index of fairness of them, 1 at best. Clients whose groups differ in Demand, Join or
	// Leave are compared only within their class: deviations are from the mean of the class.
	RequestSD float64 `json:"request_sd"`
	Jain      float64 `json:"jain"`
	// Shares says how evenly what was served was shared; SharesSteady says it of the last two thirds
	// of the run, and Windows of each window of the quota. Windows is nil if there is no whole window,
	// or too many.
	Shares       Shares        `json:"shares"`
	SharesSteady Shares        `json:"shares_steady"`
	Windows      *WindowShares `json:"windows"`
	// LongestWait is the longest time from when a request came to when it was served, or to the end.
	LongestWait float64 `json:"longest_wait_s"`

	// Offered is how many requests could have been served since the first one arrived: the level at
	// that time, and all that came back. UnusedPercent is how many percent of them were not served.
	Offered       float64 `json:"offered"`
	UnusedPercent float64 `json:"unused_percent"`
	// Level is what remained when requests were answered.
	Level Levels `json:"level"`
	// PeakConcurrent is the most requests at the server at once.
	PeakConcurrent int `json:"peak_concurrent"`

	// Clear is the time from the first sending until the groups with a Total were done.
	Clear *float64 `json:"clear_s"`
	// Settle is how long after the last change (of quota or clients) it took to settle: from then on,
	// in every span of 50/μ or twice the optimum sleep, whichever is longer, as many requests arrive
	// as the quota lets pass, limited ones included, give or take 10 %. What is over within a tenth of
	// a span may not show. Nil if it did not settle, at least ten such spans before the end, nothing
	// changed, or not all that stay are Always.
	Settle *float64 `json:"settle_s"`
	// Change is when the change happened that Settle counts from. Nil if Settle is not measured.
	Change *float64 `json:"change_s"`
	// SettleClients is how long after the last change, or the beginning, the last client had settled:
	// from then on, any three intervals in a row between its sendings are on average what is fair by
	// weight, give or take a quarter. Nil if a client did not settle, if not all that stay are Always,
	// or if costs are drawn.
	SettleClients *float64 `json:"settle_clients_s"`

	Groups []GroupReport `json:"groups"`
	// Store is nil where no group follows Share.
	Store  *StoreReport `json:"store,omitempty"`
	Series *Series      `json:"series,omitempty"`
	// Expected has the outcome of each Expectation of a run that is complete.
	Expected []Expected `json:"expect,omitempty"`
	// Events is how many events the simulation had.
	Events uint64 `json:"events"`
}

// Sleeps are in seconds.
type Sleeps struct {
	Max    float64 `json:"max"`
	P99    float64 `json:"p99"` // to 1 %, as the median
	Median float64 `json:"median"`
}

// Levels are in requests.
type Levels struct {
	Mean  float64 `json:"mean"`
	Least int64   `json:"least"`
	Last  int64   `json:"last"`
}

// GroupReport has a value per client in each list.
type GroupReport struct {
	Name      string `json:"name"`
	Strategy  string `json:"strategy"`
	Processes int    `json:"processes"`
	Threads   int    `json:"threads"`

	Requests   []int     `json:"request_count"`
	Limited    []int     `json:"limited_count"`
	RetryRatio []float64 `json:"retry_ratio"`
	MaxSleep   []float64 `json:"max_sleep_s"`
	// Share is as in Shares, for what the server served to each client, and ShareSteady for the last
	// two thirds of the run; MeanShare and MeanShareSteady are the means of the group. They are empty
	// and 0 if there is nothing to compare.
	Share           []float64 `json:"share"`
	ShareSteady     []float64 `json:"share_steady"`
	MeanShare       float64   `json:"mean_share"`
	MeanShareSteady float64   `json:"mean_share_steady"`
	// LongestWait is as in Report.
	LongestWait []float64 `json:"longest_wait_s"`

	// Delay is the time from when a request came to when it was served, for all requests of the group.
	Delay Delays `json:"delay_s"`
}

// Delays are in seconds.
type Delays struct {
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// Series has values at the instants At, for charts.
type Series struct {
	At     []float64 `json:"at_s"`
	Level  []int64   `json:"level"`
	Served []int     `json:"served"` // until then
	// ServedBy is Served for each client; the groups stand one after another.
	ServedBy [][]int `json:"served_by"`
	// Sleep is how long each client throttled, without jitter: by client, one group after another,
	// then by instant. If the client's limiter does not tell, it is the last wait. If it does, it
	// tells of the process, and the value is multiplied by the number of threads that take turns.
	Sleep [][]float64 `json:"sleep_s"`
	// Slept is the longest that each client throttled since the instant before, with jitter; or, if it
	// sent nothing since then, before that: by client, then by instant. Its maximum is
	// GroupReport.MaxSleep. Sleep may be more or less than that, since it is what a strategy plans.
	Slept [][]float64 `json:"slept_s,omitempty"`
}

// Report tells what became of the scenario so far.
func (f *Fleet) Report() Report {
	s, m := &f.scenario, &f.m
	r := Report{Scenario: s.Name, Seed: s.Seed, Seconds: m.now.Sub(0).Seconds(), Complete: f.ended,
		Clients:  len(f.threads),
		Requests: m.served + m.limited, Served: m.served, Limited: m.limited, LimitedLate: m.late,
		OptimumSleep: m.optimum, OptimumSleepMost: m.optimumMost, PeakConcurrent: m.peak, Events: m.events}
	ratios, asking := 0.0, 0
	var peers peers
	most := time.Duration(0)
	for i := range f.groups {
		g, c := &f.groups[i], &s.Groups[i]
		of := GroupReport{Name: c.Name, Strategy: c.Strategy.Name, Processes: c.Processes, Threads: c.Threads,
			Delay: Delays{Max: g.delay.longest.Seconds()}}
		if g.delay.n > 0 {
			of.Delay.Mean = g.delay.sum.Seconds() / float64(g.delay.n)
		}
		for j := g.threads.from; j < g.threads.to; j++ {
			t := &f.threads[j]
			n, ratio := t.served+t.refused, 0.0
			if n > 0 {
				ratio = float64(t.refused) / float64(n)
				ratios += ratio
				asking++
			}
			sleep := max(t.longest, f.sleeping(j))
			most = max(most, sleep)
			of.Requests = append(of.Requests, n)
			of.Limited = append(of.Limited, t.refused)
			of.RetryRatio = append(of.RetryRatio, ratio)
			of.MaxSleep = append(of.MaxSleep, sleep.Seconds())
			wait := max(t.longestWait, f.waiting(j)).Seconds()
			of.LongestWait = append(of.LongestWait, wait)
			r.LongestWait = max(r.LongestWait, wait)
		}
		peers.add(c, of.Requests)
		r.GivenUp += g.gaveUp
		r.Groups = append(r.Groups, of)
	}
	f.reportShares(&r)
	r.RetryPercent = percent(ratios, float64(asking))
	r.RetryPercentPooled = percent(float64(r.Limited), float64(r.Requests))
	r.Sleep = Sleeps{most.Seconds(), min(m.sleeps.Quantile(0.99), most).Seconds(),
		min(m.sleeps.Quantile(0.5), most).Seconds()}
	r.RequestSD, r.Jain = peers.spread()
	r.Level = Levels{Least: m.levelLeast, Last: m.level}
	if m.arrivals > 0 {
		r.Level.Mean = m.levelSum / float64(m.arrivals)
		r.Offered = max(float64(s.Server.Level-m.lost)+s.Server.refill(m.firstArrival, m.firstArrival, m.now),
			float64(m.passed))
		r.UnusedPercent = 100 - percent(float64(m.passed), r.Offered)
	}
	if f.open == 0 {
		r.Clear = new(m.cleared.Sub(m.firstSending).Seconds())
	}
	if m.settling.bin > 0 {
		r.Change = new(m.settling.from.Sub(0).Seconds())
	}
	if d, ok := m.settling.settled(m.now); ok {
		r.Settle = new(d.Seconds())
	}
	if d, ok := f.paced(); ok {
		r.SettleClients = new(d.Seconds())
	}
	r.Store = f.store.report(f)
	for i := range s.Expect {
		if r.Complete {
			r.Expected = append(r.Expected, s.Expect[i].judge(&r))
		}
	}
	if s.Sample > 0 {
		series := m.series
		series.Slept = make([][]float64, len(f.threads))
		for i := range f.threads {
			of := slices.Clone(m.series.Slept[i])
			if n := len(of); n > 0 { // what began after the last instant
				of[n-1] = max(of[n-1], f.sleptLately(int32(i)).Seconds())
			}
			series.Slept[i] = of
		}
		r.Series = &series
	}
	return r
}

// sleeping returns how long a thread that stands in its limiter's line will have waited, as far as that can be told.
func (f *Fleet) sleeping(who int32) time.Duration {
	t := &f.threads[who]
	if t.thread != nil || !t.waiting || f.groups[t.group].gone {
		return 0
	}
	until := f.m.now
	if p := &f.processes[t.process]; p.head == who {
		if at := p.limiter.Ready(f.m.now, f.scenario.Server.costs(t.cost)); at < limit.AfterSettle {
			until = at
		}
	}
	return until.Sub(t.asked)
}

// sleptLately is the longest that a thread slept since the series' instant before, or before that if it sleeps on.
func (f *Fleet) sleptLately(who int32) time.Duration {
	t := &f.threads[who]
	d := max(t.lately, f.sleeping(who))
	if !f.groups[t.group].gone {
		d = max(d, t.last)
	}
	return d
}

// waiting returns how long the request of a thread that has waited longest does so.
func (f *Fleet) waiting(who int32) time.Duration {
	t := &f.threads[who]
	switch {
	case f.groups[t.group].gone:
		return 0
	case t.cost > 0:
		return f.m.now.Sub(t.since)
	case t.demand != nil && len(t.demand.queue) > 0:
		return f.m.now.Sub(t.demand.queue[0])
	}
	return 0
}

// reportShares fills in who had how much.
func (f *Fleet) reportShares(r *Report) {
	m := &f.m
	m.windows.until(f, m.now)
	r.Windows, r.Steady = m.windows.report(), m.steady
	r.Steady.Percent = percent(float64(m.steady.Limited), float64(m.steady.Requests))
	everybody := func(*Group) bool { return true }
	all := f.shares(func(t *taken) int64 { return t.all }, everybody)
	steady := f.shares(func(t *taken) int64 { return t.all - t.early }, everybody)
	r.Shares, r.SharesSteady = all.Shares, steady.Shares
	for i := range r.Groups {
		g, from, to := &r.Groups[i], f.groups[i].threads.from, f.groups[i].threads.to
		g.Share, g.MeanShare = listed(all.all[from:to])
		g.ShareSteady, g.MeanShareSteady = listed(steady.all[from:to])
	}
}

// listed returns shares of a group and their mean, or none.
func listed(shares []float64) (all []float64, mean float64) {
	if len(shares) == 0 || math.IsNaN(shares[0]) {
		return []float64{}, 0
	}
	for _, s := range shares {
		mean += s / float64(len(shares))
	}
	return shares, mean
}

// percent returns 100 a/b, and 0 of nothing.
func percent(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return 100 * a / b
}
