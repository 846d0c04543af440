package paceline

import (
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Counts returns how often the timer called back and how many waiters were woken.
func (g *Gate) Counts() (ticks, wakes uint64) {
	j := &g.group
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ticks, j.wakes
}

// Waiting returns the length of the line.
func (g *Gate) Waiting() int {
	j := &g.group
	j.mu.Lock()
	defer j.mu.Unlock()
	return g.lane.lane.Len()
}

// Armed reports whether the timer is set.
func (g *Gate) Armed() bool {
	j := &g.group
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.armed != notArmed
}

// Freed returns how many waiters are kept for the next ones.
func (g *Gate) Freed() int {
	j := &g.group
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.spare.Load() != nil {
		return j.freed + 1
	}
	return j.freed
}

// Tick is what the timer does, at any time.
func (g *Gate) Tick() { g.group.tick() }

// Misfire makes the timer, which is set, call back after d instead of when it should.
func (g *Gate) Misfire(d time.Duration) {
	j := &g.group
	j.mu.Lock()
	defer j.mu.Unlock()
	j.timer.Reset(d)
}

// Hinted returns whether the next TryWait of the cost last refused may be refused without the lock.
func (g *Gate) Hinted() bool { return g.group.hint.until.Load() != noHint }

// Hint notes a refusal of cost until after the making of g.
func (g *Gate) Hint(until time.Duration, cost limit.Cost) {
	j := &g.group
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hint.set(mono.Time(until), mono.Time(until), &cost, g.lane)
}

// Repeat repeats the last refusal, if there is one of cost, without the lock.
func (g *Gate) Repeat(cost limit.Cost) (retry time.Duration, ok bool) { return g.lane.refuse(&cost) }

// ForgetHint makes the next TryWait ask the limiter.
func (g *Gate) ForgetHint() {
	j := &g.group
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hint.clear()
}

// Lead makes the timer go off that long before it is needed. It returns what it was.
func (g *Gate) Lead(d time.Duration) time.Duration {
	j := &g.group
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.lead
	j.lead = d
	return before
}

// Spinning reports whether somebody yields until the head of the line is due.
func (g *Gate) Spinning() bool {
	j := &g.group
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.spinner != nil
}
