package run

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/text/humanize"
	"github.com/paceline-go/paceline/internal/text/sanitize"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// notices keeps the notices that the user has received, and until when each was to last. Safe for
// concurrent use.
type notices struct {
	mu   sync.Mutex
	told map[string]time.Time
}

// isNews reports whether a notice is new: it was not given yet, or its end is now later than the
// announced one, by more than longer.
func (n *notices) isNews(what string, until time.Time, longer time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !until.After(n.told[what].Add(longer)) {
		return false
	}
	n.told[what] = until
	return true
}

// isFirst reports whether this notice is the first of its kind.
func (n *notices) isFirst(what string) bool { return n.isNews(what, time.Unix(0, 0), 0) }

// Tell passes a text to Config.Notice. The values of keys in it are hidden.
func (r *Run) Tell(text string) { r.c.Notice(text) }

func (r *Run) tell(format string, args ...any) { r.c.Notice(fmt.Sprintf(format, args...)) }

// tellCoded reports the first answer in a content coding that is not read.
func (r *Run) tellCoded(res *response) {
	if res.coded && r.notices.isFirst("coded") {
		r.tell("an answer has Content-Encoding: %.60q, which is not read: such a body is kept as it came, and no value of "+
			"a key is found in it", res.header.Get("Content-Encoding"))
	}
}

// tellOpen reports requests that had no answer when the run before ended.
func (r *Run) tellOpen(open map[string]struct{}) {
	if len(open) == 0 {
		return
	}
	what := "they are sent again, their results say possible_repeat"
	if r.c.HoldUnanswered {
		what = "they become dead letters (--unanswered hold)"
	}
	r.tell("%s sent but not answered when the run before ended; what is in the input may be a repeat: %s",
		sanitize.Count(len(open), "request was", "requests were"), what)
	const most = 100
	ids := slices.Sorted(maps.Keys(open))
	text := strings.Join(ids[:min(len(ids), most)], ", ")
	if len(ids) > most {
		text += fmt.Sprintf(", and %d more: see %s", len(ids)-most, r.store.Journal.Path())
	}
	r.tell("  unanswered: %s", text)
}

// longWait is how long a wait must be to be reported. Without the notice the run would seem to hang.
const longWait = 30 * time.Second

// tellUnsaid reports a long wait after a refusal that did not say when to come back.
func (r *Run) tellUnsaid(reason, waitsFor string, until time.Time) {
	if r.notices.isNews("unsaid", until, 10*time.Second) {
		r.tell("%s; it does not say when to come back: the next request goes about %s, waiting for %s", reason,
			humanize.Date(until, time.Now()), waitsFor)
	}
}

// tellHold reports a long pause of a key.
func (r *Run) tellHold(key string, until time.Time, reason string) {
	const more = 10 * time.Second
	if d := time.Until(until); d >= longWait && r.notices.isNews("hold "+key, until, more) {
		who := "key " + key + " is told"
		if r.c.keyless {
			who = "the server asks"
		}
		r.tell("%s to stay away for %v, until %s: %s", who, d.Round(time.Second), humanize.Date(until, time.Now()), reason)
	}
}

// troubled is how long after a refusal tellTrouble still evaluates refusals.
const troubled = time.Minute

// tellTrouble reports what the refusals so far prove: an option of the user is wrong, or a key gets
// nothing but refusals.
func (g *group) tellTrouble(ans *pool.Answer) {
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
				r.tell("%s is wrong: requests were refused that keep to it; it is not relied on until %s", what,
					at.Format("15:04:05"))
			}
		}
	}
}

// inARow is how many refusals in a row show that a key gets nothing else.
const inARow = 4

// tellRow reports a key that gets nothing but refusals.
func (r *Run) tellRow(k *pool.KeyInfo) {
	key, server := "", ""
	switch {
	case k.Nonces >= inARow:
		server = fmt.Sprintf("refuses nonces, %d in a row now, which rose and were in order: another process", k.Nonces)
		key, server = server+" uses the key, or it was used with a larger --nonce-unit",
			server+" counts on, or one did with a larger --nonce-unit"
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

// tellBan reports once that a key is out of use.
func (r *Run) tellBan(j *job, status string) {
	is := "is banned"
	if j.unpaid {
		is = "has no credit"
	}
	switch isFirst := r.notices.isFirst("ban " + j.key); {
	case !isFirst:
	case r.c.keyless:
		r.tell("the server refuses for good: %s; nothing more is sent", status)
	default:
		r.tell("key %s %s: %s; it is not used any more", j.key, is, status)
	}
}
