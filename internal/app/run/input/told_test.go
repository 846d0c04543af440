package input

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/golden"
)

// TestItems: each item of each form, with its place, id and cells, the requests from rows, and the
// errors of wrong items. After a change: -update, and read the difference.
func TestItems(t *testing.T) {
	long := strings.Repeat("x", 40)
	var b strings.Builder
	for _, c := range []struct {
		form   Form
		config Config
		inputs []string
	}{
		{JSONL, Config{}, []string{
			"\ufeff{\"a\":1}\n\n \t{\"a\":\"two\"} \r\n{\"b\":{\"c\":[1, 2],\"d\":null}}", "{}\n[1]\n\"text\"\n7\n{\"a\":1,\"a\":2}", "{\"a\":}\n  {\"a\":1} x\n{\"a\":\xff}\n{\"a\"", `{"` + long + `":1}` + "\n{}", "", " \n",
		}},
		{JSON, Config{}, []string{
			"\ufeff [ ]", "[{\"a\":1},\n  {\"b\":\n2},\n\"https://a\"\n]\n", "[1,{},[],{\"a\":1,\n \"a\":2},{\"a\":\xff},{\"a\":tru},nope]", "[{\"a\":1} {\"a\":2}]", "[{\"a\":1},]", "[{\"a\":1}", "[", "[]x", "{}", "[{\"a\":\"" + long + "\"},{}]", `["a\"]b",{"c":"}\\"}]`, "", "[{\"a\":[{}]}, -1.5e3 ]",
		}},
		{URLs, Config{}, []string{"\ufeffhttp://a/x\n# c\n\n  HTTPS://b \r\nhttp://a b\nftp://c\nhttp://\xff\n" + "http:/a\nhttps:/\nhttps://", "http://a/" + long + "\nhttp://b"}},
		{Lines, Config{}, []string{"one\n#two\n\n three\tx \n\xff\n", long + "\nb"}},
		{CSV, Config{}, []string{
			"\ufeffa,b\n1,2\n", "a, b ,a,\n1,2,3,4\n", "a,b\n1\n1,2,3\n,\n\n\"x \"\"y\"\"\nz\",2\n", "a\n1\n2,3\n", "a,b\n\"1,2\n", "a,b\n\"1\"x,2\n3,4\n", "a,b\nx\"y\",2", "sep=;\na;b\n1;2", "sep=,\na,b\n1,2", "sep=\na,b\n", "", "\n\n", "a,b\n\xff,2\n3,4", "a,b\n\"" + long + "\",2\n3,4\n", "a,b\n\"\",\"\"\n\"\",1",
		}},
		{CSV, Config{Comma: ';', NoHeader: true}, []string{"a;b\n1;2\n", "a\n1;2\n", "\n a;b", ""}},
		{TSV, Config{}, []string{"a\tb\n1\t2,3\n", "a\tb\n1\t2\t3"}},
		{Curl, Config{}, []string{
			`curl $'http://a/\a\b\e\E\f\n\r\t\v\\\'\"\?\x4\x41g\x\101\18\0\u41\u00e9\u\U1f600\ud83d\ude00\ud83dx\ud83d\u0041\ude00\q\9'` + "\n", `curl $'http://a/\ud83dx\ude00'` + "\n", `curl $'http://a/\`, `curl "http://a/\` + "\n" + `b\"\$\\\c"`, "curl http://a/\\\nb c\\ d", "curl http://a \\\n\n curl http://b\n", "echo " + long, "curl http://" + long,
			"curl 'http://a/'\\''b'\"c\"d", "curl http://a -H 'A: 1' -H 'a: 2' -H 'B:'", "curl --request=PUT http://a", "curl -XPUT http://a -I", "curl -G http://a#b -d x", "curl -G http://a -d ''", "curl http://a --data-urlencode '=a b' --data-urlencode 'n=a b' --data-urlencode 'a b'", "curl http://a -d x --json y", "curl http://a -F", "curl -k http://a", "curl http://a -", "curl http://a --", "curl http://a --url http://b", "curl '' ", "curl http://a || x", "curl http://a &&\ncurl http://b", "for x in 1; do curl http://a; done", "(curl http://a)", "! curl http://a", "curl http://a 2>&1", "curl http://a <x", "curl http://a{1..3}", "curl http://a*", "curl ~/x", "curl `x`", "curl <(x)", "curl $((1))", "curl ${x}", "CURL http://a", "curl.exe http://a", "\ufeffcurl http://a\r\ncurl http://b\r\n", "/usr/bin/curl http://a",
		}},
		{Curl, Config{}, []string{
			"curl -H @fields https://a/", "curl -b cookies.txt https://a/", "curl https://a/\x00\ncurl https://b/", "curl https://a/\xff\ncurl https://b/", "curl https://a/ )\ncurl https://b/",
			"curl https://a/ ^\n  -H 'a: b'", "curl \"https://a/?x=^\"", "curl '^\"' https://a/", "curl \"https://a/\\\n?x=1\"", "curl https://a/\\\nb", "curl \"https://a/\\$\\`\\\"\\\\\\x\"", "curl https://$HOST/", "curl https://$(host)/",
			"curl \"https://${HOST}/\"", "! curl https://a/", "curl https://a/ <(x)", "/usr/bin/curl https://a/\ncurl.exe https://b/\ncurls https://c/", "curl https://a/ -d \"a \\\" b\nc\"\ncurl https://b/ -d a#b#c",
			"curl https://a/ -d $'it\\'s\n # no comment' -H 'A: b'", "curl https://a/ -d a\\ #b\ncurl https://b", "curl https://a/;# '\ncurl https://b", "curl --data-raw", "curl https://a/ -d @none", "curl https://a/ --data-urlencode a@none",
			"curl -d 'a\n' https://a/", "curl -d \"a\n\" https://a/", "curl \\\n'https://a/\n'", "curl https://a/ -d \\##'b\nc'", "curl $'https://a/\\U0001f6000\\ud83d\\ude00\\ude00\\u00414'",
			"curl https://a/" + strings.Repeat("y", 185), "curl https://a/" + strings.Repeat("y", 186), "curl 'https://a/\n" + strings.Repeat("y\n", 100),
		}},
		{CSV, Config{}, []string{"a,b\n1,2\x00\n3,4", "a,b,c\n1,2", "a,b\n\"1\n2\",3\n4,5\n6", "a,b\n" + long[:28] + ",2\n" + long[:27] + ",2\n3,4"}},
		{TSV, Config{}, []string{"a\tb\n1\n\"1\"\t2"}},
		{JSON, Config{}, []string{"[1", "[,1]", "[{\"a\":1},\n  {\"a\":2} {\"a\":3}]", "[{\"a\":1},\n{\"a\":2}", "[{\"a\":\"\\ud800\"},{\"a\":\"\xff\"}]", "[{\"a\":\"" + long[:22] + "\"},{\"a\":\"" + long[:23] + "\"}]"}},
		{HAR, Config{}, []string{
			`{"log":{"entries":[]}}`, `{"log":{}}`, `{"log":{"a":1,"entries":{}}}`, `{"a":{"log":{"entries":[1]}}}`, "", "[", `{"log"`, `{"log":{"entries":[{"request":{"method":"GET","url":"http://a"}}`, `{1:2}`, "{\"log\":{\"x\":\"" + long + long + "\",\"entries\":[]}}",
			"\ufeff{\n \"log\" : {\"pages\":[{\"entries\":[1]}],\n\"entries\":\n [{\"request\":{\"method\":\"GET\",\"url\":\"http://a\"}} ,\n {\"request\":{\"method\":\"GET\",\"url\":\"http://a\"}}]}} and so on",
			`{"log":{"entries":[7,{},{"request":{}},{"request":{"method":1}},{"request":{"method":"GET","url":"a"}},{"request":{"method":"GET","url":"wss://a"}},{"x":}]}}`,
			`{"log":{"entries":[{"request":{"method":"POST","url":"http://a","postData":{"params":[{"name":"a"}]}}},{"request":{"method":"POST","url":"http://a","bodySize":-1,"postData":{"text":""}}},{"request":{"method":"POST","url":"http://a","bodySize":7}}]}}`,
			`{"log":{"entries":[{"request":{"method":"OPTIONS","url":"http://a","headers":[{"name":"A","value":"1"},{"name":"a","value":"2"},{"name":"","value":"3"},{"name":"accept-encoding","value":"br"}]}}]}}`,
		}},
		{Lines, Config{}, []string{long[:30] + "\n" + long[:31] + "\nb"}},
	} {
		c.config.Form, c.config.MaxLine = c.form, 30
		if c.form == Curl || c.form == HAR {
			c.config.MaxLine = 200
		}
		for _, input := range c.inputs {
			fmt.Fprintf(&b, "%v %q\n", c.form, input)
			told(&b, New("f", strings.NewReader(input), c.config))
		}
	}
	golden.Compare(t, "items.txt", b.String())
}

// told writes all items.
func told(b *strings.Builder, r *Reader) {
	columns, err := r.Columns()
	if columns != nil || err != nil {
		fmt.Fprintf(b, "  columns %q, %v\n", columns, err)
	}
	for range 50 {
		item, err := r.Next()
		_, one := errors.AsType[*Error](err)
		switch {
		case err == io.EOF:
			return
		case one:
			fmt.Fprintf(b, "  wrong: %v\n", err)
		case err != nil:
			fmt.Fprintf(b, "  the end: %v\n", err)
			return
		case item.Call != nil:
			c := item.Call
			fmt.Fprintf(b, "  %d:%d, number %d, %s: %s %q at %d, %q", item.Line, item.Column, item.Number, item.ID(), c.Method, c.URL, c.URLColumn, c.Body)
			for _, name := range slices.Sorted(maps.Keys(c.Header)) {
				fmt.Fprintf(b, ", %s: %q", name, c.Header[name])
			}
			b.WriteString("\n")
		default:
			fmt.Fprintf(b, "  %d:%d, number %d, %s: %s\n", item.Line, item.Column, item.Number, item.ID(), item.JSON)
			for name, cell := range item.Row.All() {
				fmt.Fprintf(b, "    %q: %q %s at %d:%d\n", name, cell.Text, cell.JSON, cell.Line, cell.Column)
			}
		}
	}
	b.WriteString("  and on and on\n")
}

// TestMade: the results of templates for rows, one after the other, and the mistakes in the input,
// a row or a cell. After a change: -update, and read the difference.
func TestMade(t *testing.T) {
	must := func(tpl *Template, err error) *Template {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return tpl
	}
	body, _, err := BodyTemplate(`{"n":"{row.name}","v":{row.value},"id":"{id}"}`, "")
	plain := &Maker{URL: must(URLTemplate("http://h/{row.name}/{id}?q={row.value}"))}
	all := &Maker{URL: must(URLTemplate("http://h/{row.name}")), ID: must(IDTemplate("o-{row.name}")), Body: must(body, err), More: []string{"value", "more"}}
	free := &Maker{URL: must(URLTemplate("{row.name}/{row.more}?x=1")), More: []string{"name"}}
	var b strings.Builder
	dots := &Maker{URL: must(URLTemplate("http://h/a/../{row.name}"))}
	for i, m := range []*Maker{plain, all, free, dots} {
		for _, c := range []struct {
			form  Form
			input string
		}{
			{CSV, "name,value,more\nann b,1,x\n\"c\nd\",\"two\",y\n,3,z\n..,4,\n\"http://a/b\",5,.."}, {CSV, "name,value\na,1"}, {CSV, ""}, {CSV, "name,name,value,more\n"},
			{JSONL, `{"name":"ann","value":true,"more":{"x":1}}` + "\n" + `{"name":"http://a","value":"text","more":"m"}` + "\n" + `{"name":"a"}` + "\n" + `{"name":"a","value":1}`},
		} {
			r := New("f", strings.NewReader(c.input), Config{Form: c.form, MaxLine: 100})
			fmt.Fprintf(&b, "maker %d of %v %q\n", i, c.form, c.input)
			if err := m.Check(r); err != nil {
				_, all := errors.AsType[*Unreadable](err)
				fmt.Fprintf(&b, "  check: %v, of all %v\n", err, all)
				continue
			}
			for {
				item, err := r.Next()
				if err != nil {
					fmt.Fprintf(&b, "  the end: %v\n", err)
					break
				}
				made, err := m.Make(r, item)
				if err != nil {
					fmt.Fprintf(&b, "  wrong: %v\n", err)
					continue
				}
				fmt.Fprintf(&b, "  %q %q %s %v\n", made.ID, made.URL, made.Body, made.More)
			}
		}
	}
	golden.Compare(t, "made.txt", b.String())
}

// TestHasLine: the beginning of an input is enough once there is a whole line with content.
func TestHasLine(t *testing.T) {
	for head, want := range map[string]bool{"": false, "a": false, "a\n": true, "\n \n": false, "# a\n": false, "# a\nb": false, "# a\n\n b\n": true, " # a\n": false} {
		if got := HasLine([]byte(head)); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}

// TestFormNames: each form is read by its name.
func TestFormNames(t *testing.T) {
	names := FormNames()
	for i, name := range names {
		if f, err := ParseForm(name); err != nil || int(f) != i || f.String() != name {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if len(names) != int(HAR)+1 {
		t.Errorf("%d names of %d forms", len(names), HAR+1)
	}
	if f, err := ParseForm("xml"); err == nil || !strings.Contains(err.Error(), "expected auto, jsonl, json, urls, lines, csv, tsv, curl, har") {
		t.Errorf("%v, %v", f, err)
	}
	if got := Wanted("{row.a}/{id}", "{key}{row.b c}"); !slices.Equal(got, []string{"a", "b c"}) {
		t.Errorf("%q", got)
	}
}

// TestRecognized: the form of each input by its beginning, its name and the wanted columns, or the
// error. After a change: -update, and read the difference.
func TestRecognized(t *testing.T) {
	var b strings.Builder
	for _, head := range []string{
		"", "\n# c\n", "\ufeff{\"url\":1}", "{\"url\":1}\n{", "{\"log\":{}}", "{\n\"a\":{\"log\":1},\"b\":[\"log\"],\"c\":\"log\"}", "{\n\"a\":{\"b\":1},\"log\":1}", "{\n\"a\":[1],\"log\":1}", "\xff\xfe\x00\x00a", "\xfe\xff\x00a", "{\"info\":{},\"item\":[]}", "{\"info\":{}}", "{\"openapi\":\"3\"}", "{\"swagger\":2}", "{\"data\":[1]}", "{\"data\":1}", "{\"custom_id\":[]}", "{\n\"log\": {\n\"entries\":[", "{\n\"a\":{\"log\":1},\"b\":[{}],\"c\":2\n}",
		"{\n\"url\":1}", "{", "{\"a\":", "{\"a\":[", "{\"a\":{", "{\"a\":1,", "{x", "}", "]", "[", "[1", "curl", "curl http://a", "CURL\thttp://a", "curl.exe x", "curling,2", "curl ^\"http://a^\"", "http://a", "HTTPS://a", "https:/", "ftp://a",
		"a,b\n1,2", "a;b\n1;2", "a|b\n1|2", "a\tb\n1\t2", "a,b;c\n1,2;3,4", "a,b\n1", "a,b\n\"1\n2\",3", "\"a,b\";c\n1;2", "a, b", "one, two and three\nwords", "sep=;\na;b", "sep=:\n", "word\nword", "name\nann", "line", "<html>", "<?xml ?>", strings.Repeat("é", 50), strings.Repeat("é", 51), "# c\na,b\n1,2",
		"PAR1", "SQLite format 3\x00", "%PDF-1", "BZh9", "\xfd7zXZ\x00", "\x28\xb5\x2f\xfd", "7z\xbc\xaf", "PK\x03\x04", "\x00\x01", "a\x00b", "\xff\xfea\x00", "\x1f\x8b", "caf\xe9\n", "\xd0\xcf\x11\xe0",
		"GET / HTTP/1.1\n", "POST http://a/ HTTP/1.1", "wget http://a", "http GET a", "fetch(\"http://a\")", "$ curl http://a", "openapi: 3.0", "---\na: 1", "select 1", "import x",
	} {
		was := ""
		for _, c := range []struct {
			name   string
			wanted []string
		}{{"x", nil}, {"x", []string{"line"}}, {"x", []string{"NAME"}}, {"x.csv", nil}, {"X.CSV.gz", nil}, {"x.tsv", nil}, {"x.xlsx", nil}, {"x.yaml", nil}} {
			f, err := Recognize([]byte(head), c.name, c.wanted)
			got := fmt.Sprintf("%v %q", f.Form, f.Comma)
			if err != nil {
				got = err.Error()
			}
			if got == was {
				continue
			}
			was = got
			fmt.Fprintf(&b, "%q in %s, wanted %q\n  %s\n", head, c.name, c.wanted, got)
		}
	}
	golden.Compare(t, "recognized.txt", b.String())
}
