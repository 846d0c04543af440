package llm

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

func (l *Server) refuse(w http.ResponseWriter, c *call, p *problem) {
	status, body := l.speak.refusal(p, c.id)
	respond(w, status, body)
}

func respond(w http.ResponseWriter, status int, body any) {
	text := encode(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	w.Write(text) // an error means that the client has gone
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings
	}
	return text
}

// whole answers with one document.
func (l *Server) whole(w http.ResponseWriter, r *http.Request, c *call) {
	l.generate(r.Context(), c)
	l.settle(c, c.used) // everything was generated, whether or not the client waits for it
	l.processing(w, c)
	text := encode(l.speak.whole(c))
	w.Header().Set("Content-Type", "application/json")
	switch c.fault {
	case Cut:
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.Write(text[:len(text)/2])
		abort(w)
	case Ended: // without a Content-Length the client cannot detect it
		text = text[:len(text)/2]
	default:
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.Write(text)
}

// processing writes the server's working time since the check. The request was counted by then, and
// clients may conclude that.
func (l *Server) processing(w http.ResponseWriter, c *call) {
	if l.config.Provider == OpenAI {
		w.Header().Set("Openai-Processing-Ms", strconv.FormatInt(l.now().Sub(c.passed).Milliseconds(), 10))
	}
}

// stream answers with a stream of events.
func (l *Server) stream(w http.ResponseWriter, r *http.Request, c *call) {
	there := l.pause(r.Context(), c.first)
	l.processing(w, c)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	done := int64(0)
	put := func(e event) bool {
		var text []byte
		if e.name != "" {
			text = append(append(append(text, "event: "...), e.name...), '\n')
		}
		text = append(text, "data: "...)
		if s, ok := e.data.(string); ok {
			text = append(text, s...)
		} else {
			text = append(text, encode(e.data)...)
		}
		_, err := w.Write(append(text, "\n\n"...))
		control.Flush() // a writer without Flush is no network connection
		return err == nil
	}
	// left settles a stream that the client left: its input, and the output generated so far.
	left := func() {
		u := c.used
		u.Output = min(done, u.Output)
		u.Reasoning = min(u.Reasoning, u.Output)
		l.settle(c, u)
	}
	for e := range l.speak.events(c) {
		if there = there && l.pause(r.Context(), time.Duration(e.done-done)*c.perToken); !there {
			left()
			return
		}
		if broken := 2*e.done >= c.used.Output && e.done > 0 || e.last; broken {
			switch c.fault {
			case Cut:
				left()
				abort(w)
			case Ended:
				left()
				return
			case ErrorEvent:
				left()
				put(l.speak.broken(c))
				return
			}
		}
		done = max(done, e.done)
		l.produced(c, done)
		if e.last {
			l.settle(c, c.used)
		}
		there = put(e)
	}
	l.settle(c, c.used)
}

// reset closes the connection so that the client sees it reset.
func reset(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		conn.Close()
		return
	}
	panic(http.ErrAbortHandler)
}

// abort breaks the connection after the bytes written so far.
func abort(w http.ResponseWriter) {
	http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// garble replaces the fields about limits by nonsense.
func garble(h http.Header) {
	for name := range h {
		lower := strings.ToLower(name)
		switch {
		case lower == "retry-after-ms":
			h.Set(name, "-1")
		case lower == "retry-after":
			h.Set(name, "31536000")
		case !strings.Contains(lower, "ratelimit"):
		case strings.Contains(lower, "remaining"):
			h.Set(name, "-1")
		case strings.Contains(lower, "reset"):
			h.Set(name, "soon")
		default:
			h.Set(name, "0")
		}
	}
}

// prose has words of three letters. With the space after it, each word is one token of four
// characters.
const prose = "the cat sat and ate one fig but her dog ran off mud hut sun set low old man dug his own pit raw egg " +
	"hot tea dry rye jam tin "

// text returns made-up text of so many tokens, beginning at token from.
func text(from, tokens int64) string {
	var b strings.Builder
	b.Grow(int(4 * tokens))
	for at := 4 * from % int64(len(prose)); tokens > 0; at = 0 {
		n := min(4*tokens, int64(len(prose))-at)
		b.WriteString(prose[at : at+n])
		tokens -= n / 4
	}
	return b.String()
}
