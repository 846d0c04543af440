package input

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// commands reads curl commands as a shell would. It finds the lines of each command itself, so that
// a mistake in one command does not spoil the next. The shell parser then splits each command into
// words.
type commands struct {
	*LineReader
	c    Config
	told map[string]bool // ignored options that Config.Ignored has received
	text []byte
}

func (c *commands) columns() (*columns, error) { return nil, nil }

// word is a word of a command, without its quotes.
type word struct {
	text         string
	line, column int
}

func (c *commands) next() (*Item, error) {
	for {
		first, err := c.command()
		if err != nil {
			return nil, err
		}
		words, err := c.words(first)
		if err != nil {
			return nil, err
		}
		if len(words) == 0 {
			continue
		}
		call, err := c.call(words)
		if err != nil {
			return nil, err
		}
		item := &Item{Line: words[0].line, Column: words[0].column, Number: words[0].line, Call: call}
		item.sum = sumOf(func(yield func(string) bool) {
			for _, w := range words {
				if !yield(w.text) {
					return
				}
			}
		})
		return item, nil
	}
}

// command reads the lines of the next command into c.text. It goes on while a quote is open, or a
// line ends with a backslash.
func (c *commands) command() (first int, err error) {
	c.text = c.text[:0]
	var s quoting
	for {
		line, tooLong, err := c.Line()
		n, _ := c.Read()
		switch {
		case err == io.EOF && len(c.text) > 0:
			return first, nil // the shell parser reports what is left open
		case err != nil:
			return 0, err
		case tooLong:
			return 0, c.TooLong()
		}
		if first == 0 { // within a command it may be text
			line = NoMarks(line)
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if err := c.NotUTF8(line); err != nil {
			return 0, err
		}
		if first == 0 {
			first = n
		}
		if len(c.text)+len(line) > c.Most() {
			return 0, &Unreadable{c.Errorf(first, 1,
				"the command that begins here goes on for %d bytes, expected at most that (--max-line): is a quote not closed?",
				c.Most())}
		}
		c.text = append(append(c.text, line...), '\n')
		if !s.open(line) {
			return first, nil
		}
	}
}

// quoting is the state of a command between two lines: which quote is open, if any.
type quoting struct {
	in     byte // ' or ", or $ for $'…'
	within bool // whether the line ended within a word
}

// open reads a line without its line break, and reports whether the command goes on in the next
// line.
func (q *quoting) open(line []byte) bool {
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch q.in {
		case '\'':
			if c == '\'' {
				q.in = 0
			}
			continue
		case '"', '$':
			closes := q.in
			if closes == '$' {
				closes = '\''
			}
			if c == '\\' {
				i++
			} else if c == closes {
				q.in = 0
			}
			continue
		}
		switch {
		case c == '\\':
			if i == len(line)-1 {
				return true
			}
			i++
			q.within = true
		case c == '#' && !q.within:
			return false
		case c == '\'' && i > 0 && line[i-1] == '$':
			q.in, q.within = '$', true
		case c == '\'' || c == '"':
			q.in, q.within = c, true
		default:
			q.within = c != ' ' && c != '\t' && c != ';' && c != '&' && c != '|'
		}
	}
	if q.in == 0 {
		q.within = false
		return false
	}
	return true
}

// words splits the command in c.text into words. More than a simple command (pipes, variables,
// redirections) is an error.
func (c *commands) words(first int) ([]word, error) {
	wrong := func(at syntax.Pos, format string, args ...any) error {
		return c.Errorf(first+int(at.Line())-1, int(at.Col()), format, args...)
	}
	if i := bytes.IndexByte(c.text, 0); i >= 0 {
		return nil, c.Errorf(first, 1, "a NUL byte, expected text")
	}
	if at := windows(c.text); at >= 0 {
		return nil, c.Errorf(first, at+1,
			`a command for cmd.exe, with ^ before its quotes; expected it as for bash: in the browser, "Copy as cURL (bash)"`)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(c.text), "")
	if err != nil {
		if e, ok := err.(syntax.ParseError); ok {
			return nil, wrong(e.Pos, "%s, expected a curl command as bash reads it", e.Text)
		}
		if e, ok := err.(syntax.LangError); ok {
			return nil, wrong(e.Pos, "%s, expected a curl command as bash reads it", e.Feature)
		}
		return nil, c.Errorf(first, 1, "expected a curl command as bash reads it")
	}
	if len(file.Stmts) == 0 {
		return nil, nil // there are only comments
	}
	if len(file.Stmts) > 1 {
		return nil, wrong(file.Stmts[1].Pos(), "a second command on the line, expected each on a line of its own")
	}
	statement := file.Stmts[0]
	call, ok := statement.Cmd.(*syntax.CallExpr)
	switch {
	case !ok || statement.Negated || statement.Coprocess:
		return nil, wrong(statement.Pos(),
			"more than a command (a pipe, &&, a loop), expected a curl command alone: answers are written by paceline, see --out")
	case len(statement.Redirs) > 0:
		return nil, wrong(statement.Redirs[0].Pos(),
			"a redirection, expected none: answers are written by paceline, see --out")
	case len(call.Assigns) > 0:
		return nil, wrong(call.Assigns[0].Pos(), "a variable is set, expected a curl command")
	}
	var words []word
	for _, w := range call.Args {
		text, bad := textOf(w.Parts)
		if bad != nil {
			return nil, wrong(bad.Pos(),
				"%s: nothing is filled in in curl commands; write what it stands for, or leave the field out and give it with "+
					"--header 'Name: {key}' and --key-env", kindOf(bad))
		}
		words = append(words, word{text, first + int(w.Pos().Line()) - 1, int(w.Pos().Col())})
	}
	if name := words[0].text; name != "curl" && name != "curl.exe" && !strings.HasSuffix(name, "/curl") {
		return nil, wrong(call.Args[0].Pos(), "%s, expected a curl command", ValueAt("", 0, 0, []byte(name)))
	}
	return words, nil
}

// windows returns the index of the first sign that a command was copied for cmd.exe, as Chrome
// offers it, or -1.
func windows(text []byte) int {
	if i := bytes.Index(text, []byte(`^"`)); i >= 0 && !bytes.ContainsAny(text[:i], `'"`) {
		return i
	}
	if line, _, _ := bytes.Cut(text, []byte("\n")); bytes.HasSuffix(line, []byte(" ^")) {
		return len(line) - 1
	}
	return -1
}

// textOf joins the parts of a word. If a shell would have to fill in one of them, such as a
// variable, it returns that part.
func textOf(parts []syntax.WordPart) (string, syntax.Node) {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescaped(p.Value, ""))
		case *syntax.SglQuoted:
			if p.Dollar {
				b.WriteString(ansi(p.Value))
			} else {
				b.WriteString(p.Value)
			}
		case *syntax.DblQuoted:
			for _, in := range p.Parts {
				lit, ok := in.(*syntax.Lit)
				if !ok {
					return "", in
				}
				b.WriteString(unescaped(lit.Value, "$`\"\\"))
			}
		default:
			return "", part
		}
	}
	return b.String(), nil
}

func kindOf(n syntax.Node) string {
	if p, ok := n.(*syntax.ParamExp); ok && p.Param != nil {
		return "the variable $" + p.Param.Value
	}
	return "something for the shell to find out"
}

// unescaped removes the backslashes that quote the character after them. If only is not empty, a
// backslash quotes just the characters in it. The parser has joined lines that end with a
// backslash.
func unescaped(s, only string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (only == "" || strings.IndexByte(only, s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// plain are the escapes of $'…' that stand for one character.
var plain = map[byte]byte{'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11, '\\': '\\',
	'\'': '\'', '"': '"', '?': '?'}

// ansi reads the text between $' and '. Chrome writes a character outside the basic plane as two
// \u, as JavaScript does.
func ansi(s string) string {
	var b []byte
	high := rune(-1)
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			i++
			high = -1
			continue
		}
		r, isRune, size := escape(s[i+1:])
		i += 1 + size
		if !isRune {
			if size == 0 { // no escape, so the backslash stands for itself
				r = '\\'
			}
			b = append(b, byte(r))
			high = -1
			continue
		}
		if both := utf16.DecodeRune(high, r); high >= 0 && both != utf8.RuneError {
			b = append(b[:len(b)-len(string(utf8.RuneError))], string(both)...)
			high = -1
			continue
		}
		b = utf8.AppendRune(b, r)
		if high = -1; utf16.IsSurrogate(r) {
			high = r
		}
	}
	return string(b)
}

// escape reads an escape from s, which begins after the backslash. The escape stands for a
// character or, if isRune is false, for a byte. size is the number of its bytes in s.
func escape(s string) (r rune, isRune bool, size int) {
	if c, ok := plain[s[0]]; ok {
		return rune(c), false, 1
	}
	digits := func(from, most int, base rune) (v rune, n int) {
		for n < most && from+n < len(s) {
			d := slices.Index([]byte("0123456789abcdef"), s[from+n]|0x20)
			if s[from+n] <= '9' {
				d = int(s[from+n]) - '0'
			}
			if d < 0 || rune(d) >= base {
				break
			}
			v = v*base + rune(d)
			n++
		}
		return v, n
	}
	switch s[0] {
	case 'x':
		if v, n := digits(1, 2, 16); n > 0 {
			return v, false, 1 + n
		}
	case 'u', 'U':
		most := 4
		if s[0] == 'U' {
			most = 8
		}
		if v, n := digits(1, most, 16); n > 0 {
			return v, true, 1 + n
		}
	default:
		if v, n := digits(0, 3, 8); n > 0 {
			return v, false, n
		}
	}
	return 0, false, 0
}
