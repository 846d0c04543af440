package sending

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"
)

// Interim answers of paceline proxy to a client of paceline say in this field where its request is.
const (
	FieldLine = "Paceline-Line"
	// LineWaits: it waits in the proxy, and nothing of it has been sent since the proxy said so.
	LineWaits = "waits"
	// LineSent: it may be sent from now on. The proxy says it before the first byte goes.
	LineSent = "sent"
)

// withdrawal is how long a proxy has time to say whether it sent a request that is withdrawn.
const withdrawal = 5 * time.Second

// lines are the attempts that wait in a proxy. Safe for concurrent use.
type lines struct {
	mu        sync.Mutex
	in        map[*patience]struct{}
	withdraws bool
}

// enter notes that an attempt waits. It reports whether it is to be withdrawn.
func (l *lines) enter(p *patience) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in == nil {
		l.in = map[*patience]struct{}{}
	}
	l.in[p] = struct{}{}
	return l.withdraws
}

func (l *lines) leave(p *patience) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.in, p)
}

// InLine is how many attempts wait in a proxy, as it says.
func (s *Sender) InLine() int {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	return len(s.lines.in)
}

// Withdraw takes back all attempts that wait in a proxy, now and later. Those that the proxy did not send lapse.
func (s *Sender) Withdraw() {
	s.lines.mu.Lock()
	s.lines.withdraws = true
	var all []*patience
	for p := range s.lines.in {
		all = append(all, p)
	}
	s.lines.mu.Unlock()
	for _, p := range all {
		p.withdraw()
	}
}

// Said takes in an interim answer. While the proxy says that the request waits, the timeout begins anew: the wait is no
// time of the server.
func (p *patience) Said(h http.Header) {
	switch h.Get(FieldLine) {
	case LineWaits:
		p.mu.Lock()
		p.waits = true
		p.anewLocked(p.s.timeout)
		p.mu.Unlock()
		if p.s.lines.enter(p) {
			p.withdraw()
		}
	case LineSent:
		p.s.lines.leave(p)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.anewLocked(p.s.timeout)
		p.waits, p.sent = false, p.began
	}
}

// anewLocked gives the attempt so much time from now on.
func (p *patience) anewLocked(d time.Duration) {
	p.end()
	p.began, p.left, p.own = time.Now(), d, time.AfterFunc(d, p.Expired)
}

// withdraw takes the attempt back, if it waits.
func (p *patience) withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits && !p.withdrawn && p.wire.Withdraw() {
		p.withdrawn = true
		p.anewLocked(min(withdrawal, p.s.timeout))
	}
}

// lapsed ends the wait for an answer. It reports whether an attempt that ended with err was withdrawn
// before the proxy sent it. The proxy says that it sends before it does so, and what it said comes
// before the end of the connection.
func (p *patience) lapsed(err error) bool {
	p.s.lines.leave(p)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits = false
	return p.withdrawn && p.sent.IsZero() && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF))
}

// timed takes the time in line out of that of the answer.
func (p *patience) timed(out *Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if out.Written && !p.sent.IsZero() {
		out.InLine, out.Began, out.RTT = p.sent.Sub(out.Began), p.sent, out.Ended.Sub(p.sent)
	}
}
