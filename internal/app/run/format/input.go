package format

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/charge"
	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/tokens"
)

// Request is one line of the input.
type Request struct {
	ID     string
	Line   int
	Method string
	URL    *url.URL
	Header http.Header
	Body   []byte
	Cost   limit.Cost
	Charge *provider.Charge // by which a Run has found the cost; nil: none fits
	Shape  uint64           // of requests whose cost only answers tell: see costs.Shapes; 0: it has none
	// Resource is the part of its key's quota in which it counts, as its charge says; Usual says that most
	// requests to its host count there.
	Resource string
	Usual    bool
	Priority int
	// TTL is the deadline as a duration, At as an instant; at most one of them is set. Created is
	// when the duration began, if the line states it.
	TTL         time.Duration
	At, Created time.Time
	ReadAt      time.Time // when the line was read
	Hash        Hash      // of the ID; a Run sets it when it reads the request
	// Column is the column of the id, or 1 if there is none. URLAt and BodyAt are those of the URL and of the body.
	Column, URLAt, BodyAt int
	Number                int // number of the request's element in an array; 0: it has a line of its own
	// row is the row of the input from which the request is made, if the input is rows. filled are
	// the columns that Config.Header and Query use, and cells their values.
	row           *input.Row
	filled, cells []string
	own           []secret.Key // secrets of this request that must not be shown, beside the keys
	// Raw is the line of a Plain input. If the line had no id, the id was added to it.
	Raw json.RawMessage
	// Digest stands for the content of the request. Two requests with the same id should have the
	// same Digest.
	Digest Digest
	// Estimate is the expected usage of a request to a language model. Unbounded says that it does
	// not bound its output.
	Estimate  tokens.Estimate
	Unbounded bool
	// Page is the number of the page in its chain; 0: the request is the first page, or there is no
	// chain.
	Page  int
	Chain *Chain
	// Round is the number of the round in which the request is asked, from 1 on; 0: it is asked once. Turn is then
	// its number among the requests of the round.
	Round, Turn int
	Passed      bool // the reader passed over the line, since another reader hands it over
}

// Again returns the request as it is asked in a round.
func (q *Request) Again(round, turn int, now time.Time) *Request {
	a := *q
	a.Round, a.Turn, a.ReadAt = round, turn, now
	a.Created = now // its TTL begins anew
	return &a
}

// InputLimits bound one line. Zero fields have the defaults named.
type InputLimits struct {
	Line   int   // the most bytes in a line; if zero, 16 MiB
	Header int   // the most bytes of header names and values; if zero, 64 KiB
	Body   int   // the most bytes of a body; if zero, as many as in a line
	Cost   int64 // the largest cost that the limits allow; if zero, limit.MaxCost
	First  int   // the input ends behind so many requests; if zero, at its end
}

func (l InputLimits) defaults() InputLimits {
	l.Line = cmp.Or(l.Line, 16<<20)
	l.Header = cmp.Or(l.Header, 64<<10)
	l.Body = cmp.Or(l.Body, l.Line)
	l.Cost = cmp.Or(l.Cost, limit.MaxCost)
	return l
}

// InputError is the mistake in a line, and its place: File:Line:Column. Columns are counted in
// bytes, from 1.
type InputError = input.Error

// Reader reads requests from lines of JSON. Not safe for concurrent use.
type Reader struct {
	in     *input.LineReader
	lines  *input.JSONReader // lines of JSON, or nil
	items  *input.Reader     // other forms of input, or nil
	item   *input.Item       // the latest of items
	format Format
	limits InputLimits
	Pass   pass
	// Meter counts the tokens of the requests, all of which are to language models then. It is set for an LLM; if
	// nil, no tokens are counted.
	Meter *meter.Meter
	// Roughly says that the requests are only stored, so a guess of their tokens does.
	Roughly bool
	one     Request                 // what Next returns while checking; the following call overwrites it
	raw     []byte                  // the latest line, valid until the following one is read
	Ended   func(id string) bool    // if not nil, it reports requests whose body and cost are not needed
	Passes  func(model string) bool // if not nil, it reports models whose requests are passed over
	taken   int                     // the requests that Next has returned
}

// pass says whether the input is read once, or twice to check it first.
type pass uint8

const (
	onlyPass pass = iota
	Checking      // the first of two: the requests are sent in the second
	Checked       // the second of two: the first has refused what is too large
)

// NewReader returns a Reader of in, which has the given format. Errors call the input name.
func NewReader(f Format, name string, in io.Reader, limits InputLimits) *Reader {
	r := &Reader{format: f, limits: limits.defaults()}
	if l, ok := f.(*LLM); ok {
		r.Meter = l.Meter
	}
	if h, ok := f.(*Items); ok {
		r.items = h.open(name, in, r.limits)
		r.in = r.items.LineReader
		return r
	}
	if l, ok := f.(*LLM); ok && l.c.Array {
		r.items = input.New(name, in, input.Config{Form: input.JSON, MaxLine: r.limits.Line})
		r.in = r.items.LineReader
		return r
	}
	r.lines = input.NewJSONReader(name, in, r.limits.Line)
	r.in = &r.lines.LineReader
	return r
}

// Next returns the next request. After the last one it fails with io.EOF. If a line is wrong it
// fails with an *InputError, and the following call reads the next line. Other errors come from
// reading. Blank lines are passed over but counted.
func (r *Reader) Next() (*Request, error) {
	if r.limits.First > 0 && r.taken == r.limits.First {
		return nil, io.EOF
	}
	q, err := r.next()
	if err != nil {
		return q, err
	}
	if r.Meter != nil {
		err = r.measure(q)
	}
	if err != nil {
		if r.item != nil && r.item.JSON != nil {
			err = r.item.Place(err)
		}
		return nil, err
	}
	r.taken++
	return q, nil
}

// next is Next, without the cost of a request to a language model.
func (r *Reader) next() (*Request, error) {
	if h, ok := r.format.(*Items); ok {
		return h.next(r)
	}
	if r.items != nil {
		return r.element()
	}
	line, err := r.lines.Next()
	r.raw = line.Raw
	if err != nil {
		return nil, err
	}
	return r.format.parse(r, line)
}

// Name is the name of the input in errors. Read returns how much was read so far.
func (r *Reader) Name() string                   { return r.in.Name() }
func (r *Reader) Read() (lines int, bytes int64) { return r.in.Read() }

// Raw returns the latest line. It is valid until the next one is read.
func (r *Reader) Raw() []byte { return r.raw }

// element returns the request of the next element of an array, as of a line.
func (r *Reader) element() (*Request, error) {
	item, err := r.items.Next()
	if err != nil {
		r.raw = []byte(err.Error()) // there is no text of its own
		return nil, err
	}
	r.item, r.raw = item, item.JSON
	q, err := r.format.parse(r, input.ValueAt(r.in.Name(), item.Line, item.Column, item.JSON))
	if err != nil {
		return nil, item.Place(err)
	}
	if item.Number != item.Line {
		q.Number = item.Number
	}
	return q, nil
}

const (
	fields   = "id, method, url, headers, body, cost, priority, deadline, created"
	maxIDLen = 512
)

var fieldNames = strings.Split(fields, ", ")

// parse reads one line.
func (r *Reader) parse(line input.Value) (*Request, error) {
	if line.Raw[0] != '{' {
		return nil, line.Errorf("%s, expected a JSON object with at least a url", line.Kind())
	}
	q := &r.one // no caller keeps requests while checking
	if r.Pass != Checking {
		q = new(Request)
	}
	*q = Request{Line: line.Line(), Column: 1, Method: http.MethodGet, Cost: limit.One}
	p := parts{url: line, cost: line}
	if err := line.Object(func(name string, key,
		v input.Value) error {
		return r.field(q, &p, name, key, v)
	}); err != nil {
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
	if r.Pass != Checking {
		q.Raw = bytes.Clone(line.Raw)
	}
	if q.ID == "" {
		// The content is part of the id. After an edit of the file between two runs, another
		// request on the same line does not count as done.
		sum := sha256.Sum256(line.Raw)
		if q.ID = fmt.Sprintf("line-%d-%x", q.Line, sum[:6]); r.item != nil {
			q.ID = r.item.ID()
		}
		if r.Pass != Checking {
			q.Raw = withID(q.Raw, q.ID)
		}
	}
	q.Digest = NewDigest(q.Method, p.address, q.Header, q.Body)
	return q, nil
}

// parts keeps the members of a line until the whole line is read, for checks that need all of them.
type parts struct {
	seen      [9]bool // which of fieldNames the line has had so far
	bodyType  string
	address   string // the text of the URL
	url, cost input.Value
}

// field reads a member of a line.
func (r *Reader) field(q *Request, p *parts, name string, key, v input.Value) (err error) {
	field := slices.Index(fieldNames, name)
	if name == hiddenField {
		return key.Errorf("this request is not whole: the run before left secrets out of its dead letters (%s); the "+
			"command of that run with --retry-dead reads them in its own input", v)
	}
	if field < 0 && name == "ttl" {
		return key.Errorf("unknown field %q; did you mean deadline, such as \"90s\"?", name)
	}
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
		p.address, err = q.url(v)
	case "headers":
		return r.headers(q, v)
	case "body":
		p.bodyType, err = r.body(q, v)
	case "cost":
		p.cost = v
		err = q.costs(v)
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

// costs reads a number of requests, or amounts besides the one request: "25 weight".
func (q *Request) costs(v input.Value) (err error) {
	if v.Raw[0] != '"' {
		q.Cost[limit.Requests], err = v.Integer("cost", 0, limit.MaxCost)
		return err
	}
	text, err := v.Text("cost")
	if err != nil {
		return err
	}
	amounts, err := charge.Amounts(text)
	if err != nil {
		return v.Errorf("cost %v", err)
	}
	q.Cost = classify.CostOf(amounts)
	q.Cost[limit.Requests] = 1
	return nil
}

func (q *Request) id(name string, v input.Value) (err error) {
	q.Column = v.Column
	if q.ID, err = v.Text(name); err == nil && (q.ID == "" || len(q.ID) > maxIDLen) {
		err = v.Errorf("the %s has %d bytes, expected 1 to %d", name, len(q.ID), maxIDLen)
	}
	return err
}

func (q *Request) method(v input.Value) (err error) {
	if q.Method, err = v.Text("method"); err != nil {
		return err
	}
	if reason := badMethod(q.Method); reason != "" {
		return v.Errorf("%s", reason)
	}
	return nil
}

// badMethod returns the mistake in a method; empty: none. Methods are case-sensitive: servers
// answer 400 or 405 to "get".
func badMethod(method string) string {
	if !send.IsFieldName(method) || method == http.MethodConnect || method == http.MethodTrace {
		return fmt.Sprintf("method %q, expected an HTTP method other than CONNECT and TRACE", method)
	}
	if up := strings.ToUpper(method); up != method {
		return fmt.Sprintf("method %q, expected upper case: %s", method, up)
	}
	return ""
}

// body reads the body. A string is sent as it is, and an object or array as JSON, with the content
// type of JSON.
func (r *Reader) body(q *Request, v input.Value) (contentType string, err error) {
	q.BodyAt = v.Column
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

// fits returns an error if a body is too long.
func (r *Reader) fits(name string, size int, v input.Value) error {
	if size > r.limits.Body {
		return v.Errorf("the %s has %d bytes, expected at most %d (--max-body)", name, size, r.limits.Body)
	}
	return nil
}

// withID adds an id in front of the members of an object. An id that is null is removed.
func withID(raw []byte, id string) []byte { return withMember(raw, "id", id) }

// withMember adds a member with a text in front of the members of an object. One that is null is removed.
func withMember(raw []byte, name, text string) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) == nil {
		if _, isNull := all[name]; isNull {
			delete(all, name)
			raw, _ = json.Marshal(all)
		}
	}
	quoted, _ := json.Marshal(text)
	out := append([]byte(`{"`+name+`":`), quoted...)
	rest := bytes.TrimLeft(raw[1:], " \t\r")
	if rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// url reads the URL, and returns its text.
func (q *Request) url(v input.Value) (text string, err error) {
	s, err := v.Text("url")
	if err != nil {
		return "", err
	}
	if q.URL, q.URLAt = input.PlainURL(s), v.Column; q.URL != nil {
		return s, nil
	}
	u, reason := input.ParseURL(s, true)
	if reason != "" {
		return "", v.Errorf("url %s", reason)
	}
	q.URL = u
	return u.String(), nil
}

// ours are the header fields that control how a request is put on the wire. net/http sets them.
var ours = input.WireFields

func (r *Reader) headers(q *Request, v input.Value) error {
	if v.Raw[0] != '{' {
		return v.Errorf("headers is %s, expected an object of strings", v.Kind())
	}
	q.Header = http.Header{}
	size := 0
	return v.Object(func(name string, key, v input.Value) error {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !send.IsFieldName(name):
			return key.Errorf("header name %q, expected letters, digits and hyphens", name)
		case ours[canonical]:
			return key.Errorf("header %s is set by paceline itself, expected none", canonical)
		case q.Header[canonical] != nil:
			return key.Errorf("header %s is given twice, expected once (an array has several values)", canonical)
		}
		add := func(v input.Value) error {
			s, err := v.Text("header " + name)
			if err != nil {
				return err
			}
			if !send.IsFieldValue(s) {
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

func (q *Request) deadline(v input.Value) error {
	s, err := v.Text("deadline")
	if err != nil {
		return err
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		q.TTL = d
		return nil
	}
	if q.At, err = time.Parse(time.RFC3339Nano, s); err != nil {
		return v.Errorf("deadline %v, expected an instant as in RFC 3339 (2026-07-03T14:00:00Z), or a duration above 0 "+
			"(90s, 1h30m)", v)
	}
	return nil
}

func instant(name string, v input.Value) (at time.Time, err error) {
	s, err := v.Text(name)
	if err != nil {
		return at, err
	}
	if at, err = time.Parse(time.RFC3339Nano, s); err != nil {
		err = v.Errorf("%s %v, expected an instant as in RFC 3339 (2026-07-03T14:00:00Z)", name, v)
	}
	return at, err
}

// Chain is a line of the input and the pages that follow from it, one after the other. Only one
// page of a chain is on its way at a time.
type Chain struct {
	ID   string
	Home *url.URL // the URL of the first page
	Seen map[Digest]bool
}

// Begin makes a line of the input the first page of its chain.
func (q *Request) Begin() {
	q.Chain = &Chain{ID: q.ID, Home: q.URL, Seen: map[Digest]bool{q.Digest: true}}
}

// Apart is the resource of a request if it is not the usual one.
func (q *Request) Apart() string {
	if q == nil || q.Usual {
		return ""
	}
	return q.Resource
}
