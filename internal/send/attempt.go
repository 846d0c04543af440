package send

import (
	"context"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"time"
)

// Exchange is the record of one permit: whether anything was written, and when. The zero value is
// ready. It is safe for concurrent use, and must not be copied.
type Exchange struct {
	// Stops means that Stop may be called. It is set before Send, and costs a context.
	Stops bool
	// Expires means that Expire may be called. It is set before Send.
	Expires bool
	// Body means that Expire also ends the reading of the answer's body. It is set before Send.
	Body bool
	// Leave, if not nil, decides right before the first byte whether it may be written. If not,
	// Send returns ErrLapsed, and nothing was written. Over HTTP/2, and over connections that are
	// not ours, it is asked once there is a connection. It is called with a lock of the Exchange
	// held, and not after Send has returned.
	Leave interface{ Fresh() bool }
	// Interim, if not nil, gets the header of each interim answer (1xx, but not 101). It is set before
	// Send, and is called until Send returns.
	Interim interface{ Said(h http.Header) }

	mu      sync.Mutex
	over    over
	writing bool // a Write is under way
	left    bool // a byte may have left
	whole   bool // the request has been written to its end
	refused bool
	heard   bool                    // a byte of an answer has come over a connection that is not ours
	lapsed  bool                    // Leave refused
	ended   bool                    // Send has returned
	began   time.Time               // before the first byte was written
	last    time.Time               // after the last byte was written; zero: unknown
	cancel  context.CancelCauseFunc // of the trip under way, if it has a context
	on      *conn                   // the connection of ours that it is written to; nil: none, or it may be another's
	under   ending                  // the trip under way without a context, once net/http knows of it; or a line
	stopped error                   // the cause given to Stop or Expire
}

// over is the kind of connection that an attempt is written to.
type over int8

const (
	nothing over = iota
	blind        // a RoundTripper without trace events
	http1        // a connection of ours, which sees every write
	foreign      // an HTTP/1.1 connection that is not ours
	http2        // a stream
)

// Written reports whether at least a byte may have left. If it is false after Send has returned, no
// byte has left, and none will.
func (a *Exchange) Written() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writtenLocked()
}

func (a *Exchange) writtenLocked() bool { return a.left || a.writing || a.over == blind }

// Times returns whether anything may have left, an instant before the first byte was written, and
// rtt. rtt is the time from handing the last byte to the system until end. After that instant
// nothing on this machine delays the byte, so a promised one-way latency counts from there. Delays
// before it, by the machine or by a slow body, do not matter. On an HTTP/1.1 connection that is not
// ours (see NewBase), rtt is too long by the duration of its last Write. 0 means unknown, or that the
// answer came before the end of the request.
func (a *Exchange) Times(end time.Time) (written bool, began time.Time, rtt time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.writtenLocked() {
		return false, time.Time{}, 0
	}
	if a.writing || !a.whole || a.last.IsZero() {
		return true, a.began, 0
	}
	return true, a.began, max(end.Sub(a.last), 0)
}

// Stop ends the attempt, under way or not, if its Stops is set. Send then returns the cause. If the
// answer's header is there, reading its body fails. Written bytes stay written.
func (a *Exchange) Stop(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped != nil {
		return
	}
	a.stopped = cause
	a.cutLocked()
}

// Expire ends the attempt, if its Expires is set and Send has not returned; Send then returns the
// cause. If the answer's header came just before, Send may return that answer, and reading its body
// may then fail. If Body is set, reading the body fails however long ago the header came, with an
// error of the connection's choice. On an HTTP/1.1 connection of ours it needs no context.
func (a *Exchange) Expire(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped != nil || a.ended && !a.Body {
		return
	}
	a.stopped = cause
	a.cutLocked()
}

// Withdraw ends the writing half of the connection, so that the server sees its client go and the
// client still hears what the server said before. Send then returns what comes, and an error that is
// an io.EOF or io.ErrUnexpectedEOF if that was nothing more. It reports whether it did so: not if Send
// has returned, and not over HTTP/2.
func (a *Exchange) Withdraw() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || a.stopped != nil || a.over != http1 || a.on == nil || a.on.serves.Load() != a {
		return false
	}
	c, ok := a.on.Conn.(interface{ CloseWrite() error })
	return ok && c.CloseWrite() == nil
}

// cutLocked ends the trip under way.
func (a *Exchange) cutLocked() {
	switch {
	case a.cancel != nil:
		a.cancel(a.stopped)
	case a.under != nil:
		a.under.cut()
	}
}

// known notes what can be cut: a trip without a context of its own, once net/http knows of it, or a line.
func (a *Exchange) known(t ending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.under = t; a.stopped != nil { // the stop came too early to cut it
		t.cut()
	}
}

// forget notes that a line has served the attempt, and may be another's.
func (a *Exchange) forget(l *line) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.on = nil
	if a.under == ending(l) {
		a.under = nil
	}
}

// endsBy sets the function that cancels the beginning trip.
func (a *Exchange) endsBy(cancel context.CancelCauseFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cancel = cancel; a.stopped != nil {
		cancel(a.stopped)
	}
}

// start returns why nothing may be written: it may have been written already, or was stopped.
func (a *Exchange) start(own bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.stopped != nil:
		return a.stopped
	case a.writtenLocked():
		return ErrTwice
	}
	a.lapsed, a.ended, a.heard = false, false, false
	if !own && !a.mayLocked() {
		return ErrLapsed
	}
	a.over = nothing
	if !own { // until a connection is asked for
		a.over, a.began = blind, time.Now()
	}
	return nil
}

// mayLocked asks whether the first byte may be written.
func (a *Exchange) mayLocked() bool {
	if a.Leave == nil {
		return true
	}
	a.lapsed = a.lapsed || a.ended || !a.Leave.Fresh()
	return !a.lapsed
}

// returns notes that Send returns. The owner of the Leave may end it, so it is not asked any more.
// Nothing is left that could expire, except a body.
func (a *Exchange) returns() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended = true; !a.Body {
		a.under = nil
	}
}

// asked notes that the RoundTripper reports its connections.
func (a *Exchange) asked(string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over == blind {
		a.over = nothing
	}
}

// got notes the connection for the request; c is nil if it is not ours. It returns false if the
// attempt may have been written to another connection before, or may no longer be written.
func (a *Exchange) got(c *conn, h2 bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.writtenLocked() {
		a.refused = true
		return false
	}
	if a.stopped != nil || a.lapsed || (h2 || c == nil) && !a.mayLocked() { // our connection asks at its first write
		return false
	}
	a.whole = false
	switch {
	case h2:
		a.over, a.began = http2, time.Now()
	case c != nil:
		a.over, a.on = http1, c
		c.serves.Store(a)
	default:
		a.over, a.began, a.left = foreign, time.Now(), true
	}
	return true
}

// interim is called with an interim answer.
func (a *Exchange) interim(_ int, h textproto.MIMEHeader) error {
	a.Interim.Said(http.Header(h))
	return nil
}

// answered is called when the first byte of an answer has come.
func (a *Exchange) answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heard = true
}

// wroteField is called before the first byte of a stream is written, and over HTTP/1.1 at any time.
// HTTP/2 alone has fields that begin with a colon, which shows the protocol of a connection that is
// not ours.
func (a *Exchange) wroteField(name string, _ []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over == foreign && strings.HasPrefix(name, ":") {
		a.over = http2
	}
	if a.over == http2 && !a.left {
		a.left, a.began = true, time.Now()
	}
}

// wroteRequest is called when all of the request was written. Over HTTP/2 it went to the system.
// Over HTTP/1.1 it went to a buffer, whose Write is still to come.
func (a *Exchange) wroteRequest(i httptrace.WroteRequestInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i.Err == nil {
		a.whole = true
		if a.over != http1 {
			a.last = time.Now()
		}
	}
}

// wholly reports whether the request has been written to its end.
func (a *Exchange) wholly() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.whole
}

// failed returns why the attempt was not written, if so. A stream that was given up may be just
// beginning, and counts as written.
func (a *Exchange) failed(ended bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over == http2 && ended {
		a.left = true
	}
	switch {
	case a.stopped != nil:
		return a.stopped
	case a.lapsed && !a.writtenLocked():
		return ErrLapsed
	case !a.refused:
		return nil
	case a.over == http2 && !a.heard:
		return ErrUnprocessed
	}
	return ErrTwice
}

// begin and end surround each Write of a connection that serves the attempt. begin returns false if
// the Write must not happen.
func (a *Exchange) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.writtenLocked() { // an answer may come before the Write of its request returns
		if !a.mayLocked() {
			return false
		}
		a.began = time.Now()
	}
	a.writing = true
	return true
}

func (a *Exchange) end(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writing = false
	if n > 0 {
		a.left, a.last = true, time.Now()
	}
}
