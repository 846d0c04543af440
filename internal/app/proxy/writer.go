package proxy

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paceline-go/paceline/internal/send"
)

// flushed is how long a part of an answer of known length may stay in the buffer. Answers of
// unknown length, and events, go on at once.
const flushed = 20 * time.Millisecond

// writer notes the status of the answer, and flushes each part in time.
type writer struct {
	http.ResponseWriter
	asks   bool // the client waits for a 100 before it sends the body
	status int  // 0: nothing yet
	bytes  int64
	over   *upgraded // nil: the answer is no upgrade

	mu      sync.Mutex  // guards the following fields, and is held during writes
	flushes *send.Watch // of the buffer; nil: not watched
	lying   send.Watched
	lies    bool // the buffer may have content, and is watched
}

// plainContentType is Content-Type for clients, to whom the case of a name means nothing.
const plainContentType = "content-type"

// Hijack implements http.Hijacker. Only an upgrade takes the connection over, and writes its answer
// there.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.status = http.StatusSwitchingProtocols
	w.over = &upgraded{Conn: c}
	return w.over, rw, nil
}

// upgraded is a connection of a client after an upgrade. It counts what goes to the client.
type upgraded struct {
	net.Conn
	sent atomic.Int64
}

// Write implements net.Conn.
func (u *upgraded) Write(p []byte) (int, error) {
	n, err := u.Conn.Write(p)
	u.sent.Add(int64(n))
	return n, err
}

// sent is how many bytes of the answer, or after an upgrade, went to the client.
func (w *writer) sent() int64 {
	if w.over != nil {
		return w.over.sent.Load()
	}
	return w.bytes
}

// CloseWrite is for httputil.ReverseProxy: the upstream has sent its last.
func (u *upgraded) CloseWrite() error {
	if half, ok := u.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Header implements http.ResponseWriter. A caller that asks after the header was written adds
// trailers. A flush must not read these meanwhile.
func (w *writer) Header() http.Header {
	if w.status != 0 {
		w.calm()
	}
	return w.ResponseWriter.Header()
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if status == http.StatusContinue && w.asks {
		return // net/http writes one when the upstream's makes the body be read, perhaps at this very moment
	}
	if status < 200 || w.status != 0 {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.status = status
	switch h := w.ResponseWriter.Header(); {
	case h["Content-Type"] == nil:
		h["Content-Type"] = nil // net/http would guess one
	case status == http.StatusNotModified: // net/http takes it away, by this name
		h[plainContentType] = h["Content-Type"]
		delete(h, "Content-Type")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ResponseWriter.WriteHeader(status)
	w.watchLocked()
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	w.watchLocked()
	return n, err
}

func (w *writer) watchLocked() {
	if w.flushes != nil && !w.lies {
		w.lies, w.lying.Of = true, w
		w.flushes.Begin(&w.lying)
	}
}

// FlushError is for http.ResponseController.
func (w *writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calmLocked()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Expired flushes the buffer.
func (w *writer) Expired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lies {
		w.lies = false
		_ = http.NewResponseController(w.ResponseWriter).Flush() // if it fails, the next Write fails
	}
}

// calm ends the automatic flushes: the answer has ended.
func (w *writer) calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calmLocked()
	w.flushes = nil
}

func (w *writer) calmLocked() {
	if w.lies {
		w.lies = false
		w.flushes.End(&w.lying)
	}
}

// buffers are for the copying of answers.
type buffers struct{}

const bufferSize = 32 << 10

var pool = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// Get implements httputil.BufferPool.
func (buffers) Get() []byte { return pool.Get().(*[bufferSize]byte)[:] }

// Put implements httputil.BufferPool.
func (buffers) Put(b []byte) { pool.Put((*[bufferSize]byte)(b)) }
