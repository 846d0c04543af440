package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Found is the result of Recognize.
type Found struct {
	Form  Form
	Comma byte // the separator of the columns of a CSV
}

// Recognize finds the form of an input by its beginning, the name of its file, and the wanted
// columns. For any other form, the error is for a user at a command line. It names the likely form
// and how to convert it, and calls the input FILE.
//
// A line that begins like JSON counts as JSONL even if it is malformed. The error then comes from
// its reader, which has the place.
func Recognize(head []byte, name string, wanted []string) (Found, error) {
	if what := notText(head, name); what != "" {
		return Found{}, errors.New(what)
	}
	head = NoMarks(head)
	suffix := strings.TrimSuffix(strings.ToLower(name), ".gz")
	suffix = filepath.Ext(suffix)
	line, rest := firstLine(head)
	if line == "" {
		if suffix == ".csv" || suffix == ".tsv" { // a table without rows
			return Found{Form: CSV, Comma: ','}, nil
		}
		return Found{Form: JSONL}, nil
	}
	low := strings.ToLower(line)
	switch {
	case line[0] == '{' && (suffix == ".har" || beginsHAR.Match(head)):
		return Found{Form: HAR}, nil
	case line[0] == '{':
		return object(head, line)
	case line[0] == '}', line[0] == ']':
		return Found{Form: JSONL}, nil // malformed: the reader's error has the place
	case line[0] == '[':
		return Found{Form: JSON}, nil
	case low == "curl" || strings.HasPrefix(low, "curl ") || strings.HasPrefix(low, "curl\t") ||
		strings.HasPrefix(low, "curl.exe "):
		if windows([]byte(line)) >= 0 {
			return Found{}, foreignError(`a curl command for cmd.exe, with ^ before its quotes; expected it as for bash: in the browser, "Copy as cURL (bash)"`)
		}
		return Found{Form: Curl}, nil
	case suffix == ".csv" && !strings.HasPrefix(low, "<"):
		return Found{Form: CSV, Comma: separator(line, rest, ',')}, nil
	case suffix == ".tsv":
		return Found{Form: TSV, Comma: '\t'}, nil
	case isURL(line):
		return Found{Form: URLs}, nil
	case isURL(strings.TrimLeftFunc(line, func(r rune) bool { return invisible(r) != "" })):
		return Found{}, errors.New("its first line " + oddURL(line))
	}
	if what := foreign(line, low); what != "" {
		return Found{}, foreignError(what)
	}
	if comma := separator(line, rest, 0); comma == '\t' {
		return Found{Form: TSV, Comma: comma}, nil
	} else if comma != 0 {
		return Found{Form: CSV, Comma: comma}, nil
	}
	switch {
	case slices.Contains(wanted, "line"):
		return Found{Form: Lines}, nil
	case slices.ContainsFunc(wanted, func(w string) bool { return strings.EqualFold(w, strings.Trim(line, `"`)) }):
		return Found{Form: CSV, Comma: ','}, nil
	case oddURL(line) != "":
		return Found{}, errors.New("its first line " + oddURL(line))
	}
	return Found{}, fmt.Errorf("its first line is %s, which is none of: a URL, a row of a table with several columns, "+
		"JSON, a curl command. "+
		"Expected one of those; --input-format csv is a table of one column, --input-format lines any text a line, with "+
		"--url 'https://…/{row.line}'", shortly(line))
}

// beginsHAR matches the beginning of a HAR. Lines of a program's log may have a member of that name,
// too, with other members in it.
var beginsHAR = regexp.MustCompile(`^\s*\{\s*"log"\s*:\s*\{\s*"(version|creator|browser|pages|entries|comment)"\s*:`)

// firstLine returns the first line that is neither blank nor a comment, without white space around
// it. rest is the text after that line.
func firstLine(head []byte) (line string, rest []byte) {
	for len(head) > 0 {
		l, after, _ := bytes.Cut(head, []byte("\n"))
		if line = string(bytes.TrimSpace(l)); line != "" && line[0] != '#' {
			return line, after
		}
		head = after
	}
	return "", nil
}

// shortly quotes the beginning of a line for an error.
func shortly(line string) string {
	const most = 50
	r := []rune(line)
	if len(r) > most {
		return fmt.Sprintf("%q…", string(r[:most]))
	}
	return fmt.Sprintf("%q", line)
}

// separator finds the byte that separates the columns of a table. It is as frequent in the lines of
// rest as in the first line, outside of quotes. If there is none, separator returns or.
func separator(line string, rest []byte, or byte) byte {
	if len(line) == len("sep=")+1 && strings.HasPrefix(line, "sep=") {
		return line[len("sep=")]
	}
	next, _ := firstLine(rest)
	best, found := 0, or
	for _, c := range []byte("\t;,|") {
		n := outside(line, c)
		if n == 0 {
			continue
		}
		score := n
		if next != "" && strings.Count(next, `"`)%2 == 0 && outside(next, c) == n {
			score += 1000
		}
		if score > best {
			best, found = score, c
		}
	}
	if or == 0 && best < 1000 && next != "" && !strings.Contains(next, `"`) {
		return 0 // the first line is a sentence with a comma
	}
	return found
}

// outside counts how often a byte stands in a line outside of quotes.
func outside(line string, c byte) (n int) {
	quoted := false
	for i := range len(line) {
		switch {
		case line[i] == '"':
			quoted = !quoted
		case line[i] == c && !quoted:
			n++
		}
	}
	return n
}

// object separates JSONL from other texts that begin with a brace, such as a whole document of
// JSON.
func object(head []byte, line string) (Found, error) {
	if json.Valid([]byte(line)) {
		var one map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &one) == nil {
			if what := document(one); what != "" {
				return Found{}, errors.New(what)
			}
		}
		return Found{Form: JSONL}, nil
	}
	if line != "{" && !strings.HasSuffix(line, ",") && !strings.HasSuffix(line, "{") && !strings.HasSuffix(line, "[") {
		return Found{Form: JSONL}, nil // a malformed line: the reader's error has the place
	}
	// The object goes over several lines. The names of its first members show its kind.
	all := map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(head))
	depth := 0
	for isName := false; ; {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			isName = depth == 1
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
			isName = depth == 1
			continue
		}
		if name, ok := token.(string); ok && depth == 1 && isName {
			all[name] = json.RawMessage("{}")
			isName = false
			continue
		}
		isName = depth == 1
	}
	if what := document(all); what != "" {
		return Found{}, errors.New(what)
	}
	if len(all) == 0 {
		return Found{Form: JSONL}, nil
	}
	return Found{}, errors.New("an object of JSON over several lines, expected one object a line, or an array of them: " +
		"jq -c . FILE | paceline run …")
}

// document returns the kind of a JSON document of several lines. names are its members.
func document(names map[string]json.RawMessage) string {
	has := func(all ...string) bool {
		for _, n := range all {
			if names[n] == nil {
				return false
			}
		}
		return true
	}
	switch {
	case has("url"), has("custom_id"):
	case has("info", "item"):
		return `a Postman collection. Its requests as lines: jq -c '.. | objects | select(.request.url?) | .request | {method, url: (.url.raw? // .url), body: .body.raw?}' FILE | paceline run …`
	case has("openapi"), has("swagger"):
		return "a description of an API (OpenAPI), which has no requests; expected the requests, one a line"
	case len(names) == 1:
		for name, v := range names {
			if len(v) > 0 && (v[0] == '[' || v[0] == '{') {
				return fmt.Sprintf("one object with all in %q, expected one object a line: jq -c '.[\"%s\"][]' FILE | paceline "+
					"run …", name, name)
			}
		}
	}
	return ""
}

// magics are kinds of files and the bytes that they begin with.
var magics = []struct{ magic, what string }{
	{"PAR1", `a Parquet file. As a table: duckdb -csv -c "from 'FILE'" | paceline run … -`},
	{"SQLite format 3\x00",
		`a database of SQLite. As a table: sqlite3 -csv -header FILE 'select * from TABLE' | paceline run … -`},
	{"%PDF", "a PDF, which has no table that can be read"},
	{"BZh", "compressed by bzip2: bzip2 -dc FILE | paceline run … -"},
	{"\xfd7zXZ", "compressed by xz: xz -dc FILE | paceline run … -"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd: zstd -dc FILE | paceline run … -"},
	{"7z\xbc\xaf", "an archive of 7-Zip: 7z x -so FILE | paceline run … -"},
	{"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls). As a table: save it as CSV UTF-8, or libreoffice --headless " +
		"--convert-to csv FILE"},
	{"Obj\x01", "an Avro file. As lines: avro-tools tojson FILE | paceline run …"},
	{"ARROW1", `an Arrow file. As a table: duckdb -csv -c "from 'FILE'" | paceline run … -`},
}

// notText returns the kind of a file that is not text. It returns "" if the input is text.
func notText(head []byte, name string) string {
	if bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		low := strings.ToLower(name)
		switch {
		case bytes.Contains(head, []byte("xl/")) || bytes.Contains(head, []byte("[Content_Types].xml")) ||
			strings.HasSuffix(low, ".xlsx"):
			return "an Excel workbook (.xlsx). As a table: save it as CSV UTF-8, or libreoffice --headless --convert-to csv FILE"
		case bytes.Contains(head, []byte("opendocument.spreadsheet")):
			return "a spreadsheet (.ods). As a table: save it as CSV, or libreoffice --headless --convert-to csv FILE"
		}
		return "a ZIP archive: unzip -p FILE | paceline run … -"
	}
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.what
		}
	}
	if i := bytes.IndexByte(head, 0); i >= 0 && i < 512 {
		if len(head) >= 4 && (head[1] == 0 && head[3] == 0 || head[0] == 0 && head[2] == 0) {
			return "text in UTF-16 without a byte order mark: iconv -f UTF-16LE -t UTF-8 FILE | paceline run … -"
		}
		return "no text: there is a NUL byte near its beginning"
	}
	return ""
}

// ErrForeign is an error of Recognize for a text that another program reads, such as PowerShell. It
// names that program. It does not depend on the form that the user names.
var ErrForeign = errors.New("a text for another program")

type foreignError string

func (e foreignError) Error() string      { return string(e) }
func (foreignError) Is(target error) bool { return target == ErrForeign }

// foreign returns the kind of a text for other programs, such as HTML or YAML. low is line in lower
// case.
func foreign(line, low string) string {
	for _, f := range []struct{ begins, what string }{
		{"<!doctype html", "a page of HTML, perhaps what a server answered in place of a file; expected the file itself"},
		{"<html", "a page of HTML, perhaps what a server answered in place of a file; expected the file itself"},
		{"<", "XML, which is not read; expected lines of JSON, a table or URLs"},
		{"fetch(", `a call of fetch, as for JavaScript; expected a curl command: in the browser, "Copy as cURL (bash)"`},
		{"await fetch(", `a call of fetch, as for JavaScript; expected a curl command: in the browser, "Copy as cURL (bash)"`},
		{"invoke-webrequest", `a command of PowerShell; expected a curl command: in the browser, "Copy as cURL (bash)"`},
		{"$session", `a command of PowerShell; expected a curl command: in the browser, "Copy as cURL (bash)"`},
		{"wget ", "a command of wget, expected curl commands, or the URLs alone"},
		{"$ curl ", "a curl command after a prompt; expected it without: sed 's/^\\$ //' FILE | paceline run … -"},
		{"get http", "a method before a URL; expected the URLs alone (--method is for all of them)"},
		{"post http", "a method before a URL; expected the URLs alone (--method is for all of them)"},
		{"get /", "requests as they go over the wire; expected lines of JSON, URLs or curl commands"},
		{"post /", "requests as they go over the wire; expected lines of JSON, URLs or curl commands"},
		{"%yaml", "YAML: yq -o json -I 0 FILE | paceline run … -"},
		{"---", "YAML: yq -o json -I 0 FILE | paceline run … -"},
	} {
		if strings.HasPrefix(low, f.begins) {
			return f.what
		}
	}
	if strings.HasPrefix(line, "www.") {
		return "names of hosts without https:// before them: sed 's,^,https://,' FILE | paceline run … -"
	}
	return ""
}

// HasLine reports whether the beginning of an input is enough for Recognize: it has a whole line
// that is neither blank nor a comment.
func HasLine(head []byte) bool {
	for len(head) > 0 {
		line, after, whole := bytes.Cut(head, []byte("\n"))
		if line = bytes.TrimSpace(line); whole && len(line) > 0 && line[0] != '#' {
			return true
		}
		head = after
	}
	return false
}
