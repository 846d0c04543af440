//go:build unix && !aix && !solaris

package durable

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file has one owner, whose number the error names. A borrowed lock that its borrower gives back stays with
// the lender. Once kept, it stays with the borrower after the lender has left.
func TestOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	used := func(when string) {
		t.Helper()
		_, err := Own(path)
		if e, is := errors.AsType[*InUseError](err); !is || e.PID != os.Getpid() || !strings.HasPrefix(err.Error(), path+" is in use by process ") {
			t.Errorf("%s: %v", when, err)
		}
	}
	lender, err := Own(path)
	if err != nil {
		t.Fatal(err)
	}
	used("owned")
	failed := Borrow(path, passedOn(t, lender))
	if err := failed.Release(); err != nil {
		t.Error(err)
	}
	used("after a borrower that failed")
	borrower := Borrow(path, passedOn(t, lender))
	if err := borrower.Keep(); err != nil {
		t.Error(err)
	}
	lender.Leave()
	used("after the lender has left")
	if err := errors.Join(borrower.Release(), borrower.Release(), lender.Release()); err != nil {
		t.Error(err)
	}
	free, err := Own(path)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	free.Release()
}

// passedOn is a lock as another process gets it: a second descriptor of the same open file.
func passedOn(t *testing.T, o *Owner) *os.File {
	t.Helper()
	fd, err := syscall.Dup(int(o.File().Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), "lock")
}
