package journal

import (
	"os"

	"github.com/paceline-go/paceline/internal/app/durable"
)

// Lock is the lock of a journal that belongs to one process. Own takes it, or returns an *InUseError. Borrow is
// that of a process before, which passes it on.
type Lock = durable.Owner

// InUseError means that another process has the file.
type InUseError = durable.InUseError

// Own is durable.Own.
func Own(path string) (*Lock, error) { return durable.Own(path) }

// Borrow is durable.Borrow.
func Borrow(path string, lock *os.File) *Lock { return durable.Borrow(path, lock) }

// Suspend closes the file with all that was recorded, so that another process can go on with it:
// see Config.Alive. Until Resume each record fails with os.ErrClosed.
func (j *Journal) Suspend() error { return j.closeFile() }

// Lock is that of the Config.
func (j *Journal) Lock() *Lock { return j.c.Lock }

// Resume goes on with the file after Suspend. The other process may have replaced the file and has
// ended. The numbers of sends without an answer are still theirs.
func (j *Journal) Resume() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	f, err := durable.Reopen(j.c.Path)
	if err != nil {
		return err
	}
	j.file = f
	j.lines.Reset()
	encode(&j.lines, &j.run) // what follows is on this run's scale
	return f.Append(j.lines.Bytes())
}
