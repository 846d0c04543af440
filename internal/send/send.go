package send

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
)

// ErrTwice: the attempt would have been written twice, since the server closed the connection after
// the request was written.
var ErrTwice = errors.New("the connection was closed by the server after the request was written")

// ErrUnprocessed is an ErrTwice over HTTP/2, for a request that the server did not process, as it
// says (GOAWAY, REFUSED_STREAM, PROTOCOL_ERROR). net/http sends such a request again, whatever the
// method. The request may have been counted. But sending it again, as another attempt, does no more
// harm than sending it the first time.
var ErrUnprocessed = fmt.Errorf("%w, and it says that it did not process it", ErrTwice)

// ErrLapsed: nothing of the attempt was written, since its Leave no longer allowed it.
var ErrLapsed = errors.New("leave to send the request has lapsed before it was written")

// Base sends requests over the RoundTripper that it was made from. It is safe for concurrent use.
type Base struct {
	rt  http.RoundTripper
	own *http.Transport // rt, if it is a clone of ours
	// given is the argument of NewBase. It has the protocols that were registered for other schemes.
	given     http.RoundTripper
	clearText bool // HTTP/2 without TLS
	mayBeH2   bool
	lines     *lines // nil: all requests go over rt
}

// NewBase returns a Base over rt. If nil, http.DefaultTransport.
//
// An *http.Transport is cloned, never changed, so that the Base sees all connections. Later
// settings in it, and protocols registered for http or https, have no effect. The connections are
// the Base's own (see CloseIdleConnections). Connections of its dialers are used, each wrapped in a
// net.Conn of ours; only a *tls.Conn from its DialTLSContext stays unwrapped.
//
// Of another RoundTripper, Base knows the events of the request's httptrace.ClientTrace. One that
// wraps an *http.Transport reports the same events, and an attempt is sent at most once here too.
// But the attempt counts as written as soon as it has a connection. Over HTTP/1.1 its last byte is
// dated just before it goes to the system. A RoundTripper without events may send as often as it
// likes, and every attempt counts as written. One that speaks HTTP/2 and asks for a second
// connection without an answer is taken for an http2.Transport after a GOAWAY: see ErrUnprocessed.
func NewBase(rt http.RoundTripper) *Base {
	switch d, direct := rt.(Direct); {
	case direct:
		return Lines(d.Transport)
	case rt == nil:
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

// CloseIdleConnections closes the connections that are kept and not used.
func (b *Base) CloseIdleConnections() {
	if c, ok := b.rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
	if b.lines != nil {
		b.lines.closeIdle()
	}
}

// Send makes the attempt, as RoundTrip does. Its errors are those of RoundTrip, ErrLapsed, and the
// cause given to Stop or Expire. Where RoundTrip would have sent the request a second time, it is
// ErrTwice. An attempt of which nothing was written can be sent again; for any other, Send returns
// ErrTwice. Two goroutines must not call it for one attempt at a time. The body of the answer must
// be closed.
func (b *Base) Send(req *http.Request, a *Exchange) (*http.Response, error) {
	resp, err := b.SendIn(req.Context(), req, a)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// SendIn is Send with a context in place of the request's own. The Request of the answer is a copy of req,
// which needs no place in memory after the call.
func (b *Base) SendIn(ctx context.Context, req *http.Request, a *Exchange) (*http.Response, error) {
	rt, own := b.rt, b.own != nil
	https := req.URL != nil && req.URL.Scheme == "https"
	if own && !https && (req.URL == nil || req.URL.Scheme != "http") {
		rt, own = b.given, false
	}
	defer a.returns()
	if err := a.start(own); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	its := httptrace.ContextClientTrace(ctx)
	if b.lines != nil && own && !a.Stops {
		if hear, most := hearing(its); most && b.lines.plain(req) {
			return b.lines.send(ctx, req, a, hear)
		}
	}
	t := &trip{base: b, attempt: a}
	// httptrace would join two traces by reflection, which is expensive, and httputil.ReverseProxy
	// always has one.
	joins := its != nil && (its.GetConn != nil || its.GotConn != nil || its.WroteHeaderField != nil ||
		its.WroteRequest != nil || its.Got1xxResponse != nil && a.Interim != nil ||
		!own && its.GotFirstResponseByte != nil)
	if its != nil && !joins {
		t.trace = *its
	}
	if t.trace.GotConn = t.got; a.Interim != nil {
		t.trace.Got1xxResponse = a.interim
	}
	t.trace.WroteRequest = a.wroteRequest
	streams := b.mayBeH2 && https || b.clearText || !own
	if streams {
		t.trace.WroteHeaderField = a.wroteField
	}
	// A cancellable context, and watching the end of a body, cost six allocations. So an HTTP/1.1
	// connection is ended in another way.
	ends := streams || a.Stops
	switch {
	case !own && joins:
		t.trace.GetConn, t.trace.GotFirstResponseByte = a.asked, a.answered
	case !own:
		t.trace.GetConn = t.asked
	case a.Expires && !ends:
		t.trace.GetConn = t.known
	}
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
	if joins {
		t.sent = req.WithContext(httptrace.WithClientTrace(ctx, &t.trace))
	} else {
		t.sent = req.WithContext(t)
	}
	resp, err := rt.RoundTrip(t.sent)
	if err != nil {
		if again := a.failed(ended(ctx, req)); again != nil {
			err = again
		}
	}
	if resp != nil {
		resp.Request = t.sent
		t.held = ends && t.hold(resp)
	}
	return resp, err
}

// ended reports whether a request was given up. RoundTrip then returned without waiting for the
// goroutine that writes the request.
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

// trip is one RoundTrip for an attempt: its context, the receiver of its trace, and afterwards the
// body of the answer.
type trip struct {
	context.Context
	base    *Base
	attempt *Exchange
	trace   httptrace.ClientTrace
	sent    *http.Request

	// These are set if the answer may be a stream, or if the attempt may be stopped:
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	held   bool // the end of the body cancels the context
}

// traceKey is the key that httptrace asks a context for. Answering it ourselves saves an
// allocation.
var traceKey = func() any {
	a := asked{Context: context.Background()}
	httptrace.ContextClientTrace(&a)
	return a.key
}()

// asked is a context that keeps the requested key.
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
	// Otherwise net/http would try it on the next connection, where it is refused, and so on, until
	// all kept connections are closed.
	if t.cancel != nil {
		t.cancel(ErrTwice)
	} else {
		t.cut()
	}
	if !h2 && i.Conn != nil {
		i.Conn.Close() // except over HTTP/2, the writer does not look at the context first
	}
}

// asked is called when a RoundTripper looks for a connection: it reports events. Setting a further
// receiver here saves those without events an allocation.
func (t *trip) asked(at string) {
	t.attempt.asked(at)
	if t.trace.GotFirstResponseByte == nil {
		t.trace.GotFirstResponseByte = t.attempt.answered
	}
}

// known is called when net/http looks for a connection.
func (t *trip) known(string) { t.attempt.known(t) }

// cut ends a trip that has no context of its own.
func (t *trip) cut() {
	//lint:ignore SA1019 should it become a no-op, tests of Expire fail, and what had no connection yet ends when it gets one
	t.base.own.CancelRequest(t.sent)
}

// hold makes the end of the body end the context. It returns false if there is nothing to wait for.
func (t *trip) hold(resp *http.Response) bool {
	if resp.Body == nil || resp.Body == http.NoBody && t.attempt.wholly() {
		return false
	}
	t.body = resp.Body
	if w, ok := resp.Body.(io.Writer); ok { // it is a connection that now belongs to the caller
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
	if err != nil && t.attempt.wholly() { // otherwise the rest of the request may still be sent
		t.cancel(nil)
	}
	return n, err
}

func (t *trip) Close() error {
	err := t.body.Close()
	t.cancel(nil)
	return err
}
