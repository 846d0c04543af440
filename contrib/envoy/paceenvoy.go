package paceenvoy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/transport"
)

// DefaultMaxWait is how long a request waits where Config.MaxWait is zero.
const DefaultMaxWait = time.Minute

// Config describes a Processor. The zero value has no limit of its own, and follows the limits in answers.
type Config struct {
	// Transport has the limits, keys and clients, as for an http.Client. Envoy sends the requests, each
	// once. So Base, Attempts, MaxOutage, MaxWait, CheckRetry and Hedge must not be set, and Targets
	// neither: a route of Envoy chooses the server. With Tokens, or with charges that look into a body,
	// Envoy must send bodies: see Processor.
	Transport transport.Config
	// MaxWait is the longest wait of a request for its turn. Envoy's max_message_timeout must be longer,
	// by a second at least. A request that would wait longer is refused at once, with 429 and
	// Retry-After. If zero, DefaultMaxWait.
	MaxWait time.Duration
	// Patience is how long the processor is silent before it asks Envoy for more time. Envoy's
	// message_timeout must be longer. If zero, 50 ms.
	Patience time.Duration
}

// Processor decides when Envoy's requests go. Made by New. Safe for concurrent use; several Envoys
// may ask one Processor, and count together.
//
// It needs processing_mode with request_header_mode and response_header_mode SEND. For token limits
// also request_body_mode BUFFERED and response_body_mode STREAMED, and for gRPC response_trailer_mode
// SEND. It takes none of the other modes of bodies but NONE and BUFFERED.
type Processor struct {
	extprocv3.UnimplementedExternalProcessorServer
	transport *transport.Transport
	maxWait   time.Duration
	patience  time.Duration
}

// New returns a Processor as configured. The error names the wrong field and its value.
func New(c Config) (*Processor, error) {
	t := c.Transport
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"Base", t.Base != nil}, {"Attempts", t.Attempts != 0}, {"MaxOutage", t.MaxOutage != 0},
		{"MaxWait", t.MaxWait != nil}, {"CheckRetry", t.CheckRetry != nil},
		{"Hedge", t.Hedge != transport.Hedge{}}, {"Targets", len(t.Targets) != 0},
	} {
		if field.set {
			return nil, fmt.Errorf("paceenvoy: Transport.%s is set: Envoy sends the requests, each once", field.name)
		}
	}
	if c.MaxWait < 0 || c.Patience < 0 {
		return nil, fmt.Errorf("paceenvoy: MaxWait %v or Patience %v is negative", c.MaxWait, c.Patience)
	}
	p := &Processor{maxWait: c.MaxWait, patience: c.Patience}
	if p.maxWait == 0 {
		p.maxWait = DefaultMaxWait
	}
	if p.patience == 0 {
		p.patience = 50 * time.Millisecond
	}
	t.Base, t.Attempts, t.MaxOutage = envoy{}, 1, -1
	t.MaxWait = func(*http.Request) time.Duration { return p.maxWait }
	// With MaxWait a Transport repeats refused requests; here Envoy alone can.
	t.CheckRetry = func(context.Context, transport.Attempt, *http.Response) (bool, error) { return false, nil }
	var err error
	if p.transport, err = transport.New(t); err != nil {
		return nil, fmt.Errorf("paceenvoy: %w", err)
	}
	return p, nil
}

// Stats returns the counts of all requests so far.
func (p *Processor) Stats() transport.Stats { return p.transport.Stats() }

// Snapshot returns the state of the limits.
func (p *Processor) Snapshot() observe.Snapshot { return p.transport.Snapshot() }

// envoy is the Base of the transport: to send a request is to let Envoy go on with it.
type envoy struct{}

// exchange is one request between the transport and the stream of its messages.
type exchange struct {
	goes   chan *http.Request  // the request's turn has come
	answer chan *http.Response // its answer's header is there
}

type exchangeKey struct{}

func (envoy) RoundTrip(r *http.Request) (*http.Response, error) {
	x, ok := r.Context().Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errors.New("paceenvoy: a request that is not Envoy's")
	}
	if r.Body != nil {
		r.Body.Close() // Envoy has the body
	}
	select {
	case x.goes <- r:
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	select {
	case resp := <-x.answer:
		resp.Request = r
		return resp, nil
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
}
