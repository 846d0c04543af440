package prom

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/paceline-go/paceline/observe"
)

const (
	// mostClients, mostLimits, mostKeys and mostHosts bound the series of each source.
	mostClients = 100
	mostLimits  = 500
	mostKeys    = 100
	mostHosts   = 50
	mostWaits   = 30 // limits, for each client
)

// Collector is a prometheus.Collector over sources. New or Live makes it. Safe for concurrent use.
type Collector struct {
	sources []*source
	live    func() []observe.Source // nil: the sources do not change

	mu    sync.Mutex
	named map[string]*source // with live: recent sources, by number and name
}

// Live returns a Collector of sources that come and go. At each collection it calls sources for the
// present ones. The label source has their names.
func Live(sources func() []observe.Source) *Collector {
	return &Collector{live: sources, named: map[string]*source{}}
}

// New returns a Collector of the sources. If there are several, the label source distinguishes
// them: by the name of NameSource, or by their number.
func New(sources ...observe.Source) *Collector {
	c := new(Collector)
	for i, s := range sources {
		v := newSource(s)
		if len(sources) > 1 {
			v.number = strconv.Itoa(i + 1)
		}
		c.sources = append(c.sources, v)
	}
	return c
}

// Handler serves the metrics of the sources, and nothing else.
func Handler(sources ...observe.Source) http.Handler { return New(sources...).Handler() }

// Handler serves the metrics of the Collector, and nothing else.
func (c *Collector) Handler() http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(c)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{})
}

var (
	limitLabels = []string{"source", "host", "key", "model", "route", "client", "limit", "unit", "window"}
	pauseLabels = []string{"source", "host", "key", "model", "route", "client"}
)

func desc(name, help string, values ...string) *prometheus.Desc {
	return prometheus.NewDesc("paceline_"+name, help, values, nil)
}

// The metrics. Those that end in _total only grow, as long as the process lives.
var (
	requests = desc("requests_total", "Requests by how they ended; those that were sent again, as often as that.",
		"source", "client", "result")
	sent        = desc("sent_total", "Requests that were let go, as often as they were sent.", "source", "client")
	resent      = desc("resent_total", "Attempts that were not the first of their request.", "source")
	waiting     = desc("waiting", "Requests in line.", "source", "client")
	inFlight    = desc("in_flight", "Requests that went and are not answered.", "source", "client")
	longestWait = desc("longest_wait_seconds", "For how long the first in line of a client has waited.", "source",
		"client")
	lastGoes = desc("last_goes_seconds",
		"In how long about the last in line of a client goes, if nobody else comes; it is missing where nobody knows.",
		"source", "client")
	waits = desc("wait_seconds",
		"How long requests were in line, by the limit that took most of it; none: they went at once.", "source", "limit",
		"client")
	tokens = desc("tokens_total",
		"Tokens that were used, as answers told them; other: of servers that tell no more than the sum.", "source",
		"client", "kind")
	money = desc("money_total", "Money that was used, as answers told it, in whatever the limit is in.", "source",
		"client")

	limitUsed    = desc("limit_used", "How much of a limit counts now, what is in flight included.", limitLabels...)
	limitCeiling = desc("limit_ceiling", "The most that may count at once.", limitLabels...)
	limitRate    = desc("limit_per_window", "How much the limit lets through in a window, in the long run.",
		limitLabels...)
	limitFits = desc("limit_fits",
		"How much of it the server was found to allow in a window: less than limit_per_window if the limit is wrong.",
		limitLabels...)
	limitWindow = desc("limit_window_seconds", "The window of a limit.", limitLabels...)
	limitShare  = desc("limit_share", "What was counted in the last window, as part of the ceiling: 1 is all of it.",
		limitLabels...)
	limitCounted = desc("limit_counted_total", "What was counted by a limit and is settled.", limitLabels...)
	limitWaiting = desc("limit_waiting", "Requests in line that wait for this limit.", limitLabels...)
	shareState   = desc("share_state", "1 for the state that a limit in a store is in.", append(slices.Clip(limitLabels), "state")...)

	pauses   = desc("pauses_total", "Pauses that refusals began.", "source")
	paused   = desc("paused_seconds", "For how much longer somebody stays away.", pauseLabels...)
	hostDown = desc("host_down", "1 while nothing arrives at a host.", "source", "host")
	keyState = desc("key_state", "1 for the state that a key is in.", "source", "host", "key", "state")
	upstream = desc("upstream_seconds",
		"How long answers took, from when a request was written to the header of its answer.", "source", "host")
	frozen     = desc("frozen", "Partitions, or clients with limits of their own, that are idle and of which something counts.", "source", "what")
	frozenUsed = desc("frozen_bytes", "What they take.", "source", "what")
	frozenMost = desc("frozen_bytes_max", "What they may take; beyond it new ones are refused.", "source", "what")
	noRoom     = desc("no_room_total", "Requests that were refused since there was no room for what counts of them.", "source")
	everything = []*prometheus.Desc{
		requests, sent, resent, waiting, inFlight, longestWait, lastGoes, waits, tokens, money, limitUsed, limitCeiling,
		limitRate, limitFits, limitWindow,
		limitShare, limitCounted, limitWaiting, shareState, pauses, paused, hostDown, keyState, upstream, frozen, frozenUsed, frozenMost, noRoom,
	}
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range everything {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	taken := map[string]bool{}
	sources, snapshots := c.look()
	for i, s := range sources {
		snapshot := snapshots[i]
		name := observe.LabelValue(snapshot.Name)
		if name == "" || taken[name] {
			name += s.number
		}
		taken[name] = true
		s.mu.Lock()
		all := collection{to: to, source: name}
		all.requests(s, &snapshot)
		all.limits(s, &snapshot)
		all.servers(s, &snapshot)
		s.mu.Unlock()
	}
}

// look returns the sources, and a Snapshot of each.
func (c *Collector) look() (sources []*source, snapshots []observe.Snapshot) {
	if c.live == nil {
		for _, s := range c.sources {
			snapshots = append(snapshots, s.Snapshot())
		}
		return c.sources, snapshots
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := map[string]*source{}
	for i, s := range c.live() {
		snapshot := s.Snapshot()
		id := snapshot.Name
		if now[id] != nil { // another of that name
			id += "\x00" + strconv.Itoa(i+1)
		}
		v := c.named[id] // its labels stay as they are
		if v == nil {
			v = newSource(nil)
			v.number = strconv.Itoa(i + 1)
		}
		now[id], sources, snapshots = v, append(sources, v), append(snapshots, snapshot)
	}
	c.named = now
	return sources, snapshots
}

// collection is the metrics of one source, on their way to Prometheus.
type collection struct {
	to     chan<- prometheus.Metric
	source string
}

func (c *collection) count(d *prometheus.Desc, n float64, values ...string) {
	c.to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, n, append([]string{c.source}, values...)...)
}

func (c *collection) gauge(d *prometheus.Desc, n float64, values ...string) {
	c.to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, append([]string{c.source}, values...)...)
}

func (c *collection) histogram(d *prometheus.Desc, bounds []time.Duration, t *observe.Times, values ...string) {
	upto := make(map[float64]uint64, len(bounds))
	for i, b := range bounds {
		if i < len(t.Upto) {
			upto[b.Seconds()] = uint64(t.Upto[i])
		}
	}
	c.to <- prometheus.MustNewConstHistogram(d, uint64(t.Count), t.Sum.Seconds(), upto,
		append([]string{c.source}, values...)...)
}
