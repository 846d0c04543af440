package ratetest

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// journal writes lines of JSON in the order in which they were added, while a slow writer delays nobody who adds.
type journal struct {
	to io.Writer // nil: none

	mu    sync.Mutex // guards lines, and is never held across a write
	lines []byte     // not written yet

	writing sync.Mutex // held while writing; taken before mu
	err     error      // guarded by writing
}

// add takes a line that can be JSON. flush writes it.
func (j *journal) add(line any) {
	if j.to == nil {
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

// flush writes the lines that have gathered: whoever writes does so for the others, too. It returns the first error of
// writing, after which no more is written.
func (j *journal) flush() error {
	if j.to == nil {
		return nil
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	lines := j.lines
	j.lines = nil
	j.mu.Unlock()
	if len(lines) > 0 && j.err == nil {
		if _, err := j.to.Write(lines); err != nil {
			j.err = fmt.Errorf("ratetest: the log is cut off: %w", err)
		}
	}
	return j.err
}
