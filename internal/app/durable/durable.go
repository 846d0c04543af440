package durable

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// Handle is the part of *os.File that a File needs. Tests have a Handle that fails.
type Handle interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// File is a file for appended lines. All lines of one call go in one write(2), and many lines share
// one fsync. A write that fails half-way is undone. It is safe for concurrent use.
type File struct {
	name    string
	regular bool
	file    *os.File // for reading; nil if Open did not make it
	isNew   bool     // Open created the file

	mu     sync.Mutex
	h      Handle
	size   int64
	synced int64
	dirty  int // lines appended since the last Sync
	failed error
}

// private is the mode of new files: only their owner may read answers.
const private = 0o600

// Open opens a file, or creates it, and locks it. Its Size is not known before SetSize.
func Open(path string) (*File, error) {
	_, before := os.Lstat(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, private)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, inUse{path, err}
	}
	return &File{name: path, regular: true, file: f, isNew: errors.Is(before, os.ErrNotExist), h: locked{f}}, nil
}

// inUse says that another process has locked a file. The text of the system's error says less.
type inUse struct {
	path string
	err  error
}

func (e inUse) Error() string {
	return e.path + " is in use by another run: wait for its end, or choose another file"
}

func (e inUse) Unwrap() error { return e.err }

// Reopen opens a file that Replace made, to append to it.
func Reopen(path string) (*File, error) {
	about, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f := &File{name: path, regular: true, size: about.Size()}
	if err := f.reopen(); err != nil {
		return nil, err
	}
	return f, nil
}

// locked is a file that is unlocked before it is closed. A child process that is just starting may
// have it open a moment longer, and the lock with it.
type locked struct{ *os.File }

func (l locked) Close() error {
	_ = unlock(l.File)
	return l.File.Close()
}

// Stream returns a File for a pipe or a terminal, which cannot be read, truncated or synced. Close
// closes w if that is an io.Closer.
func Stream(name string, w io.Writer) *File { return &File{name: name, h: stream{w}} }

type stream struct{ io.Writer }

func (stream) Sync() error          { return nil }
func (stream) Truncate(int64) error { return nil }
func (s stream) Close() error {
	if c, ok := s.Writer.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Disk is the part of a file system that Replace needs. Tests have a Disk that fails.
type Disk interface {
	// Create makes a file that must not exist yet, readable by its owner alone. It follows no link.
	Create(path string) (Handle, error)
	Remove(path string) error
	Rename(from, to string) error
	// SyncFolder makes the name of a file durable.
	SyncFolder(path string) error
}

// OS is the file system of the machine.
var OS Disk = system{}

type system struct{}

func (system) Create(path string) (Handle, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, private)
}
func (system) Remove(path string) error     { return os.Remove(path) }
func (system) Rename(from, to string) error { return os.Rename(from, to) }

func (system) SyncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	err = d.Sync()
	if runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil // not every system can sync a folder
	}
	return err
}

// renamesOpen means that a file may get another name while it is open, and may be replaced. On Windows it may not.
var renamesOpen = runtime.GOOS != "windows"

// Replace replaces the content of a file, all at once and durably, and returns the file open. old is the
// open File of that path, or nil. Replace closes old, unless it fails: then old is as it was. If Replace
// returns a File and an error, the content is there, but a power cut may bring the old one back.
func Replace(disk Disk, path string, content []byte, old *File) (*File, error) {
	return replaceBy(disk, path, old, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// counting counts the bytes that went through it.
type counting struct {
	io.Writer
	n int64
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}

// ReplaceBy is Replace for a content that write writes, piece by piece. The file must not be open.
func ReplaceBy(disk Disk, path string, write func(io.Writer) error) (*File, error) {
	return replaceBy(disk, path, nil, write)
}

func replaceBy(disk Disk, path string, old *File, write func(io.Writer) error) (*File, error) {
	tmp := path + ".new"
	// A crash may have left a file there, or a stranger may have put a link there.
	if err := disk.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	h, err := disk.Create(tmp)
	if err != nil {
		return nil, err
	}
	to := &counting{Writer: h}
	if err = write(to); err == nil {
		err = h.Sync() // without it the name could become durable before the content
	}
	closed := err == nil && !renamesOpen
	if closed {
		err = h.Close()
		old.Discard()
	}
	if err == nil {
		err = disk.Rename(tmp, path)
	}
	if err != nil {
		if closed {
			err = errors.Join(err, old.reopen())
		} else {
			h.Close()
		}
		_ = disk.Remove(tmp)
		return nil, err
	}
	f := &File{name: path, regular: true, h: h, size: to.n}
	if !closed {
		old.Discard()
	} else if err := f.reopen(); err != nil {
		return nil, err
	}
	return f, disk.SyncFolder(path)
}

// reopen opens the file of a File that was closed.
func (f *File) reopen() error {
	if f == nil {
		return nil
	}
	h, err := os.OpenFile(f.name, os.O_WRONLY|os.O_APPEND, private)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.h = h
	return nil
}

// Name is the path of the file, or the name of the stream.
func (f *File) Name() string { return f.name }

// Regular reports that the File is no stream.
func (f *File) Regular() bool { return f.regular }

// Reader reads the file from its start, also during appends. Open must have made the File.
func (f *File) Reader() io.Reader { return io.NewSectionReader(f.file, 0, 1<<62) }

// ReaderAt reads the file anywhere. Open must have made the File.
func (f *File) ReaderAt() io.ReaderAt { return f.file }

// Durable is how many bytes survive the death of the machine. Bytes from before Open count only
// after a Sync.
func (f *File) Durable() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.synced
}

// Stat describes the file. Open must have made the File.
func (f *File) Stat() (os.FileInfo, error) { return f.file.Stat() }

// Size is the size in bytes: the size from SetSize, and all lines appended since.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.size
}

// SetSize cuts the file off after size bytes, and makes its name durable.
func (f *File) SetSize(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.h.Truncate(size); err != nil {
		return err
	}
	f.size = size
	f.dirty = int(min(size, 1)) // the bytes that were there may not be durable
	return OS.SyncFolder(f.name)
}

// Through wraps the Handle with with. Tests use it to inject faults.
func (f *File) Through(with func(Handle) Handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.h = with(f.h)
}

// Append writes lines, each with its line break. If it fails, none of them are in the file.
func (f *File) Append(lines []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil {
		return f.failed
	}
	n, err := f.h.Write(lines)
	if err != nil {
		if n > 0 && f.regular {
			if terr := f.h.Truncate(f.size); terr != nil {
				// Without this, the next line would follow half a line.
				f.failed = fmt.Errorf("%s: %w", f.name, errors.Join(err, terr))
			}
		}
		return fmt.Errorf("%s: %w", f.name, err)
	}
	f.size += int64(n)
	f.dirty += bytes.Count(lines, lineBreak)
	return nil
}

var lineBreak = []byte{'\n'}

// Sync makes the appended lines durable, if they are at least atLeast. Other goroutines may append
// meanwhile.
func (f *File) Sync(atLeast int) error {
	f.mu.Lock()
	h, n, size := f.h, f.dirty, f.size
	f.mu.Unlock()
	if n < max(atLeast, 1) || !f.regular {
		return nil
	}
	if err := h.Sync(); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	if err := f.there(); err != nil {
		return err
	}
	f.mu.Lock()
	f.dirty -= n
	f.synced = max(f.synced, size)
	f.mu.Unlock()
	return nil
}

// there returns an error if the name of the file now leads to another file, or to none. Without the
// check every write would succeed, into a file that no user finds. A different file with the same
// number of bytes counts as the same, since some network file systems number their files anew.
func (f *File) there() error {
	if f.file == nil {
		return nil
	}
	info, err := os.Stat(f.name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%s is no longer there: it was removed or renamed while it was written", f.name)
	case err != nil:
		return err
	}
	if own, err := f.file.Stat(); err != nil || os.SameFile(own, info) || info.Size() >= f.Size() {
		return err
	}
	return fmt.Errorf("%s is another file by now: it was replaced while it was written", f.name)
}

// Close syncs and closes the file.
func (f *File) Close() error {
	err := f.Sync(1)
	if err == nil && f.Size() > 0 {
		err = f.there()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if cerr := f.h.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("%s: %w", f.name, cerr)
	}
	return err
}

// Discard closes the file without a sync. It does nothing if f is nil.
func (f *File) Discard() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.h.Close()
}

// Undo removes a closed file, if Open created it.
func (f *File) Undo() {
	if f.isNew {
		_ = os.Remove(f.name)
	}
}

// End is the end of the whole lines of a file: their number, and their Size in bytes. Rest is the
// beginning of a further line, which a crash has cut off.
type End struct {
	Lines int
	Size  int64
	Rest  []byte
}

// Lines calls each for every whole line, with its line break; end is the end of that line. It stops
// at the first error. The line is valid until each returns.
func Lines(in io.Reader, name string, each func(line []byte, end End) error) (End, error) {
	r := bufio.NewReaderSize(in, 1<<20)
	var long []byte // the beginning of a line longer than the buffer
	for end := (End{}); ; {
		line, err := r.ReadSlice('\n')
		if len(long) > 0 || err == bufio.ErrBufferFull {
			long = append(long, line...)
			line = long
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err == io.EOF {
			end.Rest = bytes.Clone(line)
			return end, nil
		}
		if err != nil {
			return end, fmt.Errorf("%s: %w", name, err)
		}
		end.Lines++
		end.Size += int64(len(line))
		if err := each(line, end); err != nil {
			return end, err
		}
		long = long[:0]
	}
}
