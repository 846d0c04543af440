package proxy

import (
	"net/http"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/send/timer"
)

// flushed is how long a part of an answer whose length is known may lie here. One of unknown length, and events, go on at once.
const flushed = 20 * time.Millisecond

// writer notes what is answered, and sees to it that no part of it lies here for long.
type writer struct {
	http.ResponseWriter
	status int // 0: nothing yet
	bytes  int64

	mu      sync.Mutex   // stacks what follows, and is held while something is written
	flushes *timer.Watch // over what lies here; nil: it is not watched
	lying   timer.Item
	lies    bool // something may lie here, and is watched
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Header implements http.ResponseWriter. Who asks for the header that was written adds trailers, which a flush must not read meanwhile.
func (w *writer) Header() http.Header {
	if w.status != 0 {
		w.calm()
	}
	return w.ResponseWriter.Header()
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if status < 200 || w.status != 0 {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.status = status
	if h := w.ResponseWriter.Header(); h["Content-Type"] == nil {
		h["Content-Type"] = nil // net/http would guess one
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ResponseWriter.WriteHeader(status)
	w.watchLocked()
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	w.watchLocked()
	return n, err
}

func (w *writer) watchLocked() {
	if w.flushes != nil && !w.lies {
		w.lies, w.lying.Of = true, w
		w.flushes.Begin(&w.lying)
	}
}

// FlushError is for http.ResponseController.
func (w *writer) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calmLocked()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Expired sends what has lain here for too long.
func (w *writer) Expired() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lies {
		w.lies = false
		_ = http.NewResponseController(w.ResponseWriter).Flush() // if it fails, the next Write does
	}
}

// calm has nothing flushed any more that is not asked for: the answer has ended.
func (w *writer) calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calmLocked()
	w.flushes = nil
}

func (w *writer) calmLocked() {
	if w.lies {
		w.lies = false
		w.flushes.End(&w.lying)
	}
}
