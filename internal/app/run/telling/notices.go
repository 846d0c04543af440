package telling

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
)

// Teller gives notices to the user. It keeps which, and until when each was to last. Safe for concurrent use.
type Teller struct {
	notice  func(string)
	keyless bool // the run knows no key
	held    bool // requests without an answer are held back

	mu   sync.Mutex
	told map[string]time.Time
}

// New passes notices on.
func New(notice func(string), keyless, held bool) *Teller {
	return &Teller{notice: notice, keyless: keyless, held: held, told: map[string]time.Time{}}
}

// IsNews reports whether a notice is new: it was not given yet, or its end is now later than the
// announced one, by more than longer.
func (n *Teller) IsNews(what string, until time.Time, longer time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !until.After(n.told[what].Add(longer)) {
		return false
	}
	n.told[what] = until
	return true
}

// IsFirst reports whether this notice is the first of its kind.
func (n *Teller) IsFirst(what string) bool { return n.IsNews(what, time.Unix(0, 0), 0) }

// Tell passes a text to Config.Notice. The values of keys in it are hidden.
func (n *Teller) Tell(text string) { n.notice(text) }

// Say is Tell with a format.
func (n *Teller) Say(format string, args ...any) { n.notice(fmt.Sprintf(format, args...)) }

// TellCoded reports the first answer in a content coding that is not read.
func (n *Teller) TellCoded(res *sending.Response) {
	if res.Coded && n.IsFirst("coded") {
		n.Say("an answer has Content-Encoding: %.60q, which is not read: such a body is kept as it came, and no value of "+
			"a key is found in it", res.Header.Get("Content-Encoding"))
	}
}

// TellDoubts reports requests that the server may have served although they have no result. Those of failed have an
// answer, such as a 503, and the others have none. file is the journal.
func (n *Teller) TellDoubts(doubts, failed map[string]struct{}, file string) {
	answered, open := []string{}, []string{}
	for _, id := range slices.Sorted(maps.Keys(doubts)) {
		if _, is := failed[id]; is {
			answered = append(answered, id)
		} else {
			open = append(open, id)
		}
	}
	n.tellDoubts(open, "unanswered", "was sent but not answered when the run before ended",
		"were sent but not answered when the run before ended", file)
	n.tellDoubts(answered, "failed", "failed in the run before, as with a 503, and its next attempt was still to come",
		"failed in the run before, as with a 503, and their next attempts were still to come", file)
}

// tellDoubts is TellDoubts for those of one kind, with what became of one and of several.
func (n *Teller) tellDoubts(ids []string, kind, one, several, file string) {
	if len(ids) == 0 {
		return
	}
	follows := "goes again, and its result says possible_repeat"
	if n.held {
		follows = "becomes a dead letter (--unanswered hold)"
	}
	n.Say("%s. The server may have served it: each that is in the input %s",
		text.Count(len(ids), "request "+one, "requests "+several), follows)
	const most = 100
	list := strings.Join(ids[:min(len(ids), most)], ", ")
	if len(ids) > most {
		list += fmt.Sprintf(", and %d more: see %s", len(ids)-most, file)
	}
	n.Say("  %s: %s", kind, list)
}

// LongWait is how long a wait must be to be reported. Without the notice the run would seem to hang.
const LongWait = 30 * time.Second

// TellUnsaid reports a long wait after a refusal that did not say when to come back.
func (n *Teller) TellUnsaid(reason, waitsFor string, until time.Time) {
	if n.IsNews("unsaid", until, 10*time.Second) {
		n.Say("%s; it does not say when to come back: the next request goes about %s, waiting for %s", reason,
			text.Date(until, time.Now()), waitsFor)
	}
}

// TellHold reports a long pause of a key.
func (n *Teller) TellHold(key string, until time.Time, reason string) {
	const more = 10 * time.Second
	if d := time.Until(until); d >= LongWait && n.IsNews("hold "+key, until, more) {
		who := "key " + key + " is told"
		if n.keyless {
			who = "the server asks"
		}
		n.Say("%s to stay away for %v, until %s: %s", who, d.Round(time.Second), text.Date(until, time.Now()), reason)
	}
}

// After manyDenials in a row the key is at fault, as in package dispatch.
const ManyDenials = 3

// InARow is how many refusals in a row show that a key gets nothing else.
const InARow = 4

// ifBanned is what to do if denials are a ban.
const ifBanned = "if this is a ban, --ban-status 401,403 takes the key out of use at its first such answer"

// TellRow reports a key that gets nothing but refusals. reason is that of the key's latest answer; empty: the
// latest answer is of another key.
func (n *Teller) TellRow(k *pool.KeyInfo, reason string) {
	key, server, help := "", "", ""
	switch {
	case k.Nonces >= InARow:
		server = fmt.Sprintf("refuses nonces, %d in a row now, which rose and were in order: another process", k.Nonces)
		key, server = server+" uses the key, or it was used with a larger --nonce-unit",
			server+" counts on, or one did with a larger --nonce-unit"
	case k.Refusals >= InARow:
		key = fmt.Sprintf("was refused %d times in a row, with nothing served between", k.Refusals)
		server = fmt.Sprintf("refuses all, %d times in a row, with nothing served between", k.Refusals)
	case k.Denials >= ManyDenials:
		server = fmt.Sprintf("denies all requests (401, 403), %d in a row now", k.Denials)
		key = fmt.Sprintf("is denied all requests (401, 403), %d in a row now", k.Denials)
		if provider.SaysBanned(reason) {
			server += ": " + reason
			key, help = key+": "+reason, "; "+ifBanned
		}
	default:
		return
	}
	who := "key " + k.Name + " " + key
	if n.keyless {
		who, help = "the server "+server, ""
	}
	if n.IsNews("row "+k.Name, time.Now(), 10*time.Minute) {
		n.Say("%s; one request at a time tests it, more and more rarely, and tests do not count in --attempts%s",
			who, help)
	}
}

// TellBan reports once that a key is out of use. is says why, in a word or two.
func (n *Teller) TellBan(key, is, status string) {
	switch isFirst := n.IsFirst("ban " + key); {
	case !isFirst:
	case n.keyless:
		n.Say("the server refuses for good: %s; nothing more is sent", status)
	default:
		n.Say("key %s %s: %s; it is not used any more", key, is, status)
	}
}

// TellCut reports answers that were cut at the bound of their output, at the end.
func (n *Teller) TellCut(answers int) {
	if answers > 0 {
		n.Say("%s cut at the most tokens that the request allows; --retry-dead=length --max-tokens N asks for those again, "+
			"with more", text.Count(answers, "answer was", "answers were"))
	}
}

// TellUnselected reports the answers from which --select could not take all fields, at the end. checked: --success
// judges the answers.
func (n *Teller) TellUnselected(answers int, checked bool) {
	if answers == 0 {
		return
	}
	flag := "--success EXPRESSION with another --out"
	if checked {
		flag = "a stricter --success with another --out"
	}
	n.Say("--select failed on %s: the rows have empty fields, and the requests count as done; --retry-dead=unselected asks for "+
		"them again, and %s makes dead letters of such answers", text.Count(answers, "answer", "answers"), flag)
}

// TellPartly reports the results of requests that were served in part, at the end.
func (n *Teller) TellPartly(requests int) {
	if requests == 0 {
		return
	}
	n.Say(`%s served in part: a limit refused the rest, and the results say "partly"; --partly again sends such requests again, --partly hold makes dead letters of them`,
		text.Count(requests, "request was", "requests were"))
}
