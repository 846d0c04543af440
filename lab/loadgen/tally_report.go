package loadgen

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/lab/sim/fleet"
	"github.com/paceline-go/paceline/ratetest"
)

// Report is what became of a Fleet. Its fields are those of fleet.Report, as far as they can be
// measured from outside, so that a run in real time can be compared with one in virtual time.
// Sleep.Max includes jitter; P99 and Median do not.
type Report struct {
	Strategy string `json:"strategy"` // of all, or those of the processes joined by "+"
	// Strategies are the strategies of the processes, in turn.
	Strategies []string `json:"strategies"`
	Seconds    float64  `json:"seconds"` // by the fleet's clock
	Complete   bool     `json:"complete"`
	Clients    int      `json:"clients"`
	Scale      float64  `json:"scale"`

	Requests int `json:"requests"`
	Served   int `json:"served"`
	Limited  int `json:"limited"`
	// LimitedLate is how many were refused more than two minutes after the beginning.
	LimitedLate        int          `json:"limited_late"`
	RetryPercent       float64      `json:"retry_percent"`
	RetryPercentPooled float64      `json:"retry_percent_pooled"`
	Sleep              fleet.Sleeps `json:"sleep_s"`
	OptimumSleep       float64      `json:"optimum_sleep_s"`
	RequestSD          float64      `json:"request_sd"`
	Jain               float64      `json:"jain"`

	RequestCount []int     `json:"request_count"` // by client: the threads of each process in turn
	LimitedCount []int     `json:"limited_count"`
	RetryRatio   []float64 `json:"retry_ratio"`
	MaxSleep     []float64 `json:"max_sleep_s"`

	// URL is that of the server, if it was not started here; Server is then null.
	URL    string               `json:"url,omitempty"`
	Server *ratetest.GCRAReport `json:"server"`
	// Series has values at the instants of Sample.
	Series *fleet.Series `json:"series,omitempty"`
}

// tally collects the lines.
type tally struct {
	mu      sync.Mutex
	threads int
	last    []Line // the last line of each client
	late    int
	before  []float64 // the sleeps, as they were before each request
	tell    func(Line)

	lately []float64 // for each client, the longest sleep since the instant before in the series

	sample float64 // seconds
	series fleet.Series
}

// until samples the instants up to at, from the lines that came last. The clocks of processes
// differ by the time that they took to start.
func (t *tally) until(at float64) {
	s := &t.series
	for t.sample > 0 {
		next := float64(len(s.At)) * t.sample
		if next > at {
			return
		}
		if s.Sleep == nil {
			s.Sleep, s.Slept, s.ServedBy = make([][]float64, len(t.last)), make([][]float64, len(t.last)),
				make([][]int, len(t.last))
		}
		level, latest, served := int64(0), -1.0, 0
		for i, l := range t.last {
			s.Sleep[i] = append(s.Sleep[i], l.Sleep)
			s.Slept[i] = append(s.Slept[i], max(t.lately[i], l.Slept))
			t.lately[i] = 0
			s.ServedBy[i] = append(s.ServedBy[i], l.Requests-l.Retries)
			served += l.Requests - l.Retries
			if l.Requests > 0 && l.Remaining >= 0 && l.At > latest {
				level, latest = int64(l.Remaining), l.At
			}
		}
		s.At, s.Level, s.Served = append(s.At, next), append(s.Level, level), append(s.Served, served)
	}
}

func (t *tally) add(l Line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := l.Process*t.threads + l.Thread
	if l.Process < 0 || l.Thread < 0 || l.Thread >= t.threads || i >= len(t.last) {
		return
	}
	t.until(l.At)
	if l.Status == 429 && l.At > 120 {
		t.late++
	}
	if t.last[i].Requests > 0 {
		t.before = append(t.before, t.last[i].Sleep)
	}
	t.last[i], t.lately[i] = l, max(t.lately[i], l.Slept)
	if t.tell != nil {
		t.tell(l)
	}
}

// report makes the report of what ran in that time.
func (f *Fleet) report(t *tally, ran time.Duration, server *ratetest.GCRA) Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.report()
	for _, c := range f.configs() {
		r.Strategies = append(r.Strategies, c.Strategy)
	}
	r.Strategy = strings.Join(slices.Compact(slices.Sorted(slices.Values(r.Strategies))), "+")
	r.Scale, r.URL = f.Client.Scale, f.Client.URL
	r.Seconds = min(ran.Seconds()*f.Client.Scale, f.Client.Duration.Seconds())
	r.OptimumSleep = float64(r.Clients) / f.Client.Params.Rate
	if f.Sample > 0 {
		t.until(r.Seconds)
		r.Series = &t.series
		for i, d := range t.lately { // since its last instant
			if of := r.Series.Slept[i]; len(of) > 0 {
				of[len(of)-1] = max(of[len(of)-1], d)
			}
		}
	}
	if server != nil {
		report := server.Report()
		r.Server = &report
	}
	return r
}

func (t *tally) report() (r Report) {
	r.Clients, r.LimitedLate = len(t.last), t.late
	ratios, asking := 0.0, 0
	for _, l := range t.last {
		ratio := 0.0
		if l.Requests > 0 {
			ratio = float64(l.Retries) / float64(l.Requests)
			ratios += ratio
			asking++
		}
		r.Requests += l.Requests
		r.Limited += l.Retries
		r.RequestCount = append(r.RequestCount, l.Requests)
		r.LimitedCount = append(r.LimitedCount, l.Retries)
		r.RetryRatio = append(r.RetryRatio, ratio)
		r.MaxSleep = append(r.MaxSleep, l.MaxSleep)
		r.Sleep.Max = max(r.Sleep.Max, l.MaxSleep)
	}
	r.Served = r.Requests - r.Limited
	if asking > 0 {
		r.RetryPercent = 100 * ratios / float64(asking)
		r.RetryPercentPooled = 100 * float64(r.Limited) / float64(r.Requests)
	}
	if n := len(t.before); n > 0 {
		slices.Sort(t.before)
		r.Sleep.P99, r.Sleep.Median = t.before[(n-1)*99/100], t.before[(n-1)/2]
	}
	r.RequestSD, r.Jain = fleet.Spread(r.RequestCount)
	return r
}
