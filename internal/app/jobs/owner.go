package jobs

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/paceline-go/paceline/internal/app/durable"
)

// owner is a client with files or batches. The lock of the Store guards its maps.
type owner struct {
	s       *Store
	name    string
	dir     string
	used    atomic.Int64 // bytes of files, and of folders of batches
	files   map[string]*File
	batches map[string]*batch
	room    chan struct{} // one for each request under way
	turns   chan struct{} // one for each batch that sends
}

// ownerLocked returns the owner of a name. It has a folder once something is written.
func (s *Store) ownerLocked(name string) *owner {
	o := s.owners[name]
	if o == nil {
		o = &owner{s: s, name: name, dir: filepath.Join(s.c.Folder, durable.FileName(name, "lock")),
			files: map[string]*File{}, batches: map[string]*batch{},
			room: make(chan struct{}, s.c.Concurrency), turns: make(chan struct{}, atOnce)}
		s.owners[name] = o
	}
	return o
}

// take takes n bytes of an owner's room.
func (o *owner) take(n int64) error {
	if o.used.Add(n) > o.s.c.Most {
		o.used.Add(-n)
		return errNoRoom
	}
	return nil
}

// isFull reports whether the owner has no room left.
func (o *owner) isFull() bool { return o.used.Load() >= o.s.c.Most }

// folder makes the folders of an owner.
func (o *owner) folder(names ...string) (string, error) {
	path := filepath.Join(append([]string{o.dir}, names...)...)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", &diskError{err}
	}
	return path, nil
}

// load reads all records.
func (s *Store) load() error {
	dirs, err := os.ReadDir(s.c.Folder)
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if d.IsDir() {
			s.loadFiles(filepath.Join(s.c.Folder, d.Name(), "files"))
			s.loadBatches(filepath.Join(s.c.Folder, d.Name(), "batches"))
		}
	}
	return nil
}

func (s *Store) loadFiles(dir string) {
	for _, e := range entries(dir) {
		id, isRecord := strings.CutSuffix(e.Name(), ".json")
		if !isRecord || !isID(id, filePrefix) {
			continue
		}
		f := &File{}
		if !s.record(filepath.Join(dir, e.Name()), f) || f.ID != id {
			continue
		}
		o := s.ownerLocked(f.Owner)
		if info, err := os.Stat(o.pathOf(f)); err == nil && info.Size() == f.Bytes {
			o.files[id] = f
			o.used.Add(f.Bytes)
		} else {
			s.c.Log.Error("batches: a file is not as its record says", "file", id)
		}
	}
	for _, e := range entries(dir) { // what a crash left of an upload, or of a removal
		id := strings.TrimSuffix(strings.TrimSuffix(e.Name(), partSuffix), dataSuffix)
		if _, err := os.Stat(filepath.Join(dir, id+".json")); isID(id, filePrefix) && errors.Is(err, os.ErrNotExist) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

func (s *Store) loadBatches(dir string) {
	for _, e := range entries(dir) {
		if !e.IsDir() || !isID(e.Name(), batchPrefix) && !isID(e.Name(), messagePrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name(), recordName)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) { // a crash came before there was a batch
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
			continue
		}
		b := &batch{}
		if s.record(path, &b.Batch) && b.ID == e.Name() {
			o := s.ownerLocked(b.Owner)
			b.store, b.owner, b.dir = s, o, filepath.Join(dir, b.ID)
			b.arm()
			o.batches[b.ID] = b
			o.used.Add(b.counted.Load())
		}
	}
}

func entries(dir string) []fs.DirEntry {
	all, _ := os.ReadDir(dir) // a folder that is not there has none
	return all
}

// record reads a record. One that is damaged is left alone.
func (s *Store) record(path string, to any) bool {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	s.logged("a record cannot be read", err)
	return err == nil
}

// write replaces a record.
func write(path string, record any) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	f, err := durable.Replace(durable.OS, path, append(text, '\n'), nil)
	if f != nil {
		f.Discard()
	}
	if err != nil {
		return &diskError{err}
	}
	return nil
}

// sizeOf is how many bytes the files below a folder have.
func sizeOf(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
