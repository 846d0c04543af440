package format

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/paceline-go/paceline/internal/secret"

	"github.com/paceline-go/paceline/provider"
)

// Result is one line of the results or of the dead letters. Fields are only ever added.
type Result struct {
	ID       string `json:"id"`
	State    string `json:"state"`            // done, expired, dead
	Status   int    `json:"status,omitempty"` // of the last answer
	Attempts int    `json:"attempts"`
	// WaitedMS is the time from submission to the last send. LatencyMS is the time from there to
	// the end of the answer.
	WaitedMS  float64 `json:"waited_ms"`
	LatencyMS float64 `json:"latency_ms,omitempty"`
	// WaitedFor splits WaitedMS by the causes of the waits, in milliseconds, accurate to lookEvery.
	// See package telling.
	WaitedFor map[string]int64 `json:"waited_for_ms,omitempty"`
	Key       string           `json:"key,omitempty"`
	At        string           `json:"at"` // when the request ended
	// Refused is how many attempts a limit refused, including the last one. RefusedAt has the times
	// of the latest mostRefused refusals.
	Refused   int      `json:"refused,omitempty"`
	RefusedAt []string `json:"refused_at,omitempty"`
	// Ceiling is how many requests per second the limits allowed in the long run, as known at that
	// time. See ceilings.go.
	Ceiling        float64         `json:"ceiling_sustained,omitempty"`
	PossibleRepeat bool            `json:"possible_repeat,omitempty"`
	Late           bool            `json:"late,omitempty"`   // it is done, and was answered at its deadline or later
	Partly         *provider.Parts `json:"partly,omitempty"` // of an answer of which a limit refused some parts
	// These are of a language model: the tokens that its answer states, and why it ended, if it was cut at the
	// bound of its output: meter.Length.
	InputTokens  int    `json:"input_tokens,omitempty"`
	OutputTokens int    `json:"output_tokens,omitempty"`
	Finish       string `json:"finish,omitempty"`
	// SelectFailed says that Row has an empty field, since an expression of --select failed on the answer.
	SelectFailed bool `json:"select_failed,omitempty"`

	Headers    map[string]string `json:"headers,omitempty"`
	Body       *string           `json:"body,omitempty"`
	BodyBase64 []byte            `json:"body_base64,omitempty"` // the body if it is not UTF-8
	BodyCut    bool              `json:"body_cut,omitempty"`    // the answer's body was longer
	File       string            `json:"file,omitempty"`        // the file with the body, with --out-dir
	Bytes      int               `json:"bytes,omitempty"`       // of the file
	SHA256     string            `json:"sha256,omitempty"`      // of the file
	// the row that --select makes of the answer, in place of the body
	Row      *string `json:"row,omitempty"`
	Location string  `json:"location,omitempty"` // the URL to which redirects led
	// why there is no answer, or why the request is dead
	Error string `json:"error,omitempty"`
	Class string `json:"class,omitempty"` // only dead letters have one; see class.go
	// number of places in the answer where a key's value was hidden
	Hidden int `json:"hidden,omitempty"`
	// the number of the page from the second on, with Config.Next
	Page int    `json:"page,omitempty"`
	Next string `json:"next,omitempty"` // the next page's URL, or the cursor in its body
	// the number of the round, from 1 on, with Config.Every
	Round   int             `json:"round,omitempty"`
	Digest  Digest          `json:"request_digest,omitempty"` // shows a rerun that the request is still the same
	Request json.RawMessage `json:"request,omitempty"`        // the line of the input; in dead letters
	Columns json.RawMessage `json:"columns,omitempty"`        // the row of the input; in dead letters
}

// LineOf returns v as a line of JSON. It panics if v cannot be encoded, so v must be of a type that
// always can.
func LineOf(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	line := b.Bytes()
	for _, end := range lineEnds {
		if bytes.Contains(line, end.char) { // raw JSON of others keeps it, and only a string can have it
			line = bytes.ReplaceAll(line, end.char, end.escaped)
		}
	}
	return line
}

// lineEnds are characters that end a line for some readers, such as splitlines of Python and old
// JavaScript, though not in JSON. Results have them escaped.
var lineEnds = []struct{ char, escaped []byte }{
	{[]byte("\u0085"), []byte(`\u0085`)}, {[]byte("\u2028"), []byte(`\u2028`)}, {[]byte("\u2029"), []byte(`\u2029`)},
}

// SetBody stores the body of an answer: as a string if it is UTF-8, and otherwise as bytes.
// cut says that it was longer, and at where a secret in it may be cut off.
func (r *Result) SetBody(body []byte, cut bool, at secret.Cut, secrets Finder) {
	if r.BodyCut = cut; cut { // the body must not end in the middle of a character
		for n := 0; n < utf8.UTFMax-1 && len(body) > 0 && !utf8.Valid(body[max(0, len(body)-utf8.UTFMax):]); n++ {
			if c, size := utf8.DecodeLastRune(body); c != utf8.RuneError || size != 1 {
				break
			}
			body = body[:len(body)-1]
		}
	}
	body, n := secrets.Hide(body, at)
	r.Hidden += n
	if utf8.Valid(body) {
		s := unsafe.String(unsafe.SliceData(body), len(body)) // body no longer changes, and a copy could take 16 MiB
		r.Body = &s
	} else {
		r.BodyBase64 = body
	}
}

// SetHeaders stores the header fields of an answer that results keep.
func (r *Result) SetHeaders(h http.Header, keep *Kept, secrets Finder) {
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

// Kept decides which header fields results keep: a few in any case, and those of the Config. Not
// safe for concurrent use.
type Kept struct {
	More []string
	name map[string]string // earlier results of as, by the name in the answer
}

// as returns the name of a field as results write it; empty: the field is not kept.
func (k *Kept) as(name string) string {
	lower, known := k.name[name]
	if known {
		return lower
	}
	lower = strings.ToLower(name)
	switch {
	case slices.Contains(k.More, lower) || slices.Contains(k.More, "*"):
	case lower == "content-type" || lower == "content-encoding" || lower == "retry-after" || lower == "x-request-id" ||
		lower == "request-id":
	case strings.Contains(lower, "ratelimit") || strings.Contains(lower, "rate-limit"):
	default:
		lower = ""
	}
	const most = 256 // bounds the memory, since a server may make up names
	if k.name == nil || len(k.name) >= most {
		k.name = map[string]string{}
	}
	k.name[name] = lower
	return lower
}

// Stamp returns an instant in UTC, in milliseconds: 2006-01-02T15:04:05.000Z. Package time is fast at RFC 3339, and
// not at a layout with a fraction of three digits.
func Stamp(t time.Time) string {
	var room [32]byte
	b, ms := t.UTC().AppendFormat(room[:0], time.RFC3339), t.Nanosecond()/1e6
	return string(append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z'))
}

func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Parsed returns a body for an expression: JSON with its numbers as they are written, null if it is
// empty, or else a string.
func Parsed(body []byte) any {
	if len(body) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		if _, err := d.Token(); err == io.EOF {
			return v
		}
	}
	return string(bytes.ToValidUTF8(body, []byte("\ufffd")))
}
