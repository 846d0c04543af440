package input

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Coding is the encoding of an input's text, if that is not plain UTF-8.
type Coding uint8

const (
	UTF8 Coding = iota
	Gzip
	UTF16LE // with a byte order mark
	UTF16BE
)

// CodingOf recognizes the Coding of an input by its first bytes.
func CodingOf(head []byte) Coding {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return Gzip
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}) && !bytes.HasPrefix(head, []byte{0xff, 0xfe, 0, 0}):
		return UTF16LE
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return UTF16BE
	}
	return UTF8
}

// Decode returns a reader of an input's text in UTF-8. in must be at the beginning of the input.
func Decode(in io.Reader, c Coding) io.Reader {
	switch c {
	case Gzip:
		return &unzipped{in: in}
	case UTF16LE, UTF16BE:
		return &wide{in: bufio.NewReader(in), big: c == UTF16BE}
	}
	return in
}

// unzipped reads gzip. The compressed text may be UTF-16.
type unzipped struct {
	in   io.Reader
	text io.Reader
}

func (u *unzipped) Read(b []byte) (int, error) {
	if u.text == nil {
		z, err := gzip.NewReader(u.in)
		if err != nil {
			return 0, fmt.Errorf("gzip: %w", err)
		}
		text := bufio.NewReader(z)
		head, _ := text.Peek(4)
		u.text = text
		if c := CodingOf(head); c != Gzip {
			u.text = Decode(text, c)
		}
	}
	n, err := u.text.Read(b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("gzip: the file is cut off")
	} else if err != nil && err != io.EOF {
		err = fmt.Errorf("gzip: %w", err)
	}
	return n, err
}

// wide converts UTF-16 to UTF-8 and removes the byte order mark. A code that is no character
// becomes U+FFFD.
type wide struct {
	in    *bufio.Reader
	big   bool
	begun bool
	left  []byte // decoded UTF-8 that is not read yet
}

func (w *wide) Read(b []byte) (n int, err error) {
	for n == 0 || len(b)-n >= utf8.UTFMax && w.in.Buffered() >= 2*2 {
		if len(w.left) == 0 {
			if err := w.next(); err != nil {
				return n, err
			}
		}
		took := copy(b[n:], w.left)
		w.left = w.left[took:]
		if n += took; len(b) == 0 {
			return 0, nil
		}
	}
	return n, nil
}

// next decodes one more character into left.
func (w *wide) next() error {
	r, err := w.unit()
	if !w.begun && err == nil {
		if w.begun = true; r == 0xfeff {
			r, err = w.unit()
		}
	}
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(r) {
		low, _ := w.in.Peek(2)
		if r = utf16.DecodeRune(r, w.rune(low)); r != utf8.RuneError {
			_, _ = w.in.Discard(2)
		}
	}
	w.left = utf8.AppendRune(w.left[:0], r)
	return nil
}

// unit reads the next two bytes.
func (w *wide) unit() (rune, error) {
	var two [2]byte
	_, err := io.ReadFull(w.in, two[:])
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("UTF-16 with an odd number of bytes: the file is cut off")
	}
	return w.rune(two[:]), err
}

func (w *wide) rune(two []byte) rune {
	if len(two) < 2 {
		return 0
	}
	if w.big {
		return rune(two[0])<<8 | rune(two[1])
	}
	return rune(two[1])<<8 | rune(two[0])
}
