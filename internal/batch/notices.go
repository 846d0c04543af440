package batch

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/shown"
	"github.com/paceline-go/paceline/limit"
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

// isFirst says whether nothing like it was told before.
func (n *notices) isFirst(what string) bool { return n.isNews(what, time.Unix(0, 0), 0) }

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
	r.tell("%s sent but not answered when the run before ended; what is in the input may be a repeat: %s", shown.Count(len(open), "request was", "requests were"), what)
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
		who := "key " + key + " is told"
		if r.c.keyless {
			who = "the server asks"
		}
		r.tell("%s to stay away for %v, until %s: %s", who, d.Round(time.Second), until.Format("Mon 2 Jan 15:04:05"), reason)
	}
}

// troubled is how long after a refusal it is looked at what came of it: not before all is answered that was in flight.
const troubled = time.Minute

// tellTrouble tells, once each, what refusals up to now prove: of an opt-in that is wrong, and of a key that does nothing but refuse.
func (g *group) tellTrouble(ans *dispatch.Answer) {
	r := g.r
	now := time.Since(r.epoch)
	if ans.Result == limit.Limited || ans.Misordered || ans.Denied {
		r.trouble.Store(int64(now + troubled))
	} else if int64(now) > r.trouble.Load() {
		return
	}
	keys := g.pool.Keys()
	if ans.Denied {
		r.giveUp(keys, ans.Reason)
	}
	for _, k := range keys {
		r.tellRow(&k)
		for _, retreat := range k.Retreats {
			at := r.epoch.Add(time.Duration(retreat.Until))
			what := fmt.Sprintf("%s of %s", retreat.Option, retreat.Limit)
			if !r.c.keyless {
				what = fmt.Sprintf("key %s: %s", k.Name, what)
			}
			if r.notices.isNews(what, at, 0) {
				r.tell("%s is wrong: requests were refused that keep to it; it is not relied on until %s", what, at.Format("15:04:05"))
			}
		}
	}
}

// inARow is how many refusals show a key that does nothing else.
const inARow = 4

// tellRow tells of a key that answers nothing but refusals.
func (r *Run) tellRow(k *dispatch.KeyInfo) {
	key, server := "", ""
	switch {
	case k.Nonces >= inARow:
		server = fmt.Sprintf("refuses nonces, %d in a row now, which rose and were in order: another process", k.Nonces)
		key, server = server+" uses the key, or it was used with a larger --nonce-unit", server+" counts on, or one did with a larger --nonce-unit"
	case k.Refusals >= inARow:
		key = fmt.Sprintf("was refused %d times in a row, with nothing served between", k.Refusals)
		server = fmt.Sprintf("refuses all, %d times in a row, with nothing served between", k.Refusals)
	case k.Denials >= manyDenials:
		key = fmt.Sprintf("may do nothing (401, 403), %d times in a row now", k.Denials)
		server = fmt.Sprintf("denies all (401, 403), %d times in a row now", k.Denials)
	default:
		return
	}
	who := "key " + k.Name + " " + key
	if r.c.keyless {
		who = "the server " + server
	}
	if r.notices.isNews("row "+k.Name, time.Now(), 10*time.Minute) {
		r.tell("%s; one request at a time goes to see, more and more rarely, and no request pays for it", who)
	}
}

// tellBan tells, once, that a key is out of use.
func (r *Run) tellBan(key, status string) {
	switch isFirst := r.notices.isFirst("ban " + key); {
	case !isFirst:
	case r.c.keyless:
		r.tell("the server refuses for good: %s; nothing more is sent", status)
	default:
		r.tell("key %s is banned: %s; it is not used any more", key, status)
	}
}
