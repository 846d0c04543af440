package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// patience is how long a viewer may take to read a frame.
const patience = 10 * time.Second

// serveEvents sends server-sent events until the viewer goes. "frame" is sent every second. "past"
// is sent once, and again if the viewer missed all frames of a slot, or if the sources changed.
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	select {
	case <-p.closed:
		h.Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "the page is closed")
		return
	default:
	}
	select {
	case p.viewers <- struct{}{}:
		defer func() { <-p.viewers }()
	default:
		h.Set("Retry-After", "5")
		refuse(w, http.StatusServiceUnavailable, "%d look already", mostViewers)
		return
	}
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // for nginx
	if r.Method == http.MethodHead {
		return
	}
	rc := http.NewResponseController(w)
	// The server's own WriteTimeout is for answers that end. Not every ResponseWriter can set
	// another; then that one holds.
	patient := func() { _ = rc.SetWriteDeadline(time.Now().Add(patience)) }
	send := func(event string, data []byte) error {
		patient()
		_, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data)
		return err
	}
	patient()
	if err := rc.Flush(); errors.Is(err, http.ErrNotSupported) {
		refuse(w, http.StatusInternalServerError,
			"what this page is mounted in cannot flush: its ResponseWriter needs Flush or Unwrap")
		return
	}
	if _, err := fmt.Fprint(w, "retry: 1000\n\n"); err != nil {
		return
	}
	for seen, sources := -1, 0; ; {
		f, next := p.look()
		for seen < 0 || f.number > seen+int(slot/every) || f.sources != sources {
			sources = f.sources
			if send("past", p.past(r)) != nil {
				return
			}
			f, next = p.look()
			seen = max(seen, f.number-1)
		}
		if f.number != seen {
			if send("frame", f.data) != nil || rc.Flush() != nil {
				return
			}
			seen = f.number
		}
		if p.sleep(r.Context(), next) != nil {
			return
		}
	}
}
