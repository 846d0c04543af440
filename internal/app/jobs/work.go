package jobs

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/text"
)

const (
	// attemptTime is longer than any batch lasts: the Base bounds its attempts, and waits are no part
	// of an attempt.
	attemptTime = 30 * 24 * time.Hour
	// mostAnswer is the largest answer, in bytes: embeddings of two thousand texts.
	mostAnswer = 64 << 20
	// again is how long a batch rests after it could not go on.
	again = 30 * time.Second
)

// beginLocked goes on with a batch.
func (s *Store) beginLocked(b *batch) {
	s.working.Go(func() {
		for !b.goOn() {
			if !s.pause(again) {
				return
			}
		}
	})
}

// goOn takes a batch to its end. It returns false if something stands in the way, which may pass.
func (b *batch) goOn() bool {
	err := b.validate()
	if err == nil {
		err = b.send()
	}
	if b.store.soft.Err() != nil {
		return true // the next Store goes on
	}
	if err == nil {
		err = b.finish()
	}
	if err == nil {
		return true
	}
	why := text.Sanitize(err.Error())
	b.store.c.Log.Warn("batches: a batch cannot go on, and is tried again", "batch", b.ID, "client", b.Owner, "why", why)
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	b.Why = why
	return false
}

func (b *batch) state() State {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	return b.State
}

// llm is the form of a batch. Each engine needs its own.
func (s *Store) llm(b *Batch) (*format.LLM, error) {
	to := &url.URL{Scheme: s.c.To.Scheme, Host: s.c.To.Host}
	return format.NewLLM(format.LLMConfig{Provider: b.Form, BaseURL: to.String()})
}

// check finds the mistakes in an input.
func (s *Store) check(b *Batch, path string) (total int, wrong []Mistake, err error) {
	l, err := s.llm(b)
	if err != nil {
		return 0, nil, err
	}
	in, err := os.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer in.Close()
	return mistakes(l, b.Endpoint, in, func(q *format.Request) string {
		if s.c.Wrong == nil {
			return ""
		}
		return s.c.Wrong(b.Owner, q.URL, q.Body)
	})
}

// validate checks the input of a batch that was not checked yet.
func (b *batch) validate() error {
	if b.state() != Validating {
		return nil
	}
	total, wrong, err := b.store.check(&b.Batch, filepath.Join(b.dir, inputName))
	if err != nil {
		return err
	}
	return b.set(func(b *Batch) {
		if b.Counts.Total = total; b.State != Validating { // it was cancelled meanwhile
			return
		}
		if b.State, b.Began = InProgress, time.Now(); len(wrong) > 0 {
			b.State, b.Mistakes = Failed, wrong
			b.Began, b.Finished, b.Counts = time.Time{}, time.Now(), Counts{}
		}
	})
}

// send has the engine send all that has no result yet, until the batch stops.
func (b *batch) send() error {
	if !b.state().maySend() {
		return nil
	}
	o := b.owner
	select {
	case o.turns <- struct{}{}:
		defer func() { <-o.turns }()
	case <-b.waits.Done():
		return nil
	}
	if o.isFull() {
		return errNoRoom
	}
	late := time.AfterFunc(time.Until(b.Deadline), b.stop)
	defer late.Stop()
	in, err := os.Open(filepath.Join(b.dir, inputName))
	if err != nil {
		return err
	}
	defer in.Close()
	l, err := b.store.llm(&b.Batch)
	if err != nil {
		return err
	}
	r, err := run.New(run.Config{
		Base: &line{b: b, next: b.store.c.Base(Way{b.Owner, b.waits})}, Format: l, Out: filepath.Join(b.dir, resultsName),
		Concurrency: b.store.c.Concurrency, Timeout: attemptTime, MaxResponse: mostAnswer,
		KeepHeaders: []string{"x-request-id"}, Log: b.store.c.Log, Ended: b.grows,
		Notice: func(s string) { b.store.c.Log.Info("batches: "+s, "batch", b.ID, "client", b.Owner) },
	})
	if err != nil {
		return err
	}
	if err := r.Open(); err != nil {
		return err
	}
	b.runs(r)
	drains := context.AfterFunc(b.waits, r.Drain)
	err = r.Send(b.store.hard, "input", in)
	drains()
	b.runs(nil)
	if _, cerr := r.Close(); err == nil {
		err = cerr
	}
	if b.waits.Err() != nil && !errors.Is(err, run.ErrOutput) { // it was stopped
		return nil
	}
	if err == nil && o.isFull() && b.left() > 0 {
		return errNoRoom
	}
	return err
}

// left is how many requests have no result.
func (b *batch) left() int {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	return b.Counts.Total - b.Counts.Done - b.Counts.Failed
}

// runs notes the engine that is at work; nil: none is. The counts stay.
func (b *batch) runs(r *run.Run) {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	if r == nil {
		b.Counts = b.shownLocked().Counts
	}
	b.running.Store(r)
	b.Why = ""
}

// grows counts a result in the owner's room. Where that is used up, the batch rests.
func (b *batch) grows(r *format.Result) {
	const around = 512 // of a line, beside the body
	n := int64(around + len(r.BodyBase64))
	if r.Body != nil {
		n += int64(len(*r.Body))
	}
	b.counted.Add(n)
	if b.owner.used.Add(n) < b.store.c.Most {
		return
	}
	if r := b.running.Load(); r != nil {
		go r.Drain() // it takes locks that the caller may have
	}
}

// line is the Base of a batch's engine. It bounds what an owner has under way, and writes requests as
// the owner's client would.
type line struct {
	b    *batch
	next http.RoundTripper
}

var errStops = errors.New("the batch stops")

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(q *http.Request) (*http.Response, error) {
	room := l.b.owner.room
	select {
	case room <- struct{}{}:
	case <-l.b.waits.Done():
		return nil, &sending.Unsent{Err: errStops}
	case <-q.Context().Done():
		return nil, &sending.Unsent{Err: q.Context().Err()}
	}
	q = q.Clone(q.Context())
	maps.Copy(q.Header, l.b.Header)
	if l.b.Bare {
		q.URL.Path = strings.TrimPrefix(q.URL.Path, "/v1")
	}
	leave := sync.OnceFunc(func() { <-room })
	res, err := l.next.RoundTrip(q)
	if err != nil {
		leave()
		return nil, err
	}
	res.Body = &leaving{res.Body, leave}
	return res, nil
}

// leaving calls leave at the end of a body.
type leaving struct {
	io.ReadCloser
	leave func()
}

func (l *leaving) Close() error {
	defer l.leave()
	return l.ReadCloser.Close()
}
