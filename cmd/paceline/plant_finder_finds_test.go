package main

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/url"
	"strings"
	"testing"
)

func packed(open func(io.Writer) io.WriteCloser, s string) string {
	var b bytes.Buffer
	w := open(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

// What hides a secret from a reader does not hide it from findPlants.
func TestFindPlants(t *testing.T) {
	const value = `s3cr/et+v4lue&"X9<ü>Zq`
	each := func(format string) (s string) {
		for _, c := range []byte(value) {
			s += fmt.Sprintf(format, c)
		}
		return s
	}
	quoted, _ := json.Marshal(value)
	twice, _ := json.Marshal(string(quoted))
	for name, text := range map[string]string{
		"plain": value, "a part": value[4:14], "base64": base64.StdEncoding.EncodeToString([]byte(value)), "base64 after one": base64.URLEncoding.EncodeToString([]byte("a" + value)),
		"base64 after two": base64.StdEncoding.EncodeToString([]byte("me:" + value)), "base64 twice": base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(value)))),
		"JSON": string(quoted), "JSON twice": string(twice), "each escaped": each(`\u%04x`), "Go": fmt.Sprintf("%q", value), "query": url.QueryEscape(value), "path": url.PathEscape(value), "each in percent": each("%%%02X"),
		"HTML": html.EscapeString(value), "hexadecimal": hex.EncodeToString([]byte(value)),
		"gzip": packed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, "a "+value), "zlib": packed(func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }, value),
		"gzip in base64": base64.StdEncoding.EncodeToString([]byte(packed(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }, value))),
		"query in JSON":  `{"u":"http:\/\/h\/?k=` + url.QueryEscape(value) + `"}`,
	} {
		for _, around := range []string{"%s", "{\"x\": \"%s\"}\n", strings.Repeat("text ", 100) + "%s,"} {
			if found := findPlants(fmt.Appendf(nil, around, text), map[string]string{"S": value, "other": "not-there-at-all"}); len(found) != 1 || found[0].Secret != "S" {
				t.Errorf("%s in %.20q: %v", name, around, found)
			}
		}
	}
	for i := 0; i+plantWindow <= len(value); i++ {
		if text := []byte("a " + value[i:i+plantWindow] + " b"); plantIn(text, value) != 2 || plantIn(text[:len(text)-3], value) >= 0 {
			t.Errorf("window %d: found at %d; without its end at %d", i, plantIn(text, value), plantIn(text[:len(text)-3], value))
		}
	}
	for _, text := range []string{"", "s3cr/et", "[S]", "s3cr … X9", base64.StdEncoding.EncodeToString([]byte("s3cr/et+"))} {
		if found := findPlants([]byte(text), map[string]string{"S": value}); len(found) != 0 {
			t.Errorf("%q: %v", text, found)
		}
	}
}
