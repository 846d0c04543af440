package decode

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"reflect"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// What a decoder takes beside its window, as measured.
const (
	flateMemory  = 48 << 10
	brotliMemory = 96 << 10
	zstdMemory   = 256 << 10
)

// mostWindow is the largest window of zstd, as RFC 9659 has it for HTTP.
const mostWindow = 8 << 20

// open returns a reader of one coding, or of the text that is there in its place.
func (c coding) open(in *bufio.Reader, h *held) (io.Reader, error) {
	switch c {
	case gzipped:
		if !isGzip(in) && isText(in) {
			return in, nil
		}
		return newMembers(in, h)
	case zstded:
		return openZstd(in, h)
	}
	if isText(in) {
		return in, nil
	}
	if c == brotlied {
		if err := h.take(brotliMemory); err != nil {
			return nil, err
		}
		return &ring{Reader: brotli.NewReader(in), held: h}, nil
	}
	if err := h.take(flateMemory); err != nil {
		return nil, err
	}
	if isZlib(in) {
		return zlib.NewReader(in)
	}
	return flate.NewReader(in), nil // some servers leave out the format's header
}

// members reads gzip: one member, or several.
type members struct {
	in *bufio.Reader
	z  *gzip.Reader
}

func isGzip(in *bufio.Reader) bool {
	head, _ := in.Peek(2)
	return string(head) == "\x1f\x8b"
}

func newMembers(in *bufio.Reader, h *held) (*members, error) {
	if err := h.take(flateMemory); err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &members{in, z}, nil
}

// Read ends where no member follows. Some servers fill up with zeros.
func (m *members) Read(p []byte) (int, error) {
	n, err := m.z.Read(p)
	if err != io.EOF || !isGzip(m.in) {
		return n, err
	}
	err = m.z.Reset(m.in)
	m.z.Multistream(false)
	return n, err
}

// isZlib reports whether deflate has its header (RFC 1950). No encoder begins a bare stream so.
func isZlib(in *bufio.Reader) bool {
	head, _ := in.Peek(2)
	return len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0
}

// ring is a reader of br that counts its memory. The decoder's buffer grows with its content, up to
// the window.
type ring struct {
	*brotli.Reader
	held    *held
	counted int64
}

func (r *ring) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.held == nil {
		return n, err
	}
	if size := bufferOf(r.Reader); size > r.counted {
		more := size - r.counted
		r.counted = size
		if err := r.held.take(more); err != nil {
			return n, err
		}
	}
	return n, err
}

// bufferField is the field of a brotli.Reader that has the size of its buffer.
var bufferField, bufferKnown = reflect.TypeFor[brotli.Reader]().FieldByName("ringbuffer_size")

// bufferOf returns the size of a decoder's buffer. The library does not say it, so it is the largest
// possible if a later version has no such field.
func bufferOf(r *brotli.Reader) int64 {
	const largest = 16 << 20
	if !bufferKnown || bufferField.Type.Kind() != reflect.Int {
		return largest
	}
	return reflect.ValueOf(r).Elem().FieldByIndex(bufferField.Index).Int()
}

func openZstd(in *bufio.Reader, h *held) (io.Reader, error) {
	var head zstd.Header
	for n := 1; ; n++ { // waits for no byte that the header does not need
		begin, end := in.Peek(n)
		err := head.Decode(begin)
		if err == nil {
			break
		}
		if end != nil || err != io.ErrUnexpectedEOF || n == zstd.HeaderMaxSize {
			if isText(in) {
				return in, nil
			}
			return nil, err
		}
	}
	window := uint64(mostWindow)
	switch {
	case head.Skippable: // the next frame says it
	case head.SingleSegment:
		window = head.FrameContentSize
	default:
		window = head.WindowSize
	}
	if window > mostWindow {
		return nil, fmt.Errorf("%w: a window of %d bytes", ErrBounds, window)
	}
	window = max(window, zstd.MinWindowSize)
	if err := h.take(zstdMemory + int64(window)); err != nil {
		return nil, err
	}
	return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window))
}
