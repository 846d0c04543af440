package durable

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// failing is a file on a disk that is full from some byte on.
type failing struct {
	bytes.Buffer
	room int
	err  error
}

var errFull = errors.New("no space left on device")

func (f *failing) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.Buffer.Write(b[:n])
	f.room -= n
	if n < len(b) {
		return n, errFull
	}
	return n, nil
}
func (f *failing) Sync() error { return f.err }
func (f *failing) Truncate(size int64) error {
	if f.err == nil {
		f.Buffer.Truncate(int(size))
	}
	return f.err
}
func (f *failing) Close() error { return nil }

// A line is there as a whole or not at all, and after half of one that cannot be undone nothing follows.
func TestFullDisk(t *testing.T) {
	f := &failing{room: 10}
	l := &File{name: "out", file: os.Stdin, h: f}
	for _, c := range []struct {
		line, content string
		err           error
	}{
		{"first\n", "first\n", nil},
		{"too long\n", "first\n", errFull},
		{"x\n", "first\n", errFull},
	} {
		if err := l.Append([]byte(c.line)); !errors.Is(err, c.err) || f.String() != c.content {
			t.Errorf("append %q: %v, content %q, want %v, %q", c.line, err, f.String(), c.err, c.content)
		}
	}
	f = &failing{room: 3, err: errors.New("read-only file system")}
	l = &File{name: "out", file: os.Stdin, h: f}
	if err := l.Append([]byte("first\n")); !errors.Is(err, errFull) {
		t.Error(err)
	}
	f.room = 100
	if err := l.Append([]byte("second\n")); !errors.Is(err, errFull) || f.String() != "fir" {
		t.Errorf("after half a line: %v, content %q", err, f.String())
	}
}

func TestLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.jsonl")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "is in use by another run") {
		t.Errorf("a second run on the same file: %v", err)
	}
	l.Close()
	if l, err = Open(path); err != nil {
		t.Errorf("after the first ended: %v", err)
	}
	l.Close()
}
