package pool

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/limit"
)

const (
	// maxUnreported is how many ends may wait to be reported. Beyond it Submit waits, and nothing
	// is sent.
	maxUnreported = 1000
	// atATime is how many ends are reported before the rest is counted again.
	atATime = 64
)

// keepEnded keeps an end until it is reported. It is called with the lock held.
func (p *Pool) keepEnded(e Ended) {
	p.ended = append(p.ended, e)
	if wasAnswered(&e) {
		p.unread++
	}
}

func wasAnswered(e *Ended) bool { return e.Attempts > 0 && e.State != Expired }

// unreportedLocked reports whether Run has something to report.
func (p *Pool) unreportedLocked() bool {
	return len(p.ended) > 0 || len(p.outages) > 0 || len(p.slow) > 0 || len(p.learned) > 0
}

// report passes ends, outages and lessons to the Config's functions. Run alone calls it.
func (p *Pool) report() {
	p.mu.Lock()
	for p.unreportedLocked() {
		batch, outages, slow, learned := p.batch[:copy(p.batch[:], p.ended)], p.outages, p.slow, p.learned
		p.ended, p.outages, p.slow, p.learned = without(p.ended, len(batch)), nil, nil, nil
		lessons := make([][]limit.Lesson, len(learned))
		for i, key := range learned {
			lessons[i] = p.dispatcher.Lessons(key)
		}
		p.reporting = max(1, len(batch))
		p.mu.Unlock()
		for i, key := range learned {
			p.config.Learned(key, lessons[i])
		}
		for i := range outages {
			p.reportOutage(&outages[i])
		}
		for i := range slow {
			p.reportSlow(&slow[i])
		}
		for _, e := range batch {
			if e.State == Expired {
				p.log.Debug("expired", "id", e.Request.ID, "attempts", e.Attempts, "submitted", e.Submitted, "reason", e.Reason)
			}
			if p.config.Ended != nil && p.config.EndedAll == nil {
				p.config.Ended(e)
			}
		}
		if p.config.EndedAll != nil && len(batch) > 0 {
			p.config.EndedAll(batch)
		}
		p.mu.Lock()
		for i := range batch {
			if wasAnswered(&batch[i]) {
				p.unread--
			}
		}
		clear(batch)
		p.reporting = 0
		p.step(p.Now()) // the report may have been all that was left, or all that Submit waited for
	}
	p.unlock()
}

// without returns all but the first n. It moves the rest to the front, to reuse the memory. It does
// not if the rest is more than n, since any number of requests may expire at once.
func without(all []Ended, n int) []Ended {
	rest := all[n:]
	if len(rest) > n {
		clear(all[:n])
		return rest
	}
	rest = append(all[:0], rest...)
	clear(all[len(rest):])
	return rest
}

func (p *Pool) reportOutage(h *HostInfo) {
	bad, good := slog.LevelWarn, slog.LevelInfo
	if p.config.Outage != nil {
		bad, good = slog.LevelDebug, slog.LevelDebug // the Outage function reports it in its own way
		defer p.config.Outage(*h)
	}
	if h.Down {
		p.log.Log(p.ctx, bad, "host is down", "host", h.Host, "kind", h.Kind.String(), "reason", h.Reason)
	} else {
		p.log.Log(p.ctx, good, "host is back", "host", h.Host, "after", h.Lasted)
	}
}

// slowHost is a host whose answers take longer than all of the time of a request.
type slowHost struct {
	HostInfo
	whole time.Duration
}

func (s *slowHost) String() string {
	return fmt.Sprintf("answers take %s (p95), and a request may wait %s in all: one at a time goes",
		text.Span(s.AnswerTime), text.Span(s.whole))
}

func (p *Pool) reportSlow(s *slowHost) {
	if p.config.Slow != nil {
		p.config.Slow(s.HostInfo, s.whole)
		return
	}
	p.log.Warn("host is too slow", "host", s.Host, "reason", s.String())
}
