package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Error is what is wrong at a place in a file.
type Error struct {
	File    string
	Line    int // from 1; 0: the file as a whole
	Column  int // from 1, in characters; 0: the line as a whole
	Problem string
}

func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %s", e.File, e.Problem)
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// MostBytes is how long a file may be, since it is read as a whole.
const MostBytes = 1 << 20

// mostValues is how many values a file may amount to. Only one whose references multiply has more.
const mostValues = 1 << 20

// mostErrors is how many errors of a file are told.
const mostErrors = 100

// Reader collects what is wrong with a file. It is to be embedded in what reads a format.
type Reader struct {
	file   string
	last   int // the last line of the file
	values int // how many were read
	errs   []*Error
	more   bool // there were more of them
}

// New returns a Reader of a file whose name is for errors.
func New(file string) *Reader { return &Reader{file: file} }

// Refuse notes what is wrong at a node, and only once if the node is referred to several times. A
// nil node is the file as a whole.
func (r *Reader) Refuse(n *yaml.Node, format string, a ...any) {
	e := &Error{File: r.file, Problem: fmt.Sprintf(format, a...)}
	if n != nil {
		e.Line, e.Column = n.Line, n.Column
		if r.last > 0 && e.Line > r.last { // for the parser, what is missing at the end is on the line after it
			e.Line, e.Column = r.last, 0
		}
	}
	if len(r.errs) == mostErrors {
		r.more = true
		return
	}
	if !slices.ContainsFunc(r.errs, func(was *Error) bool { return *was == *e }) {
		r.errs = append(r.errs, e)
	}
}

// enough counts a value, and tells whether there are so many that no more are read.
func (r *Reader) enough(n *yaml.Node) bool {
	r.values++
	if r.values == mostValues {
		r.Refuse(n, "the file amounts to more than %d values, as its references multiply them", mostValues)
	}
	return r.values >= mostValues
}

// Ok tells whether nothing was refused yet.
func (r *Reader) Ok() bool { return len(r.errs) == 0 }

// Err returns what was refused: an *Error, or several of them joined in the order of their lines.
func (r *Reader) Err() error {
	slices.SortStableFunc(r.errs,
		func(a, b *Error) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	switch len(r.errs) {
	case 0:
		return nil
	case 1:
		return r.errs[0]
	}
	errs := make([]error, len(r.errs))
	for i, e := range r.errs {
		errs[i] = e
	}
	if r.more {
		errs = append(errs, &Error{File: r.file, Problem: "there are more errors than these"})
	}
	return errors.Join(errs...)
}

// Root reads the one mapping that a file is; what is what the file is called in errors (scenario),
// keys are those of the mapping. It returns nil if something was refused. The error is in's own.
func (r *Reader) Root(in io.Reader, what string, keys []string) (*yaml.Node, error) {
	text, err := io.ReadAll(io.LimitReader(in, MostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.file, err)
	}
	if len(text) > MostBytes {
		r.Refuse(nil, "is longer than %d bytes", MostBytes)
		return nil, nil
	}
	r.last = lines(text)
	return r.parse(text, what, keys), nil
}

func (r *Reader) parse(text []byte, what string, keys []string) *yaml.Node {
	in := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	switch err := in.Decode(&document); {
	case errors.Is(err, io.EOF):
		r.Refuse(nil, "is empty: want %s", List(keys))
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	switch err := in.Decode(&more); {
	case err == nil:
		r.Refuse(&more, "a second document: want one %s per file", what)
		return nil
	case !errors.Is(err, io.EOF):
		r.syntax(err)
		return nil
	}
	root := Resolved(document.Content[0])
	if root.Kind != yaml.MappingNode {
		r.Refuse(root, "%s is no %s: want %s", Show(root), what, List(keys))
		return nil
	}
	return root
}

// lines counts the lines of a file as YAML breaks them; the last one may be empty.
func lines(text []byte) int {
	n := 1
	for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
		n += bytes.Count(text, []byte(end))
	}
	return n
}

// syntax makes an Error of the parser's error, which begins with "yaml: line 3: ".
func (r *Reader) syntax(err error) {
	e := &Error{File: r.file}
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	if _, scanErr := fmt.Sscanf(problem, "line %d: ", &e.Line); scanErr == nil {
		_, problem, _ = strings.Cut(problem, ": ")
	}
	e.Problem = "no YAML: " + strings.ToValidUTF8(problem, "?")
	r.errs = append(r.errs, e)
}

// Items are the items of a list. What is no list is refused.
func Items(d Collector, n *yaml.Node, what string) iter.Seq[*yaml.Node] {
	return func(yield func(*yaml.Node) bool) {
		if n.Kind != yaml.SequenceNode {
			d.Refuse(n, "%s: %s is no list: want items that begin with \"- \"", what, Show(n))
			return
		}
		for _, item := range n.Content {
			if d.reader().enough(item) || !yield(Resolved(item)) {
				return
			}
		}
	}
}

// Member returns the value of a key, or nil.
func Member(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return Resolved(n.Content[i+1])
		}
	}
	return nil
}

// Resolved follows a reference to its anchor.
func Resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// List is names as errors have them.
func List(names []string) string { return strings.Join(names, ", ") }
