package decode

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Prefix returns the beginning of what raw has without its codings, at most so many bytes. raw may
// be the beginning of a body. The error says why nothing is returned, if that is not for want of
// bytes.
func (c Codings) Prefix(raw []byte, most int) ([]byte, error) {
	if c.None() {
		return raw[:min(len(raw), most)], nil
	}
	var out bytes.Buffer
	_, err := out.ReadFrom(io.LimitReader(c.NewReader(bytes.NewReader(raw)), int64(most)))
	if out.Len() > 0 || errors.Is(err, io.ErrUnexpectedEOF) {
		return out.Bytes(), nil
	}
	return nil, err
}

// NewReader returns a reader of what body has without its codings. It reads nothing ahead of what
// it can decode. Its errors are those of body, io.ErrUnexpectedEOF if the coding does not reach its
// end, or wrap one of this package's. The memory is that of the coding's window, 8 MiB at most with
// zstd and 16 MiB with br. Not safe for concurrent use.
func (c Codings) NewReader(body io.Reader) io.Reader {
	if c.None() {
		return body
	}
	return &reader{codings: c, body: source{r: body}}
}

// reader reads codings. It looks at the body at the first Read.
type reader struct {
	codings Codings
	body    source
	held    *held // nil: memory is not counted
	plain   io.Reader
	err     error
}

// source notes the error of a body, which a decoder may hide behind its own.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

func (r *reader) Read(p []byte) (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	defer func() { // a decoder of others must not end the program
		if v := recover(); v != nil {
			n, err = 0, fmt.Errorf("panicked: %v", v)
		}
		if err != nil {
			err = r.told(err)
			r.err = err
		}
	}()
	if r.plain == nil {
		if r.plain, err = r.codings.open(&r.body, r.held); err != nil {
			return 0, err
		}
	}
	for range mostEmpty {
		if n, err = r.plain.Read(p); n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// mostEmpty is how often in a row a decoder may read nothing, at the end of a block for example.
const mostEmpty = 100

// told returns the error for the caller.
func (r *reader) told(err error) error {
	switch {
	case r.body.err != nil:
		return r.body.err
	case err == io.EOF, errors.Is(err, ErrUnknown), errors.Is(err, ErrBounds):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: %v", ErrDamaged, err)
}

// buffered is how much of a coding is read at once.
const buffered = 1 << 10

// open returns a reader of the body without its codings.
func (c Codings) open(body io.Reader, h *held) (io.Reader, error) {
	in := bufio.NewReaderSize(body, buffered)
	if c.other != "" {
		if isText(in) {
			return in, nil
		}
		return nil, c.errUnknown()
	}
	for i := c.count - 1; ; i-- {
		plain, err := c.all[i].open(in, h)
		if err != nil || i == 0 {
			return plain, err
		}
		in = bufio.NewReaderSize(plain, buffered)
	}
}

// isText reports whether a body begins like text, or is empty. The first bytes of all codings have
// some that no text has. It waits for no more bytes than it needs.
func isText(in *bufio.Reader) bool {
	const (
		enough = 32
		least  = 8 // fewer may be the beginning of br that was cut
	)
	for n := 1; ; n++ {
		head, err := in.Peek(n)
		switch {
		case err != nil:
			return (len(head) == 0 || len(head) >= least) && utf8.Valid(head)
		case head[n-1] < ' ' && head[n-1] != '\t' && head[n-1] != '\n' && head[n-1] != '\r', head[n-1] == 0x7f:
			return false
		case n == enough:
			for cut := range utf8.UTFMax { // the last character may be cut
				if utf8.Valid(head[:n-cut]) {
					return true
				}
			}
			return false
		}
	}
}
