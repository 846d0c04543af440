package jobs

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/durable"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

// endName is the file with the results of a batch of Anthropic's form.
const endName = "results.jsonl"

// openAILine and anthropicLine are lines of results without additions of ours.
type (
	openAILine struct {
		ID       string          `json:"id"`
		CustomID string          `json:"custom_id"`
		Response json.RawMessage `json:"response"`
		Error    json.RawMessage `json:"error"`
	}
	anthropicLine struct {
		CustomID string          `json:"custom_id"`
		Result   json.RawMessage `json:"result"`
	}
)

// finish makes the files of a batch of which no more is sent, and ends it. After a crash it does so
// again.
func (b *batch) finish() error {
	end, code := Completed, ""
	left := b.left()
	if err := b.set(func(b *Batch) {
		switch {
		case b.State.Ended():
			end = b.State
			return
		case b.State == Cancelling:
			end, code = Cancelled, "batch_cancelled"
			return
		case left > 0:
			end, code = Expired, "batch_expired"
		}
		b.State, b.Finalized = Finalizing, time.Now()
	}); err != nil {
		return err
	}
	if b.state() == end { // it had ended
		return b.clean()
	}
	var err error
	made := &ending{b: b, code: code, seen: map[string]bool{}}
	if b.Form == format.OpenAI {
		err = made.openAI()
	} else {
		err = made.anthropic()
	}
	if err != nil {
		return err
	}
	if err := b.set(func(b *Batch) {
		b.State, b.Finished, b.Counts = end, time.Now(), made.counts
		b.Counts.Total = len(made.seen)
		b.OutputMade, b.ErrorsMade = made.output, made.errors
	}); err != nil {
		return err
	}
	b.store.c.Log.Info("batches: a batch has ended", "batch", b.ID, "client", b.Owner, "state", end,
		"done", made.counts.Done, "failed", made.counts.Failed)
	return b.clean()
}

// clean removes what an ended batch needs no more.
func (b *batch) clean() error {
	for _, e := range entries(b.dir) {
		if name := e.Name(); name != recordName && name != endName {
			_ = os.Remove(filepath.Join(b.dir, name)) // the folder goes with the batch in any case
		}
	}
	size := sizeOf(b.dir)
	b.owner.used.Add(size - b.counted.Swap(size))
	return nil
}

// ending collects the results of a batch.
type ending struct {
	b              *batch
	code           string // of requests that were not served
	counts         Counts
	seen           map[string]bool
	output, errors bool
}

// openAI makes an output file and an error file.
func (m *ending) openAI() error {
	b := m.b
	for _, f := range []struct {
		id, name string
		made     *bool
		write    func(io.Writer) error
	}{
		{b.Output, "output", &m.output, func(w io.Writer) error { return m.lines(w, resultsName, &m.counts.Done) }},
		{b.Errors, "error", &m.errors, func(w io.Writer) error {
			if err := m.lines(w, deadName, &m.counts.Failed); err != nil {
				return err
			}
			return m.unserved(w)
		}},
	} {
		if err := b.owner.makes(f.id, b.ID+"_"+f.name+".jsonl", f.made, f.write); err != nil {
			return err
		}
	}
	return nil
}

// deadName is the engine's file of dead letters.
var deadName = strings.TrimSuffix(resultsName, ".jsonl") + ".errors.jsonl"

// makes makes a file of results, unless it is empty.
func (o *owner) makes(id, name string, made *bool, write func(io.Writer) error) error {
	o.s.mu.Lock()
	if f := o.files[id]; f != nil { // a crash came before the batch had ended
		if err := o.removeLocked(f); err != nil {
			o.s.mu.Unlock()
			return err
		}
	}
	o.s.mu.Unlock()
	u, err := o.upload(id, purposeOutput)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(u, 256<<10)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if *made = err == nil && u.f.Bytes > 0; !*made {
		u.Drop()
		return err
	}
	_, err = u.Keep(name, purposeOutput, time.Time{})
	return err
}

// lines copies the engine's results, each id once, and counts them.
func (m *ending) lines(w io.Writer, name string, n *int) error {
	return m.each(name, func(text []byte) error {
		var l openAILine
		if json.Unmarshal(text, &l) != nil || l.CustomID == "" || m.seen[l.CustomID] {
			return nil
		}
		m.seen[l.CustomID] = true
		*n++
		_, err := w.Write(format.LineOf(l))
		return err
	})
}

// each calls f for each line of a file of the batch. A file that is not there has none.
func (m *ending) each(name string, f func(line []byte) error) error {
	in, err := os.Open(filepath.Join(m.b.dir, name))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	end, err := durable.Lines(in, name, func(line []byte, _ durable.End) error { return f(line) })
	if err == nil && name == inputName && len(end.Rest) > 0 { // a last line needs no line break
		err = f(end.Rest)
	}
	return err
}

// rest calls f for each request without a result.
func (m *ending) rest(f func(id string) error) error {
	return m.each(inputName, func(text []byte) error {
		var l struct {
			ID string `json:"custom_id"`
		}
		if json.Unmarshal(text, &l) != nil || l.ID == "" || m.seen[l.ID] {
			return nil
		}
		if m.code == "" {
			return fmt.Errorf("request %q has no result", l.ID)
		}
		m.seen[l.ID] = true
		if m.code == "batch_cancelled" {
			m.counts.Cancelled++
		} else {
			m.counts.Expired++
		}
		return f(l.ID)
	})
}

// unserved writes the requests that were not served.
func (m *ending) unserved(w io.Writer) error {
	why := map[string]string{"batch_cancelled": "the batch was cancelled before this request was served",
		"batch_expired": "the time of the batch was over before this request was served"}[m.code]
	n := 0
	return m.rest(func(id string) error {
		n++
		text, _ := json.Marshal(map[string]string{"code": m.code, "message": why})
		number := fmt.Sprintf("batch_req_%s_%d", strings.TrimPrefix(m.b.ID, batchPrefix), n)
		_, err := w.Write(format.LineOf(openAILine{ID: number, CustomID: id, Error: text}))
		return err
	})
}

// anthropic makes one file of results.
func (m *ending) anthropic() error {
	path := filepath.Join(m.b.dir, endName)
	_ = os.Remove(path) // a crash may have left a part of it
	return fill(path, func(to io.Writer) error {
		w := bufio.NewWriterSize(to, 256<<10)
		for _, part := range []struct {
			name string
			n    *int
		}{{resultsName, &m.counts.Done}, {deadName, &m.counts.Failed}} {
			if err := m.each(part.name, func(text []byte) error {
				var l anthropicLine
				if json.Unmarshal(text, &l) != nil || l.CustomID == "" || m.seen[l.CustomID] {
					return nil
				}
				m.seen[l.CustomID] = true
				*part.n++
				_, err := w.Write(format.LineOf(l))
				return err
			}); err != nil {
				return err
			}
		}
		kind := map[string]string{"batch_cancelled": "canceled", "batch_expired": "expired"}[m.code]
		if err := m.rest(func(id string) error {
			text, _ := json.Marshal(map[string]string{"type": kind})
			_, err := w.Write(format.LineOf(anthropicLine{id, text}))
			return err
		}); err != nil {
			return err
		}
		return w.Flush()
	})
}
