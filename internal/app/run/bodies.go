package run

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
	"github.com/paceline-go/paceline/internal/app/run/filename"
	"github.com/paceline-go/paceline/internal/secret"
)

// IndexOf is the file of results of a run whose bodies are files in dir. It has a line for each, without the body. No body has its name.
func IndexOf(dir string) string { return filepath.Join(dir, indexBase+".jsonl") }

const (
	indexBase = "results"
	// unfinished is a folder for bodies that are being written, beside the index.
	unfinished = indexBase + ".unfinished"
)

// bodies are the files of a run that has one for each answer. First all of a body is written into unfinished; then its line is written to
// the index; then both are made durable; and only then the file gets its name. Wherever that breaks off, a file with its name is whole and
// has its line, and the next run finds a file that has a line but not its name in unfinished. Safe for concurrent use.
type bodies struct {
	dir  string
	most int64 // bytes that a body may have

	mu      sync.Mutex
	waiting []savedBody // bodies that have their line, but not yet their name

	naming sync.Mutex // held while bodies are given their names
}

// savedBody is a body that was written.
type savedBody struct {
	name   string
	bytes  int64
	sum    [sha256.Size]byte
	hidden int
}

// fileOf is the name of a body's file.
func fileOf(id string, h http.Header) string {
	return filename.Of(id, indexBase) + filename.Ending(h.Get("Content-Type"))
}

func (b *bodies) unfinished(name string) string { return filepath.Join(b.dir, unfinished, name) }

// open makes the folder for bodies that are being written.
func (b *bodies) open() error {
	return os.MkdirAll(filepath.Join(b.dir, unfinished), privateFolder)
}

// has says whether the body of an entry is there. A body that is whole but has no name yet gets it with the next sync. If somebody removed
// the file, its request is sent again.
func (b *bodies) has(e entry) bool {
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
	b.add(savedBody{name: e.File})
	return true
}

// isNamed says whether a file is there under its name. A name with a separator is not one of ours.
func (b *bodies) isNamed(name string) bool {
	if name != filepath.Base(name) {
		return false
	}
	info, err := os.Lstat(filepath.Join(b.dir, name))
	return err == nil && info.Mode().IsRegular()
}

// clean names the bodies that an earlier run had no time to name, and removes those that it had not finished.
func (b *bodies) clean(index func() error) error {
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
func (b *bodies) close() { _ = os.Remove(filepath.Join(b.dir, unfinished)) }

// add notes that the line of a body is written, so that the next sync gives it its name.
func (b *bodies) add(s savedBody) (waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, s)
	return len(b.waiting)
}

// mostUnnamed bounds how many bodies wait for their names. The goroutine that adds one more waits for the disk.
const mostUnnamed = 16 * syncLines

// sync makes the waiting bodies durable, then their lines, by calling index, and gives them their names. It does nothing if fewer than
// atLeast wait.
func (b *bodies) sync(atLeast int, index func() error) error {
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
		b.waiting = append(all, b.waiting...) // their lines are written, so this run or the next gives them their names
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
	if failed > 1 { // most often all of them for the same reason
		err = fmt.Errorf("%w, and %d files more", err, failed-1)
	}
	return cmp.Or(err, b.gone(durable.OS.SyncFolder(filepath.Join(b.dir, indexBase))))
}

// gone returns err, or if it is of the folder's being there no more, an error that says so.
func (b *bodies) gone(err error) error {
	if _, is := os.Stat(filepath.Join(b.dir, unfinished)); !errors.Is(err, os.ErrNotExist) || !errors.Is(is, os.ErrNotExist) {
		return err
	}
	return fmt.Errorf("%s is no longer there: it was removed or renamed while answers were written into it", b.dir)
}

// flushers is how many bodies are made durable at once: a file system writes those together that it gets at the same time.
const flushers = 16

// flush makes bodies durable.
func (b *bodies) flush(all []savedBody) error {
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
	of   *bodies
	hide hider
	h    durable.Handle
	cut  secret.Cut // where the text that is not written yet is cut off
	rest []byte     // text that is not written yet, as an echo may have begun in it
	hash hash.Hash
	savedBody
}

// begin makes the file for a body.
func (b *bodies) begin(id string, hide hider, res *response) (*body, error) {
	name := fileOf(id, res.header)
	path := b.unfinished(name)
	// There may be a file that an earlier attempt left, or a link that somebody put there.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	h, err := durable.OS.Create(path)
	if err != nil {
		return nil, b.gone(err)
	}
	w := &body{of: b, hide: hide, h: h, hash: sha256.New(), savedBody: savedBody{name: name}}
	if res.status == http.StatusPartialContent {
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
func (w *body) end() (savedBody, error) {
	err := w.put(w.hide.Hide(w.rest, w.cut))
	if cerr := w.h.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(w.of.unfinished(w.name))
		return savedBody{}, fmt.Errorf("%s: %w", w.of.unfinished(w.name), err)
	}
	w.hash.Sum(w.sum[:0])
	return w.savedBody, nil
}

// drop removes the file.
func (w *body) drop() {
	w.h.Close()
	_ = os.Remove(w.of.unfinished(w.name))
}

// errTooLong says that a body is longer than a file may be.
var errTooLong = errors.New("longer than a file may be")

// stream writes a body as it comes; res has its beginning. The error answer is one of reading the body, disk one of writing it.
func (b *bodies) stream(id string, hide hider, res *response, rest io.Reader) (s *savedBody, answer, disk error) {
	w, err := b.begin(id, hide, res)
	if err != nil {
		return nil, nil, err
	}
	_, err = w.Write(res.body)
	room := b.most - int64(len(res.body))
	buf := make([]byte, 64<<10)
	for err == nil {
		n, rerr := rest.Read(buf)
		if room -= int64(n); room < 0 {
			w.drop()
			return nil, errTooLong, nil
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

// save writes the body of a job's answer into a file, if that is not done yet.
func (b *bodies) save(j *job, hide hider) error {
	if j.res.saved != nil {
		return nil
	}
	w, err := b.begin(j.r.ID, hide, &j.res)
	if err != nil {
		return err
	}
	if _, err := w.Write(j.res.body); err != nil {
		w.drop()
		return err
	}
	one, err := w.end()
	if err == nil {
		j.res.saved = &one
	}
	return err
}

// drop removes the body of an answer that is not to be kept.
func (b *bodies) drop(res *response) {
	if res.saved != nil {
		_ = os.Remove(b.unfinished(res.saved.name))
		res.saved = nil
	}
}

// tell puts into a line of the index where the body is.
func (s *savedBody) tell(r *Result) {
	r.File, r.Bytes, r.SHA256 = s.name, int(s.bytes), hex.EncodeToString(s.sum[:])
	r.Hidden += s.hidden
}

// filed is the format of an index.
type filed struct{ Plain }

// entry also reads which file has the body.
func (filed) entry(line []byte, dead bool) (entry, bool) { return slowEntry(line) }

// makeFolder makes the folder of a file, if it is not there, and says whether it did.
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

// privateFolder is the mode of new folders: answers are for their owner's eyes only.
const privateFolder = 0o700

// noFolder says why the folder for a file cannot be there. It is an ErrConfig.
type noFolder struct{ error }

func (e noFolder) Unwrap() []error { return []error{ErrConfig, e.error} }

// absent says that a file is not there, or that one of the folders above it is none.
func absent(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// folderFor returns an error if the folder for a file cannot be there.
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
