package provider

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Servers say in words when to come back: "Try again in 35 seconds", "Resets in 4hr 59min". The
// words are read for every refusal of any server, where neither a header field nor the provider's
// row says when. They are read in the messages of a body alone, so that no number in an echo of the
// request is taken for a wait.

const (
	// maxMessage is how much of a message is read. Longer ones may quote a request.
	maxMessage = 2 << 10
	// maxDepth is how deep a message may lie in the JSON of a body.
	maxDepth = 5
	// maxBetween is how far a time may be from the word before it.
	maxBetween = 80
)

const digits = "0123456789"

// bodyWaits are the places where bodies state a wait or an instant as a value. Those in the second
// list are in milliseconds.
const (
	bodyWaits = "retry_after|error.retry_after|parameters.retry_after|retryAfter|error.retryAfter|retry_after_seconds|error.retry_after_seconds|retryAfterSeconds|" +
		"errors.*.extensions.retryAfter|error.resets_in_seconds|error.metadata.retry_after|error.details.retry_after|detail.retry_after"
	bodyWaitsMS  = "retry_after_ms|retryAfterMs|error.retry_after_ms|error.retryAfterMs|error.details.retryAfterMs"
	bodyInstants = "resets_at|reset_at|resetAt|resetsAt|reset_time|resetTime|error.resets_at|error.reset_at|error.resetAt|error.resetsAt|error.reset_time|error.resetTime|detail.reset_at"
)

// waitAt takes the longest wait at places of the body, if no header field asked for one.
func (r *reading) waitAt(places string, unit time.Duration) {
	if r.RetryAfter > 0 {
		return
	}
	for path := range strings.SplitSeq(places, "|") {
		for _, v := range r.at(path) {
			if t := r.moment(path, v, unit); !t.IsZero() {
				r.RetryAfter = max(r.RetryAfter, t.Sub(r.now))
			}
		}
	}
}

// comeBack reads in the body of a refusal when to come back, if nothing else says it.
func (r *reading) comeBack() {
	switch {
	case r.RetryAfter > 0:
		return
	case r.Refusal == None && !r.mayBan(), r.Refusal == Unpaid, r.Refusal == NoQuota, r.Refusal == TooLarge, r.Refusal == Misordered:
		return
	}
	known := len(r.Problems)
	r.at("")                        // parses the body
	r.Problems = r.Problems[:known] // where nobody expects JSON, its faults are no problem
	if r.Refusal == None {
		if !slices.ContainsFunc(r.messages(), r.bansFor) {
			return
		}
		r.refuse(Banned)
	}
	r.waitAt(bodyWaits, 0)
	r.waitAt(bodyWaitsMS, time.Millisecond)
	for _, l := range r.Limits {
		if (l.Remaining == Count{0, true}) && !l.Reset.IsZero() {
			return
		}
	}
	r.waitAt(bodyInstants, 0)
	if r.RetryAfter > 0 {
		return
	}
	all := r.messages()
	for _, asks := range [...]bool{true, false} { // "try again in" counts before "resets in"
		var best wordedWait
		for _, m := range all {
			for _, w := range r.wordedWaits(m) {
				if w.asks == asks && w.wait > best.wait {
					best = w
				}
			}
		}
		if best.wait <= 0 {
			continue
		}
		r.RetryAfter, _ = r.bound("body", best.text, best.wait, nil)
		r.note("the time is in the words %q", clip(best.text))
		if best.unzoned {
			r.note("the time has no zone, and is read as UTC")
		}
		if r.RetryAfter > day && r.Refusal == RateLimited {
			r.Refusal = QuotaExhausted
		}
		return
	}
}

// mayBan reports whether the status may be that of a ban, though no row says so.
func (r *reading) mayBan() bool {
	return r.Status == http.StatusForbidden || r.Status == http.StatusTeapot
}

// bansFor reports whether a message speaks of a ban and of its end: "banned until 1700000000000". Words
// without an end prove nothing.
func (r *reading) bansFor(m string) bool {
	return SaysBanned(m) && slices.ContainsFunc(r.wordedWaits(m), func(w wordedWait) bool { return w.asks && w.wait > 0 })
}

// wordedWait is a time to come back in the words of a message.
type wordedWait struct {
	asks    bool // the server asks to stay away; otherwise it says when a quota is full again
	wait    time.Duration
	text    string
	unzoned bool // an instant without a zone
}

// leads finds the words before a time to come back. The first group asks to stay away; the second
// says when there is more; what is in the third says when there is some, but not for how long.
var leads = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:(re-?try(?:ing)?|try(?:ing)? (?:after|later)|again|wait(?:ing)?|come back|back[ -]?off|cool(?:ing)?[ _-]?down` +
		`|(?:block|bann|lock|suspend|paus|throttl)ed|rate[ -]limited|next (?:available|allowed|request|attempt|call)` +
		`|(?:ban|block|lockout|penalty) (?:will )?(?:expire|end|lift)s?|limit reached ?\|)` +
		`|(re(?:set|fresh|new|plenish|fill|store)(?:s|es|ed|d)?)` +
		`|(available|resume[sd]?|unlock(?:s|ed)?|lifted|access))`)
})

// ahead finds a duration before the words that follow it: "30 seconds before trying again".
var ahead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\d[\w .,:]{0,30}?\s(?:remaining |left )?(?:until|before|till) (?:the |your |you |next |can |may |rate |limit |quota |it |window )*(?:re-?set|re-?try|try|request|send|mak)`)
})

// links are the words that may lie between a lead and its time. The value is the unit of a bare
// number after them.
var links = map[string]time.Duration{
	"in": time.Second, "after": time.Second, "for": 0, "another": 0, "about": 0, "approximately": 0, "approx": 0, "around": 0, "roughly": 0,
	"at": 0, "on": 0, "by": 0, "until": 0, "till": 0, "from": 0, "before": 0, "least": 0, "next": 0, "the": 0, "of": 0, "is": 0, "be": 0, "will": 0, "again": 0, "later": 0,
	"your": 0, "you": 0, "this": 0, "it": 0, "request": 0, "requests": 0, "requesting": 0, "model": 0, "using": 0, "time": 0, "date": 0, "period": 0, "remaining": 0, "out": 0,
	"quota": 0, "limit": 0, "limits": 0, "usage": 0, "daily": 0, "please": 0, "only": 0, "estimated": 0, "try": 0, "retry": 0, "delay": 0, "sending": 0, "more": 0,
	"ms": time.Millisecond, "millis": time.Millisecond, "milliseconds": time.Millisecond, "sec": time.Second, "secs": time.Second, "seconds": time.Second, "minutes": time.Minute,
	"temporarily": 0, "automatically": 0,
}

// wordedWaits returns all times to come back in a message.
func (r *reading) wordedWaits(m string) (all []wordedWait) {
	add := func(w wordedWait, ok bool) {
		if ok && len(all) < maxItems {
			all = append(all, w)
		}
	}
	for _, at := range leads().FindAllStringSubmatchIndex(m, maxItems) {
		lead := strings.ToLower(m[at[0]:at[1]])
		w, ok := r.timeAfter(lead, m[at[1]:], at[6] >= 0)
		w.asks, w.text = at[4] < 0, m[at[0]:at[1]]+w.text
		add(w, ok)
	}
	for _, at := range ahead().FindAllStringIndex(m, maxItems) {
		add(r.timeBefore(m[at[0]:at[1]]))
	}
	if strings.ContainsAny(m, "后後重恢") {
		for i := strings.IndexAny(m, digits); i >= 0; {
			w, ok := r.timeInChinese(m[i:])
			add(w, ok)
			i += max(len(w.text), len(m[i:])-len(strings.TrimLeft(m[i:], digits)))
			if next := strings.IndexAny(m[i:], digits); next >= 0 {
				i += next
			} else {
				break
			}
		}
	}
	return all
}

// timeAfter reads the time after a lead. An open lead says from when there is something: its words
// may not say until when.
func (r *reading) timeAfter(lead, rest string, open bool) (wordedWait, bool) {
	w := written(rest)
	var unit time.Duration
	linked := lead != "again" // "again" alone says nothing
	if strings.Contains(lead, "after") || strings.HasSuffix(lead, "|") {
		unit = time.Second
	}
	last := ""
	for first := true; ; first = false {
		w.skip(" \t\n\u00a0:=~≈·∙•|(\"'`_-—–*[{")
		if linked {
			if got, n, ok := r.timeHere(w, unit, last == "at" || last == "on" || last == "until" || last == "by"); ok {
				got.text = rest[:len(rest)-len(n)]
				return got, true
			}
		}
		if w.cut("up to ", "as of ") {
			continue
		}
		word := w.word()
		is, known := links[word]
		if word == "" || !known || len(rest)-len(w) > maxBetween || open && (word == "until" || word == "till" || word == "for" || word == "by") {
			return wordedWait{}, false
		}
		if word == "approx" {
			w.cut(".")
		}
		if first && !linked {
			if linked = word == "in" || word == "at" || word == "after" || word == "on" || word == "from" || word == "until"; !linked {
				return wordedWait{}, false
			}
		}
		unit, last = cmp.Or(is, unit), word
	}
}

// timeHere reads the time that a text begins with: a duration, an instant, or a bare number of
// units. It returns the rest.
func (r *reading) timeHere(w written, unit time.Duration, instant bool) (got wordedWait, rest written, ok bool) {
	span := func() bool {
		rest = w
		got.wait, ok = rest.span()
		return ok && !rest.letter()
	}
	moment := func() bool {
		rest = w
		at, zoned, is := rest.instant(r.clock)
		got.wait, got.unzoned, ok = at.Sub(r.clock), !zoned, is
		return is && !rest.letter()
	}
	switch {
	case instant && (moment() || span()), !instant && (span() || moment()):
	default:
		rest, got.unzoned = w, false
		f, is := rest.number()
		switch {
		case !is || rest != "" && !strings.ContainsRune(".,;)]}\"'`\n", rune(rest[0])):
			return got, w, false
		case f >= 1e8:
			at, err := sinceEpoch(strings.TrimSuffix(string(w[:len(w)-len(rest)]), ","), f)
			got.wait, ok = at.Sub(r.clock), err == nil
		default:
			got.wait, ok = scale(f, unit), unit > 0
		}
	}
	if got.wait > maxWorded {
		r.problem("body: %q is more than a year away; not believed", clip(string(w[:len(w)-len(rest)])))
		return got, rest, false
	}
	return got, rest, ok && got.wait > 0
}

// letter reports whether a letter follows, so that a word was cut.
func (w written) letter() bool {
	return w != "" && (w[0] >= 'a' && w[0] <= 'z' || w[0] >= 'A' && w[0] <= 'Z')
}

// timeBefore reads the duration at the beginning of a text, or at a later number of it.
func (r *reading) timeBefore(text string) (wordedWait, bool) {
	for i := 0; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' || i > 0 && (text[i-1] >= '0' && text[i-1] <= '9' || text[i-1] == '.') {
			continue
		}
		rest := written(text[i:])
		d, ok := rest.span()
		if rest.skip(" "); !ok || d <= 0 || d > maxWorded || !rest.cut("remaining", "left", "until", "before", "till") {
			continue
		}
		return wordedWait{asks: true, wait: d, text: text[i:]}, true
	}
	return wordedWait{}, false
}

// timeInChinese reads a time whose meaning is in the words that follow it: "30 秒后重试", "2026-12-02
// 09:18:00 重置". A time without a zone is one of China's.
func (r *reading) timeInChinese(text string) (wordedWait, bool) {
	w := written(text)
	got, rest, ok := r.timeHere(w, 0, false)
	said := text[:len(text)-len(rest)]
	if rest.skip(" "); !ok || !rest.cut("后", "後", "之后", "以后", "重置", "恢复", "刷新", "再") {
		return got, false
	}
	if got.asks = !rest.cut("重置", "恢复", "刷新"); got.unzoned {
		got.wait, got.unzoned = got.wait-8*time.Hour, false
	}
	got.text = said
	return got, got.wait > 0
}

// messagesAt has the places of the one message that says what a refusal is about, in the order in
// which they are looked for.
const messagesAt = "error.message|message|errors.*.message|errors.*.detail|*.error.message|error.msg|msg|error_description|detail.message|detail.msg|detail.*.msg|detail|error.detail|errorMessage|" +
	"error_msg|error|description|title|Message|fault.faultstring"

// Message returns the message of an error's body, in one line. It is empty if the body has none, or
// is no JSON. The text is the server's: it may hold secrets and control characters.
func Message(body []byte) string {
	r := reading{Response: Response{Body: body[:min(len(body), MaxBody)]}, whole: len(body) <= MaxBody}
	for path := range strings.SplitSeq(messagesAt, "|") {
		for _, m := range r.at(path) {
			if m = strings.Join(strings.Fields(m), " "); m != "" && m != "true" && m != "false" {
				return m
			}
		}
	}
	return ""
}

// messages returns the messages of a body: the values of fields that are for people, or the text of
// a body that is no JSON. Those of a served answer count only in its errors.
func (r *reading) messages() (all []string) {
	body := strings.TrimSpace(string(r.Body))
	if body == "" {
		return nil
	}
	// JSON that breaks off may break off within a quotation.
	if short := len(body) <= maxMessage; r.tree == nil && (short || body[0] != '{' && body[0] != '[') {
		if r.Status < 400 {
			return nil
		}
		return []string{firstOf(withoutTags(body), maxMessage)}
	}
	collect(r.tree, "", r.Status >= 400, 0, &all)
	return all[:min(len(all), maxItems)]
}

// forPeople reports whether a field of this name has a message.
func forPeople(name string) bool {
	switch strings.ToLower(strings.ReplaceAll(name, "_", "")) {
	case "message", "error", "errors", "detail", "details", "msg", "errmsg", "description", "reason", "title", "errordescription", "errormessage", "errormsg",
		"raw", "fault", "faultstring", "cause", "uimessage", "hint", "info":
		return true
	}
	return false
}

// holdsMessages reports whether an object of this name may have messages in it.
func holdsMessages(name string) bool {
	switch strings.ToLower(name) {
	case "", "error", "errors", "detail", "details", "fault", "metadata", "meta", "err", "status", "extensions", "response", "result":
		return true
	}
	return false
}

// collect adds the messages below a node of JSON. in says that the node belongs to an error.
func collect(node any, name string, in bool, depth int, all *[]string) {
	if depth > maxDepth || len(*all) >= maxItems {
		return
	}
	switch n := node.(type) {
	case string:
		if in && forPeople(name) {
			*all = append(*all, firstOf(n, maxMessage))
		}
	case []any:
		for _, v := range n[:min(len(n), maxItems)] {
			collect(v, name, in, depth+1, all)
		}
	case map[string]any:
		if !holdsMessages(name) {
			return
		}
		for _, key := range keys(n) {
			collect(n[key], key, in || strings.HasPrefix(strings.ToLower(key), "err"), depth+1, all)
		}
	}
}

// firstOf returns the beginning of a text, of so many bytes at most.
func firstOf(s string, most int) string { return strings.ToValidUTF8(s[:min(len(s), most)], "") }

// withoutTags returns the text of a page, with spaces in place of its tags, scripts and styles.
func withoutTags(s string) string {
	if s[0] != '<' {
		return s
	}
	var b strings.Builder
	for s != "" && b.Len() < maxMessage {
		text, rest, tag := strings.Cut(s, "<")
		b.WriteString(text + " ")
		if !tag {
			break
		}
		for _, name := range [...]string{"script", "style", "!--"} {
			end := map[string]string{"script": "</script", "style": "</style", "!--": "--"}[name]
			if len(rest) >= len(name) && strings.EqualFold(rest[:len(name)], name) {
				_, rest, _ = strings.Cut(rest, end)
				break
			}
		}
		_, s, _ = strings.Cut(rest, ">")
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
