package input

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Form is the form of an input.
type Form uint8

const (
	Unknown Form = iota
	JSONL        // an object a line
	JSON         // one object on each line
	URLs         // a URL on each line
	Lines        // any text on each line, in the column named line
	CSV          // a table; the first rows show the separator of its columns
	TSV          // a table with tabs between its columns
	Curl         // commands as copied from a browser
	HAR          // a network log as a browser saves it
)

var formNames = [...]string{"auto", "jsonl", "json", "urls", "lines", "csv", "tsv", "curl", "har"}

func (f Form) String() string { return formNames[f] }

// FormNames are the names that ParseForm reads.
func FormNames() []string { return formNames[:] }

// ParseForm reads the name of a form; auto is Unknown.
func ParseForm(s string) (Form, error) {
	for i, name := range formNames {
		if s == name {
			return Form(i), nil
		}
	}
	return Unknown, fmt.Errorf("%q, expected %s", s, strings.Join(formNames[:], ", "))
}

// Item is one line, row, element or command.
type Item struct {
	Line, Column int // start of the item, both from 1
	// Number differs for all items of an input: it is the item's line or, in an array, the number
	// of the element.
	Number int
	// Row has the columns of the item. It is nil for a command, and for an entry of a HAR.
	Row *Row
	// JSON is the original text of the item, if the item is JSON.
	JSON []byte
	// Call is the request of a command or of an entry.
	Call *Call
	sum  [sha256.Size]byte // of the content of the item
}

// ID names the item. It is the same in each run as long as the item has the same content at the
// same place. No two items of an input have the same ID.
func (i *Item) ID() string {
	what := "line"
	if i.Number != i.Line {
		what = "item"
	}
	return fmt.Sprintf("%s-%d-%x", what, i.Number, i.sum[:6])
}

// Config describes how an input is read.
type Config struct {
	Form Form
	// Comma separates the columns of a CSV. If zero, a comma.
	Comma byte
	// NoHeader says that the first row of a table is not a header. The columns are then called 1,
	// 2, 3 and so on.
	NoHeader bool
	// MaxLine is the most bytes of a line, row, element or command.
	MaxLine int
	// ReadFile reads a file that a curl command names by @FILE. If it is nil, @FILE is an error.
	ReadFile func(name string) ([]byte, error)
	// Ignored, if not nil, is called for each ignored option of curl, and kind of entry of a HAR.
	Ignored func(option, instead string)
}

// Reader reads items. Not safe for concurrent use.
type Reader struct {
	items
	*LineReader
}

// items reads one form of input.
type items interface {
	// next returns the next item. Its texts are valid until the following call.
	next() (*Item, error)
	// columns reads the header of a table and returns its columns. For other forms it returns nil.
	columns() (*columns, error)
}

// New returns a Reader of in. Errors call the input name.
func New(name string, in io.Reader, c Config) *Reader {
	lines := NewLineReader(name, in, c.MaxLine)
	r := &Reader{LineReader: lines}
	switch c.Form {
	case CSV, TSV:
		comma := c.Comma
		if c.Form == TSV {
			comma = '\t'
		} else if comma == 0 {
			comma = ','
		}
		r.items = &table{LineReader: lines, comma: comma, noHeader: c.NoHeader}
	case URLs, Lines:
		r.items = &list{LineReader: lines, urls: c.Form == URLs}
	case JSON:
		r.items = &array{LineReader: lines}
	case Curl:
		r.items = &commands{LineReader: lines, c: c, told: map[string]bool{}}
	case HAR:
		r.items = &har{array: array{LineReader: lines, inside: true}, c: c}
	default:
		r.items = &objects{LineReader: lines}
	}
	return r
}

// Next returns the next item, and io.EOF after the last. After a *Error, which is about one
// item, Next can be called again and returns the item after it. After an *Unreadable nothing more
// can be read. Other errors come from the io.Reader.
func (r *Reader) Next() (*Item, error) { return r.next() }

// Columns returns the names of a table's columns, or nil.
func (r *Reader) Columns() ([]string, error) {
	c, err := r.columns()
	if c == nil || err != nil {
		return nil, err
	}
	return c.names, nil
}

// Unreadable is an error that concerns the whole input: nothing further can be read.
type Unreadable struct{ err error }

func (e *Unreadable) Error() string { return e.err.Error() }

// sumOf returns a hash of several texts. It depends on where one text ends and the next begins.
func sumOf(texts func(yield func(string) bool)) (sum [sha256.Size]byte) {
	h := sha256.New()
	var size [8]byte
	for s := range texts {
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		io.WriteString(h, s)
	}
	h.Sum(sum[:0])
	return sum
}

// Call is the whole request of a command or of an entry.
type Call struct {
	Method, URL string
	URLColumn   int
	Header      http.Header
	Body        []byte
}
