package explain

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/paceline-go/paceline/provider"
)

// Answer is an answer as far as a text has it. Its Header is never nil.
type Answer struct {
	provider.Response
	// Said reports that the text has the status. Otherwise Status is 200.
	Said bool
	// Host is the host of the request, if the text has that too.
	Host string
	// Bare reports that the text is only a body.
	Bare bool
}

// Parse reads a text. Its errors begin with the line, and name what was expected.
func Parse(text []byte) (Answer, error) {
	s := clean(string(decoded(text)))
	lines := debugged(strings.Split(s, "\n"))
	if first(lines) == len(lines) {
		return Answer{}, errors.New("line 1: nothing there; want an answer as curl -i prints it, header fields, JSON that " +
			"holds them, or a line of a log")
	}
	if at, ok := onTheWire(lines); ok {
		return wire(lines, at)
	}
	byField, plain, errField := fields(lines)
	if at := first(lines); raises(lines[at]) {
		errField = unreadTrace(lines, at)
	}
	if errField == nil && plain && byField.worth() {
		return byField, nil
	}
	if a, ok := element(s); ok {
		return a, nil
	}
	if at, ok := trace(lines); ok {
		return Answer{}, unreadTrace(lines, at)
	}
	object, at, errObject := objects(s)
	if err := unreadObject(s, at); err != nil {
		return Answer{}, err
	}
	logged, errLogged := logfmt(lines)
	for _, worth := range []bool{true, false} {
		for _, c := range []struct {
			Answer
			err error
		}{{object, errObject}, {byField, errField}, {logged, errLogged}} {
			if c.err == nil && c.worth() == worth {
				return c.Answer, nil
			}
		}
	}
	switch {
	case page.MatchString(s):
		return Answer{}, fail(first(lines),
			"%.60q begins a page that says no code; want the answer as curl -i prints it, with its status and header fields",
			lines[first(lines)])
	case strings.IndexByte("{[", strings.TrimSpace(lines[first(lines)])[0]) >= 0:
		return Answer{}, errObject
	}
	return Answer{}, errField
}

// worth reports whether an answer is about limits, or is a refusal.
func (a Answer) worth() bool { return provider.Speaks(a.Header) || a.Said && a.Status >= 400 }

// among returns the last answer that is worth something and has a status. If there is none, it
// returns the last that is worth something, or else the last.
func among(all []Answer) Answer {
	best, most := all[0], 0
	for _, a := range all {
		rank := 0
		if a.worth() {
			rank = 1
			if a.Said {
				rank = 2
			}
		}
		if rank >= most {
			best, most = a, rank
		}
	}
	return best
}

// element reads the body of a refusal in XML.
func element(s string) (a Answer, ok bool) {
	if s = strings.TrimSpace(s); !strings.HasPrefix(s, "<") || !strings.Contains(s, "<Code>") &&
		!strings.Contains(s, "<Error") {
		return a, false
	}
	a.Bare, a.Body = true, []byte(s)
	return a.end(), true
}

// clean returns a text without escape sequences of terminals, in UTF-8, with LF as line breaks.
func clean(s string) string {
	if strings.HasPrefix(s, "\xff\xfe") || strings.HasPrefix(s, "\xfe\xff") { // as PowerShell writes a file
		low, high := 0, 1
		if s[0] == 0xfe {
			low, high = 1, 0
		}
		var u []uint16
		for i := 2; i+1 < len(s); i += 2 {
			u = append(u, uint16(s[i+low])|uint16(s[i+high])<<8)
		}
		s = string(utf16.Decode(u))
	}
	s = strings.TrimLeft(s, "\ufeff")
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != 0x1b {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			break
		}
		switch s[i] {
		case '[': // a sequence that ends with a letter
			for i++; i < len(s) && (s[i] < 0x40 || s[i] > 0x7e); i++ {
			}
		case ']': // a sequence that ends with a bell, or with ESC \
			for i++; i < len(s) && s[i] != 0x07 && s[i] != 0x1b; i++ {
			}
			if i+1 < len(s) && s[i] == 0x1b {
				i++
			}
		}
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u00a0", " ").Replace(b.String())
}

// debugged turns the debug output of Python's http.client (reply: 'HTTP/1.1 429 …\r\n', header:
// Name: value) into the lines that were received.
func debugged(lines []string) []string {
	on := false
	for i, line := range lines {
		if strings.HasPrefix(line, "send: b") || strings.HasPrefix(line, "connect: (") {
			lines[i] = ""
		} else if reply, ok := strings.CutPrefix(line, "reply: "); ok && strings.Contains(reply, "HTTP/") {
			on = true
			lines[i] = strings.TrimSuffix(strings.Trim(reply, `'"`), `\r\n`)
		} else if field, ok := strings.CutPrefix(line, "header: "); on && ok {
			lines[i] = field
		}
	}
	return lines
}

// first returns the index of the first line with content: it is not blank, and does not begin with
// #.
func first(lines []string) int {
	for i, line := range lines {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			return i
		}
	}
	return len(lines)
}

func fail(line int, format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{line + 1}, args...)...)
}

// FieldName reports whether a header field may have this name.
func FieldName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

func (a *Answer) add(name, value string) {
	if a.Header == nil {
		a.Header = http.Header{}
	}
	a.Header.Add(name, strings.TrimSpace(value))
}

// state reads a status: 429, or "429 Too Many Requests".
func (a *Answer) state(v string) bool {
	code, _, _ := strings.Cut(strings.TrimSpace(v), " ")
	n, err := strconv.Atoi(code)
	if err != nil || n < 100 || n > 999 {
		return false
	}
	a.Status, a.Said = n, true
	return true
}

// end fills in the parts that the text lacks.
func (a Answer) end() Answer {
	if !a.Said {
		a.Status = http.StatusOK
	}
	if a.Header == nil {
		a.Header = http.Header{}
	}
	return a
}

// hostOf returns the host of the first URL in a text.
func hostOf(s string) string {
	i := strings.Index(s, "https://")
	if i < 0 {
		i = strings.Index(s, "http://")
	}
	if i < 0 {
		return ""
	}
	s, _, _ = strings.Cut(strings.TrimSpace(s[i:]), " ")
	u, err := url.Parse(strings.Trim(s, `'",`))
	if err != nil {
		return ""
	}
	return u.Host
}

// statusIn finds a status in words: 429 Too Many Requests, status code 429, Error code: 429, HTTP
// 429.
func statusIn(s string) string {
	for i := 0; i+3 <= len(s); i++ {
		if s[i] < '1' || s[i] > '5' || !digit(s[i+1]) || !digit(s[i+2]) || i > 0 && (alnum(s[i-1]) || s[i-1] == '.') ||
			i+3 < len(s) && (alnum(s[i+3]) || s[i+3] == '.' && i+4 < len(s) && alnum(s[i+4])) {
			continue
		}
		reason := http.StatusText(int(s[i]-'0')*100 + int(s[i+1]-'0')*10 + int(s[i+2]-'0'))
		if rest := strings.TrimLeft(s[i+3:], " "); reason != "" && len(rest) >= len(reason) &&
			strings.EqualFold(rest[:len(reason)], reason) {
			return s[i : i+3]
		}
		before := strings.ToLower(strings.TrimRight(s[max(0, i-40):i], ` :=["'(`))
		for _, word := range []string{"status", "statuscode", "status code", "status_code", "code", "http", "http/1.1",
			"http/2", "http/2.0", "response", "error"} {
			if strings.HasSuffix(before, word) {
				return s[i : i+3]
			}
		}
	}
	return ""
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func alnum(c byte) bool {
	return digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}
