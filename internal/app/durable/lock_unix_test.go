//go:build unix && !aix && !solaris

package durable

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A file that is closed is free, even if a process that was being started has it open still.
func TestClosedIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, end := range []func(*File){func(f *File) { _ = f.Close() }, (*File).Discard} {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		child, err := syscall.Dup(int(f.file.Fd())) // as fork does
		if err != nil {
			t.Fatal(err)
		}
		if other, err := Open(path); err == nil {
			other.Discard()
			t.Error("it was opened twice")
		}
		end(f)
		again, err := Open(path)
		if err != nil {
			t.Error(err)
		} else {
			again.Discard()
		}
		_ = syscall.Close(child)
	}
}
