package tokens

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ErrIncomplete reports an answer that broke off, or an error from the server inside it. Its usage
// is unknown. The request is settled as unknown, at its estimate, and nothing is learned from it.
var ErrIncomplete = errors.New("answer is incomplete")

// Watcher passes an answer through, byte for byte, and reads its usage on the way:
//
//	w := tokens.NewWatcher(api, isEventStream, resp.Body)
//	io.Copy(client, w)
//	usage, err := w.Usage()
//
// A Watcher takes half a kilobyte, whatever the length of the answer, its lines or its events.
// Reading does not allocate. Not safe for concurrent use.
type Watcher struct {
	r      io.Reader
	api    API
	stream bool

	doc    scanner  // reads the current event, or the whole answer
	usage  counted  // from the events so far
	frames frames   // for a stream in AWS's format
	within enclosed // for a stream of InvokeModel
	done   bool     // the event that ends the stream has come
	ends   bool     // the stream may end after the last event: that has the final usage
	sums   bool     // an event had a usage, and another may have a larger one
	stops  bool     // an event had the reason why the answer ends
	fail   bool     // an event reported an error

	// place is the part of a line: its name, its data, or something to skip.
	place   uint8
	matched int  // bytes of the line's name that match "data"; -1: another name
	empty   bool // the line has no byte yet
	afterCR bool
	bom     int
	data    int // bytes of data in the event so far
	head    [len(doneMark)]byte
}

const (
	inName = iota
	afterColon
	inData
	inOther
)

const (
	doneMark = "[DONE]"
	dataName = "data"
	bom      = "\xef\xbb\xbf"
)

// NewWatcher returns a Watcher of r, the answer to a request of api. stream reports that the answer
// is not one JSON document but a stream. For most APIs that is an event stream (Content-Type:
// text/event-stream). For Ollama it is lines of JSON (application/x-ndjson). For Converse and
// Invoke it is AWS's event stream (application/vnd.amazon.eventstream). With NoAPI the Watcher only
// passes on the bytes.
func NewWatcher(api API, stream bool, r io.Reader) *Watcher {
	return &Watcher{r: r, api: api, stream: stream, empty: true}
}

// IsStream reports whether an answer with this Content-Type is a stream, for NewWatcher.
func IsStream(contentType string) bool {
	return strings.HasPrefix(contentType, "text/event-stream") ||
		strings.HasPrefix(contentType, "application/x-ndjson") ||
		strings.HasPrefix(contentType, "application/vnd.amazon.eventstream")
}

// Read reads from the answer. Bytes and errors are those of the underlying reader.
func (w *Watcher) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 && n <= len(p) {
		w.watch(p[:n])
	}
	if err == io.EOF {
		w.dispatch() // the last event may lack its blank line; half an event is not JSON and does not count
		w.done = w.done || w.ends
	}
	return n, err
}

// Close closes the underlying reader, if it is an io.Closer.
func (w *Watcher) Close() error {
	if c, ok := w.r.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Usage returns the usage of the answer. Call it once the answer has been read. The error wraps
// ErrIncomplete if the answer did not reach its end. The Usage is then the last report, a lower
// bound, or 0 without a report. The error wraps ErrNoUsage if the answer reached its end without
// usage. It wraps ErrMalformed if a count is impossible.
//
// The end of a stream is one of these marks:
//
//	Chat, Completions   data: [DONE]
//	Responses           response.completed, .incomplete, .failed or .cancelled
//	Messages            message_stop
//	CohereChat          message-end
//	Converse            metadata
//	Invoke              the metrics of the invocation
//	Ollama              a line with eval_count
//
// Gemini has no such mark: its last event decides. Some servers in the format of Chat, Completions
// or Messages leave theirs out. So the mark is not needed where the connection closes in good order
// after an event with the final usage. That is a message_delta, or a chunk with the only usage so
// far, or one after a finish_reason. Otherwise a good order proves nothing: a proxy that gives up
// closes a connection in the same way.
func (w *Watcher) Usage() (Usage, error) {
	if w.api == NoAPI {
		return Usage{}, fmt.Errorf("tokens: %v: %w", w.api, ErrNoUsage)
	}
	if !w.stream {
		if !w.doc.closed || w.doc.broken {
			return Usage{}, fmt.Errorf("tokens: %v answer: %w", w.api, ErrIncomplete)
		}
		return w.doc.used(w.api).of(w.api)
	}
	switch {
	case w.fail:
		u, _ := w.usage.of(w.api)
		return u, fmt.Errorf("tokens: %v stream: %w: the server reported an error", w.api, ErrIncomplete)
	case !w.done:
		u, _ := w.usage.of(w.api)
		return u, fmt.Errorf("tokens: %v stream: %w", w.api, ErrIncomplete)
	}
	return w.usage.of(w.api)
}

func (w *Watcher) watch(p []byte) {
	switch {
	case w.api == NoAPI || w.done || w.fail:
	case !w.stream:
		w.doc.feed(p)
	case w.api == OllamaGenerate || w.api == OllamaChat:
		w.lines(p)
	case w.api == Converse:
		w.frames.feed(p, w.add, w.dispatch)
	case w.api == Invoke:
		w.frames.feed(p, w.enclosed, w.dispatch)
	default:
		w.events(p)
	}
}

// lines reads a piece of a stream of documents, each on a line of its own.
func (w *Watcher) lines(p []byte) {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		w.data += len(line)
		w.doc.feed(line)
		if p = rest; ended {
			w.dispatch()
		}
	}
}

// events reads a piece of an event stream, as the HTML standard defines it ("Server-sent events").
// Lines end with CR, LF or both. A blank line ends an event. Several data lines are one document.
func (w *Watcher) events(p []byte) {
	for len(p) > 0 {
		c := p[0]
		if w.bom < len(bom) {
			if c == bom[w.bom] {
				w.bom++
				p = p[1:]
				continue
			}
			w.bom = len(bom)
		}
		if w.afterCR {
			w.afterCR = false
			if c == '\n' {
				p = p[1:]
				continue
			}
		}
		if c == '\n' || c == '\r' {
			w.afterCR = c == '\r'
			w.endLine()
			p = p[1:]
			continue
		}
		w.empty = false
		switch w.place {
		case inName:
			switch {
			case c == ':':
				w.place = inOther
				if w.matched == len(dataName) {
					w.place = afterColon
				}
			case w.matched >= 0 && w.matched < len(dataName) && c == dataName[w.matched]:
				w.matched++
			default:
				w.matched = -1
			}
			p = p[1:]
		case afterColon:
			w.place = inData
			if c == ' ' {
				p = p[1:]
			}
		default:
			n := len(p)
			if i := bytes.IndexByte(p, '\n'); i >= 0 {
				n = i
			}
			if i := bytes.IndexByte(p[:n], '\r'); i >= 0 {
				n = i
			}
			if w.place == inData {
				w.add(p[:n])
			}
			p = p[n:]
		}
	}
}

func (w *Watcher) add(p []byte) {
	if w.data < len(w.head) {
		copy(w.head[w.data:], p)
	}
	w.data += len(p)
	w.doc.feed(p)
}

// enclosed reads a piece of a payload that encloses an event.
func (w *Watcher) enclosed(p []byte) { w.within.feed(p, w.add) }

func (w *Watcher) endLine() {
	if w.empty {
		w.dispatch()
	} else if w.place == inData && w.data > 0 {
		w.add([]byte{'\n'})
	}
	w.place, w.matched, w.empty = inName, 0, true
}

// dispatch reads the event that has just ended.
func (w *Watcher) dispatch() {
	if !w.stream || w.data == 0 {
		return
	}
	ended := w.data - len(doneMark) // 1: the newline at the end of the line has been added
	if string(w.head[:]) == doneMark && (ended == 0 || ended == 1) {
		w.done = w.done || w.api == Chat || w.api == Completions
	} else if w.doc.closed && !w.doc.broken {
		w.event(&w.doc)
	}
	w.data, w.within = 0, enclosed{}
	w.head = [len(doneMark)]byte{}
	w.doc = scanner{}
}

func (w *Watcher) event(doc *scanner) {
	kind := string(doc.kind.text())
	switch w.api {
	case Chat, Completions:
		w.usage.merge(&doc.usage[inside]) // from Groq, which sends it without a request for it
		// With stream_options.include_usage the last chunk before [DONE] has it, and the others
		// have null. Servers that report in every chunk report running sums.
		w.usage.merge(&doc.usage[atTop])
		w.stops = w.stops || doc.finished
		has := doc.usage[inside].present || doc.usage[atTop].present
		w.ends = has && (w.stops || !w.sums)
		w.sums = w.sums || has
		w.fail = w.fail || doc.failed
	case Responses:
		switch kind {
		case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
			w.usage.merge(&doc.usage[inside])
			w.done = true
		case "error":
			w.fail = true
		}
	case Gemini: // in every chunk; the last one is right
		w.usage.merge(&doc.usage[atTop])
		w.ends, w.fail = w.usage.present, w.fail || doc.failed
	case CohereChat:
		if kind == "message-end" {
			w.usage.merge(&doc.usage[inside])
			if w.usage.has&(1<<countInput) == 0 {
				w.usage.merge(&doc.usage[billed])
			}
			w.done = true
		}
	case Converse: // in the metadata, after the last of the content
		w.usage.merge(&doc.usage[atTop])
		w.done = w.done || doc.usage[atTop].present
	case Invoke: // in the last chunk, for every vendor's model
		w.usage.merge(&doc.usage[measured])
		w.done = w.done || doc.usage[measured].present
	case OllamaGenerate, OllamaChat: // only the last line has the usage
		w.usage.merge(&doc.usage[atTop])
		w.done, w.fail = w.done || doc.usage[atTop].has&(1<<countOutput) != 0, w.fail || doc.failed
	case Messages:
		switch kind {
		case "message_start": // the input, and the first tokens of output
			w.usage.merge(&doc.usage[inside])
		case "message_delta": // running sums: later ones replace earlier ones
			w.usage.merge(&doc.usage[atTop])
			w.ends = doc.usage[atTop].present
		case "message_stop":
			w.done = true
		case "error":
			w.fail = true
		}
	}
}
