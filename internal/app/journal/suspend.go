package journal

import (
	"github.com/paceline-go/paceline/internal/app/durable"
)

// Suspend closes the file with all that was recorded, so that another process can go on with it:
// see Config.Alive. Until Resume each record fails with os.ErrClosed.
func (j *Journal) Suspend() error { return j.Close() }

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
