// Package paceotel reports the work of Paceline to OpenTelemetry. The function Observe makes
// metrics of the Snapshots (states) of a Gate, a Group, a Pool or a transport. The function New
// makes an HTTP transport with a metric of request durations, and with spans. There is one span for
// each wait of a request for its limits, and one for each attempt. The names of the attributes and
// of HTTP metrics follow the semantic conventions for HTTP clients, where these conventions have a
// name.
//
//	paced, err := paceotel.New(transport.Config{Preset: "openai:tier1"}, paceotel.Options{})
//	client := &http.Client{Transport: paced}
//
// The time for which a request waits for its limits is not spent at the server, so a wait has a
// span of its own, named paceline.wait. A request that was sent without a wait has no such span. If
// the request was sent after the wait, the span's attribute paceline.limit names the limit. A
// request that was never sent has this span, too, even if it did not wait. The span's attribute
// error.type then has the reason. The span of an attempt is of kind client, and its name is the
// HTTP method. It begins when the request is handed to the base transport. Both kinds of spans are
// children of the caller's span.
//
// Package paceotel makes the spans after the attempt, so it cannot send the server a trace header
// with the span of the attempt. If the server is to receive a trace header, put an instrumented
// transport around the transport that New made. The outer transport then adds the header.
//
// The spans and metrics of package paceotel contain no header field, query or body. In metrics, the
// names of clients, limits, hosts and keys that come from Snapshots are bounded in number: 100
// clients for each source, for example. Names in labels are also cut to a bounded length. The
// package starts no goroutine.
package paceotel

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/transport"
)

const scope = "github.com/paceline-go/paceline/contrib/otel"

// Attributes of spans and metrics that the semantic conventions do not have.
const (
	KeyLimit  = attribute.Key("paceline.limit")  // the name of a limit
	KeyClient = attribute.Key("paceline.client") // the name of the client
	KeySource = attribute.Key("paceline.source") // the name of an observe.Source
	KeyKey    = attribute.Key("paceline.key")    // stands for a credential, and never contains it
	KeyResult = attribute.Key("paceline.result") // how a request ended
)

// Options has the providers for spans and metrics. The zero value uses the global ones.
type Options struct {
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
}

func (o Options) fill() Options {
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	return o
}

// Transport is a transport.Transport that makes spans and the metric http.client.request.duration.
// Made by New. Safe for concurrent use. Observe takes it as a source, for its Snapshots as metrics.
type Transport struct {
	*transport.Transport
	tracer trace.Tracer
}

// New returns a Transport as configured. It still calls Config.Ended, if it is set. The error is
// transport.New's, or that of a provider.
func New(c transport.Config, o Options) (*Transport, error) {
	o = o.fill()
	t := &Transport{tracer: o.TracerProvider.Tracer(scope)}
	took, err := o.MeterProvider.Meter(scope).Float64Histogram(
		"http.client.request.duration", metric.WithUnit("s"), metric.WithDescription("Duration of HTTP client requests."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10),
	)
	if err != nil {
		return nil, fmt.Errorf("paceotel: %w", err)
	}
	also := c.Ended
	c.Ended = func(a transport.Attempt) {
		if also != nil {
			also(a)
		}
		now := time.Now()
		t.waited(&a, a.Sent)
		t.attempted(&a, now)
		took.Record(a.Request.Context(), now.Sub(a.Sent).Seconds(), metric.WithAttributes(few(&a)...))
	}
	if t.Transport, err = transport.New(c); err != nil {
		return nil, err
	}
	return t, nil
}

// RoundTrip implements http.RoundTripper. A request that never got its turn has a span of its wait,
// with the reason.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	began := time.Now()
	resp, err := t.Transport.RoundTrip(r)
	if e, ok := errors.AsType[*transport.Error](err); ok && e.Attempts == 0 {
		_, span := t.tracer.Start(r.Context(), "paceline.wait", trace.WithTimestamp(began), trace.WithAttributes(who(e.Partition)...))
		span.SetAttributes(semconv.ErrorTypeKey.String(reason(e)))
		span.SetStatus(codes.Error, reason(e))
		span.End()
	}
	return resp, err
}

// reason returns why a request was not sent. It has few values, as an attribute should.
func reason(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{paceline.ErrNever, "never"}, {paceline.ErrDeadline, "late"}, {paceline.ErrFull, "full"}, {transport.ErrPaused, "paused"}, {transport.ErrFull, "no room"}, {transport.ErrOutage, "outage"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return "cancelled"
}

// waited makes the span of a wait that ended at sent.
func (t *Transport) waited(a *transport.Attempt, sent time.Time) {
	if a.Waits.Waited <= 0 {
		return
	}
	_, span := t.tracer.Start(a.Request.Context(), "paceline.wait", trace.WithTimestamp(sent.Add(-a.Waits.Waited)),
		trace.WithAttributes(append(who(a.Partition), KeyLimit.String(a.Waits.Reason()))...))
	span.End(trace.WithTimestamp(sent))
}

// attempted makes the span of an attempt that ended now.
func (t *Transport) attempted(a *transport.Attempt, now time.Time) {
	all := append(few(a), semconv.URLFull(redacted(a.Request.URL)))
	all = append(all, who(a.Partition)...)
	if a.Number > 1 {
		all = append(all, semconv.HTTPRequestResendCount(a.Number-1))
	}
	_, span := t.tracer.Start(a.Request.Context(), method(a.Request), trace.WithTimestamp(a.Sent), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(all...))
	if what := failed(a); what != "" {
		span.SetStatus(codes.Error, a.Why)
	}
	span.End(trace.WithTimestamp(now))
}

// who returns the attributes of a request's partition: its client and key.
func who(p transport.Partition) (all []attribute.KeyValue) {
	if p.Client != "" {
		all = append(all, KeyClient.String(observe.LabelValue(p.Client)))
	}
	if p.Key != "" {
		all = append(all, KeyKey.String(observe.LabelValue(p.Key)))
	}
	return all
}

// few returns the attributes that the semantic conventions want on both the span and the metric.
// Each of them has few values.
func few(a *transport.Attempt) []attribute.KeyValue {
	r := a.Request
	all := []attribute.KeyValue{semconv.HTTPRequestMethodKey.String(method(r)), semconv.ServerAddress(observe.LabelValue(r.URL.Hostname())), semconv.URLScheme(r.URL.Scheme)}
	if p := port(r.URL); p > 0 {
		all = append(all, semconv.ServerPort(p))
	}
	if a.Status > 0 {
		all = append(all, semconv.HTTPResponseStatusCode(a.Status))
	}
	if what := failed(a); what != "" {
		all = append(all, semconv.ErrorTypeKey.String(what))
	}
	return all
}

// failed returns the error.type of an attempt. It is empty if the attempt did not fail.
func failed(a *transport.Attempt) string {
	switch {
	case a.Err != nil:
		return fmt.Sprintf("%T", cause(a.Err))
	case a.Status >= 400:
		return strconv.Itoa(a.Status)
	case a.Result == limit.Limited:
		return "limited"
	}
	return ""
}

// cause returns the innermost error that an error wraps.
func cause(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

// method returns the method of a request, or _OTHER if it is not one of the known ones.
func method(r *http.Request) string {
	switch r.Method {
	case "":
		return http.MethodGet
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace, "QUERY":
		return r.Method
	}
	return "_OTHER"
}

// port returns the port of a URL. The conventions want it even if it is the default of the scheme.
func port(u *url.URL) int {
	if p, err := strconv.Atoi(u.Port()); err == nil {
		return p
	}
	return map[string]int{"http": 80, "https": 443}[u.Scheme]
}

// redacted returns a URL without the parts of it that may be secret.
func redacted(u *url.URL) string {
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.RawQuery != "" {
		bare.RawQuery = "REDACTED"
	}
	return bare.String()
}
