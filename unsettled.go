package paceline

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/paceline-go/paceline/internal/line"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/mono"
)

// unsettledAfter is how long the first of a lane waits for a Settle and nothing else, or a permit is open, before it is said.
const unsettledAfter = time.Minute

// unsettled is what open permits there are at a limit, of all lanes that it is shared by, as far as its limiter can tell.
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

// unsettledLocked is what the first in line, which nothing but a Settle can help, waits for. Zero: something else will help, or
// they are not that old.
func (a *Lane) unsettledLocked(now mono.Time) (u unsettled) {
	on, at := a.lane.At()
	if on == nil || at != limit.AfterSettle {
		return u
	}
	n, since := limit.Unsettled(on.Limiter)
	if n == 0 || now.Sub(since) < unsettledAfter {
		return u
	}
	return unsettled{n, now.Sub(since)}
}

// stuck is since when the first of a lane waits for nothing but a Settle, without anybody going meanwhile. It is watched with a timer
// that is not stopped when that ends: it would be set for every permit of a limit that bounds what is in flight.
type stuck struct {
	since   mono.Time // limit.Never: it does not
	granted uint64    // as of since
	timer   *time.Timer
	look    mono.Time // when it fires, as far as the lane cares; limit.Never: not
}

// stuckLocked notes that the first in line can go at.
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

// lookAtStuck is the timer's callback. It says so after a minute, and again after two, four and so on.
func (a *Lane) lookAtStuck() {
	j := a.junction
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
			j.noteLocked(notice{lane: a, log: log, limit: on.Bound(now).Name, unsettled: u})
		}
	}
	a.armStuckLocked(now, lasts)
}

// logFor returns who is told of a wait for on; nil: nobody.
func (a *Lane) logFor(on *line.Limit) *slog.Logger {
	if log := on.Of.(*Limit).log; log != nil {
		return log
	}
	return a.log
}
