package paceline

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// unsettledAfter is the age at which an open permit, or a wait for nothing but a Settle, is logged.
const unsettledAfter = time.Minute

// unsettled is how many permits are open at a limit, of all lanes that share it.
type unsettled struct {
	permits int
	oldest  time.Duration
}

func (u unsettled) String() string {
	if u.permits == 1 {
		return fmt.Sprintf("1 permit unsettled, for %v", u.oldest.Round(time.Second))
	}
	return fmt.Sprintf("%d permits unsettled, the oldest for %v", u.permits, u.oldest.Round(time.Second))
}

// unsettledLocked returns the open permits for which the first in line waits. It is zero if an
// event other than a Settle will help, or if no permit is old enough.
func (a *Lane) unsettledLocked(now mono.Time) (u unsettled) {
	on, at := a.lane.At()
	if on == nil || at != limit.AfterSettle {
		return u
	}
	if ability.Lapses(on.Limiter) && limit.Unsettled(on.Limiter) == 0 {
		return u // it waits for room from elsewhere
	}
	if n, since := a.group.line.Unsettled(on); now.Sub(since) >= unsettledAfter {
		return unsettled{n, now.Sub(since)}
	}
	return u
}

// stuck records since when the first of a lane has waited for nothing but a Settle, while no other
// goroutine went. Its timer keeps running after that wait. Otherwise it would be set for every
// permit of a limit that bounds what is in flight.
type stuck struct {
	since   mono.Time // limit.Never: the first does not wait for a Settle
	granted uint64    // admissions of the lane, as of since
	timer   *time.Timer
	look    mono.Time // when the timer fires, as far as the lane cares; limit.Never: it does not
}

// stuckLocked notes that the first in line can go at at.
func (a *Lane) stuckLocked(now, at mono.Time) {
	s := &a.watch.stuck
	if at != limit.AfterSettle {
		s.since = limit.Never
		return
	}
	if n := a.lane.Granted(); s.since == limit.Never || s.granted != n {
		s.since, s.granted = now, n
		if s.look > now.Add(unsettledAfter) {
			a.armStuckLocked(now, unsettledAfter)
		}
	}
}

func (a *Lane) armStuckLocked(now mono.Time, d time.Duration) {
	s := &a.watch.stuck
	s.look = now.Add(d)
	if s.timer == nil {
		s.timer = time.AfterFunc(d, a.lookAtStuck)
	} else {
		s.timer.Reset(d)
	}
}

// lookAtStuck is the timer's callback. It warns after a minute, then after two, four and so on.
func (a *Lane) lookAtStuck() {
	j := a.group
	j.mu.Lock()
	defer j.unlock()
	s := &a.watch.stuck
	s.look = limit.Never
	if s.since == limit.Never {
		return
	}
	now := j.now()
	lasts := now.Sub(s.since)
	if lasts < unsettledAfter {
		a.armStuckLocked(now, unsettledAfter-lasts)
		return
	}
	if u := a.unsettledLocked(now); u.permits > 0 {
		on, _ := a.lane.At()
		if log := a.logFor(on); log != nil {
			j.noteLocked(notice{lane: a, log: log, limit: on.Rule(now).Name, unsettled: u})
		}
	}
	a.armStuckLocked(now, lasts)
}

// logFor returns the Logger for a wait for the limit on, or nil.
func (a *Lane) logFor(on *scheduler.Limit) *slog.Logger {
	if log := on.Of.(*Limit).log; log != nil {
		return log
	}
	return a.log
}

const (
	// logged is the longest wait without a line of the log.
	logged = 5 * time.Millisecond
	// quiet is the time without a second line of a lane, unless the instant moves by more.
	quiet = 10 * time.Second
)

// notedRound is when a round was noted for the log, and its instant. The zero notedRound is none.
type notedRound struct{ at, until mono.Time }

// notice is a line of the log.
type notice struct {
	lane      *Lane
	log       *slog.Logger
	limit     string
	rule      string // the limit in numbers; empty: it has none
	ways      int    // of the lane
	waiting   int
	unsettled unsettled // the subject of the line, if not zero
	next      time.Duration
	round     uint64
}

func (n *notice) tell(ctx context.Context) {
	limit, waiting := slog.String("limit", n.limit), slog.Int("waiting", n.waiting)
	if u := n.unsettled; u.permits > 0 {
		n.log.LogAttrs(ctx, slog.LevelWarn, fmt.Sprintf("%s: %d waiting, %v", n.limit, n.waiting, u), limit, waiting,
			slog.Int("unsettled", u.permits), slog.Duration("oldest", u.oldest))
	} else if level := n.level(); n.log.Enabled(ctx, level) {
		attrs := []slog.Attr{limit, waiting, slog.Duration("next", n.next), slog.Uint64("round", n.round)}
		if n.rule != "" {
			attrs = append(attrs, slog.String("rule", n.rule))
		}
		if n.ways > 1 {
			attrs = append(attrs, slog.Int("ways", n.ways))
		}
		n.log.LogAttrs(ctx, level, n.String(), attrs...)
	}
}

// level is that of a wait: short ones are what a limit makes of ordinary load.
func (n *notice) level() slog.Level {
	if n.next < quiet {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func (n *notice) String() string {
	if n.next < time.Second {
		return fmt.Sprintf("%s: %d waiting, next in %d ms", n.limit, n.waiting, n.next.Milliseconds())
	}
	s := fmt.Sprintf("%s: %d waiting, next in %.1f s", n.limit, n.waiting, n.next.Seconds())
	if n.limit == "hint" { // it is what the latest answer leaves
		s += ", or sooner by the next answer"
	}
	return s
}

// noteLocked keeps a notice for the log, in place of an earlier one of the same lane.
func (j *Group) noteLocked(n notice) {
	for i := range j.notices {
		if j.notices[i].lane == n.lane {
			j.notices[i] = n
			return
		}
	}
	j.notices = append(j.notices, n)
}

// unlock releases the lock, and then logs the notices that were made under it.
func (j *Group) unlock() {
	if len(j.notices) == 0 {
		j.mu.Unlock()
		return
	}
	all := j.notices
	j.notices = nil
	for i := range all { // meanwhile waiters may have been refused, or gone ahead
		all[i].waiting = all[i].lane.lane.Len()
	}
	j.mu.Unlock()
	ctx := context.Background()
	for i := range all {
		all[i].tell(ctx)
	}
}
