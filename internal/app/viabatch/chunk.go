package viabatch

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// chunk collects the requests of one batch in a file that has no name any more.
type chunk struct {
	entry
	api  api
	file *os.File
	w    *bufio.Writer
	size int64
}

func newChunk(a api, q *format.Request) (*chunk, error) {
	f, err := os.CreateTemp("", "paceline-batch")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // where that fails, drop removes it
	_, endpoint := split(q.URL.Path)
	e := entry{Name: rand.Text(), Model: q.Estimate.Model, Path: endpoint, Began: time.Now()}
	c := &chunk{entry: e, api: a, file: f, w: bufio.NewWriterSize(f, 256<<10)}
	return c, c.write(a.head(c.Name))
}

func (c *chunk) write(text []byte) error {
	c.size += int64(len(text))
	_, err := c.w.Write(text)
	return err
}

// isFull reports whether a request has no room in the chunk.
func (c *chunk) isFull(b *Config, q *format.Request) bool {
	return len(c.Requests) >= b.MostLines || c.size+int64(len(q.Body))+1024 > b.MostBytes ||
		b.Enqueued > 0 && c.Tokens+q.Estimate.Input > b.Enqueued
}

// add adds a request.
func (c *chunk) add(q *format.Request) error {
	text := c.api.line(c.api.wire(q.ID), q)
	if len(c.Requests) > 0 {
		text = append(c.api.between(), text...)
	}
	c.Tokens += q.Estimate.Input
	c.Requests = append(c.Requests, request{q.ID, q.Digest})
	return c.write(text)
}

// end completes the body.
func (c *chunk) end() error {
	if err := c.write(c.api.foot(c.Name)); err != nil {
		return err
	}
	return c.w.Flush()
}

// body returns the whole body, from its beginning, and its size.
func (c *chunk) body() (io.ReadCloser, int64) {
	return io.NopCloser(io.NewSectionReader(c.file, 0, c.size)), c.size
}

func (c *chunk) drop() {
	c.file.Close()
	_ = os.Remove(c.file.Name())
}

// quoted is a text as JSON.
func quoted(s string) json.RawMessage {
	b, _ := json.Marshal(s) // cannot fail
	return b
}
