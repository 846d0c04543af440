// Package handed reads what people have and hand over (lists of URLs, tables, JSON, curl commands) as requests.
//
// Recognize says by the beginning of an input what it is, or in words why it is not taken and which command would make it so.
// A Reader makes an Item of each line, row, element or command, and a Maker fills an Item's columns into templates: each value
// is escaped for where it stands, and is never itself read as a template.
//
// It is not for what requests have to be: whether a URL or a header is right is for whoever sends it. It owns no clock and opens
// no file.
package handed

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/paceline-go/paceline/internal/strict"
)

// Form is what an input is.
type Form uint8

const (
	Unknown Form = iota
	JSONL        // an object a line
	JSON         // an array of objects, or of URLs
	URLs         // one a line
	Lines        // anything a line, as the column line
	CSV          // a table, its columns separated by whatever it is
	TSV          // a table, its columns separated by tabs
	Curl         // commands as copied from a browser
)

var formNames = [...]string{"auto", "jsonl", "json", "urls", "lines", "csv", "tsv", "curl"}

func (f Form) String() string { return formNames[f] }

// FormNames are those that ParseForm reads.
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

// HasColumns says whether an input of the form can have columns for templates. JSON has some where its elements are rows.
func (f Form) HasColumns() bool { return f != Curl }

// Item is one line, row, element or command.
type Item struct {
	Line, Column int // where it begins
	// Number tells it from all others of its input: its line, or of an array which element it is.
	Number int
	// Row is what its columns say. Nil of a command.
	Row *Row
	// JSON is the text of an element of JSON, as it is written.
	JSON []byte
	// Call is what a command asks for.
	Call *Call
	sum  [sha256.Size]byte // of what it says
}

// ID is the same whenever the same is on the same line, and of another line another.
func (i *Item) ID() string {
	what := "line"
	if i.Number != i.Line {
		what = "item"
	}
	return fmt.Sprintf("%s-%d-%x", what, i.Number, i.sum[:6])
}

// Config is how an input is read.
type Config struct {
	Form Form
	// Comma separates the columns of a CSV. If zero, a comma.
	Comma byte
	// NoHeader says that the first row of a table is one like the others: then its columns are 1, 2, 3 and so on.
	NoHeader bool
	// MaxLine is the most bytes of a line, row, element or command.
	MaxLine int
	// ReadFile reads what a curl command names by @FILE. If nil, that is an error.
	ReadFile func(name string) ([]byte, error)
	// Ignored is told of each option of curl that is passed over: of each once. If nil, nobody is.
	Ignored func(option, instead string)
}

// Reader reads items. Not safe for concurrent use.
type Reader struct {
	items
	*strict.Lines
}

// items is a form of input.
type items interface {
	// next returns the next item, whose texts are valid until the one after it.
	next() (*Item, error)
	// columns are known of a table before its first row. It reads them. Of other forms there are none.
	columns() (*columns, error)
}

// New returns a Reader of in, which errors call name.
func New(name string, in io.Reader, c Config) *Reader {
	lines := strict.NewLines(name, in, c.MaxLine)
	r := &Reader{Lines: lines}
	switch c.Form {
	case CSV, TSV:
		comma := c.Comma
		if c.Form == TSV {
			comma = '\t'
		} else if comma == 0 {
			comma = ','
		}
		r.items = &table{Lines: lines, comma: comma, noHeader: c.NoHeader}
	case URLs, Lines:
		r.items = &list{Lines: lines, urls: c.Form == URLs}
	case JSON:
		r.items = &array{Lines: lines}
	case Curl:
		r.items = &commands{Lines: lines, c: c, told: map[string]bool{}}
	default:
		r.items = &objects{Lines: lines}
	}
	return r
}

// Next returns the next item. It fails with io.EOF after the last; with a *strict.Error if there is something wrong with one,
// after which the one that follows can be read; with an *Unreadable if nothing can be read after it; and with what reading fails with.
func (r *Reader) Next() (*Item, error) { return r.next() }

// Columns are the names of a table's columns, or nil.
func (r *Reader) Columns() ([]string, error) {
	c, err := r.columns()
	if c == nil || err != nil {
		return nil, err
	}
	return c.names, nil
}

// Unreadable is an error after which nothing can be read: it is of the whole input.
type Unreadable struct{ err error }

func (e *Unreadable) Error() string { return e.err.Error() }

// sumOf is short for several texts, and another for others.
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

// Call is a request as a command has it, complete.
type Call struct {
	Method, URL string
	URLColumn   int
	Header      http.Header
	Body        []byte
}
