package journal

import (
	"fmt"
	"sync"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// finding is the memory of an Auto at an instant.
type finding struct {
	written []byte
	at      time.Time
	undated bool // the age is not known, and at is the latest possible instant
}

// Findings keeps what each fairshare.Auto has found about an unknown limit over restarts, by a name, for
// the proxy and for `run`. A goroutine of its own writes it to a journal, so that no request waits for
// a disk while a limiter's lock is held. If the process is killed before such a write, the journal still
// has the requests that were sent. It is safe for concurrent use.
type Findings struct {
	journal *Journal
	failed  func(error)

	mu      sync.Mutex
	latest  map[string]finding
	news    map[string]struct{} // names whose latest memory is still to be written
	writing bool
	written sync.Cond // the writer has ended
}

// NewFindings returns Findings with the memories that earlier processes left in a journal, opened at
// began. failed gets the first error of a write.
func NewFindings(j *Journal, left *History, began time.Time, failed func(error)) *Findings {
	b := &Findings{journal: j, failed: failed, latest: map[string]finding{}, news: map[string]struct{}{}}
	b.written.L = &b.mu
	for name, m := range left.Memories {
		b.latest[name] = finding{m.Written, began.Add(time.Duration(m.At - began.UnixNano())), left.Undated}
	}
	return b
}

// mostFindings is the number of memories in Findings. Beyond it the oldest one goes, and its limiter begins
// anew after the next restart.
const mostFindings = 1 << 10

func (b *Findings) put(name string, n finding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest[name], b.news[name] = n, struct{}{}
	if len(b.latest) > mostFindings {
		oldest := name
		for other, o := range b.latest {
			if o.at.Before(b.latest[oldest].at) {
				oldest = other
			}
		}
		delete(b.latest, oldest)
		delete(b.news, oldest)
	}
	if !b.writing {
		b.writing = true
		go b.writeAll()
	}
}

func (b *Findings) writeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.news) > 0 {
		for name := range b.news {
			delete(b.news, name)
			n := b.latest[name]
			b.mu.Unlock()
			err := b.journal.Remember(name, n.written, n.at)
			b.mu.Lock()
			if err != nil && b.failed != nil {
				b.failed(err)
				b.failed = nil
			}
		}
	}
	b.writing = false
	b.written.Broadcast()
}

// Flush returns when every memory is written.
func (b *Findings) Flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.writing {
		b.written.Wait()
	}
}

// LastingAuto is an Auto whose memory is in Findings. Like an Auto, it is not safe for concurrent use.
type LastingAuto struct {
	*fairshare.Auto
	book *Findings
	name string
	news uint64
	say  func(text string, sure bool)
}

// LastingAuto returns a new Auto, a, with its memory under a name in b. limit.Replay continues from
// that memory. Then say gets a text for people, without a subject, about the state from which it
// continues. sure is false if the limiter begins anew, or if the age of the memory is not known.
func (b *Findings) Limiter(name string, a *fairshare.Auto, say func(text string, sure bool)) *LastingAuto {
	return &LastingAuto{Auto: a, book: b, name: name, say: say}
}

// Settle implements limit.Limiter.
func (l *LastingAuto) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	l.Auto.Settle(now, s, o)
	l.note(now)
}

// State answers ability.State.
func (l *LastingAuto) State(now mono.Time, all []limit.Rule) {
	l.Auto.State(now, all)
	l.note(now)
}

func (l *LastingAuto) note(now mono.Time) {
	if n := l.News(); n != l.news {
		l.news = n
		l.book.put(l.name, finding{written: l.AppendMemory(nil, now), at: time.Now()})
	}
}

// Resume answers limit.Replay.
func (l *LastingAuto) Resume(now mono.Time, all []limit.Past) {
	l.book.mu.Lock()
	n, known := l.book.latest[l.name]
	l.book.mu.Unlock()
	if !known {
		return
	}
	ago := max(time.Since(n.at), 0)
	if err := l.Recall(now, now.Add(-ago), n.written, all); err != nil {
		l.say(fmt.Sprintf("begins anew: %v", err), false)
		return
	}
	l.news = l.News()
	when := text.Span(max((ago+time.Second-1).Truncate(time.Second), time.Second)) + " ago"
	if n.undated {
		when = "before the machine was started again, nobody knows when, so what it waits for counts from now"
	}
	l.say(fmt.Sprintf("goes on with what was found %s: %v", when, l.Found()), !n.undated)
}
