package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// LineReader reads lines of bounded length, and counts them. Not safe for concurrent use.
type LineReader struct {
	name  string
	in    *bufio.Reader
	most  int // largest length of a line in bytes
	line  int
	bytes int64
	buf   []byte
	part  bool // the line of the latest Part goes on
}

// NewLineReader returns Lines of in. Errors call it name. most is the most bytes in a line.
func NewLineReader(name string, in io.Reader, most int) *LineReader {
	return &LineReader{name: name, in: bufio.NewReaderSize(in, 64<<10), most: most}
}

// Name returns the name of the input in errors.
func (l *LineReader) Name() string { return l.name }

// Read returns how many lines and bytes have been read.
func (l *LineReader) Read() (lines int, bytes int64) { return l.line, l.bytes }

// Most returns how many bytes a line may have.
func (l *LineReader) Most() int { return l.most }

// Line returns the next line without its line break. It is valid until the next call. A line that
// is too long is skipped, and not kept in memory.
func (l *LineReader) Line() (line []byte, tooLong bool, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		l.bytes += int64(len(part))
		if err == nil && len(l.buf) == 0 && !tooLong && len(part)-1 <= l.most { // so it is with most lines
			l.line++
			end := len(part) - 1
			return part[:end:end], false, nil
		}
		if !tooLong {
			l.buf = append(l.buf, part...)
		}
		if len(bytes.TrimSuffix(l.buf, []byte("\n"))) > l.most {
			tooLong = true
			l.buf = l.buf[:0]
		}
		switch {
		case err == nil, err == io.EOF && (len(l.buf) > 0 || tooLong):
			l.line++
			return bytes.TrimSuffix(l.buf, []byte("\n")), tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF:
			return nil, false, io.EOF
		default:
			return nil, false, fmt.Errorf("%s: %w", l.name, err)
		}
	}
}

// Part returns the next part of a line, with the line break if that is in it. It is valid until the
// next call. It is for inputs without lines, and must not be mixed with Line.
func (l *LineReader) Part() ([]byte, error) {
	part, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || err == io.EOF && len(part) > 0 {
		err = nil
	}
	l.bytes += int64(len(part))
	if len(part) > 0 && !l.part {
		l.line++
	}
	l.part = len(part) > 0 && part[len(part)-1] != '\n'
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%s: %w", l.name, err)
	}
	return part, err
}

// TooLong returns the error for a line that is too long.
func (l *LineReader) TooLong() error {
	return l.Errorf(l.line, l.most+1, "the line is longer than %d bytes, expected at most that (--max-line)", l.most)
}

// Errorf returns an *Error about a place in the input.
func (l *LineReader) Errorf(line, column int, format string, args ...any) error {
	return &Error{l.name, line, column, fmt.Sprintf(format, args...)}
}

// NotUTF8 returns an error if a line is not UTF-8.
func (l *LineReader) NotUTF8(line []byte) error {
	if utf8.Valid(line) {
		return nil
	}
	rest := NotUTF8(line)
	return l.Errorf(l.line, len(line)-len(rest)+1, "byte 0x%02x is not UTF-8, expected text in UTF-8", rest[0])
}
