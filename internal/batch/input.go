package batch

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
)

// Request is one line of the input.
type Request struct {
	ID       string
	Line     int
	Method   string
	URL      *url.URL
	Header   http.Header
	Body     []byte
	Cost     limit.Cost
	Priority int
	// TTL is the deadline as a duration from the start of the run, At as an instant; one of them at most.
	TTL time.Duration
	At  time.Time
	// Column is where the id is, or 1.
	Column int
	// Raw is the line, with the id in it where the line had none. Only of Plain.
	Raw json.RawMessage
	// Estimate is what a request to a language model is expected to use; Unbounded: it does not bound its output.
	Estimate  tokens.Estimate
	Unbounded bool
}

// InputLimits bound what one line may ask for. Zero fields have the defaults named.
type InputLimits struct {
	Line   int   // bytes in a line; if zero, 16 MiB
	Header int   // bytes of names and values; if zero, 64 KiB
	Body   int   // bytes sent; if zero, what the line allows
	Cost   int64 // the most that the limits allow; if zero, limit.MaxCost
}

func (l InputLimits) defaults() InputLimits {
	if l.Line == 0 {
		l.Line = 16 << 20
	}
	if l.Header == 0 {
		l.Header = 64 << 10
	}
	if l.Body == 0 {
		l.Body = l.Line
	}
	if l.Cost == 0 {
		l.Cost = limit.MaxCost
	}
	return l
}

// InputError says what is wrong with a line, and where: File:Line:Column, the column in bytes from 1.
type InputError struct {
	File         string
	Line, Column int
	Reason       string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// Reader reads requests from lines of JSON. Not safe for concurrent use.
type Reader struct {
	name   string
	in     *bufio.Reader
	format Format
	limits InputLimits
	pass   pass
	ended  func(id string) bool // if not nil: of these nobody needs the body, or the cost
	line   int
	bytes  int64
	buf    []byte
}

// NewReader returns a Reader of in, which errors call name.
func NewReader(name string, in io.Reader, limits InputLimits) *Reader {
	return &Reader{format: Plain{}, name: name, in: bufio.NewReaderSize(in, 64<<10), limits: limits.defaults()}
}

// pass says how often the input is read.
type pass uint8

const (
	onlyPass pass = iota
	checking      // it is read again to be sent
	checked       // it has been read before: what is too large was refused
)

// NewReaderOf returns a Reader of a format.
func NewReaderOf(f Format, name string, in io.Reader, limits InputLimits) *Reader {
	r := NewReader(name, in, limits)
	r.format = f
	return r
}

// Next returns the next request. It fails with io.EOF after the last; with an *InputError if there is something wrong
// with a line, after which the line that follows can be read; and with what reading fails with. Blank lines are passed
// over but counted.
func (r *Reader) Next() (*Request, error) {
	for {
		line, tooLong, err := r.read()
		if err != nil {
			return nil, err
		}
		r.line++
		if r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if tooLong {
			return nil, r.errorf(r.limits.Line+1, "the line is longer than %d bytes, expected at most that (--max-line)", r.limits.Line)
		}
		if len(bytes.TrimLeft(line, " \t\r")) == 0 {
			continue
		}
		if err := r.check(line); err != nil {
			return nil, err
		}
		return r.format.parse(r, line)
	}
}

func (r *Reader) errorf(column int, format string, args ...any) error {
	return &InputError{r.name, r.line, column, fmt.Sprintf(format, args...)}
}

// read returns the next line without its end. What is longer than the limit is passed over, not kept.
func (r *Reader) read() (line []byte, tooLong bool, err error) {
	r.buf = r.buf[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.bytes += int64(len(part))
		if !tooLong {
			r.buf = append(r.buf, part...)
		}
		n := len(r.buf)
		if n > 0 && r.buf[n-1] == '\n' {
			n--
		}
		if n > r.limits.Line {
			tooLong = true
			r.buf = r.buf[:0]
		}
		switch {
		case err == nil:
			return bytes.TrimSuffix(r.buf, []byte("\n")), tooLong, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && (len(r.buf) > 0 || tooLong):
			return r.buf, tooLong, nil
		case err == io.EOF:
			return nil, false, io.EOF
		default:
			return nil, false, fmt.Errorf("%s: %w", r.name, err)
		}
	}
}

const (
	fields   = "id, method, url, headers, body, cost, priority, deadline"
	maxIDLen = 512
)

var fieldNames = strings.Split(fields, ", ")

// parse reads one line. Whether it is JSON is encoding/json's to say; what is done here is to find where in the line
// each part is, which that package does not tell.
func (r *Reader) parse(line []byte) (*Request, error) {
	w := walker{line, 0}
	w.space()
	if w.peek() != '{' {
		return nil, r.errorf(w.at+1, "%s, expected a JSON object with at least a url", kind(w.peek()))
	}
	q := &Request{Line: r.line, Column: 1, Method: http.MethodGet, Cost: limit.One}
	p := parts{urlAt: w.at, costAt: w.at}
	if err := r.object(&w, func(name string, nameAt int, raw []byte, at int) error {
		return r.field(q, &p, name, nameAt, raw, at)
	}); err != nil {
		return nil, err
	}
	if q.URL == nil {
		return nil, r.errorf(p.urlAt+1, "there is no url, expected one (http:// or https://)")
	}
	if n := q.Cost[limit.Requests]; n > r.limits.Cost {
		return nil, r.errorf(p.costAt+1, "cost %d can never go: the limits allow at most %d at once", n, r.limits.Cost)
	}
	if p.bodyType != "" && q.Header.Get("Content-Type") == "" {
		if q.Header == nil {
			q.Header = http.Header{}
		}
		q.Header.Set("Content-Type", p.bodyType)
	}
	q.Raw = bytes.Clone(bytes.Trim(line, " \t\r"))
	if q.ID == "" {
		// The content is part of it: in a file that was edited between two runs another request on the same line is
		// not taken for the one that is done.
		sum := sha256.Sum256(q.Raw)
		q.ID = fmt.Sprintf("line-%d-%s", r.line, hex.EncodeToString(sum[:6]))
		q.Raw = withID(q.Raw, q.ID)
	}
	return q, nil
}

// parts are what is known of a line while it is read, for what can only be said at its end.
type parts struct {
	seen          [8]bool // by fieldNames
	bodyType      string
	urlAt, costAt int
}

// field reads a member of a line: its name, and the text of its value.
func (r *Reader) field(q *Request, p *parts, name string, nameAt int, raw []byte, at int) (err error) {
	field := slices.Index(fieldNames, name)
	if field < 0 {
		return r.errorf(nameAt+1, "unknown field %q, expected %s", name, fields)
	}
	if p.seen[field] {
		return r.errorf(nameAt+1, "field %q is given twice, expected once", name)
	}
	p.seen[field] = true
	if raw[0] == 'n' { // null
		return nil
	}
	switch name {
	case "id":
		return r.id(q, raw, at)
	case "method":
		return r.method(q, raw, at)
	case "url":
		p.urlAt = at
		return r.url(q, raw, at)
	case "headers":
		return r.headers(q, raw, at)
	case "body":
		p.bodyType, err = r.body(q, raw, at)
	case "cost":
		p.costAt = at
		q.Cost[limit.Requests], err = r.integer(name, raw, at, 0, limit.MaxCost)
	case "priority":
		var n int64
		n, err = r.integer(name, raw, at, math.MinInt32, math.MaxInt32)
		q.Priority = int(n)
	case "deadline":
		return r.deadline(q, raw, at)
	}
	return err
}

func (r *Reader) id(q *Request, raw []byte, at int) (err error) {
	q.Column = at + 1
	if q.ID, err = r.text("id", raw, at); err != nil {
		return err
	}
	if q.ID == "" || len(q.ID) > maxIDLen {
		return r.errorf(at+1, "the id has %d bytes, expected 1 to %d", len(q.ID), maxIDLen)
	}
	return nil
}

func (r *Reader) method(q *Request, raw []byte, at int) (err error) {
	if q.Method, err = r.text("method", raw, at); err != nil {
		return err
	}
	if !isToken(q.Method) || q.Method == http.MethodConnect || q.Method == http.MethodTrace {
		return r.errorf(at+1, "method %q, expected an HTTP method other than CONNECT and TRACE", q.Method)
	}
	// Methods are case-sensitive; "get" is answered 400 or 405 where it is meant as GET.
	if up := strings.ToUpper(q.Method); up != q.Method {
		return r.errorf(at+1, "method %q, expected upper case: %s", q.Method, up)
	}
	return nil
}

// body reads a text as it is, and JSON as its content type.
func (r *Reader) body(q *Request, raw []byte, at int) (contentType string, err error) {
	switch raw[0] {
	case '"':
		s, err := r.text("body", raw, at)
		if err != nil {
			return "", err
		}
		q.Body = []byte(s)
	case '{', '[':
		var b bytes.Buffer
		if err := json.Compact(&b, raw); err != nil {
			return "", r.errorf(at+1, "body: %v", err)
		}
		q.Body, contentType = b.Bytes(), "application/json"
	default:
		return "", r.errorf(at+1, "body is %s, expected a string, an object or an array", kind(raw[0]))
	}
	if len(q.Body) > r.limits.Body {
		return "", r.errorf(at+1, "the body has %d bytes, expected at most %d (--max-body)", len(q.Body), r.limits.Body)
	}
	return contentType, nil
}

// withID puts an id in front of what an object has. A null id goes.
func withID(raw []byte, id string) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) == nil {
		if _, isNull := all["id"]; isNull {
			delete(all, "id")
			raw, _ = json.Marshal(all)
		}
	}
	quoted, _ := json.Marshal(id)
	out := append([]byte(`{"id":`), quoted...)
	rest := bytes.TrimLeft(raw[1:], " \t\r")
	if rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// check says whether a line is JSON at all.
func (r *Reader) check(line []byte) error {
	if !utf8.Valid(line) {
		at := 0
		for at < len(line) {
			c, n := utf8.DecodeRune(line[at:])
			if c == utf8.RuneError && n == 1 {
				break
			}
			at += n
		}
		return r.errorf(at+1, "byte 0x%02x is not UTF-8, expected text in UTF-8", line[at])
	}
	if json.Valid(line) {
		return nil
	}
	var raw json.RawMessage
	err := json.Unmarshal(line, &raw)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return r.errorf(max(int(syntax.Offset), 1), "%v, expected one JSON object on the line", syntax)
	}
	if err != nil {
		return r.errorf(1, "%v, expected one JSON object on the line", err)
	}
	return nil
}

// object calls each for every member of the object that w is at, with the offsets of name and value in the line.
func (r *Reader) object(w *walker, each func(name string, nameAt int, raw []byte, at int) error) error {
	w.at++ // {
	for w.space(); w.peek() != '}'; w.space() {
		nameAt := w.at
		name, err := r.text("name", w.value(), nameAt)
		if err != nil {
			return err
		}
		w.space()
		w.at++ // :
		w.space()
		at := w.at
		if err := each(name, nameAt, w.value(), at); err != nil {
			return err
		}
		w.space()
		if w.peek() == ',' {
			w.at++
		}
	}
	w.at++
	return nil
}

func (r *Reader) text(name string, raw []byte, at int) (string, error) {
	if raw[0] != '"' {
		return "", r.errorf(at+1, "%s is %s, expected a string", name, kind(raw[0]))
	}
	if in := raw[1 : len(raw)-1]; bytes.IndexByte(in, '\\') < 0 {
		return string(in), nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", r.errorf(at+1, "%s: %v, expected a string", name, err)
	}
	return s, nil
}

func (r *Reader) integer(name string, raw []byte, at int, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < least || n > most {
		return 0, r.errorf(at+1, "%s is %s, expected a whole number from %d to %d", name, short(raw), least, most)
	}
	return n, nil
}

func (r *Reader) url(q *Request, raw []byte, at int) error {
	s, err := r.text("url", raw, at)
	if err != nil {
		return err
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return r.errorf(at+1, "url %s: %v, expected an absolute http or https URL", short(raw), err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		return r.errorf(at+1, "url %s, expected an absolute http or https URL with a host", short(raw))
	}
	for i := range len(u.RawQuery) {
		if c := u.RawQuery[i]; c <= ' ' || c == 0x7f {
			return r.errorf(at+1, "url %s has %q in its query, expected it escaped", short(raw), c)
		}
	}
	u.Fragment, u.RawFragment = "", ""
	q.URL = u
	return nil
}

// Header fields that say how a request is put on the wire, which is net/http's to decide.
var ours = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

func (r *Reader) headers(q *Request, raw []byte, at int) error {
	if raw[0] != '{' {
		return r.errorf(at+1, "headers is %s, expected an object of strings", kind(raw[0]))
	}
	q.Header = http.Header{}
	size := 0
	add := func(name string, raw []byte, at int) error {
		v, err := r.text("header "+name, raw, at)
		if err != nil {
			return err
		}
		if !isFieldValue(v) {
			return r.errorf(at+1, "header %s has a control character, expected text without line breaks", name)
		}
		size += len(name) + len(v) + len(": \r\n")
		if size > r.limits.Header {
			return r.errorf(at+1, "the headers have more than %d bytes, expected at most that (--max-header)", r.limits.Header)
		}
		q.Header.Add(name, v)
		return nil
	}
	w := walker{raw, 0}
	return r.object(&w, func(name string, nameAt int, raw []byte, valueAt int) error {
		nameAt, valueAt = nameAt+at, valueAt+at
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			return r.errorf(nameAt+1, "header name %q, expected letters, digits and hyphens", name)
		case ours[canonical]:
			return r.errorf(nameAt+1, "header %s is set by paceline itself, expected none", canonical)
		case q.Header[canonical] != nil:
			return r.errorf(nameAt+1, "header %s is given twice, expected once (an array has several values)", canonical)
		}
		if raw[0] != '[' {
			return add(name, raw, valueAt)
		}
		w := walker{raw, 1}
		for w.space(); w.peek() != ']'; w.space() {
			at := w.at
			if err := add(name, w.value(), valueAt+at); err != nil {
				return err
			}
			if w.space(); w.peek() == ',' {
				w.at++
			}
		}
		return nil
	})
}

func (r *Reader) deadline(q *Request, raw []byte, at int) error {
	s, err := r.text("deadline", raw, at)
	if err != nil {
		return err
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		q.TTL = d
		return nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return r.errorf(at+1, "deadline %s, expected an instant as in RFC 3339 (2026-07-03T14:00:00Z), or a duration above 0 from the start of the run (90s, 1h30m)", short(raw))
	}
	q.At = t
	return nil
}

// walker moves over JSON that is known to be valid.
type walker struct {
	text []byte
	at   int
}

func (w *walker) peek() byte { return w.text[w.at] }

func (w *walker) space() {
	for w.at < len(w.text) && (w.text[w.at] == ' ' || w.text[w.at] == '\t' || w.text[w.at] == '\r' || w.text[w.at] == '\n') {
		w.at++
	}
}

// value passes over one value and returns it.
func (w *walker) value() []byte {
	start, depth := w.at, 0
	for w.at < len(w.text) {
		switch w.text[w.at] {
		case '"':
			for w.at++; w.text[w.at] != '"'; w.at++ {
				if w.text[w.at] == '\\' {
					w.at++
				}
			}
			w.at++
		case '{', '[':
			depth++
			w.at++
			continue
		case '}', ']':
			depth--
			w.at++
		default:
			if depth > 0 {
				w.at++
				continue
			}
			for w.at < len(w.text) && !bytes.ContainsRune([]byte(",]} \t\r\n"), rune(w.text[w.at])) {
				w.at++
			}
		}
		if depth == 0 {
			break
		}
	}
	return w.text[start:w.at]
}

func kind(first byte) string {
	switch first {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// short quotes a value of the input without filling the screen.
func short(raw []byte) string {
	const most = 60
	if len(raw) <= most {
		return string(raw)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(raw[cut]) {
		cut--
	}
	return string(raw[:cut]) + "…"
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
