package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/paceline-go/paceline/internal/text/sanitize"
)

// Harmless returns a writer to w that makes control characters visible, so that a terminal does not
// obey them. The format, json or text, decides their form.
func Harmless(w io.Writer, format string) io.Writer {
	if format == "json" {
		return sanitize.JSONTo(w)
	}
	return sanitize.LinesTo(w)
}

// WriteJSON writes the report of a verb for -o json.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// BadOutput is the error for a -o that names no format of the verb.
func BadOutput(value, forms string) error {
	err := fmt.Errorf("--output %q: want %s", value, forms)
	if LooksLikeFile(value) {
		err = fmt.Errorf("%w; into a file: > %s", err, value)
	}
	return Usage(err)
}

// LooksLikeFile reports whether a word is the name of a file rather than of a format.
func LooksLikeFile(word string) bool {
	return word == "-" || strings.ContainsAny(word, "./"+string(os.PathSeparator))
}

// Quoted writes a word for a shell.
func Quoted(word string) string {
	if !strings.ContainsFunc(word, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-./", r))
	}) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
