// Package input reads what people have and hand over (lists of URLs, tables, JSON, curl commands) as requests.
//
// Recognize tells the form of an input by its beginning. Its error says what the input is instead, and which command would turn it into a
// form that is read. A Reader makes an Item of each line, row, element or command, and a Maker fills the columns of an Item into
// templates: each value is escaped for the place where it stands, and is never read as a template itself.
//
// The package does not check requests: whether a URL or a header is right is for whoever sends it to say. It owns no clock and opens no
// file.
package input

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/paceline-go/paceline/internal/app/run/jsonl"
)

// Form is the form of an input.
type Form uint8

const (
	Unknown Form = iota
	JSONL        // an object a line
	JSON         // an array of objects, or of URLs
	URLs         // a URL on each line
	Lines        // any text on each line; it is in the column named line
	CSV          // a table; the first rows tell what separates its columns
	TSV          // a table, its columns separated by tabs
	Curl         // commands as copied from a browser
)

var formNames = [...]string{"auto", "jsonl", "json", "urls", "lines", "csv", "tsv", "curl"}

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
	Line, Column int // where the item begins, both from 1
	// Number tells the item from all others of its input: it is the item's line or, in an array, the number of the element.
	Number int
	// Row has the columns of the item. It is nil for a command.
	Row *Row
	// JSON is the text of the item as it is written, if the item is JSON.
	JSON []byte
	// Call is what a command asks for.
	Call *Call
	sum  [sha256.Size]byte // of the content of the item
}

// ID names the item. It is the same in each run as long as the item has the same content at the same place, and two items of an input never
// have the same.
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
	// NoHeader says that the first row of a table is not a header. The columns are then called 1, 2, 3 and so on.
	NoHeader bool
	// MaxLine is the most bytes of a line, row, element or command.
	MaxLine int
	// ReadFile reads a file that a curl command names by @FILE. If it is nil, @FILE is an error.
	ReadFile func(name string) ([]byte, error)
	// Ignored, if not nil, is told of the options of curl that are passed over, once of each.
	Ignored func(option, instead string)
}

// Reader reads items. Not safe for concurrent use.
type Reader struct {
	items
	*jsonl.Lines
}

// items reads one form of input.
type items interface {
	// next returns the next item, whose texts are valid until the one after it.
	next() (*Item, error)
	// columns returns the columns of a table, for which it reads the header. For other forms it returns nil.
	columns() (*columns, error)
}

// New returns a Reader of in, which errors call name.
func New(name string, in io.Reader, c Config) *Reader {
	lines := jsonl.NewLines(name, in, c.MaxLine)
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

// Next returns the next item, and io.EOF after the last. A *jsonl.Error says that something is wrong with one item; Next can be called
// again and returns the item after it. An *Unreadable says that nothing further can be read. Other errors are those of the reader.
func (r *Reader) Next() (*Item, error) { return r.next() }

// Columns are the names of a table's columns, or nil.
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

// sumOf is a hash of several texts. It depends on where one text ends and the next begins.
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

// Call is the whole request that a command describes.
type Call struct {
	Method, URL string
	URLColumn   int
	Header      http.Header
	Body        []byte
}
