// Package learned keeps over restarts what fairshare.Auto has found of limits that nobody knows: for the proxy and for `run`. What an Auto
// remembers is handed to a goroutine that writes it, so that nobody waits for a disk with a limiter's lock held; what is lost if the
// process is killed at that very moment, the journal has as requests that were sent.
package learned

import (
	"fmt"
	"sync"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/text/humanize"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// note is what an Auto remembered at an instant.
type note struct {
	written []byte
	at      time.Time
	undated bool // nobody knows how long ago that was, and at is the latest that it may be
}

// Book keeps in a journal what each Auto remembers, by its name. Safe for concurrent use.
type Book struct {
	journal *journal.Journal
	failed  func(error)

	mu      sync.Mutex
	latest  map[string]note
	news    map[string]struct{} // whose latest is to be written
	writing bool
	written sync.Cond // no more is being written
}

// NewBook returns a Book that has what earlier processes left in a journal, which was opened at began. failed is told of the first error in
// writing to it.
func NewBook(j *journal.Journal, left *journal.History, began time.Time, failed func(error)) *Book {
	b := &Book{journal: j, failed: failed, latest: map[string]note{}, news: map[string]struct{}{}}
	b.written.L = &b.mu
	for name, m := range left.Memories {
		b.latest[name] = note{m.Written, began.Add(time.Duration(m.At - began.UnixNano())), left.Undated}
	}
	return b
}

// most is of how many it is known here what they remember. Whoever is not heard of for so long that so many others come begins anew.
const most = 1 << 10

func (b *Book) put(name string, n note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest[name], b.news[name] = n, struct{}{}
	if len(b.latest) > most {
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

func (b *Book) writeAll() {
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

// Flush returns when all that is known is written.
func (b *Book) Flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.writing {
		b.written.Wait()
	}
}

// Limiter is an Auto whose memory is in a Book. Like it, not safe for concurrent use.
type Limiter struct {
	*fairshare.Auto
	book *Book
	name string
	news uint64
	say  func(text string, sure bool)
}

// Limiter returns a, which is new, with its memory under a name in b. limit.Replay has it go on from that, and say is then told, in a text
// for people without a subject, what it goes on with. sure is false where it begins anew, and where nobody knows how old that is.
func (b *Book) Limiter(name string, a *fairshare.Auto, say func(text string, sure bool)) *Limiter {
	return &Limiter{Auto: a, book: b, name: name, say: say}
}

// Settle implements limit.Limiter.
func (l *Limiter) Settle(now mono.Time, lease limit.Lease, o limit.Outcome) {
	l.Auto.Settle(now, lease, o)
	l.note(now)
}

// State implements limit.Taught.
func (l *Limiter) State(now mono.Time, all []limit.Stated) {
	l.Auto.State(now, all)
	l.note(now)
}

func (l *Limiter) note(now mono.Time) {
	if n := l.News(); n != l.news {
		l.news = n
		l.book.put(l.name, note{written: l.AppendMemory(nil, now), at: time.Now()})
	}
}

// Resume implements limit.Resuming.
func (l *Limiter) Resume(now mono.Time, all []limit.Past) {
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
	when := humanize.Span(max((ago+time.Second-1).Truncate(time.Second), time.Second)) + " ago"
	if n.undated {
		when = "before the machine was started again, nobody knows when, so what it waits for counts from now"
	}
	l.say(fmt.Sprintf("goes on with what was found %s: %v", when, l.Found()), !n.undated)
}
