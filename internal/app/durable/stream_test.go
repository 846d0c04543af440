package durable

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// sink is a writer that is closed.
type sink struct {
	bytes.Buffer
	closed int
	err    error
}

func (s *sink) Close() error { s.closed++; return s.err }

// A stream takes lines and is closed if it can be; there is nothing to cut or sync, and it is no
// file.
func TestStream(t *testing.T) {
	to := &sink{}
	f := Stream("results", to)
	if f.Regular() || f.Name() != "results" {
		t.Errorf("regular %v, named %q", f.Regular(), f.Name())
	}
	for _, step := range []error{f.SetSize(0), f.Append([]byte("one\n")), f.Sync(1), f.SetSize(4), f.Append([]byte("two\n")), f.Close()} {
		if step != nil {
			t.Error(step)
		}
	}
	if to.String() != "one\ntwo\n" || to.closed != 1 || f.Durable() != 0 {
		t.Errorf("%q, closed %d times, %d bytes are durable", to.String(), to.closed, f.Durable())
	}
	if err := Stream("results", &to.Buffer).Close(); err != nil {
		t.Error(err)
	}
	if err := Stream("results", &sink{err: errFull}).Close(); !errors.Is(err, errFull) {
		t.Errorf("its Close fails with %v", err)
	}
	pipe := &failing{room: 1, err: errFull}
	f = Stream("pipe", pipe)
	if err := f.Append([]byte("x\n")); !errors.Is(err, errFull) || pipe.String() != "x" {
		t.Errorf("%v; what a pipe has taken is gone: %q", err, pipe.String())
	}
}

// The content of a file can be read during appends. It is durable after a sync, also the content
// from before Open.
func TestFileIsReadAndSynced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	durable := func(want int64, after string) {
		t.Helper()
		if n := f.Durable(); n != want {
			t.Errorf("%d bytes are durable after %s, want %d", n, after, want)
		}
	}
	if err := f.SetSize(8); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(2); err != nil {
		t.Fatal(err)
	}
	durable(0, "a sync of two lines, where none is new")
	if err := f.Sync(1); err != nil {
		t.Fatal(err)
	}
	durable(8, "a sync")
	for _, line := range []string{"three\n", "four\n"} {
		if err := f.Append([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(3); err != nil {
		t.Fatal(err)
	}
	durable(8, "a sync of three lines, where there are two")
	if err := f.Sync(2); err != nil {
		t.Fatal(err)
	}
	durable(19, "a sync of two")
	if all, err := io.ReadAll(f.Reader()); string(all) != "one\ntwo\nthree\nfour\n" || err != nil {
		t.Errorf("%q, %v", all, err)
	}
	part := make([]byte, 5)
	if _, err := f.ReaderAt().ReadAt(part, 8); string(part) != "three" || err != nil {
		t.Errorf("%q, %v", part, err)
	}
	if s, err := f.Stat(); err != nil || s.Size() != 19 || f.Size() != 19 || !f.Regular() {
		t.Errorf("%d bytes, %v", f.Size(), err)
	}
	if err := f.Close(); err != nil || f.Size() != 19 {
		t.Errorf("%d bytes after it was closed, %v", f.Size(), err)
	}
}

// Of a line of which the disk took but a byte nothing stays.
func TestFullDiskAfterAByte(t *testing.T) {
	disk := &failing{room: 7}
	f := &File{name: "out", regular: true, h: disk}
	for i, line := range []string{"first\n", "second\n"} {
		if err := f.Append([]byte(line)); (err != nil) != (i == 1) || disk.String() != "first\n" {
			t.Errorf("%q: %v, the file has %q", line, err, disk.String())
		}
	}
}

// synced counts how often it was.
type synced struct {
	Handle
	n int
}

func (s *synced) Sync() error { s.n++; return nil }

// A discarded file is closed, and not synced.
func TestDiscard(t *testing.T) {
	to := &sink{}
	s := &synced{Handle: stream{to}}
	f := &File{name: "out", regular: true, h: s}
	if err := f.Append([]byte("x\n")); err != nil {
		t.Fatal(err)
	}
	f.Discard()
	if to.closed != 1 || s.n != 0 || f.Size() != 2 {
		t.Errorf("closed %d times, synced %d times, %d bytes", to.closed, s.n, f.Size())
	}
}

// Where the new file cannot be made the error says so, and the old one stays.
func TestReplaceWhereNothingCanBeMade(t *testing.T) {
	folder := t.TempDir()
	if f, err := Replace(OS, filepath.Join(folder, "none", "file"), nil, nil); f != nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no folder: %v, %v", f, err)
	}
	path := filepath.Join(folder, "file")
	if err := os.MkdirAll(filepath.Join(path+".new", "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Replace(OS, path, []byte("new"), nil); f != nil || err == nil {
		t.Errorf("where a folder is in the way: %v, %v", f, err)
	}
	if b, err := os.ReadFile(path); string(b) != "old" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if err := OS.SyncFolder(filepath.Join(folder, "none", "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there is synced: %v", err)
	}
}

// A file that is new is for its owner alone, and there is nothing in it that would have to be
// synced.
func TestNewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	if s, err := f.Stat(); err != nil || runtime.GOOS != "windows" && s.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", s.Mode(), err)
	}
	var h *synced
	f.Through(func(was Handle) Handle { h = &synced{Handle: was}; return h })
	if err := f.SetSize(0); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(1); err != nil || h.n != 0 {
		t.Errorf("synced %d times, %v", h.n, err)
	}
}
