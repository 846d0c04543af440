package service

import (
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/http"
	"strconv"

	"github.com/paceline-go/paceline/ratetest/internal/model"
)

// answer is the answer of an endpoint to a request that passes the limits. It is decided before the
// limits are asked, and its body is made afterwards.
type answer struct {
	status int
	// stranger reports that the endpoint asks for a key and the request has none. Such a request
	// reaches no limit.
	stranger bool
	// body makes the body, and may set header fields. It sees what the row has written. A stream is
	// an iter.Seq of events.
	body func(a *reply) any
}

// says is an answer with a body that depends on nothing else.
func says(status int, body any) *answer {
	return &answer{status: status, body: func(*reply) any { return body }}
}

// noKey is the answer to a request without a key.
func noKey(status int, body any) *answer {
	a := says(status, body)
	a.stranger = true
	return a
}

// write sends the answer. An error of the writer means that the client has gone.
func (a *reply) write(w http.ResponseWriter) {
	if a.passed && a.answer != nil {
		a.body = a.answer.body(a)
	}
	h := w.Header()
	maps.Copy(h, a.header)
	switch body := a.body.(type) {
	case string:
		w.WriteHeader(a.status)
		io.WriteString(w, body)
		return
	case iter.Seq[model.Event]:
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
		h.Set("Cache-Control", "no-cache")
		w.WriteHeader(a.status)
		control := http.NewResponseController(w)
		for e := range body {
			if _, err := w.Write(e.Text()); err != nil {
				return
			}
			control.Flush() // a writer without Flush is no network connection
		}
		return
	}
	text, err := json.Marshal(a.body)
	if err != nil {
		panic(err) // numbers and strings
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	w.WriteHeader(a.status)
	w.Write(append(text, '\n'))
}

// pageOf returns a page of a list, and the cursor of the next page, "" if there is none. A cursor is
// the number of entries before the page. An unreadable size is the usual one.
func pageOf[T any](all []T, cursor, size string, usual int) (page []T, next string) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 1 {
		n = usual
	}
	from, _ := strconv.Atoi(cursor)
	from = min(max(from, 0), len(all))
	to := min(from+min(n, len(all)), len(all))
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	return all[from:to], next
}
