package sending

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paceline-go/paceline/internal/app/run/format"
)

// pointer is a JSON pointer (RFC 6901): the place of a value in a document. Unlike in the RFC, -1
// is the last element of an array.
type pointer []string

// parsePointer reads a pointer. It is empty, or has parts that each begin with a slash. In a part
// ~1 is a slash and ~0 a tilde.
func parsePointer(s string) (pointer, error) {
	switch {
	case s == "":
		return pointer{}, nil
	case !utf8.ValidString(s):
		return nil, fmt.Errorf("%q is no JSON pointer: it is not UTF-8", s)
	case s[0] != '/':
		return nil, fmt.Errorf("%q is no JSON pointer, expected one that begins with a slash, like /meta/next", s)
	}
	var p pointer
	for part := range strings.SplitSeq(s[1:], "/") {
		for i := range len(part) {
			if part[i] == '~' && (i+1 == len(part) || part[i+1] != '0' && part[i+1] != '1') {
				return nil, fmt.Errorf("%q is no JSON pointer: after ~ comes 0 or 1", s)
			}
		}
		p = append(p, strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~"))
	}
	return p, nil
}

// String returns the pointer in the form that parsePointer reads.
func (p pointer) String() string {
	var b strings.Builder
	for _, part := range p {
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// index returns the element that a part names in an array of n elements.
func index(part string, n int) (i int, ok bool) {
	if part == "-1" {
		return n - 1, n > 0
	}
	i, err := strconv.Atoi(part)
	if err != nil || i < 0 || i >= n || strconv.Itoa(i) != part { // no leading zeros, no plus
		return 0, false
	}
	return i, true
}

// find returns the value at the pointer in a document; nil: there is none. It fails if the document
// is no JSON.
func (p pointer) find(document []byte) (json.RawMessage, error) {
	if err := json.Unmarshal(document, new(json.RawMessage)); err != nil {
		return nil, err
	}
	at := json.RawMessage(document)
	for _, part := range p {
		at = bytes.TrimLeft(at, " \t\r\n")
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch {
		case at[0] == '{' && json.Unmarshal(at, &object) == nil:
			var there bool
			if at, there = object[part]; !there {
				return nil, nil
			}
		case at[0] == '[' && json.Unmarshal(at, &array) == nil:
			i, ok := index(part, len(array))
			if !ok {
				return nil, nil
			}
			at = array[i]
		default:
			return nil, nil
		}
	}
	return bytes.TrimSpace(at), nil
}

// put returns a document with a value set at the pointer. It makes missing objects on the way
// there; an empty document counts as an empty object. The rest of the document keeps its meaning,
// but not its order or spaces.
func (p pointer) put(document []byte, value json.RawMessage) ([]byte, error) {
	var all any = map[string]any{}
	if len(bytes.TrimSpace(document)) > 0 {
		d := json.NewDecoder(bytes.NewReader(document))
		d.UseNumber() // large numbers would lose digits otherwise
		if err := d.Decode(&all); err != nil || d.More() {
			return nil, fmt.Errorf("the body is no JSON")
		}
	}
	made, err := p.set(all, value)
	if err != nil {
		return nil, err
	}
	return bytes.TrimSpace(format.LineOf(made)), nil
}

func (p pointer) set(in any, value json.RawMessage) (any, error) {
	if len(p) == 0 {
		return value, nil
	}
	switch in := in.(type) {
	case nil:
		return p.set(map[string]any{}, value)
	case map[string]any:
		made, err := p[1:].set(in[p[0]], value)
		in[p[0]] = made
		return in, err
	case []any:
		i, ok := index(p[0], len(in))
		if !ok {
			return nil, fmt.Errorf("the body has an array without %s where a cursor is to be put", p[0])
		}
		made, err := p[1:].set(in[i], value)
		in[i] = made
		return in, err
	}
	return nil, fmt.Errorf("the body has no object where a cursor is to be put, at %s", p)
}
