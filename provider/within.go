package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Parts counts the parts of an answer that was served in part. A count of 0 was not stated: a
// server may list the refused parts alone.
type Parts struct {
	Served  int `json:"served,omitempty"`
	Refused int `json:"refused,omitempty"`
}

// String returns "served=1, refused=2". A number that was not stated is left out. If neither was, it
// is "refused=some".
func (p Parts) String() string {
	switch {
	case p.Served == 0 && p.Refused == 0:
		return "refused=some"
	case p.Served == 0:
		return fmt.Sprintf("refused=%d", p.Refused)
	}
	return fmt.Sprintf("served=%d, refused=%d", p.Served, p.Refused)
}

// within is a refusal inside of an answer with a status of success.
type within struct {
	Parts
	// status is the one that the refusal would have by itself: 429, 402, 503 or 529. 0: there is no
	// refusal in any form that all servers have in common.
	status int
	body   string // of the refusal; in a stream, of its event
	// some means that something was served, too.
	some bool
}

// refusalWords are parts of codes and sentences. Every refusal of the forms below has one.
var refusalWords = [][]byte{
	[]byte("imit"), []byte("IMIT"), []byte("hrottl"), []byte("HROTTL"), []byte("oo many"), []byte("oo Many"), []byte("ooMany"), []byte("TOO_MANY"),
	[]byte("oo_many"), []byte("uota"), []byte("UOTA"), []byte("429"), []byte("503"), []byte("529"), []byte("verload"), []byte("nprocessed"),
	[]byte("rejected_exec"), []byte("xhausted"), []byte("EXHAUSTED"), []byte("xceeded"), []byte("lowDown"), []byte("low_down"), []byte("过于频繁"),
	[]byte("redit"), []byte("udget"), []byte("ufficient"), []byte("illing"), []byte("ayment"), []byte("rrears"), []byte("verdue"), []byte("额度不足"), []byte("欠费"),
}

// MayRefuse reports whether the beginning of a body, of an answer with a status of success, may be
// that of a refusal or of a partly served answer. It is a cheap question before a reading: most
// served answers have no name of an error.
func MayRefuse(body []byte) bool {
	body = body[:min(len(body), MaxBody)]
	return namesError(body) && slices.ContainsFunc(refusalWords, func(word []byte) bool { return bytes.Contains(body, word) })
}

// namesError reports whether a name of an error is in a body, with a value that may be one.
func namesError(body []byte) bool {
	if bytes.Contains(body, []byte("HTTP/1.1 ")) {
		return true
	}
	for {
		at := bytes.IndexByte(body, '"')
		if at < 0 || at+1 >= len(body) {
			return false
		}
		body = body[at+1:]
		name := ""
		switch body[0] {
		case 'e', 'E':
			name = "rror"
		case 'c', 'C':
			name = "ode"
		case 's':
			if name = "tatus"; bytes.HasPrefix(body, []byte("sC")) {
				name = "Code"
			} else if bytes.HasPrefix(body, []byte("su")) {
				name = "uccess"
			}
		case 'o':
			name = `k"`
		case 'f', 'F':
			name = "ail"
		case 'h':
			name = "ttpStatus"
		case 'U':
			name = "nprocessed"
		default:
			continue
		}
		if bytes.HasPrefix(body[1:], []byte(name)) && !isGood(body[1+len(name):], name == "tatus") {
			return true
		}
	}
}

// isGood reports whether the value after a name, or after its beginning, is one of a success: null,
// true, 0, 200 or nothing. If state, a word such as "active" is good, too, but not "error", "failed",
// "429" or "RATE_LIMITED".
func isGood(rest []byte, state bool) bool {
	_, value, ok := bytes.Cut(rest[:min(len(rest), 32)], []byte(":"))
	value = bytes.TrimLeft(value, " \t\r\n")
	if !ok || len(value) == 0 {
		return false
	}
	for _, good := range [][]byte{[]byte("null"), []byte("true"), []byte("0"), []byte("200"), []byte(`""`), []byte(`"0"`), []byte("[]"), []byte("{}")} {
		if bytes.HasPrefix(value, good) {
			return true
		}
	}
	return state && len(value) > 1 && value[0] == '"' && value[1] >= 'a' && value[1] <= 'z' && value[1] != 'e' && value[1] != 'f' && bytes.HasPrefix(rest, []byte(`":`))
}

// Unusual returns the note about a refusal with a status of success, from a provider that is not
// known to refuse so.
func Unusual(status int) string { return fmt.Sprintf("it refuses with status %d", status) }

// Refuses reports whether a served answer is a refusal for a limit, or has one in it, in a form that
// many servers have in common. Its body may be cut off.
func Refuses(r Response) bool { return r.Status/100 == 2 && inside(&r).status != 0 }

// inside looks for a refusal in an answer with a status of success.
func inside(r *Response) (w within) {
	if len(r.Body) == 0 || r.Status != http.StatusMultiStatus && !MayRefuse(r.Body) {
		return w
	}
	body, kind := string(r.Body[:min(len(r.Body), MaxBody)]), kindOf(r.Header.Get("Content-Type"))
	switch multi := r.Status == http.StatusMultiStatus; {
	case strings.HasPrefix(kind, "multipart/"), multi && strings.HasSuffix(kind, "xml"):
		return inMessages(body)
	case IsStream(kind):
		return inEvents(body)
	default:
		tree, whole := treeOf(body)
		if w = inTree(tree, 0); w.status == 0 && multi {
			w = inMulti(tree)
		}
		w.body = body
		w.some = w.some || !whole // nobody knows
		return w
	}
}

// IsStream reports whether a content type is that of a stream of JSON documents, each an event or a
// line.
func IsStream(kind string) bool {
	if kind == "" || kind == "application/json" { // nearly all
		return false
	}
	switch kindOf(kind) {
	case "text/event-stream", "application/x-ndjson", "application/jsonl", "application/stream+json":
		return true
	}
	return false
}

// kindOf returns a content type without its parameters.
func kindOf(value string) string {
	kind, _, _ := strings.Cut(value, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// inEvents looks for a refusal in the events of a stream, or in its lines of JSON. It was served in
// part if an event before the refusal is one of output.
func inEvents(body string) (w within) {
	for line := range strings.SplitSeq(body, "\n") {
		data, isData := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if data = strings.TrimSpace(data); !isData && (len(data) == 0 || data[0] != '{') || len(data) == 0 {
			continue
		}
		tree, _ := treeOf(data)
		event, ok := tree.(map[string]any)
		if !ok {
			continue
		}
		if in, ok := event["response"].(map[string]any); ok && event["type"] == "response.failed" {
			event = map[string]any{"error": in["error"]}
			again, _ := json.Marshal(event) // it was read from JSON
			data = string(again)
		}
		if in := inTree(event, 0); in.status != 0 && !in.some {
			w.status, w.body, w.Refused = in.status, data, 1
			if w.some = w.Served > 0; w.some {
				w.Served = 1
			}
			return w
		}
		if !isPreamble(event) {
			w.Served++
		}
	}
	return within{}
}

// isPreamble reports whether an event of a stream comes before all output.
func isPreamble(event map[string]any) bool {
	kind, _ := event["type"].(string)
	return slices.Contains([]string{"ping", "message_start", "response.created", "response.in_progress", "response.queued"}, kind)
}

// inMessages looks for refusals in a batch of messages, or in a document of WebDAV: each part has a
// status line of its own.
func inMessages(body string) (w within) {
	w.body = body
	for {
		_, rest, ok := strings.Cut(body, "HTTP/1.1 ")
		if !ok || len(rest) < 3 {
			return w
		}
		status, _ := strconv.Atoi(rest[:3])
		w.count(refusalStatus(status), status/100 == 2)
		body = rest
	}
}

// count adds one part: a refusal if refused is a status.
func (w *within) count(refused int, served bool) {
	switch {
	case refused != 0:
		w.Refused++
		w.status = refused
	case served:
		w.Served++
		w.some = true
	}
}

// deepest bounds how far refusals are looked for in lists of lists.
const deepest = 2

// inTree looks for a refusal in a JSON document.
func inTree(tree any, depth int) (w within) {
	switch v := tree.(type) {
	case []any:
		if depth == deepest {
			return w
		}
		for _, item := range v {
			in := inItem(item, depth)
			w.count(in.status, !in.some)
		}
	case map[string]any:
		if w = inParts(v); w.status != 0 {
			return w
		}
		w = inErrors(v)
	}
	if w.status == 0 {
		return within{}
	}
	return w
}

// inItem judges one of several answers in a list: of JSON-RPC, of batched GraphQL, of Facebook
// ({"code":…,"body":"…"}), and of exchanges, with a code and a message alone.
func inItem(item any, depth int) (w within) {
	v, ok := item.(map[string]any)
	if !ok {
		return within{some: true} // neither served nor refused
	}
	if text, ok := v["body"].(string); ok && v["code"] != nil {
		if code, _ := v["code"].(float64); code == 200 {
			return within{}
		}
		tree, _ := treeOf(text)
		return inTree(tree, depth+1)
	}
	const short = 3 // a code, and a message
	if v["error"] == nil && v["errors"] == nil && len(v) > short {
		return within{} // perhaps a line of a log
	}
	if w = inTree(v, depth+1); w.some { // this one was served, too
		return within{}
	}
	return w
}

// inErrors looks for a refusal as the whole of an object, or beside what was served.
func inErrors(v map[string]any) (w within) {
	switch e := v["errors"].(type) {
	case []any:
		for _, one := range e {
			if status := refusalIn(one); status != 0 {
				w.count(status, false)
			}
		}
	case map[string]any:
		w.count(refusalIn(e), false)
	}
	if e := v["error"]; e != nil && w.status == 0 {
		w.count(refusalIn(e), false)
	}
	if w.status == 0 {
		w.count(plainRefusal(v), false)
	}
	if w.status == 0 || isRecord(v) || quotes(v) {
		return within{}
	}
	w.Served = servedBeside(v)
	w.some = w.Served > 0
	return w
}

// servedBeside counts what an object has beside its errors: the members of data that are not null,
// as in GraphQL, or the items of lists of results.
func servedBeside(v map[string]any) (n int) {
	for _, name := range []string{"data", "results", "result", "choices", "candidates", "output", "items", "responses"} {
		switch in := v[name].(type) {
		case map[string]any:
			for _, member := range in {
				if member != nil {
					n++
				}
			}
		case []any:
			n += len(in)
		}
	}
	return n
}

// isRecord reports whether an object is a thing that the server keeps, such as a job that failed
// for a limit, and no answer of its own.
func isRecord(v map[string]any) bool {
	if v["jsonrpc"] != nil || v["id"] == nil && v["_id"] == nil && v["uuid"] == nil {
		return false
	}
	if kind, _ := v["object"].(string); strings.HasPrefix(kind, "chat.completion") || kind == "text_completion" {
		return false
	}
	return slices.ContainsFunc([]string{"created", "created_at", "createdAt", "updated_at", "status", "state", "timestamp"}, func(name string) bool {
		_, is := v[name].(string)
		_, number := v[name].(float64)
		return is || number
	})
}

// quotes reports whether an object has a long text beside its error: its words may be about
// another answer.
func quotes(v map[string]any) bool {
	const long = 1 << 10
	for _, member := range v {
		if text, ok := member.(string); ok && len(text) > long {
			return true
		}
	}
	return false
}

// plainRefusal returns the status of an object that is itself an error: it has a code, or says that
// it is no success, and a message in words of limits. It has nothing else but plain values.
func plainRefusal(v map[string]any) int {
	failed := v["success"] == false || v["ok"] == false || v["status"] == "error" || v["status"] == "fail" || v["type"] == "error" || v["error"] == true
	code := 0
	for name, value := range v {
		switch in := value.(type) {
		case map[string]any:
			if len(in) > 0 {
				return 0
			}
		case []any:
			if len(in) > 0 {
				return 0
			}
		}
		if name == "code" || name == "status" || name == "status_code" || name == "statusCode" || name == "errorCode" || name == "error_code" {
			switch in := value.(type) {
			case float64:
				failed = failed || in != 0 && in != 200
			case string:
				code = max(code, codeStatus(in))
			}
		}
	}
	if code == 0 && !failed {
		return 0
	}
	for _, name := range []string{"message", "msg", "detail", "error_message", "errorMessage", "error_msg", "reason", "title", "description"} {
		if text, ok := v[name].(string); ok {
			if status := wordsStatus(text); status != 0 {
				return status
			}
		}
	}
	return code
}

// refusalIn returns the status of an error that is a refusal for a limit, or 0.
func refusalIn(e any) int {
	switch e := e.(type) {
	case string:
		return max(codeStatus(e), wordsStatus(e))
	case []any:
		for _, one := range e {
			if status := refusalIn(one); status != 0 {
				return status
			}
		}
	case map[string]any:
		return refusalOf(e)
	}
	return 0
}

func refusalOf(e map[string]any) int {
	known := false // it has a code that means something else
	for _, in := range []any{e, e["extensions"], e["details"], e["reason"]} {
		in, _ := in.(map[string]any)
		for _, name := range []string{"code", "type", "status", "reason", "error", "errorCode", "error_code", "category", "kind", "Code"} {
			switch v := in[name].(type) {
			case string:
				if status := codeStatus(v); status != 0 {
					return status
				}
				known = known || isElse(v)
			case float64:
				if status := refusalStatus(int(v)); status != 0 {
					return status
				}
			}
		}
	}
	if known {
		return 0
	}
	for _, name := range []string{"message", "msg", "detail", "title", "description", "error_description"} {
		if text, ok := e[name].(string); ok {
			if status := wordsStatus(text); status != 0 {
				return status
			}
		}
	}
	return 0
}

// refusalStatus returns a status, or a code of JSON-RPC, if it is that of a refusal; otherwise 0.
func refusalStatus(code int) int {
	switch code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
		return code
	case -32005: // of JSON-RPC at nodes of blockchains: limit exceeded
		return http.StatusTooManyRequests
	}
	return 0
}

// squashed returns the letters and digits of a text, in lower case.
func squashed(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		}
		return -1
	}, text)
}

// longestCode is the longest text that is taken for a code.
const longestCode = 80

// codeStatus returns the status of a refusal for a code such as rate_limit_exceeded; 0: it is no
// such code.
func codeStatus(code string) int {
	switch {
	case unpaidCodes[code]:
		return http.StatusPaymentRequired
	case len(code) > longestCode || strings.Count(code, " ") > 2 || isElse(code):
		return 0
	}
	code = squashed(code)
	for _, c := range []struct {
		status int
		parts  []string
	}{
		{529, []string{"overloaded", "serveroverload"}},
		{http.StatusTooManyRequests, []string{"ratelimit", "throttl", "toomanyrequest", "toomanycalls", "requestlimit", "quotaexceeded", "exceededquota", "overquota",
			"quotaexhausted", "resourceexhausted", "slowdown", "throughputexceeded", "rejectedexecution", "capacityexceeded", "rateexceeded", "limitexceeded"}},
	} {
		if slices.ContainsFunc(c.parts, func(part string) bool { return strings.Contains(code, part) }) {
			return c.status
		}
	}
	if n, err := strconv.Atoi(code); err == nil {
		return refusalStatus(n)
	}
	return 0
}

// isElse reports whether a code says that the request itself is wrong, although its words may be
// about limits.
func isElse(code string) bool {
	code = squashed(code)
	return slices.ContainsFunc([]string{"invalid", "validation", "badrequest", "notfound", "unauthori", "forbidden", "permission", "contextlength", "maxlength",
		"sizelimit", "lengthlimit", "depthlimit", "toolarge", "unsupported"}, func(part string) bool { return strings.Contains(code, part) })
}

// wordsStatus returns the status of a refusal for a message in words; 0: it is not about a limit
// that was reached.
func wordsStatus(text string) int {
	if len(text) > 1000 {
		return 0
	}
	lower := strings.ToLower(text)
	switch {
	case slices.ContainsFunc(unpaidWords, func(words string) bool { return strings.Contains(lower, words) }):
		return http.StatusPaymentRequired
	case strings.Contains(text, "过于频繁"): // too often
		return http.StatusTooManyRequests
	}
	text = squashed(text)
	for _, part := range []string{"ratelimitexceeded", "ratelimitreached", "ratelimithit", "ratelimited", "toomanyrequests", "toomanycalls", "requestlimitexceeded",
		"requestlimitreached", "limitofrequests", "exceededyourratelimit", "exceededtheratelimit", "exceededratelimit", "exceededyourcurrentquota", "quotaexceeded",
		"quotahasbeenexceeded", "exceededthequota", "exceededyourquota", "quotaexhausted", "throttled", "toomanyneworders", "requestrateistoolarge",
		"hityourratelimit", "reachedyourratelimit", "exceededitsrequestratelimit", "maxratelimit"} {
		if strings.Contains(text, part) {
			return http.StatusTooManyRequests
		}
	}
	if strings.Contains(text, "overloaded") {
		return 529
	}
	return 0
}
