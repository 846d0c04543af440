package paceotel_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/paceline-go/paceline"
	paceotel "github.com/paceline-go/paceline/contrib/otel"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/transport"
)

// rig is providers that keep everything reported to them.
type rig struct {
	*testing.T
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
	paceotel.Options
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	r.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r.spans))
	r.MeterProvider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(r.reader))
	return r
}

// metrics are all that the provider collects, by name.
func (r *rig) metrics() map[string]metricdata.Metrics {
	r.Helper()
	var got metricdata.ResourceMetrics
	if err := r.reader.Collect(r.Context(), &got); err != nil {
		r.Fatal(err)
	}
	all := map[string]metricdata.Metrics{}
	for _, s := range got.ScopeMetrics {
		for _, m := range s.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// value returns the number of a metric with the attributes given.
func value(t *testing.T, m metricdata.Metrics, with ...attribute.KeyValue) float64 {
	t.Helper()
	has := func(s attribute.Set) bool {
		for _, a := range with {
			if v, ok := s.Value(a.Key); !ok || v != a.Value {
				return false
			}
		}
		return true
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[float64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes) {
				return p.Value
			}
		}
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes) {
				return float64(p.Value)
			}
		}
	case metricdata.Gauge[float64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes) {
				return p.Value
			}
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			if has(p.Attributes) {
				return float64(p.Count)
			}
		}
	}
	t.Errorf("%s has nothing with %v: %+v", m.Name, with, m.Data)
	return -1
}

func attributes(s sdktrace.ReadOnlySpan) map[string]string {
	all := map[string]string{}
	for _, a := range s.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// Two requests under a limit of one per 200 ms give two attempts, and a wait between them. All are
// children of the request's span. The server refuses the second, and it is sent again.
func TestSpans(t *testing.T) { synctest.Test(t, testSpans) }

func testSpans(t *testing.T) {
	r := newRig(t)
	n, own := 0, 0
	base := roundTripper(func(q *http.Request) (*http.Response, error) {
		status := 200
		if n++; n == 2 {
			status = 503
		}
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: q, ProtoMajor: 1, ProtoMinor: 1}, nil
	})
	tr, err := paceotel.New(transport.Config{
		Base: base, Limiter: limit.MustRolling(1, 200*time.Millisecond), Ended: func(transport.Attempt) { own++ },
		Client: func(*http.Request) transport.Client { return transport.Client{Name: "alice"} },
	}, r.Options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, parent := r.TracerProvider.Tracer("test").Start(t.Context(), "request")
	client := &http.Client{Transport: tr}
	for range 2 {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:8080/path?key=secret", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer secret")
		resp, err := client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	parent.End()
	var attempts, waits []sdktrace.ReadOnlySpan
	for _, s := range r.spans.Ended() {
		for k, v := range attributes(s) {
			if strings.Contains(v, "secret") {
				t.Errorf("%s is %s", k, v)
			}
		}
		switch s.Name() {
		case "GET":
			attempts = append(attempts, s)
		case "paceline.wait":
			waits = append(waits, s)
		default:
			continue
		}
		if s.Parent().SpanID() != parent.SpanContext().SpanID() {
			t.Errorf("%s is no child of the request", s.Name())
		}
	}
	if len(attempts) != 3 || len(waits) < 1 || own != 3 {
		t.Fatalf("%d attempts, %d waits, %d told to Ended", len(attempts), len(waits), own)
	}
	first, second, third := attributes(attempts[0]), attributes(attempts[1]), attributes(attempts[2])
	if first["http.request.method"] != "GET" || first["server.address"] != "127.0.0.1" || first["server.port"] != "8080" || first["url.full"] != "http://127.0.0.1:8080/path?REDACTED" ||
		first["http.response.status_code"] != "200" || first["error.type"] != "" || first["paceline.client"] != "alice" || attempts[0].SpanKind() != trace.SpanKindClient {
		t.Errorf("%+v", first)
	}
	if second["http.response.status_code"] != "503" || second["error.type"] != "503" || attempts[1].Status().Code != codes.Error || third["http.request.resend_count"] != "1" {
		t.Errorf("%+v\n%+v", second, third)
	}
	wait := waits[0]
	if d := wait.EndTime().Sub(wait.StartTime()); attributes(wait)["paceline.limit"] != "requests" || d < 200*time.Millisecond || d > 210*time.Millisecond || wait.EndTime().After(attempts[1].StartTime()) {
		t.Errorf("a wait of %v until %v, of an attempt at %v: %+v", d, wait.EndTime(), attempts[1].StartTime(), attributes(wait))
	}
	m := r.metrics()
	if n := value(t, m["http.client.request.duration"], attribute.Int("http.response.status_code", 200), attribute.String("http.request.method", "GET")); n != 2 {
		t.Errorf("%v durations of what was served", n)
	}
	if n := value(t, m["http.client.request.duration"], attribute.String("error.type", "503")); n != 1 {
		t.Errorf("%v durations of what failed", n)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// The spans of failures have the reason: a request without its turn, and one without a server.
func TestSpansOfFailures(t *testing.T) {
	r := newRig(t)
	tr, err := paceotel.New(transport.Config{Attempts: 1, Limiter: limit.MustRolling(1, time.Hour), Base: gone{}}, r.Options)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		q, _ := http.NewRequestWithContext(ctx, "BREW", "http://a.test/pot", nil)
		tr.RoundTrip(q)
		cancel()
	}
	all := r.spans.Ended()
	if len(all) != 2 {
		t.Fatalf("%d spans", len(all))
	}
	if a := attributes(all[0]); all[0].Name() != "_OTHER" || a["error.type"] != "syscall.Errno" || a["http.response.status_code"] != "" || a["server.port"] != "80" {
		t.Errorf("%s: %+v", all[0].Name(), a)
	}
	if a := attributes(all[1]); all[1].Name() != "paceline.wait" || a["error.type"] != "late" || all[1].Status().Code != codes.Error {
		t.Errorf("%s: %+v", all[1].Name(), a)
	}
}

type gone struct{}

func (gone) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// The metrics are the Snapshot's numbers. They are read at each collection, until stop is called.
func TestObserve(t *testing.T) {
	r := newRig(t)
	g := paceline.NewGate(limit.MustRolling(10, time.Minute))
	stop, err := paceotel.Observe(r.Options, observe.NameSource("gate", g))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		p, err := g.Wait(t.Context(), limit.One)
		if err != nil {
			t.Fatal(err)
		}
		switch i {
		case 0:
			p.Settle(limit.Outcome{Result: limit.Limited})
		case 1, 2:
			p.Settle(limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Input: 7, limit.Money: 500_000}})
		}
	}
	m, s := r.metrics(), g.Snapshot()
	source, client, result := paceotel.KeySource.String("gate"), paceotel.KeyClient.String(""), paceotel.KeyResult
	for _, c := range []struct {
		name string
		want float64
		with []attribute.KeyValue
	}{
		{"paceline.requests", float64(s.Accepted), []attribute.KeyValue{source, client, result.String("accepted")}},
		{"paceline.requests", float64(s.Limited), []attribute.KeyValue{source, client, result.String("limited")}},
		{"paceline.sent", float64(s.Sent), []attribute.KeyValue{source, client}},
		{"http.client.active_requests", float64(s.InFlight), []attribute.KeyValue{source}},
		{"paceline.waiting", 0, []attribute.KeyValue{source}},
		{"paceline.tokens", 14, []attribute.KeyValue{source, attribute.String("gen_ai.token.type", "input")}},
		{"paceline.money", 1, []attribute.KeyValue{source}},
		{"paceline.limit.used", float64(s.Limits[0].Used), []attribute.KeyValue{source, paceotel.KeyLimit.String("requests")}},
		{"paceline.limit.ceiling", 10, []attribute.KeyValue{source, attribute.String("paceline.window", "1m0s")}},
		{"paceline.limit.counted", 3, []attribute.KeyValue{source}},
		{"paceline.limit.share", s.Limits[0].Share, []attribute.KeyValue{source}},
		{"paceline.waits", 4, []attribute.KeyValue{source, paceotel.KeyLimit.String("none")}},
	} {
		if got := value(t, m[c.name], c.with...); got != c.want {
			t.Errorf("%s %v is %v, want %v", c.name, c.with, got, c.want)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if m := r.metrics(); len(m) != 0 {
		t.Errorf("%d metrics after the end", len(m))
	}
}

// fixed is a Source with a constant Snapshot.
type fixed observe.Snapshot

func (f *fixed) Snapshot() observe.Snapshot { return observe.Snapshot(*f) }

// For any number of names, attributes have a bounded number of values, and no count is lost.
func TestAttributesAreBounded(t *testing.T) {
	r := newRig(t)
	s := &fixed{}
	for i := range 1000 {
		name := strings.Repeat("x", i)
		s.Clients = append(s.Clients, observe.ClientState{Name: name, Counts: observe.Counts{Sent: 1}})
		s.Limits = append(s.Limits, observe.LimitState{Name: name, Total: 2})
		s.Waits = append(s.Waits, observe.WaitTimes{Limit: name, Times: observe.Times{Count: 1}})
		s.Paused = append(s.Paused, observe.PauseState{Whose: observe.Whose{Host: name}})
		s.Upstream = append(s.Upstream, observe.UpstreamTimes{Host: name})
	}
	if _, err := paceotel.Observe(r.Options, s); err != nil {
		t.Fatal(err)
	}
	m := r.metrics()
	for name, want := range map[string]struct {
		most int
		sum  float64
	}{"paceline.sent": {101, 1000}, "paceline.limit.counted": {501, 2000}, "paceline.waits": {32, 1000}} {
		d := m[name].Data.(metricdata.Sum[float64])
		sum := 0.0
		for _, p := range d.DataPoints {
			sum += p.Value
		}
		if len(d.DataPoints) > want.most || sum != want.sum {
			t.Errorf("%s: %d points, %v in all", name, len(d.DataPoints), sum)
		}
	}
	if d := m["paceline.host.down"].Data.(metricdata.Gauge[float64]); len(d.DataPoints) > 51 {
		t.Errorf("%d hosts", len(d.DataPoints))
	}
}
