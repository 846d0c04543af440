package llm

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/ratetest/internal/model"
)

func (l *Server) refuse(w http.ResponseWriter, c *call, p *problem) {
	status, body := l.speak.refusal(p, c.ID)
	respond(w, status, body)
}

func respond(w http.ResponseWriter, status int, body any) {
	text := model.Encode(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	w.Write(text) // an error means that the client has gone
}

// whole answers with one document.
func (l *Server) whole(w http.ResponseWriter, r *http.Request, c *call) {
	l.generate(r.Context(), c)
	l.settle(c, c.Used) // everything was generated, whether or not the client waits for it
	l.processing(w, c)
	text := model.Encode(l.speak.Whole(&c.Answer))
	w.Header().Set("Content-Type", "application/json")
	switch c.fault {
	case faultCut:
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		w.Write(text[:len(text)/2])
		abort(w)
	case faultEnded: // without a Content-Length the client cannot detect it
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
	put := func(e model.Event) bool {
		_, err := w.Write(e.Text())
		control.Flush() // a writer without Flush is no network connection
		return err == nil
	}
	// left settles a stream that the client left: its input, and the output generated so far.
	left := func() {
		u := c.Used
		u.Output = min(done, u.Output)
		u.Reasoning = min(u.Reasoning, u.Output)
		l.settle(c, u)
	}
	for e := range l.speak.Events(&c.Answer) {
		if there = there && l.pause(r.Context(), time.Duration(e.Done-done)*c.perToken); !there {
			left()
			return
		}
		if broken := 2*e.Done >= c.Used.Output && e.Done > 0 || e.Last; broken {
			switch c.fault {
			case faultCut:
				left()
				abort(w)
			case faultEnded:
				left()
				return
			case faultErrorEvent:
				left()
				put(l.speak.broken(c))
				return
			}
		}
		done = max(done, e.Done)
		l.produced(c, done)
		if e.Last {
			l.settle(c, c.Used)
		}
		there = put(e)
	}
	l.settle(c, c.Used)
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
