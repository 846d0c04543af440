package transport

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	if resp.Body == nil || resp.Body == http.NoBody || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
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

// held is the body of an answer whose end settles the attempt. Its bytes and errors are the Base's.
// Like the Base's body, its Close may be called while a Read is under way.
type held struct {
	body    io.ReadCloser
	sent    *sent
	cleanup runtime.Cleanup

	mu      sync.Mutex // guards the fields below
	watcher *tokens.Watcher
	told    *tokens.Usage // the usage that the header states; nil: none
	n       int           // the length of the Read, which the watcher sees next
	err     error
	over    bool
}

func newHeld(s *sent, body io.ReadCloser) *held {
	h := &held{body: body, sent: s}
	// An answer that is neither read to its end nor closed keeps the connection for good, but not a
	// place in the limit.
	h.cleanup = runtime.AddCleanup(h, func(s *sent) { s.ended(tokens.Usage{}, tokens.ErrIncomplete, true) }, s)
	return h
}

func (h *held) watch(resp *http.Response) {
	kind := resp.Header.Get("Content-Type")
	stream := strings.HasPrefix(kind, "text/event-stream") || strings.HasPrefix(kind, "application/x-ndjson") || strings.HasPrefix(kind, "application/vnd.amazon.eventstream")
	if u, ok := tokens.HeaderUsage(resp.Header); ok {
		h.told = &u
	}
	h.watcher = tokens.NewWatcher(h.sent.api, stream, (*shown)(h))
}

// shown is the watcher's reader: the bytes are already where the watcher wants them.
type shown held

func (s *shown) Read([]byte) (int, error) { return s.n, s.err }

func (h *held) Read(p []byte) (int, error) {
	n, err := h.body.Read(p)
	h.mu.Lock()
	if h.watcher != nil && !h.over {
		h.n, h.err = n, err
		h.watcher.Read(p)
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
	var err error
	metered := h.watcher != nil
	if metered {
		u, err = h.watcher.Usage()
		if h.told != nil {
			u, err = *h.told, nil
		}
	}
	h.mu.Unlock()
	h.cleanup.Stop()
	h.sent.ended(u, err, metered)
}
