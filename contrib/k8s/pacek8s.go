// Package pacek8s keeps clients of Kubernetes' client-go within the limits of their API server.
//
// Use Wrap if your code makes the rest.Config. Each request of client-go then waits until all
// limits have room for it, and the limits learn from its answer. After the API server answered 429,
// as its feature API Priority and Fairness does, requests pause. If the API server refuses several
// requests that were in flight together, they cause one pause.
//
//	paced, err := pacek8s.Wrap(cfg, transport.Config{Limiter: limit.MustRolling(100, time.Second)})
//
// Use New if your code can set only a flowcontrol.RateLimiter. client-go asks such a limiter before
// each request, and never reports the answer to it. So you have to promise a bound, Within of
// xrate.Config: the longest time from the limiter's permission until the server counts the request.
// Package contrib/xrate explains this promise.
//
// Package pacek8s is a module of its own, so that programs that import Paceline but not client-go
// do not depend on client-go. Package pacek8s starts no goroutine.
package pacek8s

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/paceline-go/paceline/contrib/xrate"
	"github.com/paceline-go/paceline/transport"
)

// Wrap makes all clients of cfg wait at one Transport, and returns the Transport. It replaces
// client-go's own limiter, which allows 5 requests a second by default. If cfg has a Timeout, the
// Timeout then includes the wait.
//
// If c.Attempts is zero, the Transport repeats no request. client-go does that itself, up to ten
// times after a Retry-After, and waits for its turn each time. c.Base must be nil, since cfg makes
// the base. After an error cfg is unchanged.
func Wrap(cfg *rest.Config, c transport.Config) (*transport.Transport, error) {
	if c.Base != nil {
		return nil, fmt.Errorf("pacek8s: Base is set, to a %T: what sends is made by the rest.Config", c.Base)
	}
	if c.Attempts == 0 {
		c.Attempts = 1
	}
	c.Base = chosen{}
	paced, err := transport.New(c)
	if err != nil {
		return nil, fmt.Errorf("pacek8s: %w", err)
	}
	cfg.QPS, cfg.RateLimiter = -1, nil
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return over{paced, base} })
	return paced, nil
}

// over sends through the Transport that all clients of a rest.Config share. It passes on the base
// that was made for this client.
type over struct {
	paced *transport.Transport
	base  http.RoundTripper
}

type baseKey struct{}

func (o over) RoundTrip(r *http.Request) (*http.Response, error) {
	return o.paced.RoundTrip(r.WithContext(context.WithValue(r.Context(), baseKey{}, o.base)))
}

// WrappedRoundTripper returns the base, for client-go, which looks for it.
func (o over) WrappedRoundTripper() http.RoundTripper { return o.base }

// chosen sends a request over the base that belongs to it.
type chosen struct{}

func (chosen) RoundTrip(r *http.Request) (*http.Response, error) {
	return r.Context().Value(baseKey{}).(http.RoundTripper).RoundTrip(r)
}

// RateLimiter is a flowcontrol.RateLimiter over an xrate.Limiter, whose promise it needs.
type RateLimiter struct{ limiter *xrate.Limiter }

var _ flowcontrol.RateLimiter = (*RateLimiter)(nil)

// New returns a RateLimiter for rest.Config.RateLimiter. The error is that of xrate.New. MaxWaiting
// must be zero, since Accept cannot report that too many wait.
func New(c xrate.Config) (*RateLimiter, error) {
	if c.MaxWaiting != 0 {
		return nil, fmt.Errorf("pacek8s: MaxWaiting %d: a RateLimiter has no bound on those who wait, as Accept cannot fail", c.MaxWaiting)
	}
	l, err := xrate.New(c)
	if err != nil {
		return nil, err
	}
	return &RateLimiter{l}, nil
}

// Wait returns when one may go. Otherwise it returns a *paceline.WaitError, and at once if ctx's
// deadline comes before the turn.
func (r *RateLimiter) Wait(ctx context.Context) error { return r.limiter.Wait(ctx) }

// Accept waits for its turn without a bound. Its Wait cannot fail: there is no deadline, no bound
// on waiting callers, and a cost of one always fits.
func (r *RateLimiter) Accept() { _ = r.limiter.Wait(context.Background()) }

// TryAccept reports whether one may go now. If true, it counts as gone.
func (r *RateLimiter) TryAccept() bool { return r.limiter.Allow() }

// Stop does nothing, since there is nothing to stop.
func (r *RateLimiter) Stop() {}

// QPS returns the lowest rate of the limit, in requests a second.
func (r *RateLimiter) QPS() float32 { return float32(r.limiter.Limit()) }
