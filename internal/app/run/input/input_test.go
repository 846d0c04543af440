package input

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// read reads a whole text, with an item or an error on each line.
func read(text string, c Config) (out []string) {
	if c.MaxLine == 0 {
		c.MaxLine = 1 << 20
	}
	r := New("f", strings.NewReader(text), c)
	for {
		item, err := r.Next()
		_, one := errors.AsType[*Error](err)
		switch {
		case err == io.EOF:
			return out
		case one:
			out = append(out, err.Error())
		case err != nil:
			return append(out, "end: "+err.Error())
		case item.Call != nil:
			c := item.Call
			var header bytes.Buffer
			_ = c.Header.Write(&header)
			text := strings.TrimSuffix(strings.ReplaceAll(header.String(), "\r\n", "; "), "; ")
			out = append(out, strings.TrimSuffix(fmt.Sprintf("%d: %s %s [%s] %s", item.Line, c.Method, c.URL, text, c.Body), " "))
		default:
			var cells []string
			for i, c := range item.Row.cells {
				cells = append(cells, fmt.Sprintf("%s=%s@%d:%d", item.Row.of.names[i], c.Text, c.Line, c.Column))
			}
			out = append(out, fmt.Sprintf("%d:%d: %s", item.Line, item.Column, strings.Join(cells, " ")))
		}
	}
}

func check(t *testing.T, c Config, text string, want ...string) {
	t.Helper()
	if got := read(text, c); !slices.Equal(got, want) {
		t.Errorf("%v of %.200q:\n got %s\nwant %s", c.Form, text, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

func TestTable(t *testing.T) {
	csv := Config{Form: CSV}
	check(t, csv, "a,b\n1,2\n", "2:1: a=1@2:1 b=2@2:3")
	check(t, csv, "\ufeff a ,b\r\n\r\n1,\"x, \"\"y\"\"\r\nz\"\r\n,\r\n3,4", `3:1: a=1@3:1 b=x, "y"`+"\nz@3:3", "6:1: a=3@6:1 b=4@6:3")
	check(t, csv, "a,b\n1\n1,2,3\n5,6\n", "f:2:1: one column, expected 2 as in the first row, separated by ','",
		"f:3:5: 3 columns, expected 2 as in the first row: a value with ',' in it has to be in quotes", "4:1: a=5@4:1 b=6@4:3")
	check(t, csv, "a,b\n\"x\"y,2\n5,\"6\n", `f:2:4: text after the quote that ends the field, which began on line 2; expected ',', the end of the line, or a quote in a field written twice`,
		"f:3:3: the quote that begins here has no end")
	check(t, csv, "a,b\nM\xfcller,2\n", "f:2:2: byte 0xfc is not UTF-8, expected text in UTF-8; a table of Excel's is saved as CSV UTF-8, or made so: iconv -f WINDOWS-1252 -t UTF-8 FILE | paceline run …")
	check(t, csv, "a,b\n5\" pipe,2\n", "2:1: a=5\" pipe@2:1 b=2@2:9")
	check(t, Config{Form: CSV, Comma: ';'}, "sep=;\na;b\n1;2,5\n", "3:1: a=1@3:1 b=2,5@3:3")
	check(t, csv, "sep=;\na;b\n1;2\n", "3:1: a=1@3:1 b=2@3:3")
	check(t, Config{Form: TSV}, "a\tb\n1\t2\n", "2:1: a=1@2:1 b=2@2:3")
	check(t, Config{Form: CSV, NoHeader: true}, "a,b\n1,2\n", "1:1: =a@1:1 =b@1:3", "2:1: =1@2:1 =2@2:3")
	check(t, Config{Form: CSV, MaxLine: 8}, "a,b\n1,234567\n1,2345678\n1,\"2\n3456\n789\"\n5,6\n", "2:1: a=1@2:1 b=234567@2:3", "f:3:9: the line is longer than 8 bytes, expected at most that (--max-line)",
		"f:4:3: the quote that begins here has no end for 8 bytes, expected at most that (--max-line)", "7:1: a=5@7:1 b=6@7:3")
	check(t, csv, "")
	check(t, csv, "\"a\nb\n", "end: f:1:1: the quote that begins here has no end")
}

func TestList(t *testing.T) {
	check(t, Config{Form: URLs}, "\n# mine\n https://a/?q=1,2#x \r\nftp://b\nHTTP://c d\n", "3:2: url=https://a/?q=1,2#x@3:2", "f:4:1: expected a URL, http:// or https://",
		"f:5:9: there is white space in the URL, expected one URL on the line and nothing else")
	check(t, Config{Form: Lines}, "# one\n\n two words", "1:1: line=# one@1:1", "3:2: line=two words@3:2")
}

// Programs write a byte order mark before the one that is there, and files with one are joined.
func TestByteOrderMarks(t *testing.T) {
	const two = "\ufeff\ufeff"
	check(t, Config{Form: URLs}, two+"https://a\n\ufeffhttps://b\n", "1:1: url=https://a@1:1", "2:1: url=https://b@2:1")
	check(t, Config{Form: Lines}, two+"one\n\ufefftwo", "1:1: line=one@1:1", "2:1: line=\ufefftwo@2:1")
	check(t, Config{Form: JSONL}, two+`{"a":1}`+"\n"+two+`{"a":2}`+"\n", "1:1: a=1@1:6", "2:1: a=2@2:6")
	check(t, Config{Form: JSON}, two+"\ufeff"+` [{"a":1}]`, "1:12: a=1@1:17")
	check(t, Config{Form: CSV}, two+"a,b\n\ufeff1,2\n", "2:1: a=\ufeff1@2:1 b=2@2:6")
	check(t, Config{Form: Curl}, two+"curl https://a\n\ufeffcurl https://b -d 'x\n\ufeffy'\n", "1: GET https://a []",
		"2: POST https://b [Content-Type: application/x-www-form-urlencoded] x\n\ufeffy")
	for text, form := range map[string]string{"https://a\n": "urls", "{}\n": "jsonl", "[]": "json", "curl https://a": "curl", "a,b\n1,2\n": "csv"} {
		if found, err := Recognize([]byte(two+text), "-", nil); err != nil || found.Form.String() != form {
			t.Errorf("%q: %v, %v, want %s", two+text, found.Form, err, form)
		}
	}
}

func TestJSON(t *testing.T) {
	check(t, Config{Form: JSONL}, `{"a":"x\u0041","b":1.50,"c":null,"d":{"e": true}}`+"\n[1]\n{\"a\":1,\"a\":2}\n{]\n{}\n", `1:1: a=xA@1:6 b=1.50@1:20 c=@1:29 d={"e":true}@1:38`,
		"f:2:1: an array, expected a JSON object", `f:3:1: the name "a" is there twice, expected once`,
		"f:4:2: invalid character ']' looking for beginning of object key string, expected one JSON object on the line", "f:5:1: an object without anything in it, expected a row")
	array := Config{Form: JSON}
	check(t, array, "\ufeff[ ]\n")
	check(t, array, "")
	check(t, array, `["https://a/", {"a":"]}"},{"b":`+"\n 2}\n]\n ", "1:2: url=https://a/@1:2", `1:16: a=]}@1:21`, "1:27: b=2@2:2")
	check(t, array, "[{\"a\":1},\n{\"a\":\n  x}, {\"a\":3}]", "1:2: a=1@1:7", "f:3:3: invalid character 'x' looking for beginning of value, expected JSON", "3:7: a=3@3:12")
	check(t, array, `[{"a":1}`, "1:2: a=1@1:7", "end: f:1:9: the array has no end, expected ]: was the file cut off?")
	check(t, array, `[{"a":1}] x`, "1:2: a=1@1:7", "end: f:1:11: text after the end of the array, expected none")
	check(t, array, `[{"a":1} {"a":2}]`, "1:2: a=1@1:7", `end: f:1:10: '{' after an element, expected , or ]`)
	check(t, array, `{"a":1}`, `end: f:1:1: '{', expected an array of JSON, which begins with [`)
	check(t, array, `[1,"x"]`, "f:1:2: a number, expected a JSON object", "1:4: url=x@1:4")
	// Only one element is held at a time, however long the line.
	var long strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&long, `%s{"n":%d,"text":"some words to make it longer"}`, map[bool]string{true: "[", false: ","}[i == 0], i)
	}
	got := read(long.String()+"]", Config{Form: JSON, MaxLine: 100})
	if len(got) != 50_000 || !strings.Contains(got[49_999], "n=49999@1:") {
		t.Errorf("%d elements, the last is %s", len(got), got[len(got)-1])
	}
	check(t, Config{Form: JSON, MaxLine: 10}, `[{"a":1},`+strings.Repeat(" ", 100_000)+`{"a":"`+strings.Repeat("x", 100_000)+`"}]`, "1:2: a=1@1:7", "end: f:1:100010: the element that begins here is longer than 10 bytes, expected at most that (--max-line)")
}

// An id depends on the content and the place of a row, and not on the file's quotes or line ends.
func TestIDs(t *testing.T) {
	ids := func(c Config, text string) (out []string) {
		c.MaxLine = 1 << 20
		r := New("f", strings.NewReader(text), c)
		for item, err := r.Next(); err == nil; item, err = r.Next() {
			out = append(out, item.ID())
		}
		return out
	}
	a, b := ids(Config{Form: CSV}, "a,b\n1,2\n1,2\n12,\n"), ids(Config{Form: CSV, Comma: ';'}, "\ufeffa;b\r\n\"1\";2\r\n1;2\r\n1;2\r\n")
	if len(a) != 3 || a[0] == a[1] || a[0] != b[0] || a[1] != b[1] || a[2] == b[2] || !strings.HasPrefix(a[2], "line-4-") {
		t.Errorf("%v, %v", a, b)
	}
	// The end of each cell counts in the id.
	if c := ids(Config{Form: CSV}, "a,b\n12,3\n"); c[0] == ids(Config{Form: CSV}, "a,b\n1,23\n")[0] {
		t.Error(c)
	}
	if c := ids(Config{Form: JSON}, `[{"a":1},{"a":1}]`); c[0] == c[1] || !strings.HasPrefix(c[1], "item-2-") {
		t.Error(c)
	}
}

// Every table of encoding/csv is read as the same table. Nothing longer than the limit is held.
func FuzzTable(f *testing.F) {
	for _, s := range []string{"a,b\n1,2\n", "a,b\r\n\"x\"\"y\",\"z\n\"\r\n", "\"\"\n", "a\n\n,\n", "sep=;\na", "a,\"b\nc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := New("f", strings.NewReader(text), Config{Form: CSV, NoHeader: true, MaxLine: 1 << 16})
		var got [][]string
		bad := false
		for {
			item, err := r.Next()
			if err == io.EOF {
				break
			}
			if _, one := errors.AsType[*Error](err); err != nil {
				if bad = true; one {
					continue
				}
				break
			}
			var cells []string
			for _, c := range item.Row.cells {
				cells = append(cells, c.Text)
				if c.Line < 1 || c.Column < 1 {
					t.Fatalf("%q: a cell at %d:%d", text, c.Line, c.Column)
				}
			}
			got = append(got, cells)
		}
		want, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || bad || strings.ContainsAny(text, "\x00\ufeff") || strings.Contains(text, "sep=") || strings.HasSuffix(text, "\r") {
			return
		}
		want = slices.DeleteFunc(want, func(row []string) bool { return !slices.ContainsFunc(row, func(c string) bool { return c != "" }) })
		if a, b := fmt.Sprintf("%q", got), fmt.Sprintf("%q", want); a != b && len(want) > 0 {
			t.Fatalf("%q: %s, want %s", text, a, b)
		}
	})
}

// An array has the elements that encoding/json finds in it.
func FuzzArray(f *testing.F) {
	for _, s := range []string{`[]`, `[{"a":1},{"b":"]"}]`, ` [ "x" , {"a":[1,{"b":2}]} ] `, `[{"a":"\""}`, `[[1],2]`, "[{\"a\":\n1}]x", `[,]`, `[{"a":1},]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := New("f", strings.NewReader(text), Config{Form: JSON, MaxLine: 1 << 20})
		var got []json.RawMessage
		whole := true
		for {
			item, err := r.Next()
			if err == io.EOF {
				break
			}
			if _, one := errors.AsType[*Error](err); err != nil {
				if whole = false; one {
					continue
				}
				break
			}
			got = append(got, bytes.Clone(item.JSON))
		}
		var want []json.RawMessage
		valid := json.Unmarshal([]byte(text), &want) == nil && bytes.Equal([]byte(text), bytes.ToValidUTF8([]byte(text), nil))
		if whole && len(got) > 0 && !valid && !strings.HasPrefix(text, "\ufeff") {
			t.Fatalf("%q is no array, and has %q", text, got)
		}
		if valid && whole && fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}

// Each entry of a HAR is an item, a mistake, or passed over. A text of any kind has an end.
func FuzzHAR(f *testing.F) {
	for _, s := range []string{
		`{"log":{"entries":[]}}`, `{"log":{"a":"]}","entries":[{"request":{"method":"GET","url":"http://a"}},{"x":1},[2]],"b":[{}]}}`,
		"{\"log\" :\n{\"entries\":[{\"request\":{\"method\":\"GET\",\"url\":\"data:,\"}}]", `{"log":[`, `{"log":1`, `{"`, "{,", `{"a":,`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		r := New("f", strings.NewReader(text), Config{Form: HAR, MaxLine: 1 << 20, Ignored: func(string, string) { n++ }})
		for {
			_, err := r.Next()
			_, wrong := errors.AsType[*Error](err)
			if err != nil && !wrong {
				break
			}
			if n++; n > len(text) {
				t.Fatalf("%q goes on and on", text)
			}
		}
		var whole struct {
			Log struct{ Entries []json.RawMessage }
		}
		if json.Unmarshal([]byte(text), &whole) != nil || strings.Count(strings.ToLower(text), `"entries"`) != 1 ||
			!strings.Contains(text, `"entries"`) || strings.Count(strings.ToLower(text), `"log"`) != 1 || strings.ContainsAny(text, "\\ſ") || !utf8.ValidString(text) {
			return
		}
		if n != len(whole.Log.Entries) {
			t.Errorf("%q: %d entries, want %d", text, n, len(whole.Log.Entries))
		}
	})
}
