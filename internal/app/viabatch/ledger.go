package viabatch

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

// entry is a batch in the ledger. It has a line when it is about to be made, one with the id of the
// batch, and one when all is taken in.
type entry struct {
	Name     string    `json:"name"`
	Model    string    `json:"model,omitempty"`
	Path     string    `json:"path,omitempty"`
	Tokens   int64     `json:"tokens,omitempty"`
	Began    time.Time `json:"began,omitzero"`
	Requests []request `json:"requests,omitempty"`
	Batch    string    `json:"batch,omitempty"`
	Over     bool      `json:"over,omitempty"`
	Again    bool      `json:"again,omitempty"` // its requests go into another batch

	isOver bool
}

// request is a request of a batch.
type request struct {
	ID     string        `json:"id"`
	Digest format.Digest `json:"digest,omitempty"`
}

// ledger is the file with all batches of an input.
type ledger struct {
	file    *durable.File
	entries []*entry
	byName  map[string]*entry
	taken   map[string]bool // requests that are in a batch, or were
	later   bool            // some requests go into a batch later
}

// openLedger opens the file, and reads what earlier commands left. It cuts off half a line, which a crash left.
func openLedger(path string) (*ledger, error) {
	l := &ledger{byName: map[string]*entry{}, taken: map[string]bool{}}
	var err error
	if l.file, err = durable.Open(path); err != nil {
		return nil, err
	}
	end, err := durable.Lines(l.file.Reader(), path, func(line []byte, end durable.End) error {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s:%d: %w, expected the record of a batch", path, end.Lines, err)
		}
		l.read(e)
		return nil
	})
	if err == nil {
		err = l.file.SetSize(end.Size)
	}
	if err != nil {
		l.file.Discard()
		return nil, err
	}
	return l, nil
}

// read takes in a line.
func (l *ledger) read(e entry) {
	was := l.byName[e.Name]
	switch {
	case was == nil && len(e.Requests) > 0:
		l.keep(&e)
	case was == nil: // its beginning is lost
	case e.Over:
		if was.isOver = true; e.Again {
			l.release(was)
		}
	default:
		was.Batch = e.Batch
	}
}

func (l *ledger) keep(e *entry) {
	l.byName[e.Name] = e
	l.entries = append(l.entries, e)
	for _, q := range e.Requests {
		l.taken[q.ID] = true
	}
}

// write appends a line, and makes it durable: what follows must not be forgotten.
func (l *ledger) write(e entry) error {
	if err := l.file.Append(format.LineOf(e)); err != nil {
		return err
	}
	return l.file.Sync(1)
}

// note notes a batch before it is made.
func (l *ledger) note(e *entry) error {
	l.keep(e)
	return l.write(*e)
}

// made notes the id of a batch.
func (l *ledger) made(e *entry, id string) error {
	e.Batch = id
	return l.write(entry{Name: e.Name, Batch: id})
}

// over notes that a batch needs no more looks. If again is set, its requests go into another one.
func (l *ledger) over(e *entry, again bool) error {
	if e.isOver = true; again {
		l.release(e)
	}
	return l.write(entry{Name: e.Name, Over: true, Again: again})
}

// release lets the requests of a batch go into another one.
func (l *ledger) release(e *entry) {
	for _, q := range e.Requests {
		delete(l.taken, q.ID)
	}
}

// open returns the batches that have been made and have not ended.
func (l *ledger) open() (all []*entry) {
	for _, e := range l.entries {
		if !e.isOver && e.Batch != "" {
			all = append(all, e)
		}
	}
	return all
}

// enqueued is how many tokens of a model are in batches that have not ended.
func (l *ledger) enqueued(model string) (n int64) {
	for _, e := range l.open() {
		if e.Model == model {
			n += e.Tokens
		}
	}
	return n
}

// knows reports whether a batch is in the ledger.
func (l *ledger) knows(id string) bool {
	for _, e := range l.entries {
		if e.Batch == id {
			return true
		}
	}
	return false
}
