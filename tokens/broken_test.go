package tokens

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A broken document of an answer is not accepted as a whole one. One byte is missing, or another
// byte replaces it, and the result is no JSON. In skipped parts the scanner only counts brackets.
func TestBrokenDocuments(t *testing.T) {
	const doc = `{"usage": {"prompt_tokens": 31, "completion_tokens" : 12,"prompt_tokens_details":{"cached_tokens":8}} , "done":true}`
	whole := func(text string) bool {
		var s scanner
		s.feed([]byte(text))
		return s.closed && !s.broken
	}
	if !whole(doc) {
		t.Fatal("it is whole")
	}
	for i := range len(doc) {
		for _, other := range []string{"", "x", `"`, "{", "}", ":", ",", "]"} {
			changed := doc[:i] + other + doc[i+1:]
			valid := json.Valid([]byte(changed))
			if valid && !whole(changed) {
				t.Errorf("%s is JSON, and not taken for a whole document", changed)
			}
			if structural := strings.IndexByte("{}:,", doc[i]) >= 0; structural && other == "" && !valid && whole(changed) {
				t.Errorf("%s is taken for a whole document", changed)
			}
		}
	}
}

// The content of a chunk is found in pieces of any size, beside any other members, and with escaped
// slashes.
func TestEnclosedInPieces(t *testing.T) {
	text := strings.Repeat("\xff\xfe\xfd what is said ???>>>", 9)
	coded := base64.StdEncoding.EncodeToString([]byte(text))
	if !strings.Contains(coded, "/") {
		t.Fatal("nothing to escape")
	}
	for _, chunk := range []string{
		`{"bytes":"` + coded + `"}`,
		`{"bytes":"` + strings.ReplaceAll(coded, "/", `\/`) + `","p":"abcdefgh"}`,
		`{"p":"a\"b\\","other":{"bytes":"QUJD"},"list":["bytes",{"bytes":"QUJD"}], "bytes" : "` + coded + `"}`,
		`{"bytes":null,"bytes":"` + coded + `","n":1}`,
	} {
		for size := 1; size <= len(chunk); size += 1 + size/3 {
			var e enclosed
			var got []byte
			for at := 0; at < len(chunk); at += size {
				e.feed([]byte(chunk[at:min(at+size, len(chunk))]), func(p []byte) { got = append(got, p...) })
			}
			if string(got) != text {
				t.Fatalf("%.40s… in pieces of %d: %q", chunk, size, got)
			}
		}
	}
}

// Content may contain content, eight deep. Deeper content counts as text.
func TestContentInContent(t *testing.T) {
	nest := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for n := range 14 {
		for api, body := range map[API]string{
			Messages: `{"messages":[{"role":"user","content":[` + nest(`{"type":"document","source":{"type":"content","content":[`, `{"type":"text","text":"abc"}`, `]}}`, n) + `]}]}`,
			Converse: `{"messages":[{"role":"user","content":[` + nest(`{"toolResult":{"content":[`, `{"text":"abc"}`, `]}}`, n) + `]}]}`,
		} {
			b, err := Parse(api, []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			if deep := b.TextBytes > 3; deep != (n > maxDepth) || maxDepth != 8 {
				t.Errorf("%v, %d deep: %s", api, n, fmt.Sprint(b.TextBytes, " bytes of text"))
			}
		}
	}
}
