package explain

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// node is a value as some language prints it: a scalar, or items in brackets.
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

// brokenOff is an error in an object that had begun.
type brokenOff struct{ error }

// maxDepth is how deep brackets may stand in brackets. maxTries is how many brackets that begin no value are tried.
const maxDepth, maxTries = 64, 50

// nearby is how far from an object its status may stand.
const nearby = 2000

// objects reads the objects in a text, whatever stands around them.
func objects(s string) (Answer, error) {
	var all []Answer
	var failed error
	tries, last := 0, 0 // last: the end of the object before
	var whole *node     // the value that is all of the text, if there is one
	for i := 0; i < len(s) && tries < maxTries; i++ {
		if s[i] != '{' && s[i] != '[' && s[i] != '(' {
			continue
		}
		p := &reader{s: s, i: i}
		var n *node
		var err error
		if s[i] == '[' && strings.HasSuffix(s[:i], "map") {
			n, err = p.goMap()
		} else {
			n, err = p.value()
		}
		if err != nil {
			if failed == nil && (s[i] == '{' || s[i] == '[' && strings.HasSuffix(s[:i], "map")) {
				failed = brokenOff{err}
			}
			tries++
			continue
		}
		// The status may stand nearby: in an SDK's words before the object, or in the rest of its line.
		line, _, _ := strings.Cut(s[p.i:min(p.i+nearby, len(s))], "\n")
		found := harvest(n, s[max(last, i-nearby):p.i+len(line)])
		if strings.TrimSpace(s[:i]) == "" && strings.TrimSpace(s[p.i:]) == "" {
			whole = n
		}
		if len(found) > 0 {
			last = p.i
		}
		all = append(all, found...)
		i = max(i, p.i-1)
	}
	if len(all) == 0 && strings.ContainsAny(s, "'\"`") { // the text may be some lines from within an object
		p := &reader{s: s}
		if n, err := p.group(0); err == nil && len(n.items) > 0 && n.items[0].keyed {
			all = harvest(n, s)
		}
	}
	if len(all) > 0 {
		return among(all), nil
	}
	if whole != nil {
		if a, ok := alone(whole); ok {
			return a.end(), nil
		}
	}
	if failed == nil {
		failed = fail(first(strings.Split(s, "\n")), "no header fields in it; want an object that holds them, such as {'retry-after': '5'} or {\"status\": 429, \"headers\": {…}}")
	}
	return Answer{}, failed
}

// reader reads literals of several languages, as far as they agree. word says that a scalar without quotes ends at a blank.
type reader struct {
	s     string
	i     int
	depth int
	word  bool
}

func (p *reader) fail(at int, format string, args ...any) error {
	return fail(strings.Count(p.s[:at], "\n"), format, args...)
}

func (p *reader) skip(set string) {
	for p.i < len(p.s) && strings.IndexByte(set, p.s[p.i]) >= 0 {
		p.i++
	}
}

func (p *reader) at(c byte) bool { return p.i < len(p.s) && p.s[p.i] == c }

// value reads a value.
func (p *reader) value() (*node, error) {
	p.skip(" \t\n")
	if p.i == len(p.s) {
		return &node{}, nil
	}
	switch c := p.s[p.i]; {
	case c == '\'' || c == '"' || c == '`':
		return p.text()
	case (c == 'b' || c == 'u' || c == 'r') && p.i+1 < len(p.s) && (p.s[p.i+1] == '\'' || p.s[p.i+1] == '"'): // Python's
		p.i++
		return p.text()
	case c == '{' || c == '(':
		return p.group(c)
	case c == '[':
		n, err := p.group('[')
		if err != nil {
			return nil, err
		}
		// []string{…} of Go, [Object: null prototype] {…} of Node.
		if len(n.items) == 0 && p.i < len(p.s) && alnum(p.s[p.i]) {
			return p.value()
		}
		if strings.HasPrefix(p.s[p.i:], " {") {
			p.i++
			return p.group('{')
		}
		return n, nil
	case c == ':' && p.i+1 < len(p.s) && alnum(p.s[p.i+1]): // a symbol of Ruby
		p.i++
	case c == '<':
		return p.angle()
	}
	return p.scalar()
}

// angle reads <ref *1> and what follows, or <Name(…)>.
func (p *reader) angle() (*node, error) {
	end := strings.IndexByte(p.s[p.i:], '>')
	if strings.HasPrefix(p.s[p.i:], "<ref *") && end > 0 {
		p.i += end + 1
		return p.value()
	}
	if p.i+1 < len(p.s) && alnum(p.s[p.i+1]) && end > 0 {
		p.i++
		n, err := p.scalar()
		if p.at('>') {
			p.i++
		}
		return n, err
	}
	return p.scalar()
}

// text reads a text in quotes, or several that are added: 'a' + 'b'.
func (p *reader) text() (*node, error) {
	from, quote := p.i, p.s[p.i]
	var b strings.Builder
	for more := true; more; {
		if err := p.piece(&b, quote); err != nil {
			return nil, err
		}
		end := p.i
		p.skip(" \t\n")
		if more = p.at('+'); more {
			p.i++
			p.skip(" \t\n")
			more = p.at(quote)
		}
		if !more {
			p.i = end
		}
	}
	n := &node{text: b.String(), quoted: true}
	if p.at(';') { // a structured field that lost its quotes: "default";r=50
		for p.i < len(p.s) && strings.IndexByte(",]})\n", p.s[p.i]) < 0 {
			p.i++
		}
		n.text = p.s[from:p.i]
	}
	return n, nil
}

// piece reads from one quote to the next.
func (p *reader) piece(b *strings.Builder, quote byte) error {
	from := p.i
	for p.i++; p.i < len(p.s); p.i++ {
		switch c := p.s[p.i]; {
		case c == quote:
			p.i++
			return nil
		case c == '\\' && p.i+1 < len(p.s):
			p.escape(b)
		default:
			b.WriteByte(c)
		}
	}
	return p.fail(from, "the text that begins with %.30s has no end; want a %c", p.s[from:], quote)
}

// escape reads an escape, which begins with a backslash, and stops on its last byte.
func (p *reader) escape(b *strings.Builder) {
	p.i++
	digits := map[byte]int{'x': 2, 'u': 4}[p.s[p.i]]
	if digits > 0 && p.i+digits < len(p.s) {
		if r, err := strconv.ParseUint(p.s[p.i+1:p.i+1+digits], 16, 32); err == nil {
			b.WriteRune(rune(r))
			p.i += digits
			return
		}
	}
	switch c := p.s[p.i]; c {
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	default:
		b.WriteByte(c)
	}
}

// scalar reads a value without quotes. If that turns out to be the name of a type, it reads the value that follows in brackets.
func (p *reader) scalar() (*node, error) {
	from := p.i
	for ; p.i < len(p.s); p.i++ {
		c := p.s[p.i]
		so := p.s[from:p.i]
		switch {
		case strings.IndexByte(",}])\n", c) >= 0, p.word && (c == ' ' || c == '\t'):
			return &node{text: strings.TrimSpace(so)}, nil
		case c == '>' && p.i+1 < len(p.s) && strings.IndexByte(",}])\n", p.s[p.i+1]) >= 0 && strings.Contains(so, "<"):
			continue
		case c == ':' && key(so) && (p.i+1 == len(p.s) || strings.IndexByte(" \n'\"`[{(", p.s[p.i+1]) >= 0),
			c == '=' && key(so) && !p.word:
			return &node{text: so}, nil
		case c == '[' && strings.HasSuffix(so, "map"):
			return p.goMap()
		case (c == '{' || c == '(' || c == '[') && typeName(so):
			n, err := p.group(c)
			if err == nil && c != '{' && strings.HasPrefix(p.s[p.i:], " {") { // Map(3) {…}, Object [AxiosHeaders] {…}
				p.i++
				return p.group('{')
			}
			return n, err
		}
	}
	return &node{text: strings.TrimSpace(p.s[from:])}, nil
}

// key tells whether a text may stand before a colon without quotes.
func key(s string) bool {
	return s != "" && (s[0] < '0' || s[0] > '9') && FieldName(s)
}

// typeName tells whether a text may stand before a bracket: Headers, http.Header, new Map, &http.Response.
func typeName(s string) bool {
	words := strings.Fields(strings.TrimLeft(s, "&*"))
	if len(words) == 0 || len(words) > 2 || len(words) == 2 && words[0] != "new" {
		return false
	}
	name := words[len(words)-1]
	return alnum(name[0]) && (name[0] < '0' || name[0] > '9') && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.$:") == ""
}

// group reads the items in brackets, up to the closing bracket or the end of the text. If open is 0, there are no brackets.
func (p *reader) group(open byte) (*node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail(p.i, "brackets in brackets, more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	defer func(word bool) { p.word = word }(p.word)
	p.word = false
	n := &node{open: open}
	end := map[byte]byte{'{': '}', '[': ']', '(': ')'}[open]
	if open != 0 {
		p.i++
	}
	for {
		p.skip(" \t\n,;")
		if p.i >= len(p.s) {
			return n, nil
		}
		if c := p.s[p.i]; c == end {
			p.i++
			return n, nil
		} else if c == '}' || c == ']' || c == ')' {
			if open == 0 {
				p.i++
				continue
			}
			return nil, p.fail(p.i, "a %c, where a comma or %c was expected", c, end)
		}
		from := p.i
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		it := item{value: v}
		if v.open == 0 || v.open == '[' {
			it.key = v.text
			if v.open == '[' {
				it.key = strings.Trim(p.s[from:p.i], "[]")
			}
			p.skip(" \t")
			for _, sep := range []string{"=>", ":", "="} {
				if it.keyed = strings.HasPrefix(p.s[p.i:], sep); it.keyed {
					p.i += len(sep)
					break
				}
			}
			if it.keyed {
				if it.value, err = p.value(); err != nil {
					return nil, err
				}
			}
		}
		n.items = append(n.items, it)
		if p.i == from { // nothing that a value begins with
			return nil, p.fail(p.i, "%.10q, where a value was expected", p.s[p.i:])
		}
	}
}

// goMap reads map[Name:[value] …]. p is at the first bracket.
func (p *reader) goMap() (*node, error) {
	n := &node{open: '{'}
	from := p.i
	for p.i++; ; {
		p.skip(" \n")
		if p.i >= len(p.s) {
			return n, nil
		}
		if p.at(']') {
			p.i++
			return n, nil
		}
		colon := strings.IndexByte(p.s[p.i:], ':')
		if colon < 0 || !FieldName(p.s[p.i:p.i+colon]) {
			return nil, p.fail(from, "%.30q is no map of header fields; want map[Name:[value] …]", p.s[p.i:])
		}
		it := item{key: p.s[p.i : p.i+colon], keyed: true}
		p.i += colon + 1
		begin, deep := p.i, 0
		for p.i < len(p.s) {
			c := p.s[p.i]
			if deep == 0 && (c == ']' || c == ' ') {
				break
			}
			if c == '[' {
				deep++
			} else if c == ']' {
				deep--
			}
			p.i++
		}
		v := p.s[begin:p.i]
		if inner, ok := strings.CutPrefix(v, "["); ok {
			v = strings.TrimSuffix(inner, "]")
		}
		it.value = &node{text: v}
		n.items = append(n.items, it)
	}
}

// json writes a value as JSON: the body that it was.
func (n *node) json() []byte {
	text := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			return []byte("null")
		}
		return b
	}
	if n.open == 0 {
		if word := map[string]string{"true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null", "undefined": "null", "nil": "null"}[n.text]; word != "" && !n.quoted {
			return []byte(word)
		}
		if f, err := strconv.ParseFloat(n.text, 64); err == nil && !n.quoted && json.Valid([]byte(n.text)) {
			return text(f)
		}
		return text(n.text)
	}
	var b strings.Builder
	keyed := n.open == '{' || len(n.items) > 0 && n.items[0].keyed
	for i, it := range n.items {
		if i > 0 {
			b.WriteByte(',')
		}
		if keyed {
			fmt.Fprintf(&b, "%s:", text(it.key))
		}
		b.Write(it.value.json())
	}
	if keyed {
		return []byte("{" + b.String() + "}")
	}
	return []byte("[" + b.String() + "]")
}
