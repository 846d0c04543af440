//go:build unix

package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/paceline-go/paceline/internal/app/durable"
)

// Folder holds the files of one run. Public is for certificates, which programs of other users may
// read (apt reads them as _apt). Private is for copies of the user's own files.
type Folder struct {
	Public, Private string
	lock            *durable.File // nil: held by another process
}

const prefix = "paceline-exec-"

// NewFolder makes the folders in a temporary folder, and removes those of keepers that were killed.
func NewFolder(temp string) (*Folder, error) {
	sweep(temp)
	made, err := os.MkdirTemp(temp, "."+prefix) // exclusively, whoever else may write there
	if err != nil {
		return nil, err
	}
	f := &Folder{Public: made, Private: filepath.Join(made, "private")}
	if err = os.Mkdir(f.Private, 0o700); err == nil {
		f.lock, err = durable.Open(f.lockName())
	}
	if err == nil {
		err = os.Chmod(made, 0o755)
	}
	if err == nil { // only now others see it, when it is locked
		f.Public = filepath.Join(temp, strings.TrimPrefix(filepath.Base(made), "."))
		f.Private = filepath.Join(f.Public, "private")
		err = os.Rename(made, f.Public)
	}
	if err != nil {
		_ = os.RemoveAll(made)
		return nil, err
	}
	return f, nil
}

func (f *Folder) lockName() string { return filepath.Join(f.Private, "lock") }

// Remove removes the folders.
func (f *Folder) Remove() error { return errors.Join(os.RemoveAll(f.Public), f.lock.Close()) }

// sweep removes the folders of this user whose keepers were killed: nobody holds their locks.
func sweep(dir string) {
	all, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, name := range all {
		f := Folder{Public: name, Private: filepath.Join(name, "private")}
		if !isOwn(f.Public) || !isOwn(f.Private) || !isOwn(f.lockName()) {
			continue // another user's, or just being made
		}
		lock, err := durable.Open(f.lockName())
		if err != nil {
			continue // its keeper lives
		}
		f.lock = lock
		_ = f.Remove()
	}
}

// isOwn reports whether a file or a folder is there, and is this user's. A link is nobody's.
func isOwn(path string) bool {
	about, err := os.Lstat(path)
	if err != nil || about.Mode()&os.ModeSymlink != 0 {
		return false
	}
	s, ok := about.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}

// write writes a file of the run.
func (f *Folder) write(dir, name, text string, mode os.FileMode) (path string, err error) {
	path = filepath.Join(dir, name)
	err = os.WriteFile(path, []byte(text), mode)
	if err == nil {
		err = os.Chmod(path, mode) // whatever the umask
	}
	if err != nil {
		return "", fmt.Errorf("a file of this run: %w", err)
	}
	return path, nil
}
