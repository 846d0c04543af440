package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/send/decode"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// read returns the body, and nil if it is longer than most. Afterwards it can still be sent.
func (c *call) read(most int64) ([]byte, error) {
	var from io.ReadCloser
	rewinds := c.getBody != nil
	if rewinds {
		again, err := c.getBody()
		if err != nil {
			return nil, err
		}
		defer again.Close()
		from = again
	} else {
		from = &closedOnce{ReadCloser: c.body}
		c.body = from
		defer context.AfterFunc(c.ctx, func() { from.Close() })()
	}
	var b bytes.Buffer
	if n := c.req.ContentLength; n > 0 && n <= most {
		b.Grow(int(n) + bytes.MinRead)
	}
	n, err := b.ReadFrom(io.LimitReader(from, most+1))
	switch {
	case err != nil && c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case err != nil:
		return nil, err
	case rewinds && n > most:
		return nil, nil
	case rewinds:
		return b.Bytes(), nil
	case n > most:
		c.body = &spliced{Reader: io.MultiReader(&b, from), Closer: from}
		return nil, nil
	}
	from.Close()
	raw := b.Bytes()
	c.getBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil }
	c.body, _ = c.getBody()
	return raw, nil
}

// closedOnce is a body that is closed once, however often Close is called.
type closedOnce struct {
	io.ReadCloser
	closed atomic.Bool
}

func (o *closedOnce) Close() error {
	if o.closed.Swap(true) {
		return nil
	}
	return o.ReadCloser.Close()
}

type spliced struct {
	io.Reader
	io.Closer
}

// prefix returns the beginning of the body, which the next reader still gets in full. Of an event
// stream it takes nothing.
func prefix(resp *http.Response) []byte {
	if resp.Body == nil || resp.Body == http.NoBody ||
		strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	p, ok := resp.Body.(*prefixed)
	switch {
	case !ok:
		p = &prefixed{rest: resp.Body}
	case p.whole || p.err != nil || len(p.head) > provider.MaxBody:
		return p.head
	}
	b := bytes.NewBuffer(p.head) // the part that was read before
	// One byte more than needed shows whether that was all.
	_, p.err = b.ReadFrom(io.LimitReader(p.rest, int64(provider.MaxBody+1-len(p.head))))
	p.head = b.Bytes()
	p.whole = p.err == nil && len(p.head) <= provider.MaxBody
	p.left = p.head
	resp.Body = p
	return p.head
}

// atOnce is how much of a served answer is read before it is handed on.
const atOnce = 2 << 10

// glance returns the beginning of a served answer that is a refusal or has one in it, and otherwise
// nil. The next reader still gets all of it. Of an answer whose length is not known it waits for
// the first piece alone, and so it does with an event stream, if that can be sent again.
func (c *call) glance(s *sent, resp *http.Response) []byte {
	stream := provider.IsStream(resp.Header.Get("Content-Type"))
	if resp.Body == nil || resp.Body == http.NoBody || stream && (c.req.Method != http.MethodPost || c.getBody == nil) {
		return nil
	}
	n := atOnce
	if known := resp.ContentLength; known >= 0 && known < atOnce {
		n = int(known)
	}
	p := &prefixed{rest: resp.Body, head: make([]byte, 0, n)}
	for whole := resp.ContentLength == int64(n); len(p.head) < n && p.err == nil && (whole || len(p.head) == 0); {
		var read int
		read, p.err = p.rest.Read(p.head[len(p.head):n])
		p.head = p.head[:len(p.head)+read]
	}
	p.whole, p.left = p.err == io.EOF, p.head
	resp.Body = p
	text := c.decoded(s, resp, p.head)
	switch {
	case !provider.Refuses(provider.Response{Status: resp.StatusCode, Header: resp.Header, Body: text}):
		return nil
	case stream:
		return text
	}
	return c.words(s, resp)
}

// reads reports whether the request's body asks for nothing but to read.
func (c *call) reads() bool {
	if c.getBody == nil {
		return false
	}
	body, err := c.getBody()
	if err != nil {
		return false
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, provider.MaxBody+1))
	return err == nil && len(text) <= provider.MaxBody && provider.Reads(c.req.Header, text)
}

// prefixed is a body whose beginning has been read.
type prefixed struct {
	head, left []byte
	err        error // after the beginning
	whole      bool
	rest       io.ReadCloser
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.left) > 0 {
		n := copy(b, p.left)
		p.left = p.left[n:]
		return n, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	if p.whole {
		return 0, io.EOF
	}
	return p.rest.Read(b)
}

func (p *prefixed) Close() error { return p.rest.Close() }

// patience is how long to wait for the rest of an answer that may never be used.
const patience = time.Second

// keep frees the connection of an answer whose request is sent again. It returns the answer if the
// caller can still get it, should no other come; otherwise nil.
func keep(resp *http.Response) *http.Response {
	if resp.Body == nil {
		return resp
	}
	body := resp.Body
	timer := time.AfterFunc(patience, func() { body.Close() })
	prefix(resp)
	if !timer.Stop() {
		return nil
	}
	err := resp.Body.Close()
	switch p, ok := resp.Body.(*prefixed); {
	case ok && p.whole && err == nil:
		resp.Body = io.NopCloser(bytes.NewReader(p.head))
	case resp.Body != http.NoBody:
		return nil
	}
	return resp
}

// words returns the beginning of the body as text, which the next reader still gets as it came.
func (c *call) words(s *sent, resp *http.Response) []byte {
	return c.decoded(s, resp, prefix(resp))
}

// decoded returns the beginning of a body without its content codings.
func (c *call) decoded(s *sent, resp *http.Response, raw []byte) []byte {
	codings := decode.Of(resp.Header)
	if codings.None() || len(raw) == 0 {
		return raw
	}
	text, err := codings.Prefix(raw, provider.MaxBody+1)
	if err != nil {
		s.unread(routeOf(c.req), err)
	}
	return text
}

// held is the body of an answer whose end settles the attempt. Its bytes and errors are the Base's.
// Like the Base's body, its Close may be called while a Read is under way.
type held struct {
	body    io.ReadCloser
	sent    *sent
	route   string // with codings alone
	cleanup runtime.Cleanup

	mu    sync.Mutex    // guards the fields below
	meter *meter        // nil: it is not metered
	told  *tokens.Usage // the usage that the header states; nil: none
	over  bool
	own   meter // of a body without codings
}

// hold returns a body whose end settles the attempt, or nil if nothing depends on it.
func (s *sent) hold(resp *http.Response) *held {
	metered := s.api != tokens.NoAPI && resp.StatusCode < 300
	says := s.row != nil && s.row.Answer != nil
	if !metered && !says && !s.t.config.UntilBody || resp.Body == nil || resp.Body == http.NoBody ||
		resp.StatusCode == http.StatusSwitchingProtocols {
		return nil
	}
	h := &held{body: resp.Body, sent: s}
	var decoder *decode.Decoder
	if metered || says {
		decoder = h.watch(resp, metered)
	}
	// An answer that is neither read to its end nor closed keeps the connection for good, but not a
	// place in the limit.
	h.cleanup = runtime.AddCleanup(h, func(decoder *decode.Decoder) {
		if decoder != nil {
			decoder.End()
		}
		s.ended(tokens.Usage{}, tokens.ErrIncomplete, true, nil)
	}, decoder)
	return h
}

// watch begins to read the usage, and what the answer says of its cost. It returns the decoder, which
// must be ended; nil: there is none.
func (h *held) watch(resp *http.Response, metered bool) *decode.Decoder {
	if u, ok := tokens.HeaderUsage(resp.Header); ok && metered {
		h.told = &u
	}
	h.meter = &h.own
	if codings := decode.Of(resp.Header); !codings.None() {
		h.route = routeOf(resp.Request)
		h.meter = new(meter) // its decoder refers to it, and must not keep the body from being forgotten
		h.meter.decoder = decode.New(codings, h.meter.read)
	}
	if metered {
		h.meter.watcher = tokens.NewWatcher(h.sent.api, tokens.IsStream(resp.Header.Get("Content-Type")), h.meter)
	}
	if row := h.sent.row; row != nil && row.Answer != nil {
		h.meter.most = h.sent.t.config.MaxBody
	}
	return h.meter.decoder
}

// meter reads the usage of an answer as it passes, and keeps its text if that says what it cost.
type meter struct {
	watcher *tokens.Watcher // nil: it has no usage
	decoder *decode.Decoder // nil: the body has no coding
	n       int             // the length of the text that the watcher sees next
	err     error
	text    []byte // what is kept
	most    int64  // the longest text that is kept; 0: none
}

// Read is for the watcher: the bytes are already where it wants them.
func (m *meter) Read([]byte) (int, error) { return m.n, m.err }

func (m *meter) read(text []byte) {
	m.n = len(text)
	if m.watcher != nil {
		m.watcher.Read(text)
	}
	if int64(len(m.text)+len(text)) <= m.most {
		m.text = append(m.text, text...)
	} else {
		m.text, m.most = nil, 0
	}
}

// pass reads the next part of the body, as it came.
func (m *meter) pass(p []byte, err error) {
	if m.decoder == nil {
		m.err = err
		m.read(p)
		return
	}
	m.decoder.Feed(p)
	if err == io.EOF {
		m.decoder.End()
		m.err = err
		m.read(nil)
	}
}

// usage returns what was read. The error unread says why the body could not be decoded.
func (m *meter) usage() (u tokens.Usage, err, unread error) {
	if m.decoder != nil {
		switch unread = m.decoder.End(); unread {
		case nil: // a client that decodes need not read on to the end of the body
			m.err = io.EOF
			m.read(nil)
		case io.ErrUnexpectedEOF: // what is there counts, as without a coding
			unread = nil
		}
	}
	err = tokens.ErrNoUsage
	if m.watcher != nil {
		u, err = m.watcher.Usage()
	}
	return u, err, unread
}

func (h *held) Read(p []byte) (int, error) {
	n, err := h.body.Read(p)
	h.mu.Lock()
	if h.meter != nil && !h.over {
		h.meter.pass(p[:max(0, min(n, len(p)))], err)
	}
	h.mu.Unlock()
	if err != nil {
		h.end()
	}
	return n, err
}

func (h *held) Close() error {
	err := h.body.Close()
	h.end()
	return err
}

func (h *held) end() {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return
	}
	h.over = true
	var u tokens.Usage
	var err, unread error
	metered := h.meter != nil
	if metered {
		if u, err, unread = h.meter.usage(); h.told != nil {
			u, err, unread = *h.told, nil, nil
		}
	}
	var text []byte
	if metered && unread == nil && (h.meter.err == io.EOF || json.Valid(h.meter.text)) {
		text = h.meter.text // whole, although it may not be read to its end
	}
	h.mu.Unlock()
	h.cleanup.Stop()
	if unread != nil {
		h.sent.unread(h.route, unread)
		metered = false
	}
	h.sent.ended(u, err, metered, text)
}

// unread logs, once for each route, that answers are in a coding that is not read.
func (s *sent) unread(route string, why error) {
	p := Partition{Host: s.leaf.partition.Host, Route: route}.bounded()
	if s.t.first("answer", p) {
		s.t.log.Warn("answers cannot be read", "partition", p, "why", why)
	}
}

// peeked is the body of an answer while CheckRetry may read it.
type peeked struct {
	rest io.ReadCloser
	read bytes.Buffer
	err  error
}

func (p *peeked) Read(b []byte) (int, error) {
	n, err := p.rest.Read(b)
	p.read.Write(b[:n])
	if err != nil {
		p.err = err
	}
	return n, err
}

// Close leaves the body open, since it belongs to another owner.
func (p *peeked) Close() error { return nil }

// whole returns the body as it was.
func (p *peeked) whole() io.ReadCloser {
	if p.read.Len() == 0 && p.err == nil {
		return p.rest
	}
	w := &prefixed{head: p.read.Bytes(), left: p.read.Bytes(), err: p.err, rest: p.rest}
	if w.whole = p.err == io.EOF; w.whole {
		w.err = nil
	}
	return w
}
