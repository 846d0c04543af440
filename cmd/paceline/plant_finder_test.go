package main

// This file finds secrets that a test has planted, in whatever form software may have written them. It
// shares no code with package secret, which hides them: what proves shares nothing with what is proven.

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"iter"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// plantWindow is how many bytes of a secret in a row are a find. Less of it says little, and may be
// chance.
const plantWindow = 9

// foundPlant is a place with a secret.
type foundPlant struct {
	Secret string // the name of the secret
	Form   string // how it is written, from the outermost: base64, gzip
	Around string // the text around it
}

func (f foundPlant) String() string {
	return fmt.Sprintf("%s, written as %s: …%q…", f.Secret, f.Form, f.Around)
}

// findPlants looks for secrets, by their names, in a text. It finds a part of a secret, too, and looks
// into what is escaped, encoded or compressed, up to three times one in another.
func findPlants(text []byte, secrets map[string]string) (all []foundPlant) {
	const deep = 3
	seen, looked := map[string]bool{}, map[[sha256.Size]byte]bool{}
	var look func(text []byte, form string, depth int)
	look = func(text []byte, form string, depth int) {
		if sum := sha256.Sum256(text); len(text) < plantWindow || looked[sum] {
			return
		} else {
			looked[sum] = true
		}
		for name, value := range secrets {
			if at := plantIn(text, value); at >= 0 && !seen[name] {
				seen[name] = true
				all = append(all, foundPlant{name, form, string(text[max(0, at-60):min(len(text), at+60)])})
			}
		}
		if depth == deep {
			return
		}
		for _, r := range readings {
			for _, inner := range r.read(text) {
				look(inner, strings.TrimPrefix(form+", "+r.name, "text, "), depth+1)
			}
		}
	}
	look(text, "text", 0)
	return all
}

// plantIn returns where a text has a window of the value; -1: nowhere.
func plantIn(text []byte, value string) int {
	if len(value) >= plantWindow && !pieceIn(text, value) {
		return -1
	}
	for i := 0; i == 0 || i+plantWindow <= len(value); i++ {
		if at := bytes.Index(text, []byte(value[i:min(len(value), i+plantWindow)])); at >= 0 {
			return at
		}
	}
	return -1
}

// pieceIn reports whether a text has a piece of the value of which each window has one in full. It is for speed: most texts
// are searched for these few, and not for each window.
func pieceIn(text []byte, value string) bool {
	const size = 4
	for i := 0; i+size <= len(value); i += plantWindow - size + 1 {
		if bytes.Contains(text, []byte(value[i:i+size])) {
			return true
		}
	}
	return false
}

// reading takes one form of writing off a text. It returns nothing if the text has nothing in that
// form.
type reading struct {
	name string
	read func(text []byte) [][]byte
}

var (
	escapes        = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\.`)
	percentEscapes = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
)

var readings = []reading{
	{"base64", func(text []byte) (all [][]byte) {
		for run := range runs(text, 12, isBase64) {
			if all == nil {
				all = make([][]byte, 4) // of every fourth character on
			}
			plain := bytes.ReplaceAll(bytes.ReplaceAll(run, []byte("-"), []byte("+")), []byte("_"), []byte("/"))
			for skip := range all {
				piece := plain[skip:]
				if b, err := base64.RawStdEncoding.AppendDecode(all[skip], piece[:len(piece)/4*4]); err == nil {
					all[skip] = append(b, '\n')
				}
			}
		}
		return all
	}},
	{"hexadecimal", func(text []byte) (all [][]byte) {
		var b []byte
		for run := range runs(text, 18, isHex) {
			b, _ = hex.AppendDecode(b, run[:len(run)/2*2]) // it has digits alone
			b = append(b, '\n')
		}
		return [][]byte{b}
	}},
	{"escapes", func(text []byte) [][]byte {
		return changed(text, escapes.ReplaceAllFunc(text, func(e []byte) []byte {
			var s string
			if json.Unmarshal([]byte(`"`+string(e)+`"`), &s) == nil {
				return []byte(s)
			}
			if s, err := strconv.Unquote(`"` + string(e) + `"`); err == nil {
				return []byte(s)
			}
			return e[1:]
		}))
	}},
	{"percent", func(text []byte) [][]byte {
		return changed(text, percentEscapes.ReplaceAllFunc(bytes.ReplaceAll(text, []byte("+"), []byte(" ")), func(e []byte) []byte {
			s, _ := url.PathUnescape(string(e))
			return []byte(s)
		}), percentEscapes.ReplaceAllFunc(text, func(e []byte) []byte {
			s, _ := url.PathUnescape(string(e))
			return []byte(s)
		}))
	}},
	{"HTML", func(text []byte) [][]byte { return changed(text, []byte(html.UnescapeString(string(text)))) }},
	{"gzip", func(text []byte) [][]byte {
		return unpacked(text, "\x1f\x8b\x08", func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) })
	}},
	{"deflate", func(text []byte) [][]byte { return unpacked(text, "\x78", zlib.NewReader) }},
}

// runs are the longest parts of a text that have these bytes alone, if they are not shorter than least. An expression
// would take a tenth of the time of all tests here.
func runs(text []byte, least int, has func(rune) bool) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for run := range bytes.FieldsFuncSeq(text, func(c rune) bool { return !has(c) }) {
			if len(run) >= least && !yield(run) {
				return
			}
		}
	}
}

func isHex(c rune) bool { return '0' <= c && c <= '9' || 'a' <= c|' ' && c|' ' <= 'f' }

func isBase64(c rune) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '+' || c == '/' || c == '_' || c == '-'
}

// changed are those texts that differ from the one that was read.
func changed(was []byte, read ...[]byte) (all [][]byte) {
	for _, b := range read {
		if !bytes.Equal(b, was) {
			all = append(all, b)
		}
	}
	return all
}

// unpacked are the contents of what begins with magic in a text.
func unpacked(text []byte, magic string, open func(io.Reader) (io.ReadCloser, error)) (all [][]byte) {
	for at := 0; ; at++ {
		i := bytes.Index(text[at:], []byte(magic))
		if i < 0 {
			return all
		}
		at += i
		r, err := open(bytes.NewReader(text[at:]))
		if err != nil {
			continue
		}
		const most = 1 << 20
		b, _ := io.ReadAll(io.LimitReader(r, most)) // it may be cut off
		if len(b) > 0 {
			all = append(all, b)
		}
	}
}
