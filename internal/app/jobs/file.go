package jobs

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
)

// File describes a file of an owner.
type File struct {
	ID, Owner, Name, Purpose string
	Bytes                    int64
	Created                  time.Time
	Expires                  time.Time // zero: after Config.Keep
}

// Purposes of files.
const (
	purposeBatch  = "batch"
	purposeOutput = "batch_output"
)

// Ends of names of files.
const (
	dataSuffix = ".jsonl"
	partSuffix = ".part" // of a file that is not whole yet
)

func (o *owner) pathOf(f *File) string { return filepath.Join(o.dir, "files", f.ID+dataSuffix) }
func (o *owner) recordOf(f *File) string {
	return filepath.Join(o.dir, "files", f.ID+".json")
}

// Upload is a file that is being written. Its Keep or its Drop ends it. It is not safe for
// concurrent use.
type Upload struct {
	o    *owner
	f    *File
	out  *os.File
	path string
}

// Upload begins a file.
func (s *Store) Upload(who string) (*Upload, error) {
	s.mu.Lock()
	o := s.ownerLocked(who)
	many := len(o.files) >= mostFiles
	s.mu.Unlock()
	if many {
		return nil, errTooMany
	}
	return o.upload(newID(filePrefix), "")
}

func (o *owner) upload(id, purpose string) (*Upload, error) {
	dir, err := o.folder("files")
	if err != nil {
		return nil, err
	}
	u := &Upload{o: o, f: &File{ID: id, Owner: o.name, Purpose: purpose}, path: filepath.Join(dir, id+partSuffix)}
	if u.out, err = os.OpenFile(u.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return nil, &diskError{err}
	}
	return u, nil
}

// Write appends to the file. It fails with errTooLarge, errNoRoom or a *diskError.
func (u *Upload) Write(p []byte) (int, error) {
	n := int64(len(p))
	switch {
	case u.f.Purpose == purposeOutput: // its room is that of the engine's results, which it replaces
		u.o.used.Add(n)
	case u.f.Bytes+n > mostFile:
		return 0, errTooLarge
	default:
		if err := u.o.take(n); err != nil {
			return 0, err
		}
	}
	u.f.Bytes += n
	written, err := u.out.Write(p)
	if err != nil {
		return written, &diskError{err}
	}
	return written, nil
}

// Keep ends the file. It is the owner's from now on, and survives a crash.
func (u *Upload) Keep(name, purpose string, expires time.Time) (File, error) {
	f := u.f
	f.Name, f.Purpose, f.Created, f.Expires = name, purpose, time.Now(), expires
	err := u.out.Sync()
	if cerr := u.out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = durable.OS.Rename(u.path, u.o.pathOf(f))
	}
	if err == nil {
		err = durable.OS.SyncFolder(u.path)
	}
	if err != nil {
		u.Drop()
		return File{}, &diskError{err}
	}
	if err := write(u.o.recordOf(f), f); err != nil {
		_ = os.Remove(u.o.pathOf(f))
		u.Drop()
		return File{}, err
	}
	u.o.s.mu.Lock()
	defer u.o.s.mu.Unlock()
	u.o.files[f.ID] = f
	return *f, nil
}

// Drop removes what was written.
func (u *Upload) Drop() {
	u.out.Close()
	_ = os.Remove(u.path)
	u.o.used.Add(-u.f.Bytes)
	u.f.Bytes = 0
}

// Files returns the files of an owner, the newest first.
func (s *Store) Files(who string) (all []File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.owners[who]; o != nil {
		for _, f := range o.files {
			all = append(all, *f)
		}
	}
	slices.SortFunc(all, func(a, b File) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.ID, b.ID)) })
	return all
}

func (s *Store) fileLocked(who, id string) (*owner, *File, error) {
	o := s.owners[who]
	if o == nil || o.files[id] == nil {
		return nil, nil, errNotThere
	}
	return o, o.files[id], nil
}

// File returns a file of an owner.
func (s *Store) File(who, id string) (File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, f, err := s.fileLocked(who, id)
	if err != nil {
		return File{}, err
	}
	return *f, nil
}

// Content opens a file of an owner.
func (s *Store) Content(who, id string) (io.ReadSeekCloser, File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, f, err := s.fileLocked(who, id)
	if err != nil {
		return nil, File{}, err
	}
	in, err := os.Open(o.pathOf(f))
	return in, *f, err
}

// Remove removes a file of an owner. Batches that were made of it go on.
func (s *Store) Remove(who, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, f, err := s.fileLocked(who, id)
	if err != nil {
		return err
	}
	return o.removeLocked(f)
}

// removeLocked removes the record first: a file without one is none.
func (o *owner) removeLocked(f *File) error {
	if err := os.Remove(o.recordOf(f)); err != nil && !os.IsNotExist(err) {
		return &diskError{err}
	}
	delete(o.files, f.ID)
	o.used.Add(-f.Bytes)
	_ = os.Remove(o.pathOf(f)) // the next load removes it otherwise
	return nil
}
