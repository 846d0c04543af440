package bench

import (
	"fmt"
	"time"

	"github.com/paceline-go/paceline/internal/core/ceiling"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

const (
	timeout    = time.Second
	latencyMax = 50 * time.Millisecond // each way, of the exchange on which the published clients were measured
	nonceSlack = 10 * time.Microsecond
)

// Row is one line of the table: a client and its load.
type Row struct {
	Group       string // the group of the table
	Name        string
	Concurrency string
	Queue       string
	Note        string
	// Knows is what the client knows, for the ceiling.
	Knows ceiling.Knowledge
	// Largest is the largest one-way latency that the client was told, if any.
	Largest  time.Duration
	Scenario sim.Exchange
}

// Nonce says whether the row's requests are numbered.
func (r *Row) Nonce() bool { return r.Scenario.Nonce != sim.NoNonces }

// ID names this row alone; variants of a row share its name.
func (r *Row) ID() string {
	id := r.Name + "/" + r.Scenario.Generator.String()
	if r.Nonce() {
		id += "/nonce"
	}
	return id
}

func (t *rowTable) lease() limit.Limiter { return limit.MustRolling(int64(t.Limit), t.Window) }

func (t *rowTable) leaseBounded() limit.Limiter {
	r, err := limit.NewRolling(limit.RollingConfig{Limit: int64(t.Limit), Window: t.Window,
		Arrivals: limit.Arrivals{OneWayMax: latencyMax}})
	if err != nil {
		panic(err)
	}
	return r
}

func (t *rowTable) publishedLimiter(c sim.PublishedConfig) func() limit.Limiter {
	c.Limit, c.Window = t.Limit, t.Window
	return func() limit.Limiter { return sim.NewPublished(c) }
}

// Rows returns the whole table of an exchange; Check must have returned nil.
func (e Exchange) Rows() []Row {
	e = e.filled()
	t := rowTable{
		Exchange: e,
		// The published queue gives up what failed: nothing is tried again.
		once: pool.QueueConfig{MaxAttempts: 1, KeepDead: -1},
		ours: pool.QueueConfig{MaxAttempts: e.attempts(0), KeepDead: -1},
		base: sim.Exchange{
			Server:  e.rule(),
			Forward: e.Latency, Back: e.Latency, TTL: e.TTL, Timeout: timeout,
		},
	}
	t.promise = "the largest one-way latency is configured: " + latencyMax.String()
	if most, ok := e.Latency.Max(); !ok || most > latencyMax {
		t.promise += ", which this law exceeds"
	}
	for _, generator := range []sim.Generator{sim.Original, sim.Saturating} {
		for _, numbered := range []bool{true, false} {
			t.published(generator, numbered)
			t.leases(generator, numbered)
		}
	}
	t.models()
	t.queues()
	t.nonces()
	t.generators()
	t.keys()
	return t.rows
}

// rowTable is the table while it is made, and what its rows have in common.
type rowTable struct {
	Exchange
	base       sim.Exchange
	once, ours pool.QueueConfig
	promise    string
	rows       []Row
}

// add adds a row of the common scenario, with changes.
func (t *rowTable) add(r Row, change func(*sim.Exchange)) *Row {
	r.Scenario = t.base
	change(&r.Scenario)
	t.rows = append(t.rows, r)
	return &t.rows[len(t.rows)-1]
}

// published adds the limiters that were published, each with a worker per key.
func (t *rowTable) published(generator sim.Generator, numbered bool) {
	const ms = time.Millisecond
	for _, p := range []struct {
		name    string
		limiter sim.PublishedConfig
		poll    time.Duration
		nonce   sim.Nonces
	}{
		{"original", sim.PublishedConfig{Gap: t.Window / time.Duration(t.Limit)}, ms, sim.Timestamp},
		{"circular", sim.PublishedConfig{}, ms, sim.Timestamp},
		{"circular+50ms", sim.PublishedConfig{Buffer: 50 * ms}, ms, sim.Timestamp},
		{"circular+100ms", sim.PublishedConfig{Buffer: 100 * ms}, ms, sim.Timestamp},
		{"adaptive, as printed", sim.PublishedConfig{Buffer: 50 * ms}, 0, sim.Timestamp},
		{"adaptive, as printed, threads", sim.PublishedConfig{Buffer: 40 * ms, Inclusive: true}, 0, sim.Concatenated},
		{"adaptive, as described",
			sim.PublishedConfig{Buffer: 50 * ms, Adaptive: true, BufferMin: 30 * ms, BufferMax: 150 * ms}, 0,
			sim.Timestamp},
	} {
		t.add(Row{Group: "limiters", Name: p.name, Concurrency: "workers", Queue: "drop", Knows: ceiling.OneInFlight}, func(x *sim.Exchange) {
			x.Generator, x.Workers, x.Queue = generator, true, t.once
			x.Limiter, x.Poll = t.publishedLimiter(p.limiter), p.poll
			if numbered {
				x.Nonce = p.nonce
			}
		})
	}
}

// leases adds our limiters, with and without the promise of a largest latency.
func (t *rowTable) leases(generator sim.Generator, numbered bool) {
	for _, bounded := range []bool{false, true} {
		r := t.add(Row{Group: "limiters", Name: "lease", Concurrency: "pool", Queue: "ours", Knows: ceiling.Answers}, func(x *sim.Exchange) {
			x.Generator, x.Limiter, x.Queue = generator, t.lease, t.ours
			if numbered {
				x.Nonce = sim.Ours
			}
		})
		switch {
		case bounded:
			r.Name, r.Knows, r.Scenario.Limiter = "lease-bounded", ceiling.LargestLatency, t.leaseBounded
			r.Note, r.Largest = t.promise, latencyMax
			if numbered {
				r.Scenario.Gap = latencyMax + nonceSlack
				r.Note += ", and the gap that keeps nonces in order"
			}
		case numbered:
			r.Knows, r.Concurrency = ceiling.OneInFlight, "one in flight per key"
		}
	}
}

// models adds rows that differ in what may be in flight.
func (t *rowTable) models() {
	for _, m := range []struct {
		name, concurrency string
		workers           bool
		inFlight          int
		knows             ceiling.Knowledge
	}{
		{"model: event loop", "one loop, one in flight per key", false, 1, ceiling.OneInFlight},
		{"model: workers", "one worker per key", true, 1, ceiling.OneInFlight},
		{"model: pipelined", "pool", false, 0, ceiling.Answers},
	} {
		t.add(Row{Group: "concurrency", Name: m.name, Concurrency: m.concurrency, Queue: "drop", Knows: m.knows},
			func(x *sim.Exchange) {
				x.Generator, x.Limiter, x.Workers, x.InFlight, x.Queue = sim.Original, t.lease, m.workers, m.inFlight, t.once
			})
	}
}

// queues adds rows that differ in what becomes of requests that fail or grow old.
func (t *rowTable) queues() {
	refreshed := pool.QueueConfig{MaxAttempts: 1 << 30, OnExpiry: pool.Retry, RetriesLast: true, KeepDead: -1}
	graveyard := refreshed
	graveyard.MaxAttempts = t.attempts(6) // one attempt and five retries
	retries := fmt.Sprintf("dlq, retries: %d", graveyard.MaxAttempts-1)
	pressed := graveyard
	pressed.MaxLen = 20
	oursPressed := t.ours
	oursPressed.MaxLen = 20
	for _, q := range []struct {
		name, queue, note string
		workers           bool
		config            pool.QueueConfig
		reserve           time.Duration
	}{
		{"queue: drop", "drop", "", true, t.once, 0},
		{"queue: dlq", "dlq, time refreshed for ever", "", true, refreshed, 0},
		{"queue: graveyard", retries, "", true, graveyard, 0},
		{"queue: graveyard, backpressure", retries + ", 20 waiting", "the generator waits for room", true, pressed, 0},
		{"queue: ours", "ours", "", false, t.ours, 0},
		{"queue: ours, time to answer", "ours, 100 ms of the TTL kept for the answer", "", false, t.ours, 2 * latencyMax},
		{"queue: ours, backpressure", "ours, 20 waiting", "the generator waits for room", false, oursPressed, 0},
	} {
		concurrency := "workers"
		if !q.workers {
			concurrency = "one in flight per key"
		}
		t.add(Row{Group: "queues", Name: q.name, Concurrency: concurrency, Queue: q.queue, Note: q.note,
			Knows: ceiling.OneInFlight},
			func(x *sim.Exchange) {
				x.Generator, x.Limiter, x.Workers, x.Queue, x.Nonce = sim.Original, t.lease, q.workers, q.config, sim.Ours
				x.Reserve = q.reserve
			})
	}
}

// nonces adds rows that differ in how requests are numbered.
func (t *rowTable) nonces() {
	for _, n := range []struct {
		name   string
		nonces sim.Nonces
	}{
		{"nonce: timestamp", sim.Timestamp}, {"nonce: timestamp‖thread‖counter", sim.Concatenated}, {"nonce: ours", sim.Ours},
	} {
		t.add(Row{Group: "nonces", Name: n.name, Concurrency: "workers", Queue: "drop", Knows: ceiling.OneInFlight,
			Note: "the client is restarted every minute"}, func(x *sim.Exchange) {
			x.Generator, x.Limiter, x.Workers, x.Queue, x.Nonce, x.Restart = sim.Saturating, t.lease, true, t.once, n.nonces,
				time.Minute
		})
	}
}

// generators adds rows with other loads.
func (t *rowTable) generators() {
	for _, g := range []sim.Generator{sim.Burst, sim.Constant} {
		t.add(Row{Group: "generators", Name: "load: " + g.String(), Concurrency: "pool", Queue: "ours",
			Knows: ceiling.Answers},
			func(x *sim.Exchange) { x.Generator, x.Limiter, x.Queue = g, t.lease, t.ours })
		t.add(Row{Group: "generators", Name: "load: " + g.String(), Concurrency: "one in flight per key", Queue: "ours",
			Knows: ceiling.OneInFlight},
			func(x *sim.Exchange) { x.Generator, x.Limiter, x.Queue, x.Nonce = g, t.lease, t.ours, sim.Ours })
	}
}

// keys adds rows with other numbers of keys.
func (t *rowTable) keys() {
	for _, keys := range []int{t.Keys, 10 * t.Keys, 100 * t.Keys} {
		t.add(Row{Group: "keys", Name: fmt.Sprintf("keys: %d", keys), Concurrency: "pool", Queue: "ours",
			Knows: ceiling.Answers},
			func(x *sim.Exchange) {
				x.Generator, x.Limiter, x.Queue, x.Server.Keys = sim.Saturating, t.lease, t.ours, keys
			})
	}
}
