package input

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"
)

// Any value stands in its place unchanged, or is refused: each character alone, and between others.
func TestEscapes(t *testing.T) {
	all := []string{"a b", "ä€😀", "\u2028", "x&y=z", "..", ".", "</a>"}
	for c := range 0x80 {
		all = append(all, string(rune(c)), "a"+string(rune(c))+"b")
	}
	for _, s := range all {
		cell := Cell{Text: s}
		if text, bad := asPath.escape(cell); bad == "" {
			if back, err := url.PathUnescape(text); back != s || err != nil || strings.ContainsAny(text, "/?#") {
				t.Errorf("in a path %q is %q, which is read as %q, %v", s, text, back, err)
			}
		} else if s != "." && s != ".." {
			t.Errorf("in a path %q: %s", s, bad)
		}
		text, bad := asQuery.escape(cell)
		if back, err := url.ParseQuery("v=" + text); bad != "" || err != nil || back.Get("v") != s || len(back) != 1 || strings.ContainsAny(text, "+&#") {
			t.Errorf("in a query %q is %q, which is read as %v, %v, %s", s, text, back, err, bad)
		}
		text, bad = asJSONText.escape(cell)
		var back string
		if err := json.Unmarshal([]byte(`"`+text+`"`), &back); bad != "" || err != nil || back != s {
			t.Errorf("in a text of JSON %q is %q, which is read as %q, %v, %s", s, text, back, err, bad)
		}
		text, bad = asXML.escape(cell)
		var node struct {
			Text string `xml:",chardata"`
		}
		if err := xml.Unmarshal([]byte("<a>"+text+"</a>"), &node); bad != "" || err != nil || strings.ContainsAny(text, "<>\"") || node.Text != s && node.Text != "\ufffd" && !strings.Contains(node.Text, "a\ufffdb") {
			t.Errorf("in XML %q is %q, which is read as %q, %v, %s", s, text, node.Text, err, bad)
		}
		is := true
		for _, c := range s {
			is = is && strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-", c)
		}
		if text, bad := asHost.escape(cell); (bad == "") != is || is && text != s {
			t.Errorf("as a host %q is %q, %s", s, text, bad)
		}
		if text, bad := asText.escape(cell); text != s || bad != "" {
			t.Errorf("as text %q is %q, %s", s, text, bad)
		}
	}
	for _, s := range []spot{asHost, asPath, asURL, asJSON} {
		if text, bad := s.escape(Cell{}); bad == "" {
			t.Errorf("nothing stands at %d as %q", s, text)
		}
	}
	for text, want := range map[string]string{" 7 ": "7", "null": "null", "x": "", "{": "", `"x"`: `"x"`} {
		if got, bad := asJSON.escape(Cell{Text: text}); got != want || (bad == "") != (want != "") {
			t.Errorf("as JSON %q is %q, %s", text, got, bad)
		}
	}
}

// A column is the one of that name, the only one except for capitals, or that number. If two would
// match, none does.
func TestColumnOfARow(t *testing.T) {
	if i, err := newColumns([]string{"Name", "x"}).find("name"); i != 0 || err != nil {
		t.Errorf("name: %d, %v", i, err)
	}
	c := newColumns([]string{"a", "B", "b", "A b", "a", "x", "7", "Name"})
	for ref, want := range map[string]int{"B": 1, "b": 2, "a B": 3, "A B": 3, "X": 5, "7": 6, "1": 0, "8": 7, "name": 7} {
		if i, err := c.find(ref); i != want || err != nil {
			t.Errorf("%s: %d, %v, expected %d", ref, i, err, want)
		}
	}
	for ref, want := range map[string]string{
		"a": `there are two columns "a": expected {row.1} or {row.5}, by number`, "A": `there is no column "A", but "a" and "a": expected one of them as it is written`,
		"0": `there is no column "0", expected one of a, B, b, A b, a, x, 7, Name`, "9": `there is no column "9", expected one of a, B, b, A b, a, x, 7, Name`, "-1": `there is no column "-1", expected one of`,
	} {
		if i, err := c.find(ref); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %d, %v, expected %s", ref, i, err, want)
		}
	}
	many := newColumns(strings.Split(strings.Repeat("c ", 30)+"c", " "))
	if _, err := many.find("none"); err == nil || !strings.Contains(err.Error(), "c and 1 more") || strings.Count(err.Error(), "c,")+1 != 30 {
		t.Error(err)
	}
	if _, err := newColumns(many.names[:30]).find("none"); err == nil || strings.Contains(err.Error(), "more") {
		t.Error(err)
	}
}

// A NUL byte shows that a file is no text only within the first 512 bytes.
func TestNULNearTheBeginning(t *testing.T) {
	for at, want := range map[int]bool{0: true, 1: true, 511: true, 512: false, 600: false} {
		head := []byte(strings.Repeat("x", 700))
		head[at] = 0
		if got := notText(head, "f"); strings.HasPrefix(got, "no text: there is a NUL byte") != want {
			t.Errorf("at %d: %q", at, got)
		}
	}
	for head, want := range map[string]bool{"a\x00b\x00": true, "\x00a\x00b": true, "a\x00b": false, "a\x00bc": false, "\x00abc": false, "\x00a\x00": false} {
		if got := notText([]byte(head), "f"); strings.Contains(got, "UTF-16") != want {
			t.Errorf("%q: %q", head, got)
		}
	}
}

// For an element of several lines, Place corrects the line and the column. It changes no other
// error.
func TestPlace(t *testing.T) {
	item := &Item{JSON: []byte("{\"a\":\n 1,\n\n\"b\":2}"), Line: 3, Column: 5}
	for _, c := range []struct{ line, column, wantLine, wantColumn int }{
		{3, 5, 3, 5}, {3, 5 + 4, 3, 9}, {3, 5 + 6, 4, 1}, {3, 5 + 7, 4, 2}, {3, 5 + 10, 5, 1}, {3, 5 + 11, 6, 1}, {3, 1000, 6, 7},
		{3, 4, 3, 4}, {2, 50, 2, 50}, {4, 50, 4, 50},
	} {
		e := &Error{File: "f", Line: c.line, Column: c.column}
		if err := item.Place(e); err != e || e.Line != c.wantLine || e.Column != c.wantColumn {
			t.Errorf("%d:%d is at %d:%d, expected %d:%d", c.line, c.column, e.Line, e.Column, c.wantLine, c.wantColumn)
		}
	}
	if line, column := place([]byte("\nx"), 7, 3, 1); line != 8 || column != 1 {
		t.Errorf("after a line break that comes first: %d:%d", line, column)
	}
}

// The error for a template that is no JSON has the place in the template as typed. A text with a
// mark of UTF-32 is not UTF-16.
func TestPlaceInATemplate(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":"{row.name}","b":{row.n},"id":"{id}"x}`: "line 1, column 42: ", `{"a":{row.n},` + "\n" + `"{id}" 1}`: "line 2, column 8: ", `{"a":1x}`: "line 1, column 7: ",
	} {
		if _, _, err := BodyTemplate(text, "application/json"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %s", text, err, want)
		}
	}
	if _, _, err := BodyTemplate(`{"a":"{row.name}","b":[{row.n},-{id}]}`, "application/json"); err != nil {
		t.Error(err)
	}
	for head, want := range map[string]Coding{"\xff\xfe\x00\x00": UTF8, "\xff\xfea\x00": UTF16LE, "\xff\xfe": UTF16LE, "\xff\xfe\x00": UTF16LE, "\xfe\xff": UTF16BE, "\x1f\x8b": Gzip, "\x1f": UTF8, "": UTF8} {
		if got := CodingOf([]byte(head)); got != want {
			t.Errorf("%q: %v", head, got)
		}
	}
}

// A backslash at the end of the text between $' and ' stands for itself.
func TestAnsiEnds(t *testing.T) {
	for s, want := range map[string]string{"": "", `a\`: `a\`, `\\\`: `\\`} {
		if got := ansi(s); got != want {
			t.Errorf("%q: %q, expected %q", s, got, want)
		}
	}
}

// A read of no bytes reads nothing, and loses nothing. Reads of one byte give the same text.
func TestDecodeBitByBit(t *testing.T) {
	const text = "aé€😀"
	for _, c := range []Coding{UTF16LE, UTF16BE} {
		raw := []byte{}
		for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
			if c == UTF16LE {
				raw = append(raw, byte(u), byte(u>>8))
			} else {
				raw = append(raw, byte(u>>8), byte(u))
			}
		}
		for size := 1; size < 12; size++ {
			r, got := Decode(bytes.NewReader(raw), c), []byte{}
			for {
				if n, err := r.Read(nil); n != 0 || err != nil && err != io.EOF {
					t.Fatalf("nothing of %v: %d, %v", c, n, err)
				}
				b := make([]byte, size)
				n, err := r.Read(b)
				if got = append(got, b[:n]...); err != nil || len(got) > len(text) {
					break
				}
			}
			if string(got) != text {
				t.Errorf("%d at a time of %v: %q", size, c, got)
			}
		}
	}
}
