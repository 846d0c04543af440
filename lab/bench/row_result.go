package bench

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/paceline-go/paceline/lab/sim"
)

// Report is what `paceline-lab bench exchange -o json` prints. Fields are only ever added to.
type Report struct {
	Policies []Result `json:"policies"`
	Seeds    int      `json:"seeds"`
	Seconds  float64  `json:"seconds"`  // of each run
	Latency  string   `json:"latency"`  // law, each way
	Exchange string   `json:"exchange"` // what the clients met: Exchange.String
	Virtual  bool     `json:"virtual"`  // true
	Wall     float64  `json:"wall_seconds"`
	CPU      float64  `json:"cpu_seconds"` // of the whole process
}

// Result is a row: rates and percentages are means over the seeds, counts are sums.
type Result struct {
	Group       string  `json:"group"`
	Name        string  `json:"name"`
	Generator   string  `json:"generator"`
	Nonce       bool    `json:"nonce"`
	Concurrency string  `json:"concurrency"`
	Queue       string  `json:"queue"`
	Note        string  `json:"note,omitempty"`
	Keys        int     `json:"keys"`
	Seconds     float64 `json:"seconds"`

	Rate             float64 `json:"rate"`               // successes a second
	Ceiling          float64 `json:"ceiling"`            // the most that theory allows with this load and this knowledge
	PercentOfCeiling float64 `json:"percent_of_ceiling"` // 0 if the ceiling is 0
	Offered          int     `json:"offered"`            // requests made
	Successes        int     `json:"successes"`
	Failures         int     `json:"failures"` // attempts that ended in another way
	Rejected         int     `json:"rejected"` // 429s, as the server counted them
	BadNonce         int     `json:"bad_nonce"`
	BannedKeys       int     `json:"banned_keys"`
	Expired          int     `json:"expired"`
	Dead             int     `json:"dead"`
	Waiting          int     `json:"waiting"` // requests at the end that waited or were in flight
	Lost             int     `json:"lost"`
	// of the requests made, those answered within the TTL of their making
	InTimePercent float64 `json:"in_time_percent"`

	Latency struct {
		SinceMade Quantiles `json:"since_made"`
		SinceSent Quantiles `json:"since_sent"`
	} `json:"latency_ms"`
	// from the making of a request to its first sending; requests that were never sent do not count
	Delay Quantiles `json:"delay_ms"`

	PollsPerAdmission float64 `json:"polls_per_admission"` // how often a limiter told a worker to wait on
	// timers, with those of polls, and ends of attempts: sim.Tally.WakeUps
	WakeUpsPerAdmission float64 `json:"wake_ups_per_admission"`

	sent int
}

// Quantiles sums up durations, in milliseconds.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// samples are the durations that were measured in a row.
type samples struct{ delay, sinceMade, sinceSent *hdrhistogram.Histogram }

func newSamples() samples {
	h := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Hour/time.Microsecond), 3) }
	return samples{h(), h(), h()}
}

func (s samples) merge(o samples) {
	s.delay.Merge(o.delay)
	s.sinceMade.Merge(o.sinceMade)
	s.sinceSent.Merge(o.sinceSent)
}

// record keeps a duration in microseconds. One that is longer than the scale, an hour, is kept as an hour.
func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(d.Microseconds(), 0), h.HighestTrackableValue()))
}

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	if h.TotalCount() == 0 {
		return Quantiles{}
	}
	ms := func(us float64) float64 { return math.Round(us) / 1000 }
	return Quantiles{ms(h.Mean()), ms(float64(h.ValueAtQuantile(50))), ms(float64(h.ValueAtQuantile(99))),
		ms(float64(h.Min())), ms(float64(h.Max()))}
}

// add puts the tally of one run of the given length into the row.
func (r *Result) add(t sim.Tally, length time.Duration, runs int) {
	r.Rate += float64(t.Successes) / length.Seconds() / float64(runs)
	r.Offered += int(t.Counts.Submitted)
	r.Successes += t.Successes
	r.Failures += t.Failures
	r.Rejected += t.Rejected
	r.BadNonce += t.BadNonce
	r.BannedKeys += t.BannedKeys
	r.Expired += int(t.Counts.Expired)
	r.Dead += int(t.Counts.Dead)
	r.Waiting += int(t.Counts.Waiting + t.Counts.InFlight)
	r.Lost += t.Lost
	r.InTimePercent += float64(t.InTime)
	r.PollsPerAdmission += float64(t.Polls)
	r.WakeUpsPerAdmission += float64(t.WakeUps)
	r.sent += t.Sent
}

func (r *Result) finish(s samples) {
	if r.Ceiling > 0 { // in a short run theory may allow no answer at all
		r.PercentOfCeiling = 100 * r.Rate / r.Ceiling
	}
	r.InTimePercent *= 100 / max(float64(r.Offered), 1)
	r.PollsPerAdmission /= max(float64(r.sent), 1)
	r.WakeUpsPerAdmission /= max(float64(r.sent), 1)
	r.Delay = quantiles(s.delay)
	r.Latency.SinceMade, r.Latency.SinceSent = quantiles(s.sinceMade), quantiles(s.sinceSent)
}

func (row *Row) result(length time.Duration) Result {
	note := row.Note
	if row.Scenario.Restart >= length {
		note += ", which is not within this run"
	}
	return Result{Group: row.Group, Name: row.Name, Generator: row.Scenario.Generator.String(), Nonce: row.Nonce(),
		Concurrency: row.Concurrency, Queue: row.Queue, Note: note, Keys: row.Scenario.Server.Keys, Seconds: length.Seconds()}
}
