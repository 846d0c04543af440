package batch

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// notices has what was told already, and of until when. Safe for concurrent use.
type notices struct {
	mu   sync.Mutex
	told map[string]time.Time
}

// isNews says whether what goes on for at least so much longer than was told.
func (n *notices) isNews(what string, until time.Time, longer time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !until.After(n.told[what].Add(longer)) {
		return false
	}
	n.told[what] = until
	return true
}

// Tell is Notice, without the values of keys, for what others have to say.
func (r *Run) Tell(text string) { r.c.Notice(text) }

func (r *Run) tell(format string, args ...any) { r.c.Notice(fmt.Sprintf(format, args...)) }

// tellOpen tells of requests that were unanswered when the run before died.
func (r *Run) tellOpen(open map[string]struct{}) {
	if len(open) == 0 {
		return
	}
	what := "they are sent again, their results say possible_repeat"
	if r.c.HoldUnanswered {
		what = "they become dead letters (--unanswered hold)"
	}
	r.tell("%d requests were sent but not answered when the run before ended; those of the input may be repeats: %s", len(open), what)
	const most = 100
	ids := slices.Sorted(maps.Keys(open))
	for _, id := range ids[:min(len(ids), most)] {
		r.tell("  unanswered: %s", id)
	}
	if len(ids) > most {
		r.tell("  and %d more: see %s", len(ids)-most, r.store.journal.Path())
	}
}

// tellHold tells of a wait that looks like a hang.
func (r *Run) tellHold(key string, until time.Time, reason string) {
	const long, more = 30 * time.Second, 10 * time.Second
	if d := time.Until(until); d >= long && r.notices.isNews("hold "+key, until, more) {
		r.tell("key %s is told to stay away for %v, until %s: %s", key, d.Round(time.Second), until.Format("Mon 2 Jan 15:04:05"), reason)
	}
}

// tellRetreats tells, once, of an opt-in that proved wrong: that of the refusals before this one.
func (r *Run) tellRetreats() {
	for _, k := range r.pool.Keys() {
		for _, retreat := range k.Retreats {
			at := r.epoch.Add(time.Duration(retreat.Until))
			what := fmt.Sprintf("%s: %s of %s", k.Name, retreat.Option, retreat.Limit)
			if r.notices.isNews(what, at, 0) {
				r.tell("key %s is wrong: requests were refused that keep to it; it is not relied on until %s", what, at.Format("15:04:05"))
			}
		}
	}
}

// tellBan tells, once, that a key is out of use.
func (r *Run) tellBan(key, status string) {
	if r.notices.isNews("ban "+key, time.Unix(0, 0), 0) {
		r.tell("key %s is banned: %s; it is not used any more", key, status)
	}
}
