package explain

import (
	"strings"
)

// onTheWire finds the status line in the output of curl (with or without -v), HTTPie or wget -S.
// Before it there may be the request, or words of the client, but no header field without a
// request.
func onTheWire(lines []string) (at int, ok bool) {
	request := false
	for i, line := range lines {
		if strings.HasPrefix(bare(line), "HTTP/") {
			return i, true
		}
		name, _, isField := strings.Cut(line, ":")
		request = request || requestLine(line)
		if isField && FieldName(name) && !request && line[0] != '<' && line[0] != '*' && line[0] != '>' && line[0] != '#' {
			return 0, false
		}
	}
	return 0, false
}

// bare returns a line without the "< " of curl -v and without indentation.
func bare(line string) string {
	return strings.TrimLeft(strings.TrimPrefix(line, "<"), " \t")
}

// requestLine reports whether a line is one like GET /path HTTP/1.1.
func requestLine(line string) bool {
	words := strings.Fields(line)
	return len(words) == 3 && strings.HasPrefix(words[2], "HTTP/") && words[0] == strings.ToUpper(words[0]) &&
		FieldName(words[0])
}

// wire reads an answer that begins with a status line. If there are several, as after 100 Continue,
// a redirect or a proxy's CONNECT, the last counts.
func wire(lines []string, at int) (a Answer, err error) {
	host := ""
	for _, line := range lines[:at] {
		line = strings.TrimPrefix(line, "> ")
		if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "Host") {
			host = strings.TrimSpace(value)
		} else if h := hostOf(line); h != "" && host == "" {
			host = h
		}
	}
	if strings.HasPrefix(lines[at], "<") {
		a, err = verbose(lines, at)
	} else {
		a, err = printed(lines, at)
	}
	a.Host = host
	return a.end(), err
}

// printed reads an answer without marks, perhaps indented.
func printed(lines []string, at int) (Answer, error) {
	indent := lines[at][:strings.Index(lines[at], "HTTP/")]
	for i := at; ; {
		a := Answer{}
		if err := a.statusLine(lines[i], i); err != nil {
			return a, err
		}
		last := ""
		for i++; i < len(lines) && lines[i] != ""; i++ {
			line, ok := strings.CutPrefix(lines[i], indent)
			if !ok {
				break // a remark of wget after the fields
			}
			if last != "" && line != "" && (line[0] == ' ' || line[0] == '\t') {
				v := a.Header[last]
				v[len(v)-1] += " " + strings.TrimSpace(line)
				continue
			}
			var err error
			if last, err = a.field(line, i); err != nil {
				return a, err
			}
		}
		next := i
		for next < len(lines) && lines[next] == "" {
			next++
		}
		if next < len(lines) && strings.HasPrefix(lines[next], indent+"HTTP/") {
			i = next
			continue
		}
		if body := strings.Join(lines[min(i+1, len(lines)):], "\n"); body != "" && indent == "" {
			a.Body = []byte(body)
		}
		return a, nil
	}
}

// verbose reads the output of curl -v. Fields are marked with <, and other lines of curl may stand
// anywhere.
func verbose(lines []string, at int) (a Answer, err error) {
	var body []string
	inBody := false
	for i := at; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.HasPrefix(line, "< HTTP/"):
			a, body, inBody = Answer{}, nil, false
			err = a.statusLine(bare(line), i)
		case strings.HasPrefix(line, "<") && !inBody:
			if line = strings.TrimSpace(line[1:]); line == "" {
				inBody = true
			} else {
				_, err = a.field(line, i)
			}
		case inBody && !chatter(line):
			for _, end := range []string{"* Connection #", "* Closing connection", "* shutting down connection"} {
				line, _, _ = strings.Cut(line, end) // a body without a line break at its end
			}
			body = append(body, line)
		}
		if err != nil {
			return a, err
		}
	}
	if text := strings.Trim(strings.Join(body, "\n"), "\n"); text != "" {
		a.Body = []byte(text)
	}
	return a, nil
}

// chatter reports whether a line is one of curl's own: * Connected, > a line that was sent, { [5
// bytes data], or its meter.
func chatter(line string) bool {
	for _, mark := range []string{"* ", "> ", "{ [", "} [", "  % Total", "                                 Dload"} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return line == "*" || line == ">" || strings.HasSuffix(line, "--:--:--") && strings.Contains(line, ":--")
}

func (a *Answer) statusLine(line string, n int) error {
	_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if !a.state(rest) {
		return fail(n, "%.60q has no status code; want a line like HTTP/1.1 429 Too Many Requests", line)
	}
	return nil
}

// field adds a line of the form Name: value, and returns the name as it is in Header.
func (a *Answer) field(line string, n int) (string, error) {
	name, value, ok := strings.Cut(line, ":")
	if !ok || !FieldName(name) {
		return "", fail(n, "%.60q is no header field; want Name: value, as curl -i or curl -D - print", line)
	}
	a.add(name, value)
	return canonical(name), nil
}
