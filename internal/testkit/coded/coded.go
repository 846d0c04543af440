// Package coded puts answers into content codings, for tests of the code that decodes such answers.
package coded

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Coding is one coding, or two in a row.
type Coding struct {
	Name  string
	Field string     // the value of Content-Encoding
	pool  *sync.Pool // of chains, since an encoder takes much memory
}

type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(to io.Writer)
}

func gzipped() encoder  { return gzip.NewWriter(nil) }
func deflated() encoder { return zlib.NewWriter(nil) }
func bare() encoder     { return must(flate.NewWriter(nil, flate.DefaultCompression)) }
func brotlied() encoder {
	return brotli.NewWriterOptions(nil, brotli.WriterOptions{Quality: 2, LGWin: 16})
}

func zstandard() encoder {
	return must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(64<<10),
		zstd.WithEncoderLevel(zstd.SpeedFastest)))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// All are the codings that clients may ask for, in every form.
var All = []Coding{
	of("gzip", "gzip", gzipped),
	of("deflate", "deflate", deflated),
	of("deflate without its header", "deflate", bare),
	of("br", "br", brotlied),
	of("zstd", "zstd", zstandard),
	of("gzip in br", "gzip, br", gzipped, brotlied),
}

func of(name, field string, each ...func() encoder) Coding {
	return Coding{name, field, &sync.Pool{New: func() any {
		var all []encoder
		for _, e := range each {
			all = append(all, e())
		}
		return &chain{each: all}
	}}}
}

// Encode returns a body in the coding.
func (c Coding) Encode(plain []byte) []byte {
	var b bytes.Buffer
	w := c.writer(&b)
	must(w.Write(plain))
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// Events returns a body of events in the coding, each flushed.
func (c Coding) Events(all ...string) (pieces [][]byte) {
	var b bytes.Buffer
	w := c.writer(&b)
	take := func() {
		pieces = append(pieces, bytes.Clone(b.Bytes()))
		b.Reset()
	}
	for _, e := range all {
		must(io.WriteString(w, e))
		_ = w.Flush() // into a buffer, which never fails
		take()
	}
	_ = w.Close()
	take()
	return pieces
}

// chain is several encoders, the last of which writes to the client.
type chain struct {
	each []encoder
	pool *sync.Pool
}

func (c Coding) writer(w io.Writer) *chain {
	all := c.pool.Get().(*chain)
	all.pool = c.pool
	for i := len(all.each) - 1; i >= 0; i-- {
		all.each[i].Reset(w)
		w = all.each[i]
	}
	return all
}

func (c *chain) Write(p []byte) (int, error) { return c.each[0].Write(p) }

func (c *chain) Flush() error {
	for _, e := range c.each {
		if err := e.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the body. The chain is not used afterwards.
func (c *chain) Close() error {
	for _, e := range c.each {
		if err := e.Close(); err != nil {
			return err
		}
	}
	c.pool.Put(c)
	return nil
}

// Handler serves what h serves, in the coding. Each write is flushed.
func (c Coding) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cw := &writer{ResponseWriter: w, coding: c, head: r.Method == http.MethodHead}
		defer func() {
			if cw.to != nil {
				_ = cw.to.Close() // the client may be gone
			}
		}()
		h.ServeHTTP(cw, r)
	})
}

type writer struct {
	http.ResponseWriter
	coding  Coding
	head    bool
	started bool
	to      *chain // nil: the answer has no body, or a coding of its own
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) WriteHeader(status int) {
	if !w.started && status >= 200 {
		w.started = true
		h := w.Header()
		if !w.head && status != http.StatusNoContent && status != http.StatusNotModified && h.Get("Content-Encoding") == "" {
			h.Set("Content-Encoding", w.coding.Field)
			h.Del("Content-Length")
			w.to = w.coding.writer(w.ResponseWriter)
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	if !w.started {
		w.WriteHeader(http.StatusOK)
	}
	if w.to == nil {
		return w.ResponseWriter.Write(p)
	}
	n, err := w.to.Write(p)
	w.Flush()
	return n, err
}

// Flush implements http.Flusher.
func (w *writer) Flush() {
	if w.to != nil {
		_ = w.to.Flush()
	}
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// RoundTripper answers what base answers, in the coding. It flushes after each few bytes.
func (c Coding) RoundTripper(base http.RoundTripper) http.RoundTripper { return &trip{base, c} }

type trip struct {
	base   http.RoundTripper
	coding Coding
}

func (t *trip) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil || resp == nil || resp.Body == nil || resp.Body == http.NoBody ||
		resp.StatusCode == http.StatusSwitchingProtocols || resp.Header.Get("Content-Encoding") != "" {
		return resp, err
	}
	if resp.Header == nil {
		resp.Header = http.Header{}
	}
	resp.Header.Set("Content-Encoding", t.coding.Field)
	resp.Header.Del("Content-Length")
	b := &body{plain: resp.Body}
	b.to = t.coding.writer(&b.coded)
	resp.Body, resp.ContentLength = b, -1
	return resp, nil
}

// body is a body in a coding.
type body struct {
	plain io.ReadCloser
	coded bytes.Buffer
	to    *chain
	err   error
}

func (b *body) Read(p []byte) (int, error) {
	for b.coded.Len() == 0 && b.err == nil {
		piece := make([]byte, 32)
		n, err := b.plain.Read(piece)
		must(b.to.Write(piece[:n]))
		if b.err = err; err == io.EOF {
			_ = b.to.Close()
		} else if n > 0 {
			_ = b.to.Flush()
		}
	}
	if b.coded.Len() > 0 {
		return b.coded.Read(p)
	}
	return 0, b.err
}

func (b *body) Close() error { return b.plain.Close() }
