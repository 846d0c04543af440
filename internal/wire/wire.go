// Package wire sends a request at most once per permit, and knows when its last byte left.
//
// net/http sends a request again by itself: over HTTP/1.1 when a connection that it had kept turns out to be closed and the
// request is a GET, say, or has an Idempotency-Key; over HTTP/2 after GOAWAY and REFUSED_STREAM. But the server, or a limiter
// in front of it, may have counted the first one, and our limiter knows of one. So each time that net/http has a connection
// for a request, its Attempt is asked: one that may have been written before is refused, before a byte is written.
//
// It decides nothing else: whether to send again, with a permit of its own, is the caller's. It starts no goroutine and has no
// clock of its own: Times are time.Now.
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
)

// ErrTwice is why an attempt failed that would have been written twice: the server closed the connection after the
// request was written.
var ErrTwice = errors.New("the connection was closed by the server after the request was written")

// ErrUnprocessed is an ErrTwice over HTTP/2, where net/http sends again, whatever the method, what the server says it has
// not processed (GOAWAY, REFUSED_STREAM, PROTOCOL_ERROR). It may have been counted, but sending it again, as another attempt,
// does no harm that sending it the first time did not.
var ErrUnprocessed = fmt.Errorf("%w, and it says that it did not process it", ErrTwice)

// Base sends requests over what it was made from. It is safe for concurrent use.
type Base struct {
	rt  http.RoundTripper
	own *http.Transport // rt, if it is ours
	// given is what New got: it has the protocols that were registered for other schemes.
	given     http.RoundTripper
	clearText bool // HTTP/2 without TLS
	mayBeH2   bool
}

// New returns a Base over rt. If nil, http.DefaultTransport.
//
// An *http.Transport is cloned, never changed, so that all connections are seen: what is set in it later, or
// registered for http or https, has no effect, and the connections are the Base's own (see CloseIdleConnections). What its
// dialers return stays in use, behind a net.Conn of ours; only a *tls.Conn from its DialTLSContext is left as it is.
//
// Of another RoundTripper it is known what it tells the request's httptrace.ClientTrace. Where that is what an
// *http.Transport tells, because it wraps one, an attempt is sent at most once here too, but counts as written as soon as it
// has a connection, and over HTTP/1.1 its last byte is dated just before it is given to the system. One that tells nothing may
// send as often as it likes, and every attempt counts as written.
func New(rt http.RoundTripper) *Base {
	if rt == nil {
		rt = http.DefaultTransport
	}
	b := &Base{rt: rt, given: rt, mayBeH2: true}
	if t, ok := rt.(*http.Transport); ok {
		if c := clone(t); c != nil {
			b.rt, b.own = c, c
			b.clearText = c.Protocols.UnencryptedHTTP2() && !c.Protocols.HTTP1()
			b.mayBeH2 = c.Protocols.HTTP2() || c.TLSNextProto["h2"] != nil
		}
	}
	return b
}

// CloseIdleConnections closes the connections that are kept and not in use.
func (b *Base) CloseIdleConnections() {
	if c, ok := b.rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Send makes the attempt, as RoundTrip does. Errors are those of RoundTrip, and ErrTwice where it would have sent the request
// a second time, or the cause of Stop. An attempt of which nothing was written can be sent again; of others, Send returns ErrTwice. Not to be called for
// one attempt by two at a time. The answer's body must be closed.
func (b *Base) Send(req *http.Request, a *Attempt) (*http.Response, error) {
	rt, own := b.rt, b.own != nil
	https := req.URL != nil && req.URL.Scheme == "https"
	if own && !https && (req.URL == nil || req.URL.Scheme != "http") {
		rt, own = b.given, false
	}
	if err := a.start(own); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	ctx := req.Context()
	t := &trip{base: b, attempt: a}
	t.trace.GotConn = t.got
	t.trace.WroteRequest = a.wroteRequest
	if !own {
		t.trace.GetConn = a.asked
	}
	streams := b.mayBeH2 && https || b.clearText || !own
	if streams {
		t.trace.WroteHeaderField = a.wroteField
	}
	// A context that can be cancelled, and the end of a body, cost six allocations: a connection of HTTP/1.1 is ended otherwise.
	ends := streams || a.Stops
	if ends {
		ctx, t.cancel = context.WithCancelCause(ctx)
		a.endsBy(t.cancel)
		defer func() {
			if !t.held {
				t.cancel(nil)
			}
		}()
	}
	t.Context = ctx
	if httptrace.ContextClientTrace(ctx) == nil {
		t.sent = req.WithContext(t)
	} else {
		t.sent = req.WithContext(httptrace.WithClientTrace(ctx, &t.trace))
	}
	resp, err := rt.RoundTrip(t.sent)
	if err != nil {
		if again := a.failed(ended(ctx, req)); again != nil {
			err = again
		}
	}
	if resp != nil {
		resp.Request = req
		t.held = ends && t.hold(resp)
	}
	return resp, err
}

// ended tells whether a request was given up, in which case RoundTrip returned without waiting for what wrote it.
func ended(ctx context.Context, req *http.Request) bool {
	//lint:ignore SA1019 net/http heeds it
	cancel := req.Cancel
	select {
	case <-cancel:
		return true
	default:
		return ctx.Err() != nil
	}
}

// trip is one RoundTrip for an attempt: its context, what it hears, and afterwards the answer's body.
type trip struct {
	context.Context
	base    *Base
	attempt *Attempt
	trace   httptrace.ClientTrace
	sent    *http.Request

	// Where it may be a stream, or stopped:
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	held   bool // the body cancels
}

// traceKey is what httptrace asks a context for. It saves an allocation to answer that oneself.
var traceKey = func() any {
	a := asked{Context: context.Background()}
	httptrace.ContextClientTrace(&a)
	return a.key
}()

// asked keeps what it was asked for.
type asked struct {
	context.Context
	key any
}

func (a *asked) Value(key any) any {
	a.key = key
	return nil
}

func (t *trip) Value(key any) any {
	if key == traceKey {
		return &t.trace
	}
	return t.Context.Value(key)
}

// got is called before anything is written to a connection.
func (t *trip) got(i httptrace.GotConnInfo) {
	own, h2 := t.base.look(i.Conn)
	if t.attempt.got(own, h2) {
		return
	}
	// Else it would be tried on the next connection, and refused there, and so on: all that are kept would be closed.
	if t.cancel != nil {
		t.cancel(ErrTwice)
	} else {
		//lint:ignore SA1019 it may become a no-op: then only what is said above happens
		t.base.own.CancelRequest(t.sent)
	}
	if !h2 && i.Conn != nil {
		i.Conn.Close() // other than over HTTP/2, the writer does not look at the context first
	}
}

// hold has the body's end end the context. It returns false if there is nothing to wait for.
func (t *trip) hold(resp *http.Response) bool {
	if resp.Body == nil || resp.Body == http.NoBody && t.attempt.wholly() {
		return false
	}
	t.body = resp.Body
	if w, ok := resp.Body.(io.Writer); ok { // a connection that became the caller's
		resp.Body = duplex{t, w}
	} else {
		resp.Body = t
	}
	return true
}

type duplex struct {
	*trip
	io.Writer
}

func (t *trip) Read(b []byte) (int, error) {
	n, err := t.body.Read(b)
	if err != nil && t.attempt.wholly() { // else the rest of the request may still go
		t.cancel(nil)
	}
	return n, err
}

func (t *trip) Close() error {
	err := t.body.Close()
	t.cancel(nil)
	return err
}
