package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/send"
	"github.com/paceline-go/paceline/limit"
)

// ItemsConfig describes an Items.
type ItemsConfig struct {
	// Read is how the input is read, but for its MaxLine.
	Read input.Config
	// URL, Body and ID are templates of rows. Without a URL the items are URLs, commands or whole
	// requests.
	URL, Body, ID string
	// Operation, if not nil, makes the URL, the method, the header and the body of a row.
	Operation *input.Operation
	// NotEmpty is a column that has a text in each row; empty: none.
	NotEmpty string
	HasBody  bool
	// Method is that of all rows. If empty, GET, or POST with a Body.
	Method string
	// Header and Query are the run's.
	Header, Query []Template
	// Shown are columns that a table has to have for the results.
	Shown []string
}

// Items is the format of other forms of input: lists of URLs, tables, arrays, curl commands. Its
// results are as those of Plain. Safe for concurrent use, except that only one goroutine at a time
// may read.
type Items struct {
	Plain
	c        ItemsConfig
	maker    *input.Maker // nil: items are whole requests
	header   http.Header  // of every row: the Content-Type of its body
	inHeader []string     // the columns in Header
}

// NewItems checks the configuration.
func NewItems(c ItemsConfig) (*Items, error) {
	h := &Items{c: c, inHeader: Columns(c.Header...)}
	more := Columns(append(slices.Clone(c.Header), c.Query...)...)
	isList := c.Read.Form == input.URLs
	isRows := c.URL != "" || isList || c.Operation != nil
	for _, f := range []struct {
		flag  string
		given bool
	}{{"--body", c.HasBody}, {"--id", c.ID != ""}, {"--method", c.Method != ""}, {"{row.COLUMN}", len(more) > 0}} {
		if f.given && !isRows {
			return nil, fmt.Errorf("%s is for rows, which have a --url: here each %s is a request of its own", f.flag, h.unit())
		}
	}
	if h.unit() != "element" && c.URL != "" {
		return nil, fmt.Errorf("--url is for rows: each %s has its own", h.unit())
	}
	if c.Operation != nil && (isList || h.unit() != "element") {
		return nil, fmt.Errorf("--openapi is for rows: each %s is a request of its own", h.unit())
	}
	if !isRows {
		return h, nil
	}
	h.maker = &input.Maker{More: more, Operation: c.Operation, Shown: c.Shown}
	var err error
	if c.Operation != nil {
		h.c.Method = c.Operation.Method
	} else if h.maker.URL, err = input.URLTemplate(cmp.Or(c.URL, "{row.url}")); err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	if c.ID != "" {
		if h.maker.ID, err = input.IDTemplate(c.ID); err != nil {
			return nil, fmt.Errorf("--id: %w", err)
		}
	}
	if c.HasBody {
		given := ""
		for _, t := range c.Header {
			if http.CanonicalHeaderKey(t.name) == "Content-Type" {
				given = t.parts[0]
			}
		}
		var contentType string
		if h.maker.Body, contentType, err = input.BodyTemplate(c.Body, given); err != nil {
			return nil, fmt.Errorf("--body: %w", err)
		}
		h.header = http.Header{"Content-Type": {contentType}}
	}
	if h.c.Method == "" {
		h.c.Method = http.MethodGet
		if c.HasBody {
			h.c.Method = http.MethodPost
		}
	}
	if reason := badMethod(h.c.Method); reason != "" {
		return nil, fmt.Errorf("--%s", reason)
	}
	return h, nil
}

// unit is what makes one request, if it is whole.
func (h *Items) unit() string {
	switch h.c.Read.Form {
	case input.Curl:
		return "command"
	case input.HAR:
		return "entry"
	}
	return "element"
}

// Form returns the form of the input.
func (h *Items) Form() input.Form { return h.c.Read.Form }

// open reads an input.
func (h *Items) open(name string, in io.Reader, limits InputLimits) *input.Reader {
	c := h.c.Read
	c.MaxLine = limits.Line
	return input.New(name, in, c)
}

// Check reads the beginning of a table, and returns an error if a column that templates use is
// missing.
func (h *Items) Check(name string, head io.Reader, most int) error {
	if h.maker == nil {
		return nil
	}
	return h.maker.Check(h.open(name, head, InputLimits{Line: most}))
}

// next returns the next request.
func (h *Items) next(r *Reader) (*Request, error) {
	if r.item == nil && h.maker != nil {
		if err := h.maker.Check(r.items); err != nil {
			return nil, err
		}
	}
	item, err := r.items.Next()
	if err != nil {
		return nil, err
	}
	r.item = item
	q := &Request{Line: item.Line, Column: item.Column, URLAt: item.Column, Cost: limit.One}
	switch {
	case item.Call != nil:
		err = h.call(r, q, item)
	case h.maker != nil:
		err = h.row(r, q, item)
	case item.JSON[0] == '"':
		q.ID, q.Method = item.ID(), http.MethodGet
		err = h.url(r, q, item.Row.First().Text, item.Column)
	default:
		q, err = r.parse(input.ValueAt(r.in.Name(), item.Line, item.Column, item.JSON))
		err = item.Place(err)
		if err == nil && q.Raw != nil {
			var b bytes.Buffer
			_ = json.Compact(&b, q.Raw) // JSON, perhaps over several lines
			q.Raw = b.Bytes()
		}
	}
	if err != nil {
		return nil, err
	}
	if item.Number != item.Line {
		q.Number = item.Number
	}
	if q.Digest == "" {
		body := q.Body
		if len(q.cells) > 0 { // the values for the run's headers and query
			body = fmt.Appendf(nil, "%q%s", q.cells, q.Body)
		}
		q.Digest = NewDigest(q.Method, q.URL.String(), q.Header, body)
	}
	return q, nil
}

// call makes a request of a command or of an entry.
func (h *Items) call(r *Reader, q *Request, item *input.Item) error {
	c := item.Call
	q.ID, q.Method, q.Body = item.ID(), c.Method, c.Body
	if len(c.Header) > 0 {
		q.Header = c.Header
	}
	if reason := badMethod(c.Method); reason != "" {
		return r.errorf(item, item.Column, "%s", reason)
	}
	size := 0
	for name, values := range c.Header {
		if !send.IsFieldName(name) {
			return r.errorf(item, item.Column, "the header %q: expected a name of letters, digits and hyphens", name)
		}
		for _, v := range values {
			if !send.IsFieldValue(v) {
				return r.errorf(item, item.Column, "the header %s has a control character, expected text without line breaks", name)
			}
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	if err := r.bounded(item, size, len(q.Body)); err != nil {
		return err
	}
	u, reason := input.ParseURL(c.URL, false)
	if reason != "" {
		return r.errorf(item, c.URLColumn, "the URL of the %s: %s", h.unit(), strings.TrimPrefix(reason, ", "))
	}
	q.URL, q.URLAt = u, c.URLColumn
	return nil
}

// row makes a request of a row, whose columns fill the templates.
func (h *Items) row(r *Reader, q *Request, item *input.Item) error {
	made, err := h.maker.Make(r.items, item)
	if err != nil {
		return err
	}
	if h.c.NotEmpty != "" {
		if cell, err := item.Row.Get(h.c.NotEmpty); err == nil && strings.TrimSpace(cell.Text) == "" {
			named := ""
			if h.maker.ID != nil { // otherwise the id is that of the line
				named = fmt.Sprintf(" of id %q", made.ID)
			}
			return &InputError{File: r.in.Name(), Line: cmp.Or(cell.Line, item.Line),
				Column: cmp.Or(cell.Column, item.Column),
				Reason: fmt.Sprintf("column %s%s is empty, expected a text", h.c.NotEmpty, named)}
		}
	}
	q.filled, q.row = h.maker.More, item.Row
	q.ID, q.Method, q.Body, q.Header = made.ID, h.c.Method, made.Body, h.header
	if len(made.Header) > 0 {
		q.Header = made.Header
	}
	if len(q.ID) == 0 || len(q.ID) > maxIDLen {
		return r.errorf(item, item.Column, "the id has %d bytes, expected 1 to %d (--id)", len(q.ID), maxIDLen)
	}
	size := 0
	for name, values := range made.Header {
		for _, v := range values {
			if !send.IsFieldName(name) || !send.IsFieldValue(v) {
				return r.errorf(item, item.Column, "the header %q has a control character, or its name has; expected text "+
					"without line breaks", name)
			}
			size += len(name) + len(v) + len(": \r\n")
		}
	}
	for i, cell := range made.More {
		if slices.Contains(h.inHeader, h.maker.More[i]) && !send.IsFieldValue(cell.Text) {
			return &InputError{File: r.in.Name(), Line: cell.Line, Column: cell.Column,
				Reason: fmt.Sprintf("{row.%s} has a control character, and stands in a header; expected text without line breaks",
					h.maker.More[i])}
		}
		size += len(cell.Text)
		q.cells = append(q.cells, cell.Text)
	}
	if err := r.bounded(item, size, len(q.Body)); err != nil {
		return err
	}
	return h.url(r, q, made.URL, item.Column)
}

func (h *Items) url(r *Reader, q *Request, text string, column int) (err error) {
	u, reason := input.ParseURL(text, true)
	if reason != "" {
		return r.errorf(r.item, column, "URL %s", reason)
	}
	q.URL = u
	return nil
}

func (r *Reader) errorf(item *input.Item, column int, format string, args ...any) error {
	return &InputError{File: r.in.Name(), Line: item.Line, Column: column, Reason: fmt.Sprintf(format, args...)}
}

// bounded returns an error if a request is larger than allowed.
func (r *Reader) bounded(item *input.Item, header, body int) error {
	switch {
	case header > r.limits.Header:
		return r.errorf(item, item.Column, "the headers have more than %d bytes, expected at most that (--max-header)",
			r.limits.Header)
	case body > r.limits.Body:
		return r.errorf(item, item.Column, "the body has %d bytes, expected at most %d (--max-body)", body, r.limits.Body)
	}
	return nil
}

// Place returns the number of the request in an array, or else its line. It distinguishes requests
// with the same id.
func (q *Request) Place() int { return cmp.Or(q.Number, q.Line) }

// NoRequest returns the names in the first JSON line of an input that has no requests. That line
// does not say where it goes, has a member that no request has, and no line near it belongs to a
// batch.
func NoRequest(head []byte) (names []string) {
	line, rest, _ := bytes.Cut(bytes.TrimSpace(input.NoMarks(head)), []byte("\n"))
	if !json.Valid(line) || line[0] != '{' {
		return nil
	}
	other := false
	err := input.ValueAt("", 1, 1, line).Object(func(name string, _, _ input.Value) error {
		names = append(names, name)
		other = other || !slices.Contains(fieldNames, name) && name != hiddenField
		return nil
	})
	if err != nil || !other || slices.Contains(names, "url") {
		return nil
	}
	for l := range bytes.Lines(append(append(bytes.Clone(line), '\n'), rest...)) {
		if _, isBatch := Sniff(l); isBatch {
			return nil
		}
	}
	return names
}
