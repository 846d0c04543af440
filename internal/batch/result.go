package batch

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/paceline-go/paceline/internal/secret"
)

// Result is one line of the results, or of the dead letters. Fields are only ever added.
type Result struct {
	ID       string `json:"id"`
	State    string `json:"state"`            // done, expired, dead
	Status   int    `json:"status,omitempty"` // of the last answer
	Attempts int    `json:"attempts"`
	// WaitedMS runs from submission to the last send, LatencyMS from that to the end of the answer.
	WaitedMS  float64 `json:"waited_ms"`
	LatencyMS float64 `json:"latency_ms,omitempty"`
	// WaitedFor says what that was for, in milliseconds, to lookEvery: waits.go.
	WaitedFor      map[string]int64  `json:"waited_for_ms,omitempty"`
	Key            string            `json:"key,omitempty"`
	At             string            `json:"at"` // when it ended
	PossibleRepeat bool              `json:"possible_repeat,omitempty"`
	Headers        map[string]string `json:"headers,omitempty"`
	Body           *string           `json:"body,omitempty"`
	BodyBase64     []byte            `json:"body_base64,omitempty"`    // where it is not UTF-8
	BodyCut        bool              `json:"body_cut,omitempty"`       // it was longer
	Location       string            `json:"location,omitempty"`       // where redirects led
	Error          string            `json:"error,omitempty"`          // why there is no answer, or why it is dead
	Class          string            `json:"class,omitempty"`          // of a dead letter: see class.go
	Hidden         int               `json:"hidden,omitempty"`         // in how many places the answer had a key's value
	Digest         Digest            `json:"request_digest,omitempty"` // by which a rerun knows that it is the same
	Request        json.RawMessage   `json:"request,omitempty"`        // the line of the input; in dead letters
}

// line returns the result as a line of JSON that begins with its id and state: what a rerun reads.
func (r *Result) line() []byte { return r.append(nil) }

// lineOf returns v, which cannot fail, as a line of JSON.
func lineOf(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// setBody puts a body in: as a string if it is UTF-8.
func (r *Result) setBody(res *response, secrets *secret.Set) {
	body := res.body
	var cut secret.Cut
	if r.BodyCut = res.cut; res.cut || res.err != nil {
		cut = secret.CutEnd
	}
	if res.status == http.StatusPartialContent {
		cut = secret.CutStart | secret.CutEnd
	}
	if res.cut { // not in the middle of a character
		for n := 0; n < utf8.UTFMax-1 && len(body) > 0 && !utf8.Valid(body[max(0, len(body)-utf8.UTFMax):]); n++ {
			if c, size := utf8.DecodeLastRune(body); c != utf8.RuneError || size != 1 {
				break
			}
			body = body[:len(body)-1]
		}
	}
	body, n := secrets.Hide(body, cut)
	r.Hidden += n
	if utf8.Valid(body) {
		s := unsafe.String(unsafe.SliceData(body), len(body)) // nobody changes it any more, and there may be 16 MiB of it
		r.Body = &s
	} else {
		r.BodyBase64 = body
	}
}

// setHeaders picks the header fields that are kept.
func (r *Result) setHeaders(h http.Header, keep *kept, secrets *secret.Set) {
	for name, all := range h {
		lower := keep.as(name)
		if lower == "" {
			continue
		}
		if r.Headers == nil {
			r.Headers = map[string]string{}
		}
		var n int
		r.Headers[lower], n = secrets.HideIn(strings.Join(all, ", "))
		r.Hidden += n
	}
}

// kept are the names of the header fields that are, beside more. Not safe for concurrent use.
type kept struct {
	more []string
	name map[string]string // what is known, by the names in answers
}

// as is how a name is written; empty: it is not kept.
func (k *kept) as(name string) string {
	lower, known := k.name[name]
	if known {
		return lower
	}
	lower = strings.ToLower(name)
	switch {
	case slices.Contains(k.more, lower) || slices.Contains(k.more, "*"):
	case lower == "content-type" || lower == "retry-after" || lower == "x-request-id" || lower == "request-id":
	case strings.Contains(lower, "ratelimit") || strings.Contains(lower, "rate-limit"):
	default:
		lower = ""
	}
	const most = 256 // a server may make up names
	if k.name == nil || len(k.name) >= most {
		k.name = map[string]string{}
	}
	k.name[name] = lower
	return lower
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
