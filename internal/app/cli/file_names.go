package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
)

// NoSuchFile adds to the error for a missing file the names of similar files.
func NoSuchFile(name string, err error) error {
	if info, bad := os.Stat(name); bad == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder, expected a file", name)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if strings.Contains(name, ":") && strings.ContainsAny(name, "@?") { // a URL with a slip in it
		return fmt.Errorf("%s is neither a URL nor a file: %w", secret.SanitizeAddress(name), fs.ErrNotExist)
	}
	folder := filepath.Dir(name)
	entries, _ := os.ReadDir(folder)
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	found := text.Suggest(filepath.Base(name), names)
	for i := range found {
		if found[i] = filepath.Join(folder, found[i]); found[i] == name {
			return err
		}
	}
	if len(found) == 0 {
		return err
	}
	return fmt.Errorf("%w; did you mean %s?", err, strings.Join(found, " or "))
}

// Expecting adds to the error for a missing file what was expected.
func Expecting(err error, what string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w, expected %s", err, what)
	}
	return err
}

// FolderOf returns an error if the folder of a file to be written is not there.
func FolderOf(file string) error {
	switch info, err := os.Stat(filepath.Dir(file)); {
	case err != nil:
		return fmt.Errorf("%s: there is no folder %s", file, filepath.Dir(file))
	case !info.IsDir():
		return fmt.Errorf("%s: %s is a file, expected a folder", file, filepath.Dir(file))
	}
	return nil
}
