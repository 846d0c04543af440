package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// A lesson of a process whose clock was a year ahead delays nothing for a year. Its past instants
// count as now. Its future instants are at most 85 h 20 min from now, the longest pause.
func TestLessonFromTheFuture(t *testing.T) {
	const year = 8760 * time.Hour
	now := at(time.Hour)
	for name, l := range lessons {
		l = l.Moved(year)
		l.Latest, l.Answered, l.Since, l.Began = l.Latest.Add(time.Minute), l.Answered.Add(time.Minute), l.Since.Add(time.Minute), l.Began.Add(time.Minute)
		l.Until, l.Deaf = l.Until.Add(year), l.Deaf.Add(year)
		f := limit.NewFitted(limit.MustRolling(5, time.Second))
		if !f.Recall(now, l) {
			t.Errorf("%s: it makes no sense", name)
			continue
		}
		if ready := f.Ready(now, limit.One); ready.Sub(now) > 4*time.Second {
			t.Errorf("%s: the first goes after %v", name, ready.Sub(now))
		}
		for _, m := range f.Misfits() {
			if d := m.Until.Sub(now); d > 85*time.Hour+20*time.Minute {
				t.Errorf("%s: held for %v", name, d)
			}
		}
		for _, again := range f.Lessons() {
			if last := max(again.Since, again.Latest, again.Answered, again.Began); last > now || max(again.Until, again.Deaf) > now.Add(85*time.Hour+20*time.Minute) {
				t.Errorf("%s: learned until %v, of which the last is of %v: %+v", name, max(again.Until, again.Deaf), last, again)
			}
		}
	}
}
