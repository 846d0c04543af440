package explain

import (
	"regexp"
	"slices"
	"strings"
)

// These are not read: traces, and objects as languages print them. Each library and each language
// has forms of its own, and new versions change them. The errors say what to paste instead.
const (
	insteadOfTrace  = "want the answer behind it: as curl -i prints it, its header fields, or its body as JSON"
	insteadOfObject = "want it as JSON (JSON.stringify, json.dumps, json.Marshal), its header fields as Name: value, or " +
		"the answer as curl -i prints it"
)

var (
	// traced is a line that only a trace has: of Python, of Node and Java, of Go, and the words of
	// boto3.
	traced = regexp.MustCompile(`^Traceback \(most recent call last\)|^\s+File "[^"]*", line \d|^\s+at \S.*[(:]|^goroutine \d+ \[|An error occurred \(\w+\) when calling the \w+ operation`)
	// module is the class of an error with its module: openai.RateLimitError,
	// com.stripe.exception.RateLimitException.
	module = regexp.MustCompile(`^[a-z_]\w*(?:\.\w+)*\.[A-Z]\w*$`)
	// literal is a part of a printed object: 'a': or `a`, of Python and JavaScript; { a: or {a=[;
	// map[a and Type{ of Go; "a" => of Ruby and PHP; and a line with a comma at its end, from
	// within an object.
	literal = regexp.MustCompile(`(?m)[{,(\[]\s*'[^'\n]*'\s*[:,=]|^\s*['"][\w:-]+['"]\s*:|\{\s*[A-Za-z_$][\w$-]*\s*[:=]|\bmap\[\w|\w\{|["'\w]\s*=>\s*["'\[\d]|^\s*[\w-]+: .*[,{(\[]$`)
	// page is the beginning of HTML or XML, which may contain scripts and styles.
	page = regexp.MustCompile(`^\s*<[!?a-z]`)
)

// trace finds the first line of a trace.
func trace(lines []string) (at int, ok bool) {
	at = slices.IndexFunc(lines, traced.MatchString)
	return at, at >= 0
}

// raises reports whether a line begins with the name of an error, which looks like the name of a
// header field.
func raises(line string) bool {
	name, _, ok := strings.Cut(strings.TrimSpace(line), ":")
	return ok && !strings.Contains(name, "-") &&
		(module.MatchString(name) || strings.HasSuffix(name, "Error") || strings.HasSuffix(name, "Exception"))
}

func unreadTrace(lines []string, at int) error {
	return fail(at, "%.60q is of an error's trace, which is not read; "+insteadOfTrace, lines[at])
}

// unreadObject returns an error if a text has a printed object before the JSON that begins at json.
func unreadObject(s string, json int) error {
	found := literal.FindStringIndex(s)
	if found == nil || found[1] > json || page.MatchString(s) {
		return nil
	}
	at := strings.Count(s[:found[1]], "\n") // the match may begin with line breaks
	line := strings.TrimSpace(strings.Split(s, "\n")[at])
	return fail(at, "%.60q is of an object as a program prints it, which is not read; "+insteadOfObject, line)
}
