package proxy

import (
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// body is the body of a client's request. It keeps the bytes that pass, up to a bound, so that they
// can be sent again. Each attempt has a reader of its own. A reader begins when the reader before
// it is given up.
//
// A nil body is the body of a request without one.
type body struct {
	src     io.ReadCloser
	stall   time.Duration
	rc      http.ResponseController
	most    int64         // the bound of this body, in bytes
	all     *atomic.Int64 // how many more bytes all bodies may keep
	streams bool          // the request comes over HTTP/2
	gone    func(error)   // called when the client is gone, or sends no more

	mu     sync.Mutex // guards the following fields; never held while waiting for the client
	news   sync.Cond  // the state has changed
	busy   bool       // a goroutine reads from the client
	kept   []byte
	passed int64 // how many bytes have come
	lost   bool  // more came than is kept
	err    error // its end; io.EOF: complete
	closed bool
}

func newBody(src io.ReadCloser, rc http.ResponseController, b *Bounds, all *atomic.Int64, gone func(error)) *body {
	x := &body{src: src, stall: b.Stall, rc: rc, most: b.Kept, all: all, gone: gone}
	x.news.L = &x.mu
	return x
}

var (
	errLost   = errors.New("the body was too long to be kept")
	errOver   = errors.New("the request has ended")
	errStall  = errors.New("the client sends no more of its body")
	errClient = errors.New("the client went away while it was sending its body")
	errForm   = errors.New("the body is malformed")
)

// whole reports whether the body can be read from its beginning.
func (b *body) whole() bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.lost
}

// more reads from the client once, unless bytes after at have already come. If the bytes are not
// kept, they are in p alone, and n is their number. With keep, more reads no byte that cannot be
// kept.
func (b *body) more(at int64, p []byte, keep bool) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	over := func() bool { return b.passed > at || b.err != nil || b.closed }
	for b.busy && !over() {
		b.news.Wait()
	}
	if over() {
		return 0
	}
	room := !b.lost && b.passed+int64(len(p)) <= b.most && b.take(int64(len(p)))
	if !room {
		if keep {
			return 0
		}
		b.drop()
	}
	n, err := b.read(p)
	b.passed += int64(n)
	if room {
		b.take(int64(n - len(p)))
		b.kept = append(b.kept, p[:n]...)
		if b.closed {
			b.drop()
		}
	}
	if err != nil && !b.closed {
		if b.err = b.told(err); b.err != io.EOF {
			b.gone(b.err)
		}
	}
	if room {
		return 0
	}
	return n
}

// read reads from the client without the lock.
func (b *body) read(p []byte) (int, error) {
	b.busy = true
	b.mu.Unlock()
	_ = b.rc.SetReadDeadline(time.Now().Add(b.stall))
	n, err := b.src.Read(p)
	if err != nil {
		_ = b.rc.SetReadDeadline(time.Time{}) // from here on net/http watches whether the client goes away
	}
	b.mu.Lock()
	b.busy = false
	b.news.Broadcast()
	return n, err
}

// take takes n bytes from the room for all bodies, if there are that many.
func (b *body) take(n int64) bool {
	if b.all.Add(-n) >= 0 || n < 0 {
		return true
	}
	b.all.Add(n)
	return false
}

// told translates an error of the client's connection into the error for readers.
func (b *body) told(err error) error {
	_, long := errors.AsType[*http.MaxBytesError](err)
	_, network := errors.AsType[net.Error](err)
	switch {
	case err == io.EOF || long:
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errStall
	case network || b.streams || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, http.ErrBodyReadAfterClose):
		return errClient
	}
	return errForm
}

// drop forgets the kept bytes.
func (b *body) drop() {
	b.take(-int64(len(b.kept)))
	b.kept, b.lost = nil, true
}

// ahead reads up to n bytes before a reader needs them. After the end of a body net/http notices at
// once when its client goes away.
func (b *body) ahead(n int64) {
	p := make([]byte, min(n, 16<<10))
	for at, last := int64(0), int64(-1); at < n && at > last; {
		b.more(at, p, true)
		last = at
		b.mu.Lock()
		at = b.passed
		b.mu.Unlock()
	}
}

// held reads all of the body, and returns it. whole is false if it does not end, or is not kept.
func (b *body) held() (all []byte, whole bool) {
	b.ahead(math.MaxInt64)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept, !b.lost && b.err == io.EOF
}

// short returns all of a body of at most most bytes; nil: it is longer, does not end, or is not kept.
func (b *body) short(most int64) []byte {
	if b == nil {
		return nil
	}
	b.ahead(most + 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lost || b.err != io.EOF || b.passed > most {
		return nil
	}
	return b.kept
}

// replace puts other bytes in place of a body that short has returned, before anybody reads it.
func (b *body) replace(with []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take(int64(len(with) - len(b.kept)))
	b.kept, b.passed = with, int64(len(with))
}

// close ends all reading from the client.
func (b *body) close() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.drop()
	b.news.Broadcast()
	switch {
	case b.busy: // a goroutine waits for the client; this ends the wait and the connection
		_ = b.rc.SetReadDeadline(time.Unix(1, 0))
	case b.err != io.EOF:
		leave(&b.rc)
	}
}

// rest is how long the proxy waits for the unread rest of a body. The next request comes after it,
// and net/http looks for that.
const rest = time.Second

// leave bounds the wait for the rest of a request.
func leave(rc *http.ResponseController) { _ = rc.SetReadDeadline(time.Now().Add(rest)) }

// again returns a reader from the beginning. At its end it has copied those trailers that the
// client had announced.
func (b *body) again(came, goes http.Header) (io.ReadCloser, error) {
	if !b.whole() {
		return nil, errLost
	}
	return &reader{body: b, came: came, goes: goes}, nil
}

// reader is a body on its way to the upstream.
type reader struct {
	body       *body
	at         int64
	came, goes http.Header // trailers
	closed     atomic.Bool
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	b := r.body
	for {
		b.mu.Lock()
		switch {
		case r.closed.Load() || b.closed:
			b.mu.Unlock()
			return 0, errOver
		case r.at < b.passed && !b.lost:
			n := copy(p, b.kept[r.at:])
			r.at += int64(n)
			b.mu.Unlock()
			return n, nil
		case r.at < b.passed:
			b.mu.Unlock()
			return 0, errLost
		case b.err != nil:
			err := b.err
			b.mu.Unlock()
			if err == io.EOF && r.goes != nil {
				maps.Copy(r.goes, r.came)
			}
			return 0, err
		case len(p) == 0:
			b.mu.Unlock()
			return 0, nil
		}
		b.mu.Unlock()
		if n := b.more(r.at, p, false); n > 0 {
			r.at += int64(n)
			return n, nil
		}
	}
}

// Close implements io.Closer: the next Read fails. A Read under way may last until the client
// sends.
func (r *reader) Close() error {
	r.closed.Store(true)
	return nil
}
