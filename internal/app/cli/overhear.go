package cli

import (
	"log"
	"strings"
	"sync"
)

// Overhear passes lines that other packages write to package log, above all net/http, to say. It
// passes one line of each kind, until stop is called.
func Overhear(say func(string)) (stop func()) {
	w, flags, prefix := log.Writer(), log.Flags(), log.Prefix()
	log.SetOutput(&overheard{say: say, said: map[string]bool{}})
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
	say func(string)

	mu   sync.Mutex
	said map[string]bool // keyed by the beginning of a line: the rest differs by connection
}

// kindWords is how many words at the beginning of a line identify its kind.
const kindWords = 4

func (o *overheard) Write(b []byte) (int, error) {
	words := strings.Fields(string(b))
	kind := strings.Join(words[:min(len(words), kindWords)], " ")
	o.mu.Lock()
	news := !o.said[kind] && len(o.said) < 100
	o.said[kind] = true
	o.mu.Unlock()
	if news {
		text := strings.TrimRight(string(b), "\n")
		if !strings.HasPrefix(text, "http") { // lines of http: and http2: name their origin themselves
			text = "net/http: " + text
		}
		o.say(text)
	}
	return len(b), nil
}
