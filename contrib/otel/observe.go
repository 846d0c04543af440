package paceotel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/paceline-go/paceline/observe"
)

// observer turns Snapshots into metrics.
type observer struct {
	sources []observe.Source

	requests, sent, taken, waited, tokens, money, pauses, counted metric.Float64ObservableCounter
	waiting, active                                               metric.Int64ObservableUpDownCounter
	used, ceiling, share, paused, down, longest                   metric.Float64ObservableGauge

	mu                                  sync.Mutex // guards the fields below
	clients, limits, hosts, keys, waits []observe.LabelNames
}

// Observe reports the Snapshots of sources as metrics, until the caller calls stop. It reads the
// sources whenever the provider collects. observe.NameSource gives each source a name for its
// metrics. If the provider is nil, the global one is used.
func Observe(o Options, sources ...observe.Source) (stop func() error, err error) {
	m := o.fill().MeterProvider.Meter(scope)
	v := &observer{sources: sources}
	for range sources {
		v.clients = append(v.clients, observe.LabelNames{Most: 100})
		v.limits = append(v.limits, observe.LabelNames{Most: 500})
		v.hosts = append(v.hosts, observe.LabelNames{Most: 50})
		v.keys = append(v.keys, observe.LabelNames{Most: 100})
		v.waits = append(v.waits, observe.LabelNames{Most: 30}) // times the clients
	}
	all, err := v.make(m)
	if err != nil {
		return nil, fmt.Errorf("paceotel: %w", err)
	}
	r, err := m.RegisterCallback(v.observe, all...)
	if err != nil {
		return nil, fmt.Errorf("paceotel: %w", err)
	}
	return r.Unregister, nil
}

// make makes the instruments.
func (v *observer) make(m metric.Meter) (all []metric.Observable, err error) {
	var errs []error
	counter := func(name, unit, what string) metric.Float64ObservableCounter {
		i, err := m.Float64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		all, errs = append(all, i), append(errs, err)
		return i
	}
	level := func(name, unit, what string) metric.Int64ObservableUpDownCounter {
		i, err := m.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		all, errs = append(all, i), append(errs, err)
		return i
	}
	gauge := func(name, unit, what string) metric.Float64ObservableGauge {
		i, err := m.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		all, errs = append(all, i), append(errs, err)
		return i
	}
	v.active = level("http.client.active_requests", "{request}", "Number of active HTTP requests.")
	v.waiting = level("paceline.waiting", "{request}", "Requests in line.")
	v.longest = gauge("paceline.wait.longest", "s", "For how long the first in line of a client has waited.")
	v.requests = counter("paceline.requests", "{request}", "Requests by how they ended.")
	v.sent = counter("paceline.sent", "{request}", "Requests that were let go, as often as they were sent.")
	v.taken = counter("paceline.waits", "{request}", "Requests that were in line, or went at once, by the limit that took most of it.")
	v.waited = counter("paceline.wait.time", "s", "How long they were in line, together.")
	v.tokens = counter("paceline.tokens", "{token}", "Tokens that were used, as answers told them.")
	v.money = counter("paceline.money", "1", "Money that was used, in whatever the limit is in.")
	v.pauses = counter("paceline.pauses", "{pause}", "Pauses that refusals began.")
	v.used = gauge("paceline.limit.used", "1", "How much of a limit counts now, what is in flight included.")
	v.ceiling = gauge("paceline.limit.ceiling", "1", "The most that may count at once.")
	v.share = gauge("paceline.limit.share", "1", "What was counted in the last window, as part of the ceiling.")
	v.counted = counter("paceline.limit.counted", "1", "What was counted by a limit and is settled.")
	v.paused = gauge("paceline.paused", "s", "For how much longer somebody stays away.")
	v.down = gauge("paceline.host.down", "1", "1 while nothing arrives at a host.")
	return all, errors.Join(errs...)
}

func (v *observer) observe(_ context.Context, o metric.Observer) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, source := range v.sources {
		s := source.Snapshot()
		of := []attribute.KeyValue{KeySource.String(observe.LabelValue(s.Name))}
		o.ObserveFloat64(v.pauses, float64(s.Pauses), metric.WithAttributes(of...))
		v.observeClients(o, i, &s, of)
		v.observeLimits(o, i, &s, of)
		v.observePauses(o, i, &s, of)
	}
	return nil
}

// with returns attributes with more of them.
func with(of []attribute.KeyValue, more ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append(of[:len(of):len(of)], more...)...)
}

// sums adds up values with the same attributes. Entries without a name of their own share the
// attributes of "other".
type sums map[attribute.Distinct]*sum

type sum struct {
	set attribute.Set
	n   [16]float64
}

func (s sums) of(set attribute.Set) *sum {
	id := set.Equivalent()
	if s[id] == nil {
		s[id] = &sum{set: set}
	}
	return s[id]
}

// results are the kinds of request ends in the metrics.
var results = [...]string{"accepted", "limited", "failed", "unknown", "unsent", "never", "late", "full", "cancelled"}

func (v *observer) observeClients(o metric.Observer, i int, s *observe.Snapshot, of []attribute.KeyValue) {
	all := sums{}
	for k := range s.Clients {
		c := &s.Clients[k]
		t := all.of(with(of, KeyClient.String(v.clients[i].Of(c.Name))))
		for j, n := range [...]int64{
			c.Accepted, c.Limited, c.Failed, c.Unknown, c.Unsent, c.Never, c.Late, c.Full, c.Cancelled,
			c.Sent, int64(c.Waiting), int64(c.InFlight), c.Used.Input, c.Used.Output, c.Used.Money,
		} {
			t.n[j] += float64(n)
		}
		t.n[15] = max(t.n[15], c.LongestWait.Seconds())
	}
	for _, t := range all {
		own := t.set.ToSlice()
		set := metric.WithAttributeSet(t.set)
		for j, name := range results {
			o.ObserveFloat64(v.requests, t.n[j], metric.WithAttributeSet(with(own, KeyResult.String(name))))
		}
		o.ObserveFloat64(v.sent, t.n[9], set)
		o.ObserveInt64(v.waiting, int64(t.n[10]), set)
		o.ObserveInt64(v.active, int64(t.n[11]), set)
		o.ObserveFloat64(v.tokens, t.n[12], metric.WithAttributeSet(with(own, semconv.GenAITokenTypeInput)))
		o.ObserveFloat64(v.tokens, t.n[13], metric.WithAttributeSet(with(own, semconv.GenAITokenTypeOutput)))
		o.ObserveFloat64(v.money, t.n[14]/1e6, set)
		o.ObserveFloat64(v.longest, t.n[15], set)
	}
	waits := sums{}
	for k := range s.Waits {
		w := &s.Waits[k]
		name := "none"
		if w.Limit != "" {
			name = v.waits[i].Of(w.Limit)
		}
		t := waits.of(with(of, KeyClient.String(v.clients[i].Of(w.Client)), KeyLimit.String(name)))
		t.n[0] += float64(w.Count)
		t.n[1] += w.Sum.Seconds()
	}
	for _, t := range waits {
		o.ObserveFloat64(v.taken, t.n[0], metric.WithAttributeSet(t.set))
		o.ObserveFloat64(v.waited, t.n[1], metric.WithAttributeSet(t.set))
	}
}

func (v *observer) observeLimits(o metric.Observer, i int, s *observe.Snapshot, of []attribute.KeyValue) {
	all := sums{}
	for k := range s.Limits {
		l := &s.Limits[k]
		own := append(whose(&l.Whose), KeyLimit.String(observe.LabelValue(l.Name)), attribute.String("paceline.unit", l.Unit), attribute.String("paceline.window", l.Window.String()))
		set := with(of, own...)
		if !v.limits[i].Has(set.Encoded(attribute.DefaultEncoder())) {
			set = with(of, KeyLimit.String(observe.OtherLabel))
		}
		t := all.of(set)
		t.n[0] += float64(l.Used)
		t.n[1] += float64(l.Allowed)
		t.n[2] = max(t.n[2], l.Share)
		t.n[3] += float64(l.Total)
	}
	for _, t := range all {
		set := metric.WithAttributeSet(t.set)
		o.ObserveFloat64(v.used, t.n[0], set)
		o.ObserveFloat64(v.ceiling, t.n[1], set)
		o.ObserveFloat64(v.share, t.n[2], set)
		o.ObserveFloat64(v.counted, t.n[3], set)
	}
}

func (v *observer) observePauses(o metric.Observer, i int, s *observe.Snapshot, of []attribute.KeyValue) {
	all, hosts := sums{}, map[string]float64{}
	for k := range s.Upstream {
		hosts[v.hosts[i].Of(s.Upstream[k].Host)] = 0
	}
	for k := range s.Paused {
		p := &s.Paused[k]
		if p.Down {
			hosts[v.hosts[i].Of(p.Host)] = 1
			continue
		}
		set := with(of, whose(&p.Whose)...)
		if !v.keys[i].Has(set.Encoded(attribute.DefaultEncoder())) {
			set = with(of, KeyKey.String(observe.OtherLabel))
		}
		t := all.of(set)
		t.n[0] = max(t.n[0], p.Until.Sub(s.At).Seconds())
	}
	for _, t := range all {
		o.ObserveFloat64(v.paused, t.n[0], metric.WithAttributeSet(t.set))
	}
	for host, is := range hosts {
		o.ObserveFloat64(v.down, is, metric.WithAttributeSet(with(of, semconv.ServerAddress(host))))
	}
}

// whose returns the attributes of w that are not empty.
func whose(w *observe.Whose) (all []attribute.KeyValue) {
	for _, f := range [...]struct {
		key   attribute.Key
		value string
	}{{"paceline.target", w.Target}, {semconv.ServerAddressKey, w.Host}, {KeyKey, w.Key},
		{semconv.GenAIRequestModelKey, w.Model}, {"paceline.route", w.Route}, {KeyClient, w.Client}} {
		if f.value != "" {
			all = append(all, f.key.String(observe.LabelValue(f.value)))
		}
	}
	return all
}
