package batch

import (
	"bytes"
	"cmp"
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

	"github.com/paceline-go/paceline/internal/strict"
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
	// TTL is the deadline as a duration, At as an instant; one of them at most. Created is when the duration began, if the line
	// says so.
	TTL         time.Duration
	At, Created time.Time
	read        time.Time // when the line was
	digest      digest    // of the ID, once it was read by a Run
	// Column is where the id is, or 1; urlAt where the URL is.
	Column, urlAt int
	// Raw is the line, with the id in it where the line had none. Only of Plain.
	Raw json.RawMessage
	// Digest stands for what is sent of it: two requests with the same id should have the same.
	Digest Digest
	// Estimate is what a request to a language model is expected to use; Unbounded: it does not bound its output.
	Estimate  tokens.Estimate
	Unbounded bool
	passed    bool // over: it is another reader's
}

// InputLimits bound what one line may ask for. Zero fields have the defaults named.
type InputLimits struct {
	Line   int   // bytes in a line; if zero, 16 MiB
	Header int   // bytes of names and values; if zero, 64 KiB
	Body   int   // bytes sent; if zero, what the line allows
	Cost   int64 // the most that the limits allow; if zero, limit.MaxCost
}

func (l InputLimits) defaults() InputLimits {
	l.Line = cmp.Or(l.Line, 16<<20)
	l.Header = cmp.Or(l.Header, 64<<10)
	l.Body = cmp.Or(l.Body, l.Line)
	l.Cost = cmp.Or(l.Cost, limit.MaxCost)
	return l
}

// InputError says what is wrong with a line, and where: File:Line:Column, the column in bytes from 1.
type InputError = strict.Error

// Reader reads requests from lines of JSON. Not safe for concurrent use.
type Reader struct {
	in     *strict.Reader
	format Format
	limits InputLimits
	pass   pass
	one    Request                 // that is read while checking: it is another after the next Next
	raw    []byte                  // the latest line, until the next
	ended  func(id string) bool    // if not nil: of these nobody needs the body, or the cost
	passes func(model string) bool // if not nil: these are passed over
}

// NewReader returns a Reader of in, which errors call name.
func NewReader(name string, in io.Reader, limits InputLimits) *Reader {
	return NewReaderOf(Plain{}, name, in, limits)
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
	limits = limits.defaults()
	return &Reader{in: strict.NewReader(name, in, limits.Line), format: f, limits: limits}
}

// Next returns the next request. It fails with io.EOF after the last; with an *InputError if there is something wrong
// with a line, after which the line that follows can be read; and with what reading fails with. Blank lines are passed
// over but counted.
func (r *Reader) Next() (*Request, error) {
	line, err := r.in.Next()
	r.raw = line.Raw
	if err != nil {
		return nil, err
	}
	return r.format.parse(r, line)
}

const (
	fields   = "id, method, url, headers, body, cost, priority, deadline, created"
	maxIDLen = 512
)

var fieldNames = strings.Split(fields, ", ")

// parse reads one line.
func (r *Reader) parse(line strict.Value) (*Request, error) {
	if line.Raw[0] != '{' {
		return nil, line.Errorf("%s, expected a JSON object with at least a url", line.Kind())
	}
	q := new(Request)
	if r.pass == checking { // nobody keeps it
		q = &r.one
	}
	*q = Request{Line: line.Line(), Column: 1, Method: http.MethodGet, Cost: limit.One}
	p := parts{url: line, cost: line}
	if err := line.Object(func(name string, key, v strict.Value) error { return r.field(q, &p, name, key, v) }); err != nil {
		return nil, err
	}
	if q.URL == nil {
		return nil, p.url.Errorf("there is no url, expected one (http:// or https://)")
	}
	if n := q.Cost[limit.Requests]; n > r.limits.Cost {
		return nil, p.cost.Errorf("cost %d can never go: the limits allow at most %d at once", n, r.limits.Cost)
	}
	if p.bodyType != "" && q.Header.Get("Content-Type") == "" {
		if q.Header == nil {
			q.Header = http.Header{}
		}
		q.Header.Set("Content-Type", p.bodyType)
	}
	if r.pass != checking {
		q.Raw = bytes.Clone(line.Raw)
	}
	if q.ID == "" {
		// The content is part of it: in a file that was edited between two runs another request on the same line is
		// not taken for the one that is done.
		sum := sha256.Sum256(line.Raw)
		q.ID = fmt.Sprintf("line-%d-%x", q.Line, sum[:6])
		if r.pass != checking {
			q.Raw = withID(q.Raw, q.ID)
		}
	}
	q.Digest = newDigest(q.Method, q.URL.String(), q.Header, q.Body)
	return q, nil
}

// Digest is short for a request: 64 bits of a SHA-256, in hex; empty: not known.
type Digest string

func newDigest(method, url string, header http.Header, body []byte) Digest {
	const short = 512
	var room [short]byte
	b := quoted(room[:0], method)
	b = append(quoted(append(b, ' '), url), '\n')
	var sum [sha256.Size]byte
	if len(header) == 0 && len(b)+1+len(body) <= short {
		sum = sha256.Sum256(append(append(b, '\n'), body...))
	} else {
		all := sha256.New()
		all.Write(bytes.Clone(b)) // else room would be on the heap
		_ = header.Write(all)     // in order of the names
		all.Write([]byte{'\n'})
		all.Write(body)
		all.Sum(sum[:0])
	}
	return Digest(hex.EncodeToString(sum[:8]))
}

// quoted is strconv.AppendQuote, which is slow where there is nothing to escape.
func quoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return strconv.AppendQuote(b, s)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// bits are those that the ledger has room for: one change in 33 million is not noticed.
func (d Digest) bits() uint64 {
	n, err := strconv.ParseUint(string(d), 16, 64)
	if err != nil {
		return 0
	}
	return max(n&digestMask, 1)
}

// parts are what is known of a line while it is read, for what can only be said at its end.
type parts struct {
	seen      [9]bool // by fieldNames
	bodyType  string
	url, cost strict.Value
}

// field reads a member of a line.
func (r *Reader) field(q *Request, p *parts, name string, key, v strict.Value) (err error) {
	field := slices.Index(fieldNames, name)
	if field < 0 {
		return key.Errorf("unknown field %q, expected %s", name, fields)
	}
	if p.seen[field] {
		return key.Errorf("field %q is given twice, expected once", name)
	}
	p.seen[field] = true
	if v.Raw[0] == 'n' { // null
		return nil
	}
	switch name {
	case "id":
		return q.id(name, v)
	case "method":
		return q.method(v)
	case "url":
		p.url = v
		return q.url(v)
	case "headers":
		return r.headers(q, v)
	case "body":
		p.bodyType, err = r.body(q, v)
	case "cost":
		p.cost = v
		q.Cost[limit.Requests], err = v.Integer(name, 0, limit.MaxCost)
	case "priority":
		var n int64
		n, err = v.Integer(name, math.MinInt32, math.MaxInt32)
		q.Priority = int(n)
	case "deadline":
		return q.deadline(v)
	case "created":
		q.Created, err = instant(name, v)
	}
	return err
}

func (q *Request) id(name string, v strict.Value) (err error) {
	q.Column = v.Column
	if q.ID, err = v.Text(name); err == nil && (q.ID == "" || len(q.ID) > maxIDLen) {
		err = v.Errorf("the %s has %d bytes, expected 1 to %d", name, len(q.ID), maxIDLen)
	}
	return err
}

func (q *Request) method(v strict.Value) (err error) {
	if q.Method, err = v.Text("method"); err != nil {
		return err
	}
	if !isToken(q.Method) || q.Method == http.MethodConnect || q.Method == http.MethodTrace {
		return v.Errorf("method %q, expected an HTTP method other than CONNECT and TRACE", q.Method)
	}
	// Methods are case-sensitive; "get" is answered 400 or 405 where it is meant as GET.
	if up := strings.ToUpper(q.Method); up != q.Method {
		return v.Errorf("method %q, expected upper case: %s", q.Method, up)
	}
	return nil
}

// body reads a text as it is, and JSON as its content type.
func (r *Reader) body(q *Request, v strict.Value) (contentType string, err error) {
	switch v.Raw[0] {
	case '"':
		s, err := v.Text("body")
		if err != nil {
			return "", err
		}
		q.Body = []byte(s)
	case '{', '[':
		var b bytes.Buffer
		if err := json.Compact(&b, v.Raw); err != nil {
			return "", v.Errorf("body: %v", err)
		}
		q.Body, contentType = b.Bytes(), "application/json"
	default:
		return "", v.Errorf("body is %s, expected a string, an object or an array", v.Kind())
	}
	return contentType, r.fits("body", len(q.Body), v)
}

// fits says whether a body may be so long.
func (r *Reader) fits(name string, size int, v strict.Value) error {
	if size > r.limits.Body {
		return v.Errorf("the %s has %d bytes, expected at most %d (--max-body)", name, size, r.limits.Body)
	}
	return nil
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

func (q *Request) url(v strict.Value) error {
	s, err := v.Text("url")
	if err != nil {
		return err
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return v.Errorf("url %v: %v, expected an absolute http or https URL", v, err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		return v.Errorf("url %v, expected an absolute http or https URL with a host", v)
	}
	for i := range len(u.RawQuery) {
		if c := u.RawQuery[i]; c <= ' ' || c == 0x7f {
			return v.Errorf("url %v has %q in its query, expected it escaped", v, c)
		}
	}
	u.Fragment, u.RawFragment = "", ""
	q.URL, q.urlAt = u, v.Column
	return nil
}

// Header fields that say how a request is put on the wire, which is net/http's to decide.
var ours = map[string]bool{
	"Connection": true, "Content-Length": true, "Expect": true, "Keep-Alive": true, "Proxy-Connection": true, "Te": true,
	"Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

func (r *Reader) headers(q *Request, v strict.Value) error {
	if v.Raw[0] != '{' {
		return v.Errorf("headers is %s, expected an object of strings", v.Kind())
	}
	q.Header = http.Header{}
	size := 0
	return v.Object(func(name string, key, v strict.Value) error {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !isToken(name):
			return key.Errorf("header name %q, expected letters, digits and hyphens", name)
		case ours[canonical]:
			return key.Errorf("header %s is set by paceline itself, expected none", canonical)
		case q.Header[canonical] != nil:
			return key.Errorf("header %s is given twice, expected once (an array has several values)", canonical)
		}
		add := func(v strict.Value) error {
			s, err := v.Text("header " + name)
			if err != nil {
				return err
			}
			if !isFieldValue(s) {
				return v.Errorf("header %s has a control character, expected text without line breaks", name)
			}
			if size += len(name) + len(s) + len(": \r\n"); size > r.limits.Header {
				return v.Errorf("the headers have more than %d bytes, expected at most that (--max-header)", r.limits.Header)
			}
			q.Header.Add(name, s)
			return nil
		}
		if v.Raw[0] == '[' {
			return v.Array(add)
		}
		return add(v)
	})
}

func (q *Request) deadline(v strict.Value) error {
	s, err := v.Text("deadline")
	if err != nil {
		return err
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		q.TTL = d
		return nil
	}
	if q.At, err = time.Parse(time.RFC3339Nano, s); err != nil {
		return v.Errorf("deadline %v, expected an instant as in RFC 3339 (2026-07-03T14:00:00Z), or a duration above 0 (90s, 1h30m)", v)
	}
	return nil
}

func instant(name string, v strict.Value) (at time.Time, err error) {
	s, err := v.Text(name)
	if err != nil {
		return at, err
	}
	if at, err = time.Parse(time.RFC3339Nano, s); err != nil {
		err = v.Errorf("%s %v, expected an instant as in RFC 3339 (2026-07-03T14:00:00Z)", name, v)
	}
	return at, err
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
