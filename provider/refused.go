package provider

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
)

// refused describes a kind of refusal: a status, and a text in the body or in a header field.
type refused struct {
	// status has the possible statuses. Nil: any of 400 and above.
	status []int
	// header is the field whose value is one of is. If it is empty, path is the place of that value
	// in the JSON of the body, with * for every item of a list. If both are empty, the text is
	// anywhere in the body.
	header, path string
	// is has the texts. "a*" is a beginning, and "*a*" is anywhere. Nil: any text, or none.
	is []Pattern

	// why is None if only the status looks like a refusal.
	why Refusal
	// by is a name of Refusers; "=" means the found text. Empty: the refuser is unknown.
	by string
	// wait is the documented time to stay away, if the server states none. waitAt is the server's
	// own in the body, in seconds; | separates several places.
	wait   time.Duration
	waitAt string
	// sure means that nothing may go before the server's instant: a probe would prolong the wait,
	// or is known to be in vain.
	sure bool
	note string
}

// banned are those whom a server blocks; blocked content, or a blocked request, is no ban.
var banned = []string{"key", "apikey", "account", "address", "ip", "user", "client", "token", "you"}

// SaysBanned reports whether the message of a refusal speaks of a ban in words: "api_key is banned", "your IP
// has been blocked". Such words prove nothing: only with the end of the ban is a 403 or 418 read as Banned.
func SaysBanned(message string) bool {
	words := strings.FieldsFunc(strings.ToLower(message), func(c rune) bool { return !unicode.IsLetter(c) })
	isOne := func(word string) bool { return slices.Contains(banned, word) }
	return slices.Contains(words, "banned") || slices.Contains(words, "blacklisted") ||
		slices.Contains(words, "blocked") && slices.ContainsFunc(words, isOne)
}

// out are what becomes of a key that is out of use for good. An expired one is out, too, unless it is a token, which
// is renewed.
var out = []string{"banned", "blacklisted", "blocked", "revoked", "suspended", "deactivated", "disabled", "expired"}

// SaysKeyOut reports whether the message of a refusal says that the key itself is out of use: "api_key is banned",
// "Your API key has been revoked". A message about a part of the API, a time or a condition does not: "the key is
// blocked from this model", "the key may be disabled". Nor does one about accounts and addresses.
func SaysKeyOut(message string) bool {
	const far = 5 // words between the key and what became of it
	words := strings.FieldsFunc(strings.ToLower(message), func(c rune) bool { return !unicode.IsLetter(c) })
	for i, word := range words {
		if word != "key" && word != "apikey" {
			continue
		}
		for j, fate := range words[i+1 : min(i+1+far, len(words))] {
			switch {
			case slices.Contains([]string{"not", "may", "can", "if", "or", "will", "when", "unless"}, fate):
			case !slices.Contains(out, fate):
				continue
			default:
				return !bounds(words[i+1+j+1:])
			}
			break
		}
	}
	return false
}

// bounds reports whether words after what became of a key say where, or until when.
func bounds(words []string) bool {
	return len(words) > 0 && (slices.Contains([]string{"from", "to", "in", "on", "until", "or", "if"}, words[0]) ||
		words[0] == "for" && len(words) > 1 && slices.Contains([]string{"this", "that", "the", "model", "models"}, words[1]))
}

// served is the status of providers that refuse with 200.
var served = []int{http.StatusOK}

// refusals takes the first row that fits the answer.
func (r *reading) refusals(rows []refused) {
	if r.Refusal != None {
		return
	}
	for i := range rows {
		if found, ok := r.looks(&rows[i]); ok {
			r.refusedAs(&rows[i], found)
			return
		}
	}
}

// looks reports whether the answer fits this kind of refusal, and returns the text that decided.
func (r *reading) looks(f *refused) (found string, ok bool) {
	if f.status == nil && r.Status < 400 || f.status != nil && !slices.Contains(f.status, r.Status) {
		return "", false
	}
	match := func(v string) bool {
		return f.is == nil || slices.ContainsFunc(f.is, func(p Pattern) bool { return p.Match(v) })
	}
	switch {
	case f.header != "":
		v, there := r.field(f.header)
		return v, there && match(v)
	case f.path != "":
		for _, v := range r.at(f.path) {
			if match(v) {
				return v, true
			}
		}
		return "", false
	case f.is == nil:
		return "", true
	}
	for _, p := range f.is {
		if text := strings.Trim(string(p), "*"); mentions(&r.Response, text) {
			return text, true
		}
	}
	return "", false
}

func (r *reading) refusedAs(f *refused, found string) {
	if f.why == None {
		r.other = true // it looks like a refusal by a limit, but is none
		return
	}
	r.refuse(f.why)
	r.Sure = r.Sure || f.sure
	switch f.by {
	case "":
	case "=":
		r.by(found)
	default:
		r.by(f.by)
	}
	if f.note != "" {
		r.note("%s", f.note)
	}
	if f.waitAt != "" {
		r.waitAt(f.waitAt, 0)
	}
	if f.wait > 0 && r.RetryAfter == 0 {
		r.RetryAfter = f.wait
		r.note("the server does not say how long; its documentation asks for %v", f.wait)
	}
}

// tooManyAtOnce reads in the words of a refusal that requests in flight are too many, and not
// requests in a time.
func (r *reading) tooManyAtOnce() {
	if r.Refusal != RateLimited || r.RetryAfter > 0 || r.Status != http.StatusTooManyRequests || !strings.Contains(string(r.Body), "oncurren") {
		return
	}
	if r.mentions([]string{"concurrent request", "concurrency limit", "concurrency quota", "concurrent connection", "concurrent call"}) {
		r.Refusal = TooMany
	}
}

// surgeWords are in refusals of a load that rose too quickly, within every other limit. DashScope's
// code is limit_burst_rate, and its words "Request rate increased too quickly"
// (https://help.aliyun.com/zh/model-studio/error-code, 2026-11). Anthropic speaks of acceleration
// limits (https://docs.claude.com/en/api/errors, 2026-11).
var (
	surgeCodes = map[string]bool{"limit_burst_rate": true}
	surgeWords = []string{"increased too quickly", "acceleration limit", "usage increase rate"}
)

// surged reads in the words of a refusal that the load rose too quickly.
func (r *reading) surged() {
	limited := r.Refusal == RateLimited || r.Refusal == Overloaded
	r.Surged = r.Surged || limited && (r.hasCode(surgeCodes) || r.mentions(surgeWords))
}

// at returns the values at a path of the body's JSON, as text: "error.code",
// "errors.*.extensions.code".
func (r *reading) at(path string) []string {
	if !r.parsed {
		r.parsed = true
		r.object(&r.tree)
	}
	nodes := []any{r.tree}
	for name := range strings.SplitSeq(path, ".") {
		var next []any
		for _, n := range nodes {
			switch n := n.(type) {
			case map[string]any:
				if name == "*" {
					for _, key := range keys(n) {
						next = append(next, n[key])
					}
				} else if v, ok := n[name]; ok {
					next = append(next, v)
				}
			case []any:
				if name == "*" {
					next = append(next, n[:min(len(n), maxItems)]...)
				}
			}
		}
		nodes = next
	}
	var all []string
	for _, n := range nodes {
		switch n := n.(type) {
		case string:
			all = append(all, n)
		case float64:
			all = append(all, formatFloat(n))
		case bool:
			all = append(all, map[bool]string{true: "true", false: "false"}[n])
		}
	}
	return all
}

// keys returns the keys of an object in sorted order, so that equal objects have equal readings.
func keys(m map[string]any) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	all = order(all, func(s string) string { return s })
	return all[:min(len(all), maxItems)]
}
