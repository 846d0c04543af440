package fleet

import (
	"encoding/json"
	"io"
	"math"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Report is what became of a Scenario, or of as much of it as has run. Times are in seconds. It has the fields of its JSON,
// which are only ever added to; pointers are nil, and null, where there is nothing to measure.
type Report struct {
	Scenario string  `json:"scenario"`
	Seed     uint64  `json:"seed"`
	Seconds  float64 `json:"seconds"` // that have run
	Complete bool    `json:"complete"`
	Clients  int     `json:"clients"`

	// Requests were answered: Served and Limited. GivenUp are the limited ones after which the client did not try again.
	Requests int `json:"requests"`
	Served   int `json:"served"`
	Limited  int `json:"limited"`
	GivenUp  int `json:"given_up"`
	// RetryPercent is how many of its requests were limited, averaged over the clients whatever their number of requests, as
	// the published simulations have it; Pooled of all requests together.
	RetryPercent       float64 `json:"retry_percent"`
	RetryPercentPooled float64 `json:"retry_percent_pooled"`
	// LimitedLate were refused more than two minutes after the first request arrived.
	LimitedLate int `json:"limited_late"`
	// Steady is of the last two thirds of the run alone.
	Steady Steady `json:"steady"`

	// Sleep is what the tries waited for, with jitter. A sleep that lasts beyond the end counts as it was planned, as in the
	// published simulations.
	Sleep Sleeps `json:"sleep_s"`
	// OptimumSleep is n/μ, the time between two requests of a client if all that are Always or OnOff share evenly, at the end;
	// OptimumSleepMost is the most that it was at any time. 0 if nothing comes back or nobody is there.
	OptimumSleep     float64 `json:"optimum_sleep_s"`
	OptimumSleepMost float64 `json:"optimum_sleep_most_s"`

	// RequestSD is the sample standard deviation of the clients' requests, and Jain is Jain's index of fairness of them, 1 at
	// best. Clients whose groups differ in Demand, Join or Leave are compared with their like alone: deviations are from the
	// mean of the like.
	RequestSD float64 `json:"request_sd"`
	Jain      float64 `json:"jain"`
	// Shares is how what was served was shared, SharesSteady that of the last two thirds of the run, and Windows of each window of
	// the quota: nil if there is no whole one, or too many.
	Shares       Shares        `json:"shares"`
	SharesSteady Shares        `json:"shares_steady"`
	Windows      *WindowShares `json:"windows"`
	// LongestWait is the longest from the coming of a request to its being served, or to the end.
	LongestWait float64 `json:"longest_wait_s"`

	// Offered is how many requests could have been served since the first arrived: the level then and what came back, all of
	// it. UnusedPercent of them were not.
	Offered       float64 `json:"offered"`
	UnusedPercent float64 `json:"unused_percent"`
	// Level is what remained, as of the answers.
	Level Levels `json:"level"`
	// PeakConcurrent is the most requests at the server at once.
	PeakConcurrent int `json:"peak_concurrent"`

	// Clear is from the first sending until the groups with a Total were done.
	Clear *float64 `json:"clear_s"`
	// Settle is how long after the last change (of quota or clients) it took to settle: from then on, in every span of 50/μ
	// or twice the optimum sleep, whichever is longer, as many requests arrive as the quota lets pass, limited ones included,
	// give or take 10 %. What is over within a tenth of a span may not show. Nil if it did not settle, at least ten such
	// spans before the end, nothing changed, or not all that stay are Always.
	Settle *float64 `json:"settle_s"`
	// Change is when the change was after which Settle is measured. Nil if it is not.
	Change *float64 `json:"change_s"`
	// SettleClients is how long after the last change, or the beginning, the last client had settled: from then on every three
	// intervals in a row between two of its sendings are on average what is fair by weight, give or take a quarter. Nil if one had
	// not, not all that stay are Always, or costs are drawn.
	SettleClients *float64 `json:"settle_clients_s"`

	Groups []GroupReport `json:"groups"`
	Series *Series       `json:"series,omitempty"`
	// Events is how many the simulation went through.
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
	// Share is as in Shares, of what the server served each client, ShareSteady in the last two thirds of the run; MeanShare and
	// MeanShareSteady are the group's. Empty and 0 where there is nothing to compare.
	Share           []float64 `json:"share"`
	ShareSteady     []float64 `json:"share_steady"`
	MeanShare       float64   `json:"mean_share"`
	MeanShareSteady float64   `json:"mean_share_steady"`
	// LongestWait is as in Report.
	LongestWait []float64 `json:"longest_wait_s"`

	// Delay is from the coming of a request to its being served, of all the group's.
	Delay Delays `json:"delay_s"`
}

// Delays are in seconds.
type Delays struct {
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// Series is what was at the instants At, for charts.
type Series struct {
	At     []float64 `json:"at_s"`
	Level  []int64   `json:"level"`
	Served []int     `json:"served"` // until then
	// ServedBy is Served by client, groups in turn.
	ServedBy [][]int `json:"served_by"`
	// Sleep is how long each client throttled, without jitter: by client, groups in turn, then by instant. A client whose
	// limiter does not tell has what it waited for last. Where one does, it is for a process, and a client has as many
	// times that as threads take turns.
	Sleep [][]float64 `json:"sleep_s"`
}

// Report tells what became of the scenario so far.
func (f *Fleet) Report() Report {
	s, m := &f.scenario, &f.m
	r := Report{Scenario: s.Name, Seed: s.Seed, Seconds: m.now.Sub(0).Seconds(), Complete: f.ended, Clients: len(f.threads),
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
	r.Sleep = Sleeps{most.Seconds(), min(m.sleeps.Quantile(0.99), most).Seconds(), min(m.sleeps.Quantile(0.5), most).Seconds()}
	r.RequestSD, r.Jain = peers.spread()
	r.Level = Levels{Least: m.levelLeast, Last: m.level}
	if m.arrivals > 0 {
		r.Level.Mean = m.levelSum / float64(m.arrivals)
		r.Offered = max(float64(s.Server.Level-m.lost)+s.Server.refill(m.firstArrival, m.firstArrival, m.now), float64(m.passed))
		r.UnusedPercent = 100 - percent(float64(m.passed), r.Offered)
	}
	if f.open == 0 {
		clear := m.cleared.Sub(m.firstSending).Seconds()
		r.Clear = &clear
	}
	if m.settling.bin > 0 {
		change := m.settling.from.Sub(0).Seconds()
		r.Change = &change
	}
	if d, ok := m.settling.settled(m.now); ok {
		settle := d.Seconds()
		r.Settle = &settle
	}
	if d, ok := f.paced(); ok {
		settle := d.Seconds()
		r.SettleClients = &settle
	}
	if s.Sample > 0 {
		series := m.series
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

// WriteJSON writes the report.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// percent returns 100 a/b, and 0 of nothing.
func percent(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return 100 * a / b
}
