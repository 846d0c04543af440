package durable

import (
	"errors"
	"fmt"
	"os"
)

// Owner is the lock of a file that is replaced during its use: a lock on the file itself would stay with the
// file that was. It is a second file, FILE.lock, with the number of the process that holds it. It is never
// removed, since another process may be about to lock it. nil is no lock.
type Owner struct {
	file *os.File
	path string
	// borrowed means that the process before has the lock, too, so this one must not unlock it.
	borrowed bool
}

// InUseError means that another process has a file. PID is 0 if that is not known.
type InUseError struct {
	Path string
	PID  int
	err  error
}

func (e *InUseError) Error() string {
	if e.PID == 0 {
		return e.Path + " is in use by another process"
	}
	return fmt.Sprintf("%s is in use by process %d", e.Path, e.PID)
}

func (e *InUseError) Unwrap() error { return e.err }

// Own locks a file for this process, until that ends in whatever way. The file need not exist. The error of
// a file that another process has is an *InUseError.
func Own(path string) (*Owner, error) {
	f, err := os.OpenFile(lockOf(path), os.O_RDWR|os.O_CREATE, private)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		defer f.Close()
		text, _ := os.ReadFile(lockOf(path))
		used := &InUseError{Path: path, err: err}
		_, _ = fmt.Sscan(string(text), &used.PID)
		return nil, used
	}
	o := &Owner{file: f, path: path}
	if err := o.sign(); err != nil {
		return nil, errors.Join(err, o.Release())
	}
	return o, nil
}

func lockOf(path string) string { return path + ".lock" }

// Borrow is the lock of a file that another process has passed on, open. Until Keep, that process has the
// lock, too.
func Borrow(path string, lock *os.File) *Owner { return &Owner{file: lock, path: path, borrowed: true} }

// Keep makes a borrowed lock that of this process. The process before gives it up by Leave.
func (o *Owner) Keep() error {
	if o == nil || !o.borrowed {
		return nil
	}
	o.borrowed = false
	return o.sign()
}

// sign writes the number of this process into the lock.
func (o *Owner) sign() error {
	err := o.file.Truncate(0)
	if err == nil {
		_, err = o.file.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	}
	return err
}

// File is the lock to pass on to another process.
func (o *Owner) File() *os.File { return o.file }

// Leave closes a lock that another process has by now, and holds on.
func (o *Owner) Leave() {
	if o != nil {
		o.file.Close()
	}
}

// Release gives the lock back. A second call, or one after Leave, does nothing.
func (o *Owner) Release() error {
	if o == nil {
		return nil
	}
	if !o.borrowed {
		_ = unlock(o.file) // a child process that is just starting may have it open
	}
	if err := o.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Remove releases the lock and removes its file. No other process may use the path from now on.
func (o *Owner) Remove() {
	_ = os.Remove(lockOf(o.path))
	_ = o.Release()
}
