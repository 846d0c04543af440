package output

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/secret"
)

// IndexOf returns the path of the results of a run that writes bodies as files in dir. The file has
// a line for each body, without the body itself. No body has the same name.
func IndexOf(dir string) string { return filepath.Join(dir, indexBase+".jsonl") }

const (
	indexBase = "results"
	// unfinished is a folder for bodies that are being written, beside the index.
	unfinished = indexBase + ".unfinished"
)

// Bodies are the files of a run with one file for each answer. There are four steps:
//
//  1. The whole body is written into the folder unfinished.
//  2. Its line is written to the index.
//  3. Both are made durable.
//  4. The file gets its name.
//
// So a file under its name is always whole and has its line. A crash may leave a line without a
// named file. The next run then finds that file in unfinished. Safe for concurrent use.
type Bodies struct {
	dir  string
	most int64 // largest size of a body, in bytes

	mu      sync.Mutex
	waiting []SavedBody // bodies that have their line, but not yet their name

	naming sync.Mutex // held while bodies are given their names
}

// SavedBody is a body that was written.
type SavedBody struct {
	name   string
	bytes  int64
	sum    [sha256.Size]byte
	hidden int
}

// fileOf returns the name of a body's file.
func fileOf(id string, h http.Header) string {
	return durable.FileName(id, indexBase) + durable.FileEnding(h.Get("Content-Type"))
}

func (b *Bodies) unfinished(name string) string { return filepath.Join(b.dir, unfinished, name) }

// open makes the folder for bodies that are being written.
func (b *Bodies) open() error {
	return os.MkdirAll(filepath.Join(b.dir, unfinished), privateFolder)
}

// has reports whether the body of an entry exists. A whole body without a name gets it with the
// next sync. If the file was removed, its request is sent again.
func (b *Bodies) has(e format.Entry) bool {
	if b.isNamed(e.File) {
		return true
	}
	path := b.unfinished(e.File)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != e.Bytes {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil || hex.EncodeToString(sum.Sum(nil)) != e.SHA256 {
		return false
	}
	b.add(SavedBody{name: e.File})
	return true
}

// isNamed reports whether a file exists under its name. A name with a separator is not from this
// run.
func (b *Bodies) isNamed(name string) bool {
	if name != filepath.Base(name) {
		return false
	}
	info, err := os.Lstat(filepath.Join(b.dir, name))
	return err == nil && info.Mode().IsRegular()
}

// clean names the whole bodies that an earlier run left unnamed, and removes its unfinished ones.
func (b *Bodies) clean(index func() error) error {
	if err := b.sync(1, index); err != nil {
		return err
	}
	left, err := os.ReadDir(filepath.Join(b.dir, unfinished))
	for _, f := range left {
		err = errors.Join(err, os.Remove(b.unfinished(f.Name())))
	}
	return err
}

// close removes the folder if nothing is left in it.
func (b *Bodies) close() { _ = os.Remove(filepath.Join(b.dir, unfinished)) }

// add notes that the line of a body is written. The next sync gives the body its name.
func (b *Bodies) add(s SavedBody) (waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, s)
	return len(b.waiting)
}

// mostUnnamed bounds how many bodies wait for their names. A goroutine that adds one more waits for
// the disk.
const mostUnnamed = 16 * syncLines

// sync makes the waiting bodies durable. Then it calls index, which makes their lines durable. Then
// it names the bodies. It does nothing if fewer than atLeast wait.
func (b *Bodies) sync(atLeast int, index func() error) error {
	b.naming.Lock()
	defer b.naming.Unlock()
	b.mu.Lock()
	if len(b.waiting) < max(atLeast, 1) {
		b.mu.Unlock()
		return nil
	}
	all := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	err := b.flush(all)
	if err == nil {
		err = index()
	}
	if err != nil {
		b.mu.Lock()
		b.waiting = append(all, b.waiting...) // their lines are written, so this run or the next names them
		b.mu.Unlock()
		return err
	}
	failed := 0
	for _, s := range all {
		if e := os.Rename(b.unfinished(s.name), filepath.Join(b.dir, s.name)); e != nil && !b.isNamed(s.name) {
			err = cmp.Or(err, b.gone(e))
			failed++
		}
	}
	if failed > 1 { // most often all fail for the same reason
		err = fmt.Errorf("%w, and %d files more", err, failed-1)
	}
	return cmp.Or(err, b.gone(durable.OS.SyncFolder(filepath.Join(b.dir, indexBase))))
}

// gone returns err. If the folder no longer exists, it returns an error that says so.
func (b *Bodies) gone(err error) error {
	if _, is := os.Stat(filepath.Join(b.dir, unfinished)); !errors.Is(err, os.ErrNotExist) ||
		!errors.Is(is, os.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%s is no longer there: it was removed or renamed while answers were written into it", b.dir)
}

// flushers is how many bodies are made durable at once. A file system combines writes that arrive
// at the same time.
const flushers = 16

// flush makes bodies durable.
func (b *Bodies) flush(all []SavedBody) error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for from := range min(flushers, len(all)) {
		group.Go(func() {
			for i := from; i < len(all); i += flushers {
				errs[i] = flushFile(b.unfinished(all[i].name))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func flushFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it has its name already
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// body is a body that is being written. Secrets are hidden in it.
type body struct {
	of   *Bodies
	hide format.Finder
	h    durable.Handle
	cut  secret.Cut // where the text that is not written yet is cut off
	rest []byte     // text not written yet, since a secret may begin in it
	hash hash.Hash
	SavedBody
}

// begin makes the file for a body; isPart: the answer has only a part of it.
func (b *Bodies) begin(id string, hide format.Finder, h http.Header, isPart bool) (*body, error) {
	name := fileOf(id, h)
	path := b.unfinished(name)
	// An earlier attempt may have left a file here, or another program a link.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	file, err := durable.OS.Create(path)
	if err != nil {
		return nil, b.gone(err)
	}
	w := &body{of: b, hide: hide, h: file, hash: sha256.New(), SavedBody: SavedBody{name: name}}
	if isPart {
		w.cut = secret.CutStart | secret.CutEnd
	}
	return w, nil
}

// Write takes in the next part of the body.
func (w *body) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	if len(w.rest) < w.hide.Beginning() {
		return len(p), nil
	}
	shown, used, hidden := w.hide.HideBeginning(w.rest, w.cut)
	if err := w.put(shown, hidden); err != nil {
		return 0, err
	}
	if used > 0 {
		w.cut &^= secret.CutStart
	}
	w.rest = append(w.rest[:0], w.rest[used:]...)
	return len(p), nil
}

func (w *body) put(b []byte, hidden int) error {
	w.bytes += int64(len(b))
	w.hidden += hidden
	w.hash.Write(b)
	_, err := w.h.Write(b)
	return err
}

// end writes the rest, and describes the body that was written.
func (w *body) end() (SavedBody, error) {
	err := w.put(w.hide.Hide(w.rest, w.cut))
	if cerr := w.h.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(w.of.unfinished(w.name))
		return SavedBody{}, fmt.Errorf("%s: %w", w.of.unfinished(w.name), err)
	}
	w.hash.Sum(w.sum[:0])
	return w.SavedBody, nil
}

// drop removes the file.
func (w *body) drop() {
	w.h.Close()
	_ = os.Remove(w.of.unfinished(w.name))
}

// ErrTooLong says that a body is longer than a file may be.
var ErrTooLong = errors.New("longer than a file may be")

// Stream writes a body as it arrives. read is its beginning. The error answer comes
// from reading the body, the error disk from writing it.
func (b *Bodies) Stream(id string, hide format.Finder, h http.Header, isPart bool, read []byte, rest io.Reader) (
	s *SavedBody, answer, disk error) {
	w, err := b.begin(id, hide, h, isPart)
	if err != nil {
		return nil, nil, err
	}
	_, err = w.Write(read)
	room := b.most - int64(len(read))
	buf := make([]byte, 64<<10)
	for err == nil {
		n, rerr := rest.Read(buf)
		if room -= int64(n); room < 0 {
			w.drop()
			return nil, ErrTooLong, nil
		}
		if _, err = w.Write(buf[:n]); err != nil {
			break
		}
		if rerr == io.EOF {
			one, err := w.end()
			return &one, nil, err
		}
		if rerr != nil {
			w.drop()
			return nil, rerr, nil
		}
	}
	w.drop()
	return nil, nil, err
}

// Save writes a whole body into a file.
func (b *Bodies) Save(id string, hide format.Finder, h http.Header, isPart bool, text []byte) (*SavedBody, error) {
	w, err := b.begin(id, hide, h, isPart)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		w.drop()
		return nil, err
	}
	one, err := w.end()
	if err != nil {
		return nil, err
	}
	return &one, nil
}

// Drop removes the file of a body that is not to be kept.
func (b *Bodies) Drop(s *SavedBody) { _ = os.Remove(b.unfinished(s.name)) }

// Tell sets the fields of a line of the index that locate the body.
func (s *SavedBody) Tell(r *format.Result) {
	r.File, r.Bytes, r.SHA256 = s.name, int(s.bytes), hex.EncodeToString(s.sum[:])
	r.Hidden += s.hidden
}

// filed is the format of an index.
type filed struct{ format.Plain }

// Entry also reads the name of the body's file.
func (filed) Entry(line []byte, dead bool) (format.Entry, bool) { return format.SlowEntry(line) }

// makeFolder makes the folder of a file if it does not exist, and reports whether it did.
func makeFolder(path string) (made bool, err error) {
	if err := folderFor(path); err != nil {
		return false, err
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err == nil {
		return false, nil
	}
	if err := os.MkdirAll(dir, privateFolder); err != nil {
		return false, noFolder{err}
	}
	return true, nil
}

// privateFolder is the mode of new folders: only their owner may read answers.
const privateFolder = 0o700

// noFolder is the reason why a file's folder cannot exist. It is an ErrConfig.
type noFolder struct{ error }

func (e noFolder) Unwrap() []error { return []error{ErrConfig, e.error} }

// absent reports that a file does not exist, or that a path above it is not a folder.
func absent(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// folderFor returns an error if a file's folder cannot exist.
func folderFor(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		switch {
		case err == nil && info.IsDir():
			return nil
		case err == nil:
			return noFolder{fmt.Errorf("%s: %s is a file, expected a folder", path, dir)}
		case absent(err) && dir != filepath.Dir(dir):
		default:
			return noFolder{fmt.Errorf("%s: %w", path, err)}
		}
	}
}
