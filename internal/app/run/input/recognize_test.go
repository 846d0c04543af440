package input

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
)

func TestRecognize(t *testing.T) {
	for _, c := range []struct {
		text, name, wanted, want string
	}{
		{"https://a/\nhttps://b,c\n", "x.txt", "", "urls"},
		{"\ufeff\n# mine\nHTTP://a/\n", "-", "", "urls"},
		{"https://a/,1\n", "x.csv", "", "csv,"},
		{"email,name\na,b\n", "-", "", "csv,"},
		{"email;name\na;1,5\n", "-", "", "csv;"},
		{"email\tname\na\tb,c\n", "-", "", "tsv\t"},
		{"a|b|c\n1|2|3\n", "-", "", "csv|"},
		{"\"a,b\";c\n1;2\n", "-", "", "csv;"}, {"\"a,b,c\";d\n\"1,2,3\";4\n", "-", "", "csv;"},
		{"email\na@b\n", "people.CSV", "", "csv,"},
		{"email\na@b\n", "people.csv.gz", "", "csv,"},
		{"email\na@b\n", "-", "Email", "csv,"},
		{"sep=;\na;b\n", "-", "", "csv;"},
		{"a\n", "x.tsv", "", "tsv\t"},
		{"17\n18\n", "ids.txt", "line", "lines"},
		{"", "x", "", "jsonl"}, {"\n# only\n", "x", "", "jsonl"}, {"", "x.csv", "", "csv,"},
		{`{"url":"https://a"}` + "\n", "x", "", "jsonl"}, {"{]\n", "x", "", "jsonl"}, {"}\n", "x", "", "jsonl"},
		{`{"custom_id":"a","params":{}}`, "x", "", "jsonl"}, {`{"url":{}}`, "x", "", "jsonl"}, {`{"data":17}`, "x", "", "jsonl"}, {`{"data":""}`, "x", "", "jsonl"},
		{" [\n{", "x", "", "json"},
		{"#!/bin/sh\n\ncurl 'https://a' \\\n", "x", "", "curl"},

		{"PK\x03\x04....xl/workbook.xml", "x", "", "an Excel workbook"}, {"PK\x03\x04", "x.zip", "", "a ZIP archive: unzip -p FILE"},
		{"PAR1\x00", "x", "", "a Parquet file"}, {"\xd0\xcf\x11\xe0", "x", "", "an old Excel workbook"}, {"a\x00\x01b", "x", "", "no text"},
		{"h\x00t\x00t\x00p\x00", "x", "", "text in UTF-16 without a byte order mark"},
		{"<!DOCTYPE html>\n", "x.csv", "", "a page of HTML"}, {"<urls>", "x", "", "XML"},
		{"{\n \"log\": {\n  \"version\": \"1.2\",", "-", "", "har"}, {`{"log":{"entries":[`, "-", "", "har"}, {`{"a":1}`, "x.har", "", "har"}, {`{"log":{"level":"info"}}` + "\n", "-", "", `one object with all in "log"`}, {`{"log":{"level":"info"},"url":1}` + "\n", "-", "", "jsonl"},
		{"{\"info\":{\"_postman_id\":\"x\"},\n\"item\": [", "x", "", "a Postman collection"},
		{"{\n\"openapi\": \"3.0.0\",\n", "x", "", "a description of an API"},
		{"{\n\"a\": 1,\n\"b\": 2\n}\n", "x", "", "an object of JSON over several lines"},
		{`{"data":[{"a":1}]}`, "x", "", `one object with all in "data", expected one object a line: jq -c '.["data"][]' FILE`},
		{`{"data":{"a":{"b":1}}}`, "x", "", `one object with all in "data"`},
		{"curl ^\"https://a^\" ^\n", "x", "", "a curl command for cmd.exe"}, {"fetch(\"https://a\", {", "x", "", "a call of fetch"},
		{"Invoke-WebRequest -Uri", "x", "", "a command of PowerShell"}, {"wget https://a", "x", "", "a command of wget"},
		{"GET https://a\n", "x", "", "a method before a URL"}, {"---\nurl: a\n", "x", "", "YAML"}, {"www.a.example\n", "x", "", "names of hosts"},
		{"hello, world\nand so on\n", "x", "", `its first line is "hello, world", which is none of`},
		{"17\n18\n", "ids.txt", "", `its first line is "17", which is none of`},
	} {
		found, err := Recognize([]byte(c.text), c.name, strings.Fields(c.wanted))
		got := found.Form.String()
		if found.Comma != 0 {
			got += string(found.Comma)
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%q, %s: %s, want %s", c.text, c.name, got, c.want)
		}
	}
}

func wideOf(s string, order binary.AppendByteOrder) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune("\ufeff" + s)) {
		b = order.AppendUint16(b, u)
	}
	return b
}

// A program writes UTF-16 into a pipe, and stops in the middle of a character: what came before is read at once.
func TestDecodeAsItComes(t *testing.T) {
	come := wideOf("a😀", binary.LittleEndian)[:6]
	r := Decode(io.MultiReader(bytes.NewReader(come), iotest.ErrReader(errors.New("it waits for more"))), UTF16LE)
	b := make([]byte, 100)
	if n, err := r.Read(b); string(b[:n]) != "a" || err != nil {
		t.Errorf("%q, %v", b[:n], err)
	}
}

func TestDecode(t *testing.T) {
	text := strings.Repeat("a,ö,😀\r\n", 10_000)
	zip := func(b []byte) []byte {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(b)
		_ = z.Close()
		return packed.Bytes()
	}
	for name, raw := range map[string][]byte{"little": wideOf(text, binary.LittleEndian), "big": wideOf(text, binary.BigEndian), "gzip": zip([]byte(text)), "two": append(zip([]byte(text[:7])), zip([]byte(text[7:]))...),
		"both": zip(wideOf(text, binary.LittleEndian)), "as it is": []byte(text)} {
		for _, slow := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
			got, err := io.ReadAll(slow(Decode(slow(bytes.NewReader(raw)), CodingOf(raw))))
			if err != nil || string(got) != text {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
	}
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{"gzip": {zip([]byte(text))[:50], "gzip: the file is cut off"}, "odd": {wideOf("abc", binary.LittleEndian)[:5], "UTF-16 with an odd number of bytes: the file is cut off"}, "bad": {[]byte("\x1f\x8bxxxxxxxxxxxx"), "gzip: gzip: invalid header"}} {
		if _, err := io.ReadAll(Decode(bytes.NewReader(c.raw), CodingOf(c.raw))); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if got, err := io.ReadAll(Decode(bytes.NewReader([]byte{0xff, 0xfe, 'a', 0, 0, 0xd8, 'b', 0}), UTF16LE)); string(got) != "a\ufffdb" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Any input has one of the forms, or an error that names its kind.
func FuzzRecognize(f *testing.F) {
	for _, s := range []string{"{", "{\"a\":", "curl", "a,b", "\xff\xfe", "sep=", "PK\x03\x04", "\"\n\"", "[", "http"} {
		f.Add([]byte(s), "x.csv")
	}
	f.Fuzz(func(t *testing.T, head []byte, name string) {
		found, err := Recognize(head, name, []string{"a"})
		if (err == nil) != (found.Form != Unknown) {
			t.Fatalf("%q: %v, %v", head, found, err)
		}
		if found.Form == CSV && (found.Comma == 0 || found.Comma == '"' || found.Comma == '\n') {
			t.Fatalf("%q is separated by %q", head, found.Comma)
		}
		HasLine(head)
	})
}
