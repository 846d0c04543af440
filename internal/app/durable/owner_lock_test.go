//go:build unix && !aix && !solaris

package durable

import (
	"errors"
	"fmt"
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

// A process that keeps a lock writes its own number into it, and gives it up alone: for those that still have the file
// open, too. What fails is told, and nil is no lock.
func TestOwnerKeepsAndGivesUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	lender, err := Own(path)
	if err != nil {
		t.Fatal(err)
	}
	borrower := Borrow(path, passedOn(t, lender))
	if err := os.WriteFile(lockOf(path), []byte("1234567890 of the process before"), private); err != nil {
		t.Fatal(err)
	}
	if err := borrower.Keep(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(lockOf(path)); err != nil || string(text) != fmt.Sprintln(os.Getpid()) {
		t.Errorf("the lock has %q, %v", text, err)
	}
	lender.Leave()
	if err := lender.File().Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Leave its file closes with %v", err)
	}
	child := passedOn(t, borrower)
	defer child.Close()
	if err := borrower.Release(); err != nil {
		t.Error(err)
	}
	next, err := Own(path)
	if err != nil {
		t.Fatalf("after the release, with a child that has it open: %v", err)
	}
	defer next.Release()
	readOnly, err := os.Open(lockOf(path))
	if err != nil {
		t.Fatal(err)
	}
	if err := Borrow(path, readOnly).Keep(); err == nil {
		t.Error("a lock that cannot be written is kept")
	}
	if err := Borrow(path, os.NewFile(1<<20, "closed")).Release(); err == nil || errors.Is(err, os.ErrClosed) {
		t.Errorf("a file that does not close: %v", err)
	}
	var none *Owner
	none.Leave()
	if err := errors.Join(none.Keep(), none.Release()); err != nil {
		t.Error(err)
	}
}
