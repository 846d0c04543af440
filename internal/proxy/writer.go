package proxy

import "net/http"

// writer notes what is answered.
type writer struct {
	http.ResponseWriter
	status int // 0: nothing yet
	bytes  int64
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if status >= 200 && w.status == 0 {
		w.status = status
		if h := w.Header(); h["Content-Type"] == nil {
			h["Content-Type"] = nil // net/http would guess one
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}
