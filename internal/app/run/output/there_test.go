package output

import (
	"os"
	"path/filepath"
	"testing"
)

// The error names the wrong kind of thing at the path of a file or a folder. The right kind, or
// nothing, is no error.
func TestWhatIsThere(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, file, folder string
		nowhere            bool
	}{
		{file, "", "a file", false}, {folder, "a folder", "", false}, {filepath.Join(folder, "none"), "", "", false}, {os.DevNull, "a device", "a device", true},
	} {
		if a, b, n := NoFile(c.path), NoFolder(c.path), IsNowhere(c.path); a != c.file || b != c.folder || n != c.nowhere {
			t.Errorf("%s: %q, %q, %v", c.path, a, b, n)
		}
	}
}
