package send

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"sync"
	"time"
)

// lines are connections of HTTP/1.1 on which the goroutine of an attempt writes its request and reads
// the answer. An http.Transport has two more goroutines for each connection, and wakes both for each
// request. Lines take plain requests: see plain.
//
// No goroutine watches an idle line. So the next attempt asks it, right before its request, whether
// anything has come: see quiet.
type lines struct {
	from  *http.Transport // its dialer, TLS, proxies and bounds
	clear bool            // only http: over TLS, the server may choose HTTP/2

	mu    sync.Mutex
	idle  map[place][]*line // the latest last
	timer *time.Timer       // closes those that are idle for too long; nil: none is idle
}

// place is where a line leads.
type place struct{ scheme, host string }

// line is one connection. It belongs to one attempt, or to the idle ones.
type line struct {
	lines  *lines
	place  place
	own    *conn
	tap    *tap
	conn   net.Conn // over tap; with TLS, a *tls.Conn
	tls    *tls.ConnectionState
	in     *bufio.Reader
	out    bytes.Buffer
	left   int64 // how much of an answer's head may still come
	used   bool  // by an earlier request
	since  time.Time
	ctx    context.Context // of the latest attempt
	ignore func() bool     // the end of ctx closes the line; ignore undoes that
	keeps  bool            // that stays so while the line is idle, since attempts have one context
}

// Direct is an http.Transport of which NewBase makes Lines.
type Direct struct{ *http.Transport }

// Lines is NewBase with a cheaper way for plain requests over HTTP/1.1: requests without a proxy, and with
// a small body or none. The goroutine of the attempt writes to the connection and reads from it. If
// the answer is in gzip, it stays so, where NewBase would read it. All other requests go as with NewBase:
// also those over TLS, where t offers HTTP/2.
//
// These connections have the dialer, the TLS and the bounds of t, and the same bytes go over them. The
// contexts of attempts must be comparable, as those of package context are. Where t has a setting
// that they do not know, or the system cannot ask an idle connection for news, Lines is NewBase.
func Lines(t *http.Transport) *Base {
	b := NewBase(t)
	o := b.own
	if canAsk && o != nil && !b.clearText && o.DialTLSContext == nil && !o.DisableKeepAlives && o.MaxIdleConns == 0 &&
		o.MaxConnsPerHost == 0 && o.ResponseHeaderTimeout == 0 {
		b.lines = &lines{from: o, clear: b.mayBeH2, idle: map[place][]*line{}}
	}
	return b
}

// errEnded says that a line was not used, which concerns nobody else.
var errEnded = errors.New("send: the attempt or the connection has ended")

// interim is the Got1xxResponse of an httptrace.ClientTrace; nil: nobody hears interim answers.
type interim = func(code int, header textproto.MIMEHeader) error

// hearing reports whether a trace asks for interim answers at most, and returns who hears them. For more, net/http has
// to send.
func hearing(its *httptrace.ClientTrace) (interim, bool) {
	if its == nil {
		return nil, true
	}
	more := its.GetConn != nil || its.GotConn != nil || its.PutIdleConn != nil || its.GotFirstResponseByte != nil ||
		its.Got100Continue != nil || its.DNSStart != nil || its.DNSDone != nil || its.ConnectStart != nil ||
		its.ConnectDone != nil || its.TLSHandshakeStart != nil || its.TLSHandshakeDone != nil ||
		its.WroteHeaderField != nil || its.WroteHeaders != nil || its.Wait100Continue != nil || its.WroteRequest != nil
	return its.Got1xxResponse, !more
}

// send is SendIn for a plain request.
func (s *lines) send(ctx context.Context, req *http.Request, a *Exchange, hear interim) (*http.Response, error) {
	sent := req.WithContext(ctx)
	if sent.Body != nil {
		sent.Body.Close() // GetBody has it
	}
	for ctx.Err() == nil {
		l, err := s.get(ctx, sent, a)
		if err == nil {
			var resp *http.Response
			if resp, err = l.exchange(ctx, sent, a, hear); err == nil {
				return resp, nil
			}
		}
		switch cause := a.failed(false); {
		case cause != nil:
			return nil, cause
		case ctx.Err() == nil && (l == nil || !l.used || a.Written()):
			return nil, err
		}
	}
	return nil, context.Cause(ctx)
}

// get returns an idle line, or a new one.
func (s *lines) get(ctx context.Context, req *http.Request, a *Exchange) (*line, error) {
	to := place{req.URL.Scheme, req.URL.Host}
	for {
		l := s.take(to)
		if l == nil {
			return s.dial(ctx, to, req, a)
		}
		if l.quiet() {
			l.used = true
			return l, nil
		}
		l.close()
	}
}

func (s *lines) take(to place) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.idle[to]
	n := len(all)
	if n == 0 {
		return nil
	}
	l := all[n-1]
	all[n-1] = nil
	s.idle[to] = all[:n-1]
	return l
}

// give makes a line idle.
func (s *lines) give(l *line) {
	if !l.keeps && !l.leave() {
		l.close()
		return
	}
	l.own.serves.Store(nil)
	if !s.keep(l) {
		l.part()
	}
}

// keep reports whether there is room for another idle line.
func (s *lines) keep(l *line) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.idle[l.place]
	if l.tap.raw == nil || len(all) >= cmp.Or(s.from.MaxIdleConnsPerHost, http.DefaultMaxIdleConnsPerHost) {
		return false
	}
	l.since = time.Now()
	s.idle[l.place] = append(all, l)
	if s.timer == nil && s.from.IdleConnTimeout > 0 {
		s.timer = time.AfterFunc(s.from.IdleConnTimeout, s.tire)
	}
	return true
}

// tire closes the lines that are idle for too long.
func (s *lines) tire() {
	for _, l := range s.tired() {
		l.part()
	}
}

func (s *lines) tired() (old []*line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, next := time.Now(), time.Duration(0)
	for to, all := range s.idle {
		n := 0
		for n < len(all) && now.Sub(all[n].since) >= s.from.IdleConnTimeout {
			n++
		}
		old = append(old, all[:n]...)
		if all = slices.Delete(all, 0, n); len(all) == 0 {
			delete(s.idle, to)
			continue
		}
		s.idle[to] = all
		if left := s.from.IdleConnTimeout - now.Sub(all[0].since); next == 0 || left < next {
			next = left
		}
	}
	s.timer = nil
	if next > 0 {
		s.timer = time.AfterFunc(next, s.tire)
	}
	return old
}

// closeIdle closes the idle lines.
func (s *lines) closeIdle() {
	s.mu.Lock()
	all := s.idle
	s.idle = map[place][]*line{}
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	s.mu.Unlock()
	for _, some := range all {
		for _, l := range some {
			l.part()
		}
	}
}

// ending is what an Expire of an attempt ends.
type ending interface{ cut() }

// dialing is a line that is not there yet.
type dialing context.CancelFunc

func (d dialing) cut() { d() }

func (s *lines) dial(ctx context.Context, to place, req *http.Request, a *Exchange) (*line, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if a.Expires {
		a.known(dialing(cancel))
	}
	c, err := s.from.DialContext(ctx, "tcp", address(req.URL))
	if err != nil {
		return nil, err
	}
	own, ok := c.(*conn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("send: a dialer of ours made a %T", c)
	}
	l := &line{lines: s, place: to, own: own, tap: newTap(own)}
	l.conn, l.in = l.tap, bufio.NewReaderSize(l, cmp.Or(s.from.ReadBufferSize, 4<<10))
	if to.scheme == "https" {
		if err := l.secure(ctx, req.URL.Hostname()); err != nil {
			c.Close()
			return nil, err
		}
	}
	return l, nil
}

// errHandshake is in the words of an http.Transport.
var errHandshake error = slowHandshake{}

type slowHandshake struct{ quietError }

func (slowHandshake) Error() string { return "net/http: TLS handshake timeout" }

// secure begins TLS, as an http.Transport does.
func (l *line) secure(ctx context.Context, name string) error {
	config := &tls.Config{}
	if of := l.lines.from; of.TLSClientConfig != nil {
		config = of.TLSClientConfig.Clone()
	}
	config.ServerName = cmp.Or(config.ServerName, name)
	if d := l.lines.from.TLSHandshakeTimeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, errHandshake)
		defer cancel()
	}
	c := tls.Client(l.tap, config)
	if err := c.HandshakeContext(ctx); err != nil {
		if context.Cause(ctx) == errHandshake {
			return errHandshake
		}
		return err
	}
	state := c.ConnectionState()
	l.conn, l.tls = c, &state
	return nil
}

func address(u *url.URL) string {
	port := u.Port()
	if port == "" && u.Scheme == "https" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(port, "80"))
}

// exchange writes a request and reads the head of its answer. After an error the line is not used again.
func (l *line) exchange(ctx context.Context, req *http.Request, a *Exchange, hear interim) (*http.Response, error) {
	if !l.heed(ctx) {
		l.close()
		return nil, errEnded
	}
	if !a.got(l.own, false) {
		l.lines.give(l)
		return nil, errEnded
	}
	if a.Expires {
		a.known(l)
	}
	resp, err := l.trip(req, a, hear)
	if err != nil {
		l.close()
		return nil, err
	}
	resp.TLS = l.tls
	b := &lineBody{line: l, attempt: a, ReadCloser: resp.Body, stays: !resp.Close && resp.StatusCode > 199}
	if req.Method == http.MethodHead || resp.ContentLength == 0 {
		b.end(b.stays)
		return resp, nil
	}
	resp.Body = b
	return resp, nil
}

func (l *line) trip(req *http.Request, a *Exchange, hear interim) (*http.Response, error) {
	if err := l.compose(req); err != nil {
		return nil, err
	}
	a.wroteRequest(httptrace.WroteRequestInfo{}) // its Write is still to come
	if _, err := l.conn.Write(l.out.Bytes()); err != nil {
		return nil, err
	}
	const broken = "net/http: HTTP/1.x transport connection broken: " // as http.Transport says it
	most := cmp.Or(l.lines.from.MaxResponseHeaderBytes, 10<<20)
	l.left = most
	if _, err := l.in.Peek(1); err != nil {
		if l.used && isReplayable(req) { // an http.Transport would write it again
			return nil, ErrTwice
		}
		return nil, err
	}
	for {
		resp, err := http.ReadResponse(l.in, req)
		switch {
		case err != nil && l.left <= 0:
			return nil, fmt.Errorf("%snet/http: server response headers exceeded %d bytes; aborted", broken, most)
		case err != nil:
			return nil, fmt.Errorf("%s%w", broken, err)
		case resp.StatusCode < 100 || resp.StatusCode > 199 || resp.StatusCode == http.StatusSwitchingProtocols:
			l.left = 1<<63 - 1
			return resp, nil
		case a.Interim != nil:
			l.left = most // as an http.Transport: whoever hears them bounds them
			a.Interim.Said(resp.Header)
		}
		if hear != nil {
			l.left = most
			if err := hear(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return nil, fmt.Errorf("%s%w", broken, err)
			}
		}
	}
}

// Read implements io.Reader for the buffer of a line.
func (l *line) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("the head is too long")
	}
	n, err := l.conn.Read(b[:min(int64(len(b)), l.left)])
	l.left -= int64(n)
	return n, err
}

// quiet reports whether an idle line may have another request: nothing has come, and it has not ended.
func (l *line) quiet() bool {
	l.tap.asks = true
	_, err := l.in.Peek(1)
	l.tap.asks = false
	if text, _ := l.in.Peek(l.in.Buffered()); len(text) > 0 && !timedOut(text) { // in the words of an http.Transport
		log.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", text, err)
	}
	return err == errQuiet
}

// timedOut reports whether a server says that it waited too long for a request.
func timedOut(text []byte) bool {
	return bytes.HasPrefix(text, []byte("HTTP/1.")) && len(text) > 12 && string(text[8:12]) == " 408"
}

// heed makes the end of a context close the line. It returns false if an earlier context is about to.
func (l *line) heed(ctx context.Context) bool {
	if l.ignore != nil && l.ctx == ctx {
		return true
	}
	if !l.leave() {
		return false
	}
	l.keeps, l.ctx = l.ctx == ctx, ctx
	if ctx.Done() != nil {
		l.ignore = context.AfterFunc(ctx, l.cut)
	}
	return true
}

// leave undoes heed. It returns false if the context has ended.
func (l *line) leave() bool {
	ignore := l.ignore
	l.ignore = nil
	return ignore == nil || ignore()
}

// cut ends whatever the line does.
func (l *line) cut() { l.own.Close() }

// close ends a line that has failed.
func (l *line) close() {
	l.leave()
	l.own.Close()
}

// part ends a line that has served all of its attempts. With TLS it says so.
func (l *line) part() {
	l.leave()
	l.conn.Close()
}

// errClosed is in the words of an http.Transport.
var errClosed = errors.New("http: read on closed response body")

// lineBody is the body of an answer. Its end makes the line idle.
type lineBody struct {
	io.ReadCloser
	line    *line // nil: it has ended
	attempt *Exchange
	stays   bool  // the connection outlives the answer
	ended   error // after the end, each Read returns it
}

func (b *lineBody) Read(p []byte) (int, error) {
	if b.line == nil {
		return 0, b.ended
	}
	n, err := b.ReadCloser.Read(p)
	if b.ended = err; err != nil {
		b.end(err == io.EOF && b.stays)
	}
	return n, err
}

// Close closes the line, if the end of the body has not come.
func (b *lineBody) Close() error {
	if b.line != nil {
		b.end(false)
	}
	b.ended = errClosed
	return nil
}

func (b *lineBody) end(stays bool) {
	l := b.line
	b.line = nil
	b.attempt.forget(l)
	if stays {
		l.lines.give(l)
	} else {
		l.close()
	}
}
