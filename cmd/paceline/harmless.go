package main

import (
	"encoding/json"
	"io"
	"log"
	"strings"
	"sync"

	"github.com/paceline-go/paceline/internal/text/sanitize"
)

// harmless returns a writer to w that makes control characters visible, so that a terminal does not obey them. --output, json or text,
// decides how it shows them.
func harmless(w io.Writer, output string) io.Writer {
	if output == "json" {
		return sanitize.JSONTo(w)
	}
	return sanitize.LinesTo(w)
}

// writeJSON writes what a verb reports with -o json.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// overhear passes to tell what other packages, above all net/http, write to package log. Of each kind of line it passes one, until stop is
// called.
func overhear(tell func(string)) (stop func()) {
	w, flags, prefix := log.Writer(), log.Flags(), log.Prefix()
	log.SetOutput(&overheard{tell: tell, told: map[string]bool{}})
	log.SetFlags(0)
	log.SetPrefix("")
	return func() {
		log.SetOutput(w)
		log.SetFlags(flags)
		log.SetPrefix(prefix)
	}
}

// overheard is safe for concurrent use.
type overheard struct {
	tell func(string)

	mu   sync.Mutex
	told map[string]bool // keyed by how a line begins, since the rest differs by connection
}

// kindWords is how many words at the beginning of a line tell its kind.
const kindWords = 4

func (o *overheard) Write(b []byte) (int, error) {
	words := strings.Fields(string(b))
	kind := strings.Join(words[:min(len(words), kindWords)], " ")
	o.mu.Lock()
	news := !o.told[kind] && len(o.told) < 100
	o.told[kind] = true
	o.mu.Unlock()
	if news {
		text := strings.TrimRight(string(b), "\n")
		if !strings.HasPrefix(text, "http") { // lines of http: and http2: name their origin themselves
			text = "net/http: " + text
		}
		o.tell(text)
	}
	return len(b), nil
}
