package batch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Result is one line of the results, or of the dead letters. Fields are only ever added.
type Result struct {
	ID       string `json:"id"`
	State    string `json:"state"`            // done, expired, dead
	Status   int    `json:"status,omitempty"` // of the last answer
	Attempts int    `json:"attempts"`
	// WaitedMS runs from submission to the last send, LatencyMS from that to the end of the answer.
	WaitedMS       float64           `json:"waited_ms"`
	LatencyMS      float64           `json:"latency_ms,omitempty"`
	Key            string            `json:"key,omitempty"`
	At             string            `json:"at"` // when it ended
	PossibleRepeat bool              `json:"possible_repeat,omitempty"`
	Headers        map[string]string `json:"headers,omitempty"`
	Body           *string           `json:"body,omitempty"`
	BodyBase64     []byte            `json:"body_base64,omitempty"` // where it is not UTF-8
	BodyCut        bool              `json:"body_cut,omitempty"`    // it was longer
	Location       string            `json:"location,omitempty"`    // where redirects led
	Error          string            `json:"error,omitempty"`       // why there is no answer, or why it is dead
	Request        json.RawMessage   `json:"request,omitempty"`     // the line of the input; in dead letters
}

// line returns the result as a line of JSON that begins with its id and state: what a rerun reads.
func (r *Result) line() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		panic(err) // nothing in it can fail: Request was read as JSON
	}
	return b.Bytes()
}

// setBody puts a body in: as a string if it is UTF-8.
func (r *Result) setBody(body []byte, cut bool, redact redactor) {
	r.BodyCut = cut
	if cut { // not in the middle of a character
		for n := 0; n < utf8.UTFMax-1 && len(body) > 0 && !utf8.Valid(body[max(0, len(body)-utf8.UTFMax):]); n++ {
			if c, size := utf8.DecodeLastRune(body); c != utf8.RuneError || size != 1 {
				break
			}
			body = body[:len(body)-1]
		}
	}
	s := redact.answer(string(body))
	if utf8.ValidString(s) {
		r.Body = &s
	} else {
		r.BodyBase64 = []byte(s)
	}
}

// interesting picks the header fields that are kept.
func interesting(h http.Header, more map[string]bool, redact redactor) map[string]string {
	var kept map[string]string
	for name, all := range h {
		lower := strings.ToLower(name)
		switch {
		case more[lower] || more["*"]:
		case lower == "content-type" || lower == "retry-after" || lower == "x-request-id" || lower == "request-id":
		case strings.Contains(lower, "ratelimit") || strings.Contains(lower, "rate-limit"):
		default:
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[lower] = redact.answer(strings.Join(all, ", "))
	}
	return kept
}

// file is what lineFile needs of an *os.File; tests have one that fails.
type file interface {
	io.Writer
	Sync() error
	Truncate(size int64) error
	Close() error
}

// lineFile is a file that lines are appended to, each with one write(2), so that what was written survives the death of
// the process; fsynced in groups, so that it survives that of the machine. A write that fails half-way is undone.
// Safe for concurrent use.
type lineFile struct {
	name string

	mu      sync.Mutex
	f       file
	regular bool // else a pipe or a terminal: cannot be truncated or synced
	size    int64
	dirty   int // lines since the last Sync
	failed  error
}

func (l *lineFile) append(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	n, err := l.f.Write(line)
	if err != nil {
		if n > 0 && l.regular {
			if terr := l.f.Truncate(l.size); terr != nil {
				// What follows would be glued to half a line.
				l.failed = fmt.Errorf("%s: %w", l.name, errors.Join(err, terr))
			}
		}
		return fmt.Errorf("%s: %w", l.name, err)
	}
	l.size += int64(n)
	l.dirty++
	return nil
}

// sync makes durable what was written, if there are at least so many lines of it. Others may append meanwhile.
func (l *lineFile) sync(atLeast int) error {
	l.mu.Lock()
	f, n := l.f, l.dirty
	l.mu.Unlock()
	if n < max(atLeast, 1) || !l.regular {
		return nil
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	l.mu.Lock()
	l.dirty -= n
	l.mu.Unlock()
	return nil
}

func (l *lineFile) close() error {
	err := l.sync(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if cerr := l.f.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("%s: %w", l.name, cerr)
	}
	return err
}

// entry is what a rerun reads of a result.
type entry struct {
	ID    string `json:"id"`
	State string `json:"state"`

	body json.RawMessage // the answer, of an LLM
}

// openResults opens, creates and locks a file of results, calls each for every line of it with where it ends, and cuts off a last line that
// a crash left without its end.
//
// What is as it was when it was peeked at is not read again.
func openResults(path string, form form, was peeked, each func(e entry, end int64)) (*lineFile, *os.File, error) {
	f, err := openLocked(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	size := was.size
	if err == nil && (was.info == nil || !os.SameFile(info, was.info) || info.Size() != was.info.Size() || !info.ModTime().Equal(was.info.ModTime())) {
		size, err = scanResults(f, path, form, each)
	}
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		err = syncFolder(path)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return &lineFile{name: path, f: f, regular: true, size: size}, f, nil
}

// peeked is a file of results that has been read: what it was before, and where its last complete line ends.
type peeked struct {
	info os.FileInfo
	size int64
}

func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is in use by another run: %w", path, err)
	}
	return f, nil
}

// syncFolder makes a new name durable.
func syncFolder(path string) error {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer d.Close()
	_ = d.Sync() // not every system can
	return nil
}

// scanResults reads lines of results from the start of f and returns where the last complete one ends. What is not a
// result is refused, lest a file of somebody else's be appended to, or cut; only what follows the last line break may
// be anything that a torn write can leave.
func scanResults(f io.ReaderAt, name string, form form, each func(e entry, end int64)) (size int64, err error) {
	in := bufio.NewReaderSize(io.NewSectionReader(f, 0, 1<<62), 1<<20)
	for n := 1; ; n++ {
		line, rerr := in.ReadBytes('\n')
		if rerr == io.EOF {
			if len(line) > 0 && !torn(line, form.start()) {
				return 0, fmt.Errorf("%s:%d: not a result of paceline: is this the right file?", name, n)
			}
			return size, nil
		}
		if rerr != nil {
			return 0, fmt.Errorf("%s: %w", name, rerr)
		}
		e, ok := form.entry(line, form.dead)
		if !ok {
			return 0, fmt.Errorf("%s:%d: not a result of paceline: is this the right file?", name, n)
		}
		size += int64(len(line))
		each(e, size)
	}
}

// torn says whether the end of a file may be the beginning of a result, or what a file system leaves of one.
func torn(b []byte, start string) bool {
	b = bytes.TrimRight(b, "\x00")
	return bytes.HasPrefix(b, []byte(start)) || strings.HasPrefix(start, string(b))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
