package explain

import (
	"bufio"
	"bytes"
	"net/http"
	"net/textproto"

	"github.com/paceline-go/paceline/internal/send/decode"
	"github.com/paceline-go/paceline/provider"
)

// decoded returns a text as curl -i writes it into a file, with the body of the last answer out of
// its content coding. Other texts, and what cannot be decoded, stay as they are.
func decoded(text []byte) []byte {
	head, body := []byte(nil), text
	for bytes.HasPrefix(body, []byte("HTTP/")) { // after a redirect, or 100 Continue
		var ok bool
		if head, body, ok = bytes.Cut(body, []byte("\r\n\r\n")); !ok {
			return text
		}
	}
	_, fields, _ := bytes.Cut(head, []byte("\r\n"))
	h, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(bytes.Clone(fields),
		"\r\n\r\n"...)))).ReadMIMEHeader()
	if err != nil {
		return text
	}
	plain := Decoded(http.Header(h), body)
	return append(bytes.Clone(text[:len(text)-len(body)]), plain...)
}

// Decoded returns the beginning of a body without the content codings that its header names, and
// the body itself if it is not in them.
func Decoded(h http.Header, body []byte) []byte {
	if plain, err := decode.Of(h).Prefix(body, max(len(body), provider.MaxBody+1)); err == nil {
		return plain
	}
	return body
}
