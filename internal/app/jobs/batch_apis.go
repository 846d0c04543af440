package jobs

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"
)

// Call is a request of a client.
type Call struct {
	// Owner is the client's name.
	Owner string
	// Path is the path behind that of the upstream: /v1/files/file-….
	Path string
	// Base is the address of the upstream as the client knows it: http://127.0.0.1:7878/openai.
	Base string
}

// Family says which APIs an upstream has.
type Family uint8

// Families.
const (
	AnyFamily Family = iota // the upstream is not known
	OpenAI
	Anthropic
)

// Takes reports whether a request belongs to these APIs.
func Takes(f Family, path string) bool {
	parts, _ := splitPath(path)
	if len(parts) == 0 {
		return false
	}
	switch parts[0] {
	case "files", "batches":
		return f != Anthropic
	case "messages":
		return f != OpenAI && len(parts) > 1 && parts[1] == "batches"
	}
	return false
}

// splitPath returns the segments of a path behind its /v1. bare says that it has none.
func splitPath(path string) (parts []string, bare bool) {
	parts = strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] != "v1" {
		return parts, true
	}
	return parts[1:], false
}

// Serve answers a request that Takes.
func Serve(s *Store, w http.ResponseWriter, r *http.Request, c Call) {
	parts, bare := splitPath(c.Path)
	v := &visit{s: s, w: w, r: r, c: c, bare: bare}
	if parts[0] == "messages" {
		v.anthropic(parts[2:])
		return
	}
	v.openAI(parts)
}

// visit is one request.
type visit struct {
	s    *Store
	w    http.ResponseWriter
	r    *http.Request
	c    Call
	bare bool
}

// m is an object of JSON.
type m map[string]any

// object reads the body, a small object of JSON.
func (v *visit) object(to any) error {
	const most = 1 << 20
	d := json.NewDecoder(http.MaxBytesReader(v.w, v.r.Body, most))
	return d.Decode(to)
}

func (v *visit) answer(status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":{"message":"the answer has no JSON"}}`)
	}
	v.w.Header().Set("Content-Type", "application/json")
	v.w.WriteHeader(status)
	_, _ = v.w.Write(append(text, '\n'))
}

// statusOf returns the status of an error of the Store.
func statusOf(err error) int {
	_, disk := errors.AsType[*diskError](err)
	switch {
	case disk, errors.Is(err, errNoRoom):
		return http.StatusInsufficientStorage
	case errors.Is(err, errNotThere):
		return http.StatusNotFound
	case errors.Is(err, errTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errTooMany):
		return http.StatusTooManyRequests
	case errors.Is(err, errEnded), errors.Is(err, errGoesOn):
		return http.StatusConflict
	case errors.Is(err, errStopping):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// unixSeconds is an instant in seconds since 1970; nil: it is not set.
func unixSeconds(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.Unix()
}
