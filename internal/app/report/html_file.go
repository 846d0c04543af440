package report

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/output"
)

// ErrName is the error of a file name that does not end in .html.
var ErrName = errors.New("does not end in .html")

// Check returns an error if no page can be written to path. It is ErrName; or fs.ErrNotExist, if
// there is no such folder; or that of a folder in which no file can be made. Call it before the
// work whose page is to be written.
func Check(path string) error {
	if !strings.EqualFold(filepath.Ext(path), ".html") {
		return fmt.Errorf("%q %w", path, ErrName)
	}
	to, _, err := target(path)
	if err != nil {
		return err
	}
	switch info, err := os.Stat(filepath.Dir(to)); {
	case err != nil:
		return fmt.Errorf("%s: there is no folder %s: %w", path, filepath.Dir(to), err)
	case !info.IsDir():
		return fmt.Errorf("%s: %s is a file, expected a folder", path, filepath.Dir(to))
	}
	temp, err := beside(to, 0o600)
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return errors.Join(temp.Close(), os.Remove(temp.Name()))
}

// WriteFile writes the page to a file. A file that is there is replaced when the new one is
// complete; after an error it is as it was.
func (p Page) WriteFile(path string) error {
	var b bytes.Buffer
	if err := p.WriteHTML(&b); err != nil {
		return err
	}
	return Replace(path, b.Bytes())
}

// Replace replaces the content of a file all at once, or makes the file. A link stays a link: the
// file that it points to is replaced.
func Replace(path string, data []byte) error {
	path, mode, err := target(path)
	if err != nil {
		return err
	}
	temp, err := beside(path, mode)
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // no effect once it has its new name
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync() // otherwise a crash of the machine could leave the new name with none of the data
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// target follows links, and returns the mode that the file has or will have.
func target(path string) (file string, mode fs.FileMode, err error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	if what := output.NoFile(path); what != "" {
		return path, 0, fmt.Errorf("%s is %s, expected a file", path, what)
	}
	info, err := os.Stat(path)
	if err != nil {
		return path, 0o666, nil // less the umask
	}
	return path, info.Mode().Perm(), nil
}

// beside makes a new file beside path. Others may read it as the umask has it, unlike one of
// os.CreateTemp.
func beside(path string, mode fs.FileMode) (*os.File, error) {
	name := fmt.Sprintf("%s.%d-%d.tmp", path, os.Getpid(), time.Now().UnixNano())
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}
