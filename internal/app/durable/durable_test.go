package durable

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
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

// A line is there as a whole or not at all, and after half of one that cannot be undone nothing
// follows.
func TestFullDisk(t *testing.T) {
	f := &failing{room: 10}
	l := &File{name: "out", regular: true, h: f}
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
	l = &File{name: "out", regular: true, h: f}
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
	if _, err := Open(path); err == nil || err.Error() != path+" is in use by another run: wait for its end, or choose another file" {
		t.Errorf("a second run on the same file: %v", err)
	}
	l.Close()
	if l, err = Open(path); err != nil {
		t.Errorf("after the first ended: %v", err)
	}
	l.Close()
}

// cutting is a disk whose power is cut before step at, if that is not 0, or where that step fails.
// A cut loses all that is not synced: bytes of a file until its Sync, and names until SyncFolder.
type cutting struct {
	step, at int
	fails    error
	old, new string // durable content of both files
	temp     bool   // there is a file under the temporary name
	renamed  bool
	named    bool // durably
	power    bool
	names    []string // of the steps
}

var errCut = errors.New("cut")

func (d *cutting) do(name string) error {
	d.names = append(d.names, name)
	if d.step++; d.at > 0 && d.step == d.at {
		if d.fails == nil {
			d.power = false
			return errCut
		}
		return d.fails
	}
	if !d.power {
		return errCut
	}
	return nil
}

func (d *cutting) Create(string) (Handle, error) {
	if err := d.do("create"); err != nil {
		return nil, err
	}
	d.temp = true
	return &cutHandle{d: d}, nil
}

func (d *cutting) Remove(string) error {
	if !d.temp {
		return os.ErrNotExist
	}
	d.temp = false
	return d.do("remove")
}

func (d *cutting) Rename(string, string) error {
	err := d.do("rename")
	if err == nil {
		d.renamed, d.temp = true, false
	}
	return err
}

func (d *cutting) SyncFolder(string) error {
	err := d.do("sync folder")
	if err == nil {
		d.named = true
	}
	return err
}

type cutHandle struct {
	d    *cutting
	text string
}

func (h *cutHandle) Write(b []byte) (int, error) {
	if err := h.d.do("write"); err != nil {
		return 0, err
	}
	h.text += string(b)
	return len(b), nil
}

func (h *cutHandle) Sync() error {
	err := h.d.do("sync")
	if err == nil {
		h.d.new = h.text
	}
	return err
}
func (h *cutHandle) Truncate(int64) error { return nil }
func (h *cutHandle) Close() error         { return nil }

// After a power cut at any step, the file has the old content or the new one, and after a success
// only the new one. A failure is reported, and the temporary file goes.
func TestReplace(t *testing.T) {
	whole := &cutting{power: true, old: "before"}
	if _, err := Replace(whole, "j", []byte("after"), nil); err != nil || strings.Join(whole.names, ", ") != "create, write, sync, rename, sync folder" {
		t.Fatalf("%v: %v", whole.names, err)
	}
	if !whole.named || whole.new != "after" {
		t.Errorf("it succeeded, and after a power cut it may be that of before: %+v", whole)
	}
	full := errors.New("no space left on device")
	for at := range len(whole.names) {
		for _, fails := range []error{nil, full} {
			d := &cutting{power: true, old: "before", at: at + 1, fails: fails}
			f, err := Replace(d, "j", []byte("after"), nil)
			if !errors.Is(err, full) && !errors.Is(err, errCut) {
				t.Errorf("%s: %v", whole.names[at], err)
			}
			if d.renamed && d.new != "after" {
				t.Errorf("%s: after a power cut there may be %q", whole.names[at], d.new)
			}
			if (f != nil) != d.renamed || fails != nil && d.temp {
				t.Errorf("%s: %+v, %v", whole.names[at], d, f)
			}
		}
	}
}

// named is a disk that renames no open file, as that of Windows, and may fail at it.
type named struct {
	Disk
	open  map[string]bool
	fails error
}

func (n *named) Create(path string) (Handle, error) {
	h, err := n.Disk.Create(path)
	n.open[path] = true
	return &closing{h, func() { n.open[path] = false }}, err
}

func (n *named) Rename(from, to string) error {
	switch {
	case n.open[from] || n.open[to]:
		return errors.New("sharing violation")
	case n.fails != nil:
		return n.fails
	}
	return n.Disk.Rename(from, to)
}

type closing struct {
	Handle
	closed func()
}

func (c *closing) Close() error {
	c.closed()
	return c.Handle.Close()
}

// Where no open file gets another name, a file is replaced all the same, and lines are appended to it. If that
// fails, they are appended to the file of before.
func TestReplaceClosed(t *testing.T) {
	defer func(was bool) { renamesOpen = was }(renamesOpen)
	renamesOpen = false
	disk := &named{Disk: OS, open: map[string]bool{}}
	path := filepath.Join(t.TempDir(), "file")
	old, err := Replace(disk, path, []byte("one\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	disk.open[path] = true
	old.h = &closing{old.h, func() { disk.open[path] = false }}
	disk.fails = errFull
	if f, err := Replace(disk, path, []byte("two\n"), old); f != nil || !errors.Is(err, errFull) {
		t.Fatalf("it failed, and says %v, %v", f, err)
	}
	if err := old.Append([]byte("more\n")); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); string(text) != "one\nmore\n" {
		t.Errorf("after a failure %q, %v", text, err)
	}
	disk.fails = nil
	f, err := Replace(disk, path, []byte("two\n"), old)
	if err == nil {
		err = errors.Join(f.Append([]byte("more\n")), f.Close())
	}
	if text, rerr := os.ReadFile(path); err != nil || string(text) != "two\nmore\n" {
		t.Errorf("%q, %v, %v", text, err, rerr)
	}
}

// A sync that fails is said by each way to one.
func TestSyncFails(t *testing.T) {
	broken := errors.New("input/output error")
	for name, sync := range map[string]func(*File) error{
		"Sync": func(f *File) error { return f.Sync(1) }, "Close": (*File).Close, "again": func(f *File) error { _ = f.Sync(1); return f.Sync(1) },
	} {
		f := &File{name: "out", regular: true, h: &failing{room: 100, err: broken}}
		if err := f.Append([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
		if err := sync(f); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type unclosing struct{ failing }

func (*unclosing) Close() error { return errFull }

// An error that the system reports only at the close of a file, as network file systems may, is
// reported.
func TestCloseFails(t *testing.T) {
	f := &File{name: "out", regular: true, h: &unclosing{failing{room: 100}}}
	if err := f.Close(); !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "out: ") {
		t.Errorf("%v", err)
	}
}

// A file or link in the place of a new file is not written to, and the new file belongs to its
// owner alone.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path, precious := filepath.Join(dir, "j"), filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, put := range map[string]func() error{
		"link": func() error { return os.Symlink(precious, path+".new") }, "hard link": func() error { return os.Link(precious, path+".new") },
		"nothing": func() error { return nil },
	} {
		if err := put(); err != nil {
			t.Skip(err)
		}
		f, err := Replace(OS, path, []byte("after"), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f.Close()
		info, _ := os.Lstat(path)
		text, _ := os.ReadFile(path)
		kept, _ := os.ReadFile(precious)
		if string(text) != "after" || string(kept) != "precious" || !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode() != private {
			t.Errorf("%s: %q, %v; the other %q", name, text, info.Mode(), kept)
		}
	}
	// Between the removal and the making somebody may be quick.
	if err := os.Symlink(precious, path+".new"); err != nil {
		t.Skip(err)
	}
	if _, err := OS.Create(path + ".new"); !errors.Is(err, os.ErrExist) {
		t.Errorf("made through a link: %v", err)
	}
}

// The bytes after the size are cut off, and later lines go there. If a file cannot be cut, the
// error says so, and its size stays.
func TestSetSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("one\ntwo\nhal"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Name() != path || !f.Regular() {
		t.Errorf("%s, regular %v", f.Name(), f.Regular())
	}
	if err := errors.Join(f.SetSize(8), f.Append([]byte("three\n"))); err != nil || f.Size() != 14 {
		t.Errorf("%d bytes, %v", f.Size(), err)
	}
	if text, err := os.ReadFile(path); string(text) != "one\ntwo\nthree\n" {
		t.Errorf("%q, %v", text, err)
	}
	f.Through(func(h Handle) Handle {
		_ = h.Close()
		return &failing{err: errFull}
	})
	if err := f.SetSize(4); !errors.Is(err, errFull) || f.Size() != 14 {
		t.Errorf("%d bytes, %v", f.Size(), err)
	}
}

// unnamed is a disk that cannot make names durable.
type unnamed struct{ Disk }

func (unnamed) SyncFolder(string) error { return errFull }

// To cut a file makes its name durable too, and says so where that fails; a folder that is not
// there is no durable name.
func TestSetSizeNames(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	disk := OS
	defer func() { OS = disk }()
	OS = unnamed{disk}
	if err := f.SetSize(0); !errors.Is(err, errFull) {
		t.Errorf("%v", err)
	}
	if err := disk.SyncFolder(filepath.Join(t.TempDir(), "none", "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// Each line comes with the size up to its end. A line without its break is the Rest.
func TestLines(t *testing.T) {
	const text = "one\n\nthree\nfo"
	read := ""
	end, err := Lines(strings.NewReader(text), "in", func(line []byte, end End) error {
		if read += string(line); end.Size != int64(len(read)) || end.Lines != strings.Count(read, "\n") || len(end.Rest) > 0 {
			t.Errorf("after %q: %+v", read, end)
		}
		return nil
	})
	if err != nil || read != text[:11] || end.Size != 11 || end.Lines != 3 || string(end.Rest) != "fo" {
		t.Errorf("%q, %+v, %v", read, end, err)
	}
	end, err = Lines(strings.NewReader(text), "in", func([]byte, End) error { return errFull })
	if !errors.Is(err, errFull) || end.Lines != 1 || end.Size != 4 {
		t.Errorf("%+v, %v", end, err)
	}
}

// A line, or the rest, may be longer than one read. An error of a read is reported.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 150_000) // 2.4 MB
	text := long + "\nshort\n" + long + "x\n" + long
	var read []string
	end, err := Lines(strings.NewReader(text), "in", func(line []byte, end End) error {
		read = append(read, string(line))
		return nil
	})
	if err != nil || len(read) != 3 || strings.Join(read, "") != text[:end.Size] || end.Lines != 3 || string(end.Rest) != long {
		t.Errorf("%d lines; %d lines of %d bytes and %d left over, %v", len(read), end.Lines, end.Size, len(end.Rest), err)
	}
	broken := errors.New("input/output error")
	end, err = Lines(io.MultiReader(strings.NewReader("one\ntwo"), iotest.ErrReader(broken)), "in", func([]byte, End) error { return nil })
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "in: ") || end.Lines != 1 {
		t.Errorf("%+v, %v", end, err)
	}
}

// Where nothing was written nothing has to be undone, so that more may follow.
func TestFullDiskBeforeALine(t *testing.T) {
	f := &failing{err: errors.New("read-only file system")}
	l := &File{name: "out", regular: true, h: f}
	if err := l.Append([]byte("first\n")); !errors.Is(err, errFull) {
		t.Error(err)
	}
	f.room = 100
	if err := l.Append([]byte("second\n")); err != nil || f.String() != "second\n" {
		t.Errorf("%v, %q", err, f.String())
	}
}

// syncs counts how often it is synced.
type syncs struct {
	failing
	n int
}

func (s *syncs) Sync() error { s.n++; return nil }

// A durable file is not synced again until enough new lines are there.
func TestSyncOfMany(t *testing.T) {
	f := &syncs{failing: failing{room: 1000}}
	l := &File{name: "out", regular: true, h: f}
	for i, want := range []int{0, 0, 1, 1, 1, 2, 2} {
		if err := errors.Join(l.Append([]byte("line\n")), l.Sync(3)); err != nil || f.n != want {
			t.Errorf("after %d lines it was synced %d times, want %d; %v", i+1, f.n, want, err)
		}
	}
	if err := errors.Join(l.Sync(1), l.Sync(1), l.Close()); err != nil || f.n != 3 {
		t.Errorf("in the end it was synced %d times, want 3; %v", f.n, err)
	}
}

// Lines in a file that was removed, renamed or replaced are lost to users. The next sync reports
// that, or else the close. An empty file may go.
func TestFileThatIsGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is open cannot be removed there")
	}
	remove := func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(t *testing.T, path string) {
		remove(t, path)
		if err := os.WriteFile(path, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Its folder gives way to a file.
	displace := func(t *testing.T, path string) {
		remove(t, path)
		remove(t, filepath.Dir(path))
		if err := os.WriteFile(filepath.Dir(path), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		before, after string // what is written before and after something becomes of the file
		becomes       func(t *testing.T, path string)
		says          string
	}{
		"removed":            {"first\n", "second\n", remove, "FILE is no longer there: it was removed or renamed while it was written"},
		"renamed":            {"first\n", "second\n", func(t *testing.T, path string) { _ = os.Rename(path, path+".1") }, "FILE is no longer there: it was removed or renamed while it was written"},
		"replaced":           {"first\n", "second\n", replace, "FILE is another file by now: it was replaced while it was written"},
		"removed at the end": {"first\n", "", remove, "FILE is no longer there: it was removed or renamed while it was written"},
		"removed, empty":     {"", "", remove, ""},
		"displaced":          {"first\n", "second\n", displace, "stat FILE: not a directory"},
		"displaced, empty":   {"", "", displace, ""},
		"left alone":         {"first\n", "second\n", func(*testing.T, string) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "results", "out.jsonl")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			f, err := Open(path)
			if err == nil {
				err = f.SetSize(0)
			}
			if err == nil {
				err = f.Append([]byte(c.before))
			}
			if err == nil {
				err = f.Sync(1)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.becomes(t, path)
			if err := f.Append([]byte(c.after)); err != nil {
				t.Fatal(err)
			}
			want := strings.ReplaceAll(c.says, "FILE", path)
			if err := f.Sync(1); c.after != "" && text(err) != want {
				t.Errorf("sync: %v, want %q", err, want)
			}
			if err := f.Close(); text(err) != want {
				t.Errorf("close: %v, want %q", err, want)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
