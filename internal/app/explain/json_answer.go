package explain

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// node is a value of JSON: a scalar, or items in brackets. encoding/json alone would lose the order
// of members.
type node struct {
	text   string
	quoted bool
	open   byte // the bracket; 0: a scalar
	items  []item
}

type item struct {
	key   string
	keyed bool
	value *node
}

// maxDepth is how deep brackets may be nested. maxTries is how many brackets without JSON behind
// them are tried.
const maxDepth, maxTries = 64, 50

// nearby is how far from an object its status may stand.
const nearby = 2000

// objects reads the JSON in a text, with any text around it. at is the index of the first brace, if
// JSON begins there; otherwise it is the length of the text.
func objects(s string) (a Answer, at int, err error) {
	var all []Answer
	tries, last := 0, 0 // last: the end of the object before
	var whole *node     // the value that is the whole text, if there is one
	at = len(s)
	brace := strings.IndexByte(s, '{')
	for i := 0; i < len(s) && tries < maxTries; i++ {
		if s[i] != '{' && s[i] != '[' {
			continue
		}
		n, size, broken := readJSON(s[i:])
		if broken == nil && brace >= i && brace < i+size || broken != nil && len(n.items) > 0 &&
			strings.TrimSpace(s[:i]) == "" {
			at = brace
		}
		if broken != nil {
			if err == nil && s[i] == '{' {
				err = fail(strings.Count(s[:i+size], "\n"), "%w; want JSON", broken)
			}
			tries++
			continue
		}
		// The status may be nearby: in the words of a log before the object, or in the rest of its
		// line.
		line, _, _ := strings.Cut(s[i+size:min(i+size+nearby, len(s))], "\n")
		found := harvest(n, s[max(last, i-nearby):i+size]+line)
		if strings.TrimSpace(s[:i]) == "" && strings.TrimSpace(s[i+size:]) == "" {
			whole = n
		}
		i += size - 1
		if len(found) > 0 {
			last = i + 1
		}
		all = append(all, found...)
	}
	if len(all) > 0 {
		return among(all), at, nil
	}
	if whole != nil {
		if a, ok := alone(whole); ok {
			return a.end(), at, nil
		}
	}
	if err == nil {
		err = fail(first(strings.Split(s, "\n")),
			`no header fields in it; want JSON that holds them, such as {"status": 429, "headers": {"retry-after": "5"}}`)
	}
	return Answer{}, at, err
}

// readJSON reads the JSON at the beginning of a text, and returns its length. JSON that is cut off is
// read as far as it goes. With an error, the length is that up to the error.
func readJSON(s string) (n *node, length int, err error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	n, err = read(d, 0)
	length = int(d.InputOffset())
	if cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); cut {
		return n, len(s), nil
	}
	if err != nil {
		for length < len(s) && strings.IndexByte(" \t\n,:", s[length]) >= 0 {
			length++
		}
	}
	return n, length, err
}

var errDeep = errors.New("brackets in brackets, more than 64 deep")

// read reads a value. If it fails, it returns the part that it has read.
func read(d *json.Decoder, depth int) (*node, error) {
	n := &node{}
	t, err := d.Token()
	if err != nil {
		return n, err
	}
	switch t := t.(type) {
	case json.Delim:
		n.open = byte(t)
	case string:
		n.text, n.quoted = t, true
	case json.Number:
		n.text = t.String()
	case bool:
		n.text = map[bool]string{true: "true", false: "false"}[t]
	default:
		n.text = "null"
	}
	if n.open == 0 {
		return n, nil
	}
	if depth == maxDepth {
		return n, errDeep
	}
	for d.More() {
		it := item{keyed: n.open == '{'}
		if it.keyed {
			key, err := d.Token()
			if err != nil {
				return n, err
			}
			it.key, _ = key.(string)
		}
		if it.value, err = read(d, depth+1); err == nil || it.value.open != 0 {
			n.items = append(n.items, it)
		}
		if err != nil {
			return n, err
		}
	}
	_, err = d.Token()
	return n, err
}

// json writes a value as its JSON.
func (n *node) json() []byte {
	if n.open == 0 && !n.quoted {
		return []byte(n.text)
	}
	if n.open == 0 {
		return quote(n.text)
	}
	b := []byte{n.open}
	for i, it := range n.items {
		if i > 0 {
			b = append(b, ',')
		}
		if it.keyed {
			b = append(append(b, quote(it.key)...), ':')
		}
		b = append(b, it.value.json()...)
	}
	return append(b, n.open+2) // ] comes two after [, and } two after {
}

func quote(s string) []byte {
	b, _ := json.Marshal(s) // a string has no error
	return b
}
