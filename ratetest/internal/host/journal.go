package host

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Journal writes lines of JSON in the order in which they were added, while a slow writer delays nobody who adds.
type Journal struct {
	To io.Writer // nil: none

	mu    sync.Mutex // stacks lines, and is never held across a write
	lines []byte     // not written yet

	writing sync.Mutex // held while writing; taken before mu
	err     error      // guarded by writing
}

// Add takes a line that can be JSON. Flush writes it.
func (j *Journal) Add(line any) {
	if j.To == nil {
		return
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err) // numbers and strings
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(append(j.lines, text...), '\n')
}

// Flush writes the lines that have gathered: whoever writes does so for the others, too. It returns the first error of
// writing, after which no more is written.
func (j *Journal) Flush() error {
	if j.To == nil {
		return nil
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	lines := j.lines
	j.lines = nil
	j.mu.Unlock()
	if len(lines) > 0 && j.err == nil {
		if _, err := j.To.Write(lines); err != nil {
			j.err = fmt.Errorf("ratetest: the log is cut off: %w", err)
		}
	}
	return j.err
}
