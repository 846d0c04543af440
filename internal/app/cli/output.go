package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/text"
)

// Harmless returns a writer to w that makes control characters visible, so that a terminal does not
// obey them. The format, json or text, decides their form.
func Harmless(w io.Writer, format string) io.Writer {
	if format == "json" {
		return text.SanitizeJSONTo(w)
	}
	return text.SanitizeLinesTo(w)
}

// WriteJSON writes the report of a verb for -o json.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// OutputFlag adds the flag -o for the formats of a verb. The first is the default. The verb does not
// run with a word that is no format of its own.
func OutputFlag(c *cobra.Command, to *string, formats ...string) {
	last := len(formats) - 1
	want := strings.Join(formats[:last], ", ") + " or " + formats[last]
	c.Flags().StringVarP(to, "output", "o", formats[0], want)
	c.PreRunE = func(*cobra.Command, []string) error {
		if slices.Contains(formats, *to) {
			return nil
		}
		err := fmt.Errorf("--output %q: want %s", *to, want)
		if LooksLikeFile(*to) {
			err = fmt.Errorf("%w; into a file: > %s", err, *to)
		}
		return Usage(err)
	}
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
