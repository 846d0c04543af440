package main

import (
	"io"
	"log"
	"strings"
	"sync"

	"github.com/paceline-go/paceline/internal/shown"
)

// harmless is w, where nothing arrives that a terminal would obey. How it is shown depends on the --output: json or text.
func harmless(w io.Writer, output string) io.Writer {
	if output == "json" {
		return shown.JSONTo(w)
	}
	return shown.LinesTo(w)
}

// overhear tells what others write to package log, net/http above all, once of a kind, until the function that it returns is called.
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
	told map[string]bool // by how a line begins: what follows differs by connection
}

// kindWords is by how many words kinds are told apart.
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
		if !strings.HasPrefix(text, "http") { // http: and http2: say it themselves
			text = "net/http: " + text
		}
		o.tell(text)
	}
	return len(b), nil
}
