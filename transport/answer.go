package transport

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/tokens"
)

// read says what an answer says of limits, and whether it was looked at. Of what may be a refusal it reads the beginning of
// the body, which the caller gets all the same.
func (t *Transport) read(resp *http.Response, l *leaf) (quota.Observation, bool) {
	host := l.host()
	d := t.config.Provider
	if d == nil {
		d = host.provider
	}
	shown := d == nil
	if known := host.dialect.Load(); shown && known != nil {
		d = *known
	}
	r := quota.Response{Status: resp.StatusCode, Header: resp.Header}
	refusal := mayRefuse(resp.StatusCode)
	if refusal || d != nil && inBody(d.Name()) && resp.StatusCode/100 == 2 && isJSON(resp) {
		r.Body = prefix(resp)
	} else if !speaks(resp.Header) {
		return quota.Observation{}, false
	}
	now := time.Now()
	var o quota.Observation
	if d != nil {
		if o = d.Read(now, r); !shown || says(&o) {
			return o, true
		}
	}
	// Behind a gateway the next answer may be another provider's.
	seen := quota.Detect(r)
	name := seen.Name()
	anybody := name == "generic" || name == "ietf" // what anybody may say does not tell who it is
	if d != nil && name == o.Dialect {
		return o, true
	}
	other := seen.Read(now, r)
	if anybody && d != nil && !says(&other) {
		return o, true
	}
	if !anybody {
		// A body may quote, so it does not tell either, for more than this answer.
		if r := (quota.Response{Status: r.Status, Header: r.Header}); quota.Detect(r).Name() == name {
			host.dialect.Store(&seen)
		}
	}
	return other, true
}

func says(o *quota.Observation) bool { return len(o.Limits) > 0 || len(o.Policies) > 0 }

// mayRefuse tells whether a status can be that of a refusal, whose body says why.
func mayRefuse(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusPaymentRequired, http.StatusForbidden, http.StatusConflict, http.StatusRequestEntityTooLarge,
		http.StatusTeapot, http.StatusLocked, http.StatusTooManyRequests, 430, 498, http.StatusServiceUnavailable, 529:
		return true
	}
	return false
}

// inBody tells of providers who refuse with status 200, or say only in the body what is left.
func inBody(dialect string) bool {
	switch dialect {
	case "kraken", "bybit", "okx", "shopify", "slack":
		return true
	}
	return false
}

// isJSON tells of one document, not of a stream of them.
func isJSON(resp *http.Response) bool {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind != "application/stream+json" && (strings.HasSuffix(kind, "/json") || strings.HasSuffix(kind, "+json"))
}

// speaks tells whether a header may say something of limits. Most say nothing, and to look costs less than to read.
func speaks(h http.Header) bool {
	for name := range h {
		if len(name) > 6 && (strings.Contains(name, "imit") || strings.HasPrefix(name, "Retry") || strings.HasPrefix(name, "X-Mbx-") || strings.HasPrefix(name, "X-Sapi-")) {
			return true
		}
	}
	return false
}

// prefix returns the beginning of the body, which is still all there for whoever reads it. Of an event stream it takes
// nothing.
func prefix(resp *http.Response) []byte {
	if resp.Body == nil || resp.Body == http.NoBody || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	if p, ok := resp.Body.(*prefixed); ok {
		return p.head
	}
	p := &prefixed{rest: resp.Body}
	var b bytes.Buffer
	// One byte more tells whether that was all.
	_, p.err = b.ReadFrom(io.LimitReader(resp.Body, quota.MaxBody+1))
	p.head = b.Bytes()
	p.whole = p.err == nil && len(p.head) <= quota.MaxBody
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

// patience is how long the body of an answer is waited for that may not be returned to anybody.
const patience = time.Second

// keep frees the connection of an answer to a request that is sent again. It returns the answer if it can be returned
// nevertheless, should there be no other; otherwise nil.
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

// held is the body of an answer whose end settles the attempt. What is read are the Base's bytes and errors. Like theirs,
// its Close may be called while a Read is under way.
type held struct {
	body    io.ReadCloser
	sent    *sent
	cleanup runtime.Cleanup

	mu      sync.Mutex // guards what follows
	watcher *tokens.Watcher
	n       int // of the Read that the watcher is shown
	err     error
	over    bool
}

func newHeld(s *sent, body io.ReadCloser) *held {
	h := &held{body: body, sent: s}
	// Whoever neither reads an answer to its end nor closes it keeps the connection for good, but not a place in the limit.
	h.cleanup = runtime.AddCleanup(h, func(s *sent) { s.ended(tokens.Usage{}, tokens.ErrIncomplete, true) }, s)
	return h
}

func (h *held) watch(resp *http.Response) {
	stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	h.watcher = tokens.NewWatcher(h.sent.api, stream, (*shown)(h))
}

// shown is what the watcher reads from: the bytes are where it wants them already.
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
	}
	h.mu.Unlock()
	h.cleanup.Stop()
	h.sent.ended(u, err, metered)
}
