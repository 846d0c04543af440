package host

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Journal writes lines of JSON in the order of Add. A slow writer does not delay Add.
type Journal struct {
	To io.Writer // nil: none

	mu    sync.Mutex // guards lines, and is never held across a write
	lines []byte     // not written yet

	writing sync.Mutex // held while writing; taken before mu
	err     error      // guarded by writing
}

// Add adds a line, which must have a form in JSON. Flush writes it.
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

// Flush writes all gathered lines, those of other goroutines too. It returns the first error of
// writing. After an error it writes nothing more.
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
