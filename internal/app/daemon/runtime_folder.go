//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Place is where the daemon of this user is.
type Place struct {
	// Folder has the socket and the lock. It lasts until the machine's next start.
	Folder string
	// State has the log, and what lasts longer.
	State string
}

// Find returns the Place of this user, and makes its folders. If no folder for state can be made, State is Folder.
// An error names a folder that is another user's, or open to others.
func Find() (p Place, err error) {
	if p.Folder, err = folder(); err != nil {
		return p, err
	}
	p.State = p.Folder
	for _, state := range states() {
		if err := os.MkdirAll(state, 0o700); err == nil {
			p.State = filepath.Join(state, "paceline")
			break
		}
	}
	return p, private(p.State)
}

// RuntimeDir is the variable that names the folder for sockets, where the other ones do not suit: in a container, say.
const RuntimeDir = "PACELINE_RUNTIME_DIR"

// states are the folders in which this user may keep state, the best first. A job of cron or a service may have no
// HOME, or one that is no folder: the user's own is that of the password file then, as in a shell.
func states() (all []string) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		all = append(all, dir)
	}
	homes := []string{os.Getenv("HOME")}
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil {
		homes = append(homes, u.HomeDir)
	}
	for _, home := range homes {
		if filepath.IsAbs(home) && isFolder(home) {
			all = append(all, filepath.Join(home, ".local", "state"))
		}
	}
	return all
}

// folder returns the Folder of this user's Place, and makes it.
func folder() (path string, err error) {
	if dir := os.Getenv(RuntimeDir); dir != "" {
		if path = filepath.Join(dir, "paceline"); !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%s=%s, expected the whole path of a folder", RuntimeDir, dir)
		}
		return path, inFolder(private(path))
	}
	path = filepath.Join(os.TempDir(), "paceline-"+strconv.Itoa(os.Getuid()))
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && isFolder(dir) {
		if _, err := owned(dir); err != nil { // as after su, which keeps the variable
			return "", fmt.Errorf("XDG_RUNTIME_DIR=%w", err)
		}
		path = filepath.Join(dir, "paceline")
	}
	return path, inFolder(private(path))
}

// inFolder says how another folder for sockets is named.
func inFolder(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; another folder that this user may write is named by %s, the same for all programs", err, RuntimeDir)
}

// controlFolder is the folder of the sockets at which programs are controlled: that of a service of systemd, if it has
// one of its own (RuntimeDirectory=), or else folder.
func controlFolder() (string, error) {
	dir, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":")
	if os.Getenv(RuntimeDir) != "" || !filepath.IsAbs(dir) {
		return folder()
	}
	path := filepath.Join(dir, "paceline")
	return path, inFolder(private(path))
}

// InDir makes this process look for sockets in a folder. Root becomes the owner of the folder, whom programs there
// answer.
func InDir(dir string) error {
	about, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if s, ok := about.Sys().(*syscall.Stat_t); ok && os.Getuid() == 0 && s.Uid != 0 {
		for _, become := range []error{syscall.Setgroups(nil), syscall.Setgid(int(s.Gid)), syscall.Setuid(int(s.Uid))} {
			if become != nil {
				return become
			}
		}
	}
	if dir, err = filepath.Abs(dir); err == nil {
		err = os.Setenv(RuntimeDir, dir)
	}
	return err
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
