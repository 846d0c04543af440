package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dunglas/httpsfv"
)

// anybodys are the rows with fields that any server may send, so they come last.
func anybodys() []*row {
	return []*row{
		ietf(), reddit(), generic(),
	}
}

// The IETF draft, draft-ietf-httpapi-ratelimit-headers, has had three generations, and servers of
// all three are in use:
//
//	-08 … -10  RateLimit: "default";r=50;t=30       RateLimit-Policy: "burst";q=100;w=60
//	-07        RateLimit: limit=100, remaining=50, reset=5       RateLimit-Policy: 100;w=10
//	… -06      RateLimit-Limit: 100       RateLimit-Remaining: 50       RateLimit-Reset: 50
//
// All resets are seconds from now. A field that is malformed is ignored, as the draft asks.
func ietf() *row {
	return &row{
		Provider: Provider{
			Name: "ietf", Title: "the IETF draft",
			Docs: "https://datatracker.ietf.org/doc/draft-ietf-httpapi-ratelimit-headers/", AsOf: "2026",
			Limited: Key, Banned: Key, Refusers: theirOwn,
		},
		is: sends("RateLimit", "RateLimit-Policy", "RateLimit-Limit"),
		read: func(r *reading) {
			r.ietf()
			r.problemDetails()
		},
	}
}

// Cloudflare's API sends the fields of the draft as it has been since September 2025.
func cloudflare() *row {
	return &row{
		Provider: Provider{
			Name: "cloudflare", Title: "Cloudflare",
			Hosts: []string{"api.cloudflare.com"},
			Docs:  "https://developers.cloudflare.com/fundamentals/api/reference/limits/", AsOf: "2026",
			Limited: Key, Banned: Key,
			Published: []Preset{
				{"cloudflare", "client API, per user", "https://developers.cloudflare.com/fundamentals/api/reference/limits/", "2026",
					[]Policy{per(1200, Requests, 5*time.Minute, "", Key)}},
				{"cloudflare:address", "client API, per address", "https://developers.cloudflare.com/fundamentals/api/reference/limits/", "2026-11",
					[]Policy{per(200, Requests, time.Second, "", IP)}},
			},
		},
		is: func(r *Response) bool {
			// Half the web is behind Cloudflare; only its own API has these codes for "throttle
			// your request speed".
			return r.Status == http.StatusTooManyRequests && (mentions(r, `"code":10100,`) || mentions(r, `"code":971,`))
		},
		read: func(r *reading) {
			r.ietf()
			if len(r.Policies) == 0 {
				r.Policies = documented("cloudflare")
			}
		},
	}
}

// generic reads the fields that any server may send.
func generic() *row {
	return &row{
		Provider: Provider{
			Name: "generic", Title: "any server",
			Limited: Key, Banned: Key, Refusers: theirOwn,
		},
		read: func(r *reading) { r.anybody() },
		refuse: []refused{
			{status: []int{400, 403}, is: []Pattern{"ate limit exceeded", "ate Limit Exceeded", "ate_limit_exceeded", "RATE_LIMIT_EXCEEDED", "oo many requests", "oo Many Requests", "ThrottlingException"}, why: RateLimited, waitAt: waits},
			{status: []int{429}, why: RateLimited, waitAt: waits},
		},
	}
}

// waits are the places where bodies say for how many seconds to stay away.
const waits = "retry_after|error.retry_after|parameters.retry_after|retryAfter|retry_after_seconds|error.retry_after_seconds|errors.*.extensions.retryAfter|responses.*.headers.Retry-After"

// anybody reads the IETF draft or else X-RateLimit fields.
func (r *reading) anybody() {
	r.problemDetails()
	if r.ietf() {
		return
	}
	for _, prefix := range []string{"X-RateLimit-", "X-Rate-Limit-"} {
		r.waitInstead(prefix+"Retry-After", prefix+"Retry-After-Seconds")
		if r.lists(prefix) {
			continue
		}
		reset := r.reset(prefix+"Reset", 0)
		for _, name := range []string{"Reset-After", "Reset-Date"} {
			if reset.IsZero() {
				reset = r.reset(prefix+name, 0)
			}
		}
		p := Policy{Unit: Requests}
		for _, name := range []string{"Window", "Period", "Interval"} {
			p.Window = max(p.Window, r.length(prefix+name, 0))
		}
		if v, ok := r.field(prefix + "Limit"); ok && strings.ContainsAny(v, ",;") {
			// Some put the draft's policies into the older field that the draft began with: 100,
			// 100;window=60.
			r.policiesInLimit(prefix+"Limit", r.bare(prefix+"Remaining"), reset)
			continue
		}
		p.Limit = r.limit(prefix + "Limit").N
		r.add(p, ServiceLimit{Remaining: r.count(prefix + "Remaining"), Used: r.count(prefix + "Used"), Reset: reset})
	}
	fields := kong()
	for i := range fields {
		r.state(&fields[i])
	}
}

// lists reads fields with a list each, one item for every limit, and reports whether they are
// lists. An example: limits 1, 15000, of which 1, 14980 remain, which are back in 1, 1419704
// seconds. Their windows are in another field, as policies of the draft: 1;w=1, 15000;w=2592000.
func (r *reading) lists(prefix string) bool {
	limits, _ := r.field(prefix + "Limit")
	remaining, _ := r.field(prefix + "Remaining")
	n := strings.Count(limits, ",") + 1
	if n < 2 || n > maxItems || n != strings.Count(remaining, ",")+1 || strings.Contains(limits+remaining, ";") {
		return false
	}
	windows, err := httpsfv.UnmarshalList(r.Header.Values(prefix + "Policy"))
	if r.has(prefix+"Policy") && err != nil {
		r.malformed(prefix+"Policy", err)
	}
	reset, _ := r.field(prefix + "Reset")
	resets := strings.Split(reset, ",")
	for i := range n {
		p := Policy{Unit: Requests, Limit: r.nth(prefix+"Limit", i+1).N, Source: Stated}
		if i < len(windows) {
			if item, ok := windows[i].(httpsfv.Item); ok && item.Value == p.Limit {
				p.Window, p.WindowSource = r.window(prefix+"Policy", item.Params), Stated
				p.Name = windowName(p.Window)
			}
		}
		if p.Name == "" { // so that names differ
			p.Name = fmt.Sprintf("limit %d", i+1)
		}
		l := ServiceLimit{Remaining: r.nth(prefix+"Remaining", i+1)}
		if len(resets) == n {
			l.Reset = r.moment(prefix+"Reset", strings.TrimSpace(resets[i]), 0)
		}
		r.add(p, l)
	}
	return true
}

// waitInstead reads the first of fields that some send instead of Retry-After: Bucket4j before
// Spring, and its imitators. In a served answer they would be the time until a reset, for which no
// request has to wait.
func (r *reading) waitInstead(names ...string) {
	for _, name := range names {
		if t := r.reset(name, 0); !t.IsZero() && r.RetryAfter == 0 && r.Status >= http.StatusBadRequest {
			r.RetryAfter = t.Sub(r.now)
		}
	}
}

// kong are the fields of the gateway of this name and of others like it: a limit per window. Months
// differ in length, so theirs is not stated.
var kong = sync.OnceValue(func() []stated {
	return []stated{
		{names: "X-RateLimit-*-Second", is: named("second", per(0, Requests, time.Second, Calendar, ""))},
		{names: "X-RateLimit-*-Minute", is: named("minute", per(0, Requests, time.Minute, Calendar, ""))},
		{names: "X-RateLimit-*-Hour", is: named("hour", per(0, Requests, time.Hour, Calendar, ""))},
		{names: "X-RateLimit-*-Day", is: named("day", per(0, Requests, day, Calendar, ""))},
		{names: "X-RateLimit-*-Month", is: named("month", per(0, Requests, 0, "", ""))},
		{names: "X-RateLimit-*-Quota-Minute", is: named("minute", per(0, Requests, time.Minute, "", ""))},
		{names: "X-RateLimit-*-Quota-Month", is: named("month", per(0, Requests, 0, "", ""))},
	}
})

// ietf reads the draft's fields and reports whether there were any.
func (r *reading) ietf() bool {
	if r.has("RateLimit-Policy") {
		r.quotaPolicies("RateLimit-Policy")
	}
	if r.has("RateLimit") {
		if !r.serviceLimits("RateLimit") {
			r.dictionary("RateLimit")
		}
		return true
	}
	if !r.has("RateLimit-Limit") && !r.has("RateLimit-Remaining") && !r.has("RateLimit-Reset") {
		return r.has("RateLimit-Policy")
	}
	reset := r.reset("RateLimit-Reset", 0)
	remaining := r.bare("RateLimit-Remaining")
	if v, _ := r.field("RateLimit-Limit"); strings.ContainsAny(v, ",;") {
		// Up to -03 the policies followed the limit in the same field.
		r.policiesInLimit("RateLimit-Limit", remaining, reset)
		return true
	}
	r.expiring(r.limit("RateLimit-Limit"), remaining, reset)
	return true
}

// policiesInLimit reads a field whose first item is the limit that is closest to being used up; the
// other items are policies.
func (r *reading) policiesInLimit(name string, remaining Count, reset time.Time) {
	r.quotaPolicies(name)
	r.expiring(r.bare(name), remaining, reset)
}

// bare reads the first number of a field, without its parameters: 76;w=21600.
func (r *reading) bare(name string) Count {
	v, ok := r.field(name)
	if !ok {
		return Count{}
	}
	v, _, _ = strings.Cut(v, ",")
	v, _, _ = strings.Cut(v, ";")
	return r.number(name, strings.TrimSpace(v))
}

// expiring records the limit whose values are sent by generations before -08: the one that is
// closest to being used up. If there is a policy of that quota, the values are recorded for it.
func (r *reading) expiring(limit, remaining Count, reset time.Time) {
	for _, p := range r.Policies {
		if limit.OK && p.Limit == limit.N {
			r.Limits = append(r.Limits, ServiceLimit{Policy: p.Name, Unit: p.Unit, Scope: p.Scope, Remaining: remaining, Reset: reset})
			return
		}
	}
	r.add(Policy{Unit: Requests, Limit: limit.N}, ServiceLimit{Remaining: remaining, Reset: reset})
}

// quotaPolicies reads a list of quota policies: strings or tokens with q, or, before -08, integers.
func (r *reading) quotaPolicies(name string) {
	list, names, err := structured(r.Header.Values(name))
	if err != nil {
		r.malformed(name, err)
		return
	}
	seen := map[Policy]bool{}
	for i, m := range list[:min(len(list), maxItems)] {
		item, ok := m.(httpsfv.Item)
		if !ok {
			r.problem("%s: a list within the list; ignored", name)
			continue
		}
		p := Policy{Unit: Requests}
		quota, ok := item.Value.(int64)
		if ok {
			// A policy without a window repeats the limit itself: "100, 100;w=60".
			if p.Window = r.window(name, item.Params); p.Window == 0 && len(list) > 1 {
				continue
			}
			p.Name = windowName(p.Window)
		} else if p.Name, ok = text(item.Value); ok {
			if quota, ok = integer(item.Params, "q"); !ok {
				r.problem("%s: %q has no quota; ignored", name, p.Name)
				continue
			}
			p.Window = r.window(name, item.Params)
		} else {
			r.problem("%s: an item is neither a name nor a number; ignored", name)
			continue
		}
		switch {
		case quota < 0:
			r.problem("%s: the quota %d is negative; ignored", name, quota)
			continue
		case quota == 0:
			r.problem("%s: a quota of 0 is no limit; ignored", name)
			continue
		}
		p.Limit = min(quota, MaxCount)
		p.Partition = partition(item.Params)
		if v, ok := item.Params.Get("qu"); ok {
			s, _ := text(v)
			p.Unit = unit(s)
			if p.Unit == Concurrent {
				p.Rule = Concurrency
			}
		}
		if burst, ok := integer(item.Params, "burst"); ok && burst > 0 {
			p.Burst = min(burst, MaxCount)
		}
		if !seen[p] {
			seen[p] = true
			r.Policies = append(r.Policies, p)
		}
		for _, also := range names.of(i) {
			if r.alsoCalled == nil {
				r.alsoCalled = map[string][]string{}
			}
			r.alsoCalled[also] = append(r.alsoCalled[also], p.Name)
		}
	}
}

// called returns the name of the policy for an item of a remainder: the item may use any of its
// names.
func (r *reading) called(name string, also []string) string {
	for _, n := range append([]string{name}, also...) {
		if _, ok := r.Policy(n); ok {
			return n
		}
		if of := r.alsoCalled[n]; len(of) == 1 { // a name of several policies decides nothing
			return of[0]
		}
	}
	return name
}

// otherNames are the names that each item of a list has before its last one.
type otherNames [][]string

func (o otherNames) of(i int) []string {
	if i < len(o) {
		return o[i]
	}
	return nil
}

// structured reads a list of structured fields. Its items may be followed by names as well as by
// parameters: "fixed window";"api";q=500;w=300. The last name is that of the policy.
func structured(values []string) (httpsfv.List, otherNames, error) {
	list, err := httpsfv.UnmarshalList(values)
	if err == nil {
		return list, nil, nil
	}
	var items []string
	var others otherNames
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		var names, params []string
		for part := range strings.SplitSeq(item, ";") {
			if part = strings.TrimSpace(part); strings.Contains(part, "=") {
				params = append(params, part)
			} else {
				names = append(names, part)
			}
		}
		last := max(len(names)-1, 0)
		items = append(items, strings.Join(append(names[last:], params...), ";"))
		for i := range names[:last] {
			names[i] = strings.Trim(names[i], `"`)
		}
		others = append(others, names[:last])
	}
	if list, loose := httpsfv.UnmarshalList([]string{strings.Join(items, ",")}); loose == nil && len(items) <= maxItems {
		return list, others, nil
	}
	return nil, nil, err
}

// windowName names a policy without a name by its window, so that the names of several differ.
func windowName(window time.Duration) string {
	switch {
	case window == 0:
		return ""
	case window%time.Hour == 0:
		return fmt.Sprintf("%dh", window/time.Hour)
	case window%time.Minute == 0:
		return fmt.Sprintf("%dm", window/time.Minute)
	}
	return fmt.Sprintf("%ds", window/time.Second)
}

// window reads w, or window as some wrote it, in seconds.
func (r *reading) window(name string, params *httpsfv.Params) time.Duration {
	w, ok := integer(params, "w")
	if !ok {
		if w, ok = integer(params, "window"); !ok {
			return 0
		}
	}
	switch {
	case w <= 0:
		r.problem("%s: a window of %d s; ignored", name, w)
		return 0
	case w > int64(MaxWait/time.Second):
		r.problem("%s: a window of %d s is longer than %s; ignored", name, w, days(MaxWait))
		return 0
	}
	return time.Duration(w) * time.Second
}

// serviceLimits reads the list of -08 and later. It returns false if the field is no such list. The
// draft's r is optional here, because Atlassian leaves it out while there is plenty.
func (r *reading) serviceLimits(name string) bool {
	list, names, err := structured(r.Header.Values(name))
	if err != nil {
		if _, err := httpsfv.UnmarshalDictionary(r.Header.Values(name)); err != nil {
			r.malformed(name, err)
			return true
		}
		return false
	}
	for i, m := range list[:min(len(list), maxItems)] {
		item, ok := m.(httpsfv.Item)
		var policy string
		if ok {
			policy, ok = text(item.Value)
			policy = r.called(policy, names.of(i))
		}
		if !ok {
			r.problem("%s: an item is no name; ignored", name)
			continue
		}
		l := ServiceLimit{Policy: policy, Unit: Requests, Partition: partition(item.Params)}
		if p, ok := r.Policy(policy); ok {
			l.Unit, l.Scope = p.Unit, p.Scope
		}
		if n, ok := integer(item.Params, "r"); ok && n >= 0 {
			l.Remaining = Count{min(n, MaxCount), true}
		} else if ok {
			r.problem("%s: %d remaining is negative; ignored", name, n)
		}
		if t, ok := integer(item.Params, "t"); ok {
			l.Reset = r.inSeconds(name, t)
		}
		if l.Remaining.OK || !l.Reset.IsZero() {
			r.Limits = append(r.Limits, l)
		}
	}
	return true
}

// dictionary reads the form that -07 has.
func (r *reading) dictionary(name string) {
	dict, err := httpsfv.UnmarshalDictionary(r.Header.Values(name))
	if err != nil {
		r.malformed(name, err)
		return
	}
	get := func(key string) (int64, bool) {
		m, ok := dict.Get(key)
		if !ok {
			return 0, false
		}
		item, ok := m.(httpsfv.Item)
		if !ok {
			return 0, false
		}
		n, ok := item.Value.(int64)
		if ok && n < 0 {
			r.problem("%s: %s=%d is negative; ignored", name, key, n)
			return 0, false
		}
		return min(n, MaxCount), ok
	}
	var limit, remaining Count
	var reset time.Time
	limit.N, limit.OK = get("limit")
	remaining.N, remaining.OK = get("remaining")
	if limit.OK && limit.N == 0 {
		r.problem("%s: limit=0 is no limit; ignored", name)
		limit = Count{}
	}
	if t, ok := get("reset"); ok {
		reset = r.inSeconds(name, t)
	}
	if !limit.OK && !remaining.OK && reset.IsZero() {
		r.malformed(name, errors.New("no limit, remaining or reset"))
		return
	}
	r.expiring(limit, remaining, reset)
}

func (r *reading) inSeconds(name string, t int64) time.Time {
	switch {
	case t < 0:
		r.problem("%s: a reset in %d s is negative; ignored", name, t)
		return time.Time{}
	case t > int64(MaxWait/time.Second):
		r.problem("%s: a reset in %d s is longer than %s; read as that", name, t, days(MaxWait))
		return r.now.Add(MaxWait)
	}
	return r.now.Add(time.Duration(t) * time.Second)
}

func (r *reading) malformed(name string, err error) {
	r.problem("%s: %q is malformed (%s); ignored", name, clip(r.Header.Get(name)), clip(err.Error()))
}

// integer reads a parameter that is a whole number.
func integer(params *httpsfv.Params, name string) (int64, bool) {
	v, ok := params.Get(name)
	if !ok {
		return 0, false
	}
	n, ok := v.(int64)
	return n, ok
}

func text(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return clip(v), true
	case httpsfv.Token:
		return clip(string(v)), true
	}
	return "", false
}

// partition reads pk: bytes that name the client's part of the quota.
func partition(params *httpsfv.Params) string {
	v, _ := params.Get("pk")
	if b, ok := v.([]byte); ok {
		s, err := json.Marshal(b) // base64, as it came
		if err != nil {
			return ""
		}
		return clip(strings.Trim(string(s), `"`))
	}
	s, _ := text(v)
	return s
}

// unit reads the draft's quota units.
func unit(s string) Unit {
	switch s {
	case "requests", "request", "":
		return Requests
	case "content-bytes":
		return Bytes
	case "concurrent-requests":
		return Concurrent
	}
	return Other
}

// problemDetails reads the draft's problem types (RFC 9457).
func (r *reading) problemDetails() {
	if !strings.Contains(r.Header.Get("Content-Type"), "application/problem+json") {
		return
	}
	var body struct {
		Type     string   `json:"type"`
		Violated []string `json:"violated-policies"`
	}
	if !r.object(&body) {
		return
	}
	_, kind, _ := strings.Cut(body.Type, "#")
	switch kind {
	case "quota-exceeded":
		r.refuse(RateLimited)
	case "temporary-reduced-capacity":
		r.refuse(Overloaded)
	case "abnormal-usage-detected":
		r.refuse(Banned)
		r.note("the server takes the pattern of requests for abuse")
	default:
		return
	}
	for _, name := range body.Violated {
		r.by(name)
	}
}
