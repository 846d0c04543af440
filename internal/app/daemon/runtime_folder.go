//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Place is where the daemon of this user is.
type Place struct {
	// Folder has the socket and the lock. It lasts until the machine's next start.
	Folder string
	// State has the log, and what lasts longer.
	State string
}

// Find returns the Place of this user, and makes its folders. An error names a folder that is
// another user's, or open to others.
func Find() (p Place, err error) {
	if p.Folder, err = folder(); err != nil {
		return p, err
	}
	p.State = p.Folder
	state := os.Getenv("XDG_STATE_HOME")
	if home, err := os.UserHomeDir(); !filepath.IsAbs(state) && err == nil {
		state = filepath.Join(home, ".local", "state")
	}
	if filepath.IsAbs(state) {
		p.State = filepath.Join(state, "paceline")
		if err := os.MkdirAll(state, 0o700); err != nil {
			return p, err
		}
	}
	return p, private(p.State)
}

// folder returns the Folder of this user's Place, and makes it.
func folder() (path string, err error) {
	path = filepath.Join(os.TempDir(), "paceline-"+strconv.Itoa(os.Getuid()))
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && isFolder(dir) {
		if _, err := owned(dir); err != nil { // as after su, which keeps the variable
			return "", fmt.Errorf("XDG_RUNTIME_DIR=%w", err)
		}
		path = filepath.Join(dir, "paceline")
	}
	return path, private(path)
}

// Socket, Lock and Log are the files of the daemon.
func (p Place) Socket() string { return filepath.Join(p.Folder, "daemon.sock") }

// Lock is held by the daemon as long as it lives.
func (p Place) Lock() string { return filepath.Join(p.Folder, "daemon.lock") }

// stateLock is held by the daemon as well: two of different folders would write one State.
func (p Place) stateLock() string { return filepath.Join(p.State, "state.lock") }

// Log gets what a daemon writes that a run has started.
func (p Place) Log() string { return filepath.Join(p.State, "daemon.log") }

// longestLog is the size from which a log begins anew.
const longestLog = 1 << 20

// OpenLog opens the log for a daemon.
func (p Place) OpenLog() (*os.File, error) {
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if about, err := os.Stat(p.Log()); err == nil && about.Size() > longestLog {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(p.Log(), flags, 0o600)
}

func isFolder(path string) bool {
	about, err := os.Stat(path)
	return err == nil && about.IsDir()
}

// private makes a folder of this user alone, or returns an error if it is there and is none.
func private(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	about, err := owned(path)
	switch {
	case err != nil:
		return err
	case !about.IsDir():
		return fmt.Errorf("%s is no folder; expected a folder of this user, or nothing", path)
	case about.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s has the mode %#o, and others enter it; expected 0700: chmod 700 %s", path,
			about.Mode().Perm(), path)
	}
	return nil
}

// owned describes a file of this user. A link to a file is the link's owner's.
func owned(path string) (os.FileInfo, error) {
	about, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if s, ok := about.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Getuid() {
		return nil, fmt.Errorf("%s is another user's; expected one of this user (uid %d), or nothing", path, os.Getuid())
	}
	return about, nil
}
