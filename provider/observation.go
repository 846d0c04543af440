// Package provider reads what a server says about its limits. Each provider says it in its own header fields and bodies; the result is
// always an Observation.
//
// Use it to look at answers yourself. Package transport and the verdicts of package classify already use it, and the command paceline
// explain prints what it finds.
//
// "Reset" is a duration, a number of seconds, an instant in seconds or milliseconds, RFC 3339, an HTTP date or a sentinel, depending on
// who speaks. So there is a Dialect per provider; what a bare number means is told by its magnitude. A response of an unknown server is
// read by the three generations of the IETF draft, X-RateLimit fields and Retry-After. Whatever else is known of a provider is in the
// same row of the table: see Provider.
//
// A reading is a hint, not a grant. It is never an error: counts are never negative, instants never in the past, waits never longer than
// MaxWait, and whatever was odd is a sentence in Observation.Problems. Package limit decides when the next request may go.
//
// The package owns no clock: every reading takes the instant at which the response was read. Dialects have no state and
// are safe for concurrent use.
package provider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// MaxWait bounds every wait and every reset: a month, the longest quota that the known providers publish.
	MaxWait = 31 * 24 * time.Hour
	// MaxCount bounds every count, like limit.MaxCost.
	MaxCount = 1 << 44
	// MaxBody is how much of a body is read; callers need not keep more of it.
	MaxBody = 64 << 10
	// maxItems bounds each list of an Observation.
	maxItems = 32
)

// Unit says what a limit counts. The names are those of limit.Unit where it has one.
type Unit string

const (
	Requests   Unit = "requests"
	Weight     Unit = "weight" // an exchange's request weight, points, query cost
	Orders     Unit = "orders"
	Input      Unit = "input tokens"
	Output     Unit = "output tokens"
	Tokens     Unit = "tokens" // input + output
	Money      Unit = "money"
	Bytes      Unit = "bytes"
	Concurrent Unit = "concurrent requests"
	Other      Unit = "other"
)

// Scope says who shares a limit. The zero Scope means that this is not known.
type Scope string

const (
	Key   Scope = "key"   // an API key, its account, organization or project
	IP    Scope = "ip"    // an address
	Model Scope = "model" // a key and a model
	Route Scope = "route" // a key and an endpoint, method, resource or instrument
	All   Scope = "all"   // everybody
)

// Rule says how a limit counts. The zero Rule means that this is not known.
type Rule string

const (
	Rolling     Rule = "rolling"  // in any span of the window's length
	Calendar    Rule = "calendar" // in intervals of the server's clock
	Anchored    Rule = "anchored" // in intervals that begin with the first request
	Bucket      Rule = "bucket"   // Limit flow in per Window, evenly; it holds Burst at most
	Concurrency Rule = "concurrency"
)

// Source says how a policy is known. The zero Source means from the response itself.
type Source string

const (
	Stated     Source = ""
	Documented Source = "documented" // in the provider's documentation
	Inferred   Source = "inferred"   // by arithmetic on what the response states
)

// Count is a number that a server may or may not have said. The zero Count means that it did not.
type Count struct {
	N  int64 // 0 … MaxCount
	OK bool
}

// Policy is a limit as such: how much per how long.
type Policy struct {
	// Name is the server's name for it, or its unit, or "" if the server has only one.
	Name  string
	Unit  Unit
	Scope Scope
	Rule  Rule
	// Limit is how much is allowed, 1 … MaxCount. 0: not known (Binance only says what is used, and in which window).
	Limit int64
	// Window is the time in which Limit is allowed. 0: not known.
	Window time.Duration
	// Burst is how much a Bucket holds. If 0, Limit.
	Burst int64
	// Alone says that a request of more than Burst is served when the Bucket is full, and then nothing else until what it took is
	// refilled.
	Alone bool
	// Partition is the server's name for the part of the quota that the request counts in, in base64 as it was sent.
	Partition string
	// Source says how Limit is known, and WindowSource how Window is.
	Source, WindowSource Source
}

// ServiceLimit is what is left of a policy now.
type ServiceLimit struct {
	// Policy is the Name of the policy it belongs to. There may be none.
	Policy    string
	Unit      Unit
	Scope     Scope
	Partition string
	// Remaining is what is left, and Used what is used.
	Remaining, Used Count
	// Reset is when there will be more, on the caller's clock: between now and now + MaxWait, zero if it was not said.
	Reset time.Time
	// Whole says that everything is there again at Reset. Otherwise there is more, and perhaps everything.
	Whole bool
	// Next is set for a bucket that has nothing left, if its provider documents that Reset is when it is full: then it is the instant
	// between now and Reset at which there will be one again. The zero Time: as far as is known, that is at Reset.
	Next time.Time
}

// Refusal says why a request was not served. Each kind asks for a decision of its own.
type Refusal string

const (
	None           Refusal = ""                   // served, or refused for a reason that is no limit's
	RateLimited    Refusal = "rate limited"       // over the limit of a short window: wait
	QuotaExhausted Refusal = "quota exhausted"    // over a quota of a day or more, or of points per hour: tell when it is back
	Unpaid         Refusal = "insufficient quota" // no credit: waiting does not help
	Banned         Refusal = "banned"             // stop using the key or the address
	TooLarge       Refusal = "request too large"  // more than the limit: it never fits
	TooMany        Refusal = "concurrency"        // too many at once
	Conflict       Refusal = "conflict"           // a lock or an edit conflict, no limit
	Misordered     Refusal = "misordered"         // a nonce that does not rise
	Overloaded     Refusal = "overloaded"         // the server's trouble, not the client's
)

// Refusals returns all Refusals except None.
func Refusals() []Refusal {
	return []Refusal{RateLimited, QuotaExhausted, Unpaid, Banned, TooLarge, TooMany, Conflict, Misordered, Overloaded}
}

// Observation is what one response says about limits. The zero Observation says nothing.
type Observation struct {
	// Dialect is the name of the dialect that it was read in.
	Dialect string
	// Policies and Limits have at most 32 entries each, in the order in which the server or its documentation names them.
	Policies []Policy
	Limits   []ServiceLimit
	// RetryAfter is how long the server asks to stay away: 0 … MaxWait. 0: it did not ask.
	RetryAfter time.Duration
	Refusal    Refusal
	// Sure says that the server's word on when to come back is known to hold, and that a probe before then would be in vain or would make
	// the wait longer. If it is false, send a probe after an hour or so, and see. See also Vouched.
	Sure bool
	// Worked is how long the server says that it worked on the request: 0 … MaxWait. The request had arrived before that time. 0: the
	// server did not say.
	Worked time.Duration
	// RefusedBy has the names of the policies that were exceeded, if the server names them: see Refusers.
	RefusedBy []string
	// Notes has what else a person may want to know. Problems has the values that were ignored or changed, and why.
	Notes, Problems []string
	// Unread has the fields that look like those of limits and were not read, as "Name: value". Only Explain fills it in.
	Unread []string
}

// Policy returns the policy of a name.
func (o Observation) Policy(name string) (Policy, bool) {
	for _, p := range o.Policies {
		if p.Name == name {
			return p, true
		}
	}
	return Policy{}, false
}

// ComeBack returns when a request may do better than this one, and false if the server did not say. If the server asked for a wait, that
// counts before resets, as RFC 9110 and the IETF draft have it. Otherwise it is the latest reset of the limits that have nothing left,
// since the one that stays exhausted longest binds. After a refusal that no such limit explains, it is the latest reset of those of which
// nobody said what is left. A bucket that says when it will be full again has room for one request long before that. A request that was
// served and left something of every limit may be followed at once; after a refusal that is never so.
//
// For Unpaid and TooLarge it returns false, whatever the server says: neither waiting nor trying again helps.
func (o Observation) ComeBack(now time.Time) (time.Time, bool) {
	if o.Refusal == Unpaid || o.Refusal == TooLarge {
		return time.Time{}, false
	}
	if o.RetryAfter > 0 {
		return now.Add(o.RetryAfter), true
	}
	var exhausted, latest time.Time
	blind := false
	for _, l := range o.Limits {
		if o.Refusal != None && l.Remaining.OK && l.Remaining.N > 0 {
			continue // it does not explain the refusal, and its reset may be a day away
		}
		if l.Remaining.OK && l.Remaining.N == 0 {
			blind = blind || l.Reset.IsZero()
			exhausted = later(exhausted, cmp.Or(l.Next, l.Reset))
		}
		latest = later(latest, l.Reset)
	}
	switch {
	case exhausted.After(now):
		return exhausted, true
	case o.Refusal == None:
		return now, !blind
	}
	return latest, latest.After(now)
}

// Vouched reports whether a wait of this length is known to be real: because the provider's row of the table says so (Sure), or because a
// policy that the answer or the documentation states has a window as long as that.
func (o Observation) Vouched(wait time.Duration) bool {
	return o.Sure || slices.ContainsFunc(o.Policies, func(p Policy) bool { return p.WindowSource != Inferred && p.Window >= wait })
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// jsonPolicy and the two types below are the documented form of an Observation in JSON. Fields are only ever added; what the server did
// not say is left out.
type jsonPolicy struct {
	Name          string  `json:"name,omitempty"`
	Unit          Unit    `json:"unit"`
	Scope         Scope   `json:"scope,omitempty"`
	Rule          Rule    `json:"rule,omitempty"`
	Limit         int64   `json:"limit,omitempty"`
	WindowSeconds float64 `json:"window_seconds,omitempty"`
	Burst         int64   `json:"burst,omitempty"`
	Partition     string  `json:"partition,omitempty"`
	Source        Source  `json:"source,omitempty"`
	WindowSource  Source  `json:"window_source,omitempty"`
}

type jsonLimit struct {
	Policy    string `json:"policy,omitempty"`
	Unit      Unit   `json:"unit"`
	Scope     Scope  `json:"scope,omitempty"`
	Partition string `json:"partition,omitempty"`
	Remaining *int64 `json:"remaining,omitempty"`
	Used      *int64 `json:"used,omitempty"`
	Reset     string `json:"reset,omitempty"`
	Whole     bool   `json:"whole_at_reset,omitempty"`
	Next      string `json:"next,omitempty"`
}

type jsonObservation struct {
	Dialect    string       `json:"dialect"`
	Refusal    Refusal      `json:"refusal,omitempty"`
	RefusedBy  []string     `json:"refused_by,omitempty"`
	RetryAfter float64      `json:"retry_after_seconds,omitempty"`
	Sure       bool         `json:"sure,omitempty"`
	Worked     float64      `json:"worked_seconds,omitempty"`
	Policies   []jsonPolicy `json:"policies,omitempty"`
	Limits     []jsonLimit  `json:"limits,omitempty"`
	Notes      []string     `json:"notes,omitempty"`
	Problems   []string     `json:"problems,omitempty"`
	Unread     []string     `json:"unread,omitempty"`
}

// MarshalJSON writes durations in seconds, as window_seconds, and instants in RFC 3339, in UTC.
func (o Observation) MarshalJSON() ([]byte, error) {
	j := jsonObservation{Dialect: o.Dialect, Refusal: o.Refusal, RefusedBy: o.RefusedBy, RetryAfter: o.RetryAfter.Seconds(), Sure: o.Sure, Worked: o.Worked.Seconds(), Notes: o.Notes, Problems: o.Problems, Unread: o.Unread}
	for _, p := range o.Policies {
		j.Policies = append(j.Policies, jsonPolicy{p.Name, p.Unit, p.Scope, p.Rule, p.Limit, p.Window.Seconds(), p.Burst, p.Partition, p.Source, p.WindowSource})
	}
	for _, l := range o.Limits {
		v := jsonLimit{Policy: l.Policy, Unit: l.Unit, Scope: l.Scope, Partition: l.Partition, Remaining: l.Remaining.pointer(), Used: l.Used.pointer(), Whole: l.Whole}
		if !l.Reset.IsZero() {
			v.Reset = l.Reset.UTC().Format(time.RFC3339Nano)
		}
		if !l.Next.IsZero() {
			v.Next = l.Next.UTC().Format(time.RFC3339Nano)
		}
		j.Limits = append(j.Limits, v)
	}
	return json.Marshal(j)
}

func (c Count) pointer() *int64 {
	if !c.OK {
		return nil
	}
	return &c.N
}

// finish does what all dialects have in common at the end of a reading.
func (o *Observation) finish() {
	// A limit with a window of a day is a quota, whatever the status says. A window that was inferred may be wrong.
	for _, p := range o.Policies {
		if o.Refusal != RateLimited || p.Window < 24*time.Hour || p.WindowSource == Inferred {
			continue
		}
		spent := slices.ContainsFunc(o.Limits, func(l ServiceLimit) bool { return l.Policy == p.Name && l.Remaining == Count{0, true} })
		if slices.Contains(o.RefusedBy, p.Name) || spent && len(o.RefusedBy) == 0 {
			o.Refusal = QuotaExhausted
		}
	}
	o.Policies = o.Policies[:min(len(o.Policies), maxItems)]
	o.Limits = o.Limits[:min(len(o.Limits), maxItems)]
	o.RefusedBy = o.RefusedBy[:min(len(o.RefusedBy), maxItems)]
	o.Notes = compact(o.Notes)
	o.Problems = compact(o.Problems)
}

// compact drops repetitions, keeps the order, and cuts off what is too much.
func compact(s []string) []string {
	var out []string
	for _, v := range s {
		if !slices.Contains(out, v) && len(out) < maxItems {
			out = append(out, v)
		}
	}
	return out
}

// clip makes text of a server fit to print: without control characters, and short.
func clip(s string) string { return printable(s, 80) }

func printable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}

// order sorts lists that have no order of their own, so that readings of equal responses are equal.
func order[T any](s []T, by func(T) string) []T {
	slices.SortStableFunc(s, func(a, b T) int { return cmp.Compare(by(a), by(b)) })
	return s
}

func (o *Observation) note(format string, args ...any) {
	o.Notes = append(o.Notes, sentence(format, args))
}

func (o *Observation) problem(format string, args ...any) {
	o.Problems = append(o.Problems, sentence(format, args))
}

// sentence formats a text so that it is fit to print even if the name of a field in it is not.
func sentence(format string, args []any) string { return printable(fmt.Sprintf(format, args...), 400) }
