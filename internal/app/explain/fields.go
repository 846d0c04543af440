package explain

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/provider"
)

func canonical(name string) string { return http.CanonicalHeaderKey(name) }

// fields reads header fields without a status line. They are lines of Name: value or, as browsers
// copy them, names and values on lines of their own. plain reports that the lines look like nothing
// else.
func fields(lines []string) (a Answer, plain bool, err error) {
	at := first(lines)
	for at < len(lines) && (heading(lines[at]) || strings.HasPrefix(lines[at], "$ ") ||
		strings.TrimSpace(lines[at]) == "") {
		at++
	}
	if at == len(lines) {
		return a, false, fail(0, "no header field; want Name: value")
	}
	name, value, colon := strings.Cut(strings.TrimSpace(lines[at]), ":")
	inPairs := !colon && FieldName(name) || colon && strings.TrimSpace(value) == "" && at+1 < len(lines) &&
		!strings.Contains(lines[at+1], ": ")
	if !colon && labels[strings.ToLower(name)] {
		inPairs = true
	}
	if inPairs {
		if a, err = pairs(lines, at); err == nil || colon {
			return a.end(), true, err
		}
		return a.end(), false, err
	}
	return list(lines, at)
}

// list reads lines of the form Name: value. The body follows after a blank line.
func list(lines []string, at int) (a Answer, plain bool, err error) {
	last, plain := "", true
	for i := at; i < len(lines); i++ {
		line := lines[i]
		if strings.TrimSpace(line) == "" {
			if next := i + 1 + first(lines[i+1:]); next < len(lines) && heading(lines[next]) {
				continue
			}
			if body := strings.Join(lines[i+1:], "\n"); body != "" {
				a.Body = []byte(body)
			}
			break
		}
		if heading(line) {
			if strings.HasPrefix(strings.ToLower(line), "request") {
				break
			}
			continue
		}
		if last != "" && (line[0] == ' ' || line[0] == '\t') {
			v := a.Header[last]
			v[len(v)-1] += " " + strings.TrimSpace(line)
			continue
		}
		name, value, ok := cutField(line)
		if ok && a.label(name, value) {
			continue
		}
		if !ok || !FieldName(name) {
			return a.end(), false, fail(i, "%.60q is no header field; want Name: value, as curl -i or curl -D - print", line)
		}
		value = strings.TrimSpace(value)
		plain = plain && (value == "" || !strings.ContainsRune(",{[(", rune(value[len(value)-1])))
		a.add(name, value)
		last = canonical(name)
	}
	if len(a.Header) == 0 {
		err = fail(at, "%.60q has no header field after it; want Name: value", lines[at])
	}
	return a.end(), plain, err
}

// cutField cuts a line at the colon after the name. The name may begin with a colon: :status.
func cutField(line string) (name, value string, ok bool) {
	line = strings.TrimSpace(line)
	if rest, pseudo := strings.CutPrefix(line, ":"); pseudo {
		name, value, ok = strings.Cut(rest, ":")
		return ":" + name, value, ok
	}
	return strings.Cut(line, ":")
}

// pairs reads a name and its value on lines of their own, in turn.
func pairs(lines []string, at int) (a Answer, err error) {
	known := false
	for i := at; i < len(lines); i++ {
		name := strings.TrimSuffix(strings.TrimSpace(lines[i]), ":")
		if name == "" || heading(name) {
			if strings.HasPrefix(strings.ToLower(name), "request") {
				break
			}
			continue
		}
		isLabel := labels[strings.ToLower(name)]
		if !isLabel && !FieldName(strings.TrimPrefix(name, ":")) {
			if !known {
				return a, fail(at, "%.60q is no header field; want Name: value, as curl -i or curl -D - print", lines[at])
			}
			return a, fail(i, "%.60q is no name of a header field; want name and value on lines of their own, in turn", name)
		}
		value := ""
		if i++; i < len(lines) {
			value = lines[i]
		}
		known = known || isLabel || strings.Contains(name, "-")
		if a.label(name, value) {
			continue
		}
		if !FieldName(name) {
			return a, fail(i, "%.60q is no status; want one such as 429 Too Many Requests", value)
		}
		a.add(name, value)
	}
	if !known || len(a.Header) == 0 {
		return a, fail(at, "%.60q is no header field; want Name: value, as curl -i or curl -D - print", lines[at])
	}
	return a, nil
}

// heading reports whether a line is a title that browsers put above header fields.
func heading(line string) bool {
	line, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(line)), " (")
	switch strings.TrimSuffix(line, ":") {
	case "general", "response headers", "request headers", "headers":
		return true
	}
	return false
}

// labels are names that browsers show beside header fields.
var labels = map[string]bool{"request url": true, "request method": true, "status code": true, "status": true,
	"remote address": true, "referrer policy": true,
	"version": true, "transferred": true, "request priority": true, "dns resolution": true, "url": true, ":status": true,
	"scheme": true, "filename": true, "address": true}

// label reads a line that browsers show beside header fields, and reports whether it is one.
func (a *Answer) label(name, value string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	switch name {
	case "request url", "url":
		if h := hostOf(value); h != "" {
			a.Host = h
			return true
		}
		return false
	case "status code", "status", ":status":
		return !strings.ContainsAny(value, ":={[") && a.state(value)
	}
	return labels[name] && strings.Contains(name, " ")
}

// logfmt reads lines of key=value.
func logfmt(lines []string) (Answer, error) {
	var all []Answer
	for _, line := range lines {
		if g := equations(line); len(g.items) > 1 {
			all = append(all, harvest(g, line)...)
		}
	}
	if len(all) == 0 {
		return Answer{}, fail(first(lines), "no header fields as key=value")
	}
	return among(all), nil
}

// equation is one pair of key=value. The value may stand in quotes.
var equation = regexp.MustCompile(`([\w.-]+)=("(?:[^"\\]|\\.)*"|[^\s"=][^\s=]*)(?:\s|$)`)

// equations returns the key=value pairs of a line, and leaves out the rest of it.
func equations(line string) *node {
	g := &node{open: '{'}
	for _, m := range equation.FindAllStringSubmatch(line, -1) {
		v := &node{text: m[2]}
		if text, err := strconv.Unquote(m[2]); err == nil {
			v = &node{text: text, quoted: true}
		}
		g.items = append(g.items, item{m[1], true, v})
	}
	return g
}

// speaks reports whether a field of this name may be about limits.
func speaks(name string) bool { return provider.Speaks(http.Header{canonical(name): nil}) }
