package proxy

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/limit"
)

// Outside is a request that another program sends by itself, in the line of an upstream.
type Outside struct {
	// Client has the name, the weight and the head start of its client.
	Client Client
	// Credential is the value of the field in which the program sends its key: "Bearer KEY". It selects
	// the limits, as that of any request does. The upstream's own keys go before it.
	Credential string
	// Cost is what it costs. Zero amounts are as the upstream's charges say, and one request at least.
	Cost limit.Cost
	// MaxWait is how long it waits; 0: not at all.
	MaxWait time.Duration
}

// Leave is the permission to send an Outside. It is settled once, by one of its methods.
type Leave struct {
	// Key and Target are the names of the upstream's own key and of its target in whose limits the request
	// counts. Its sender has to use these. Empty: the upstream has none.
	Key, Target string

	goes   chan struct{}       // received from when its turn has come
	ends   chan *http.Response // how it ended; nil: it was not sent
	over   chan struct{}       // closed when the limits have learned of its end
	cancel context.CancelFunc
	err    error      // after over: why there was no turn
	actual limit.Cost // what it has cost; 0: what it was admitted with
}

// NoLeaveError is a refusal in place of a Leave. Kind is a section of docs/proxy.md.
type NoLeaveError struct {
	Status              int
	Kind, Title, Detail string
	Limit               string        // the limit in the way
	Wait                time.Duration // how long until the request could have gone; 0: not known
	Ahead               int           // how many requests are before it
}

func (e *NoLeaveError) Error() string { return e.Detail }

// leaveScheme is the scheme of requests that this process never sends.
const leaveScheme = "paceline-leave"

// parked takes the place of the network for such requests: each waits here for the report of its sender.
type parked struct{}

// RoundTrip implements http.RoundTripper.
func (parked) RoundTrip(r *http.Request) (*http.Response, error) {
	l, ctx := visitOf(r.Context()).leave, r.Context()
	select {
	case l.goes <- struct{}{}:
	case <-ctx.Done():
		return nil, send.ErrLapsed
	}
	select {
	case a := <-l.ends:
		if a == nil {
			l.cancel() // else the transport would wait for another turn
			return nil, send.ErrLapsed
		}
		return a, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// leaving is the visit of an Outside at an upstream, with its request. It is nil if there is no such
// upstream.
func (p *Proxy) leaving(ctx context.Context, name string, o *Outside) (*visit, error) {
	p = p.latest.Load()
	for _, u := range p.routes {
		if u.Name != name {
			continue
		}
		at := &url.URL{Scheme: leaveScheme, Host: u.To.Host, Path: u.To.Path}
		if isStandard(u.To) {
			at.Host = strings.TrimSuffix(at.Host, ":"+portOf(u.To))
		}
		v := &visit{proxy: p, upstream: u, came: time.Now(), whole: true, patience: patience{most: max(o.MaxWait, 0)},
			stated: &stated{cost: o.Cost}}
		o.Client.MaySayCost = true
		v.client = p.clients.client(o.Client)
		v.within = within{ctx, v}
		v.in = (&http.Request{Method: http.MethodPost, URL: at, Host: at.Host, Header: http.Header{}}).WithContext(&v.within)
		if o.Credential != "" {
			v.in.Header.Set("Authorization", o.Credential)
		}
		return v, nil
	}
	return nil, nil
}

// leaveOf is the Leave of a request; nil: the proxy sends the request itself.
func leaveOf(r *http.Request) *Leave {
	if v := visitOf(r.Context()); v != nil {
		return v.leave
	}
	return nil
}

// isLeave reports whether another program sends a request. How long that takes is between this program and the
// giver of the Leave, which knows whether the program still lives.
func isLeave(r *http.Request) bool { return leaveOf(r) != nil }

// Leave waits for the turn of a request that another program sends. It counts like the upstream's
// others, from then until it is settled, however long that takes. Without such an upstream, Leave and error are nil.
// An error is that of ctx, or a *NoLeaveError.
func (p *Proxy) Leave(ctx context.Context, upstream string, o Outside) (*Leave, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the end of ctx after the turn changes nothing
	v, err := p.leaving(own, upstream, &o)
	if v == nil {
		cancel()
		return nil, err
	}
	l := &Leave{goes: make(chan struct{}), ends: make(chan *http.Response, 1), over: make(chan struct{}), cancel: cancel}
	v.leave = l
	go func() {
		defer close(l.over)
		defer cancel()
		a, err := v.upstream.transport.RoundTrip(v.in)
		if err != nil {
			l.err = v.noLeave(err)
			return
		}
		_, _ = io.Copy(io.Discard, a.Body) // what reads along has read it
		a.Body.Close()
	}()
	select {
	case <-l.goes:
		return l, nil
	case <-l.over:
		return nil, l.err
	case <-ctx.Done():
		cancel()
		<-l.over
		return nil, context.Cause(ctx)
	}
}

// noLeave is why there is no turn.
func (v *visit) noLeave(err error) error {
	x := v.why(err)
	if x == nil {
		return err
	}
	return &NoLeaveError{x.status, x.kind, x.title, x.detail, x.limit, x.wait, x.ahead}
}

// Unsent ends it as never sent.
func (l *Leave) Unsent() { l.end(nil) }

// Lost ends it as of unknown end.
func (l *Leave) Lost() {
	l.cancel()
	<-l.over
}

// Answered ends it by an answer of the server, which is read as that of any request. actual is what the
// request has cost; 0: what was asked for.
func (l *Leave) Answered(status int, h http.Header, body string, actual limit.Cost) {
	if h == nil {
		h = http.Header{}
	}
	l.actual = actual
	l.end(&http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))})
}

func (l *Leave) end(a *http.Response) {
	l.ends <- a
	<-l.over
}

// actual is what a request has cost, as its sender reports.
func actual(a *http.Response) (cost limit.Cost, ok bool) {
	v := visitOf(a.Request.Context())
	if v == nil || v.leave == nil {
		return cost, false
	}
	return v.leave.actual, v.leave.actual != (limit.Cost{})
}

// Expect is how long an Outside would wait, at least, and how many requests are before it. ok is false if
// there is no such upstream. An error is a *NoLeaveError.
func (p *Proxy) Expect(upstream string, o Outside) (wait time.Duration, ahead int, ok bool, err error) {
	v, err := p.leaving(context.Background(), upstream, &o)
	if v == nil {
		return 0, 0, err != nil, err
	}
	at, ahead, err := v.upstream.transport.Ask(v.in)
	if err != nil {
		return 0, 0, true, v.noLeave(err)
	}
	if at.IsZero() {
		return 0, ahead, true, nil
	}
	return max(time.Until(at), 0), ahead, true, nil
}

// Lines are the names of the upstreams, each with its limits in words.
func (p *Proxy) Lines() (all [][2]string) {
	for _, u := range p.latest.Load().routes {
		all = append(all, [2]string{u.Name, strings.Join(u.LimitNames(), ", ")})
	}
	return all
}
