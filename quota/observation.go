// Package quota reads what a server says about its limits: header fields and hints in bodies, in the words of each
// provider, into one Observation.
//
// "Reset" is a duration, a number of seconds, an instant in seconds or milliseconds, RFC 3339, an HTTP date or a sentinel,
// depending on who speaks. So there is a Dialect per provider; a bare number is told by its magnitude. A response of a
// server that nobody knows is read by the three generations of the IETF draft, X-RateLimit fields and Retry-After.
// What is known of a provider beside its words is in the same row of the table: see Provider.
//
// A reading is a hint, not a grant. It is never an error: counts are never negative, instants never in the past, waits
// never longer than MaxWait, and whatever was odd is a sentence in Observation.Problems. To decide when the next request
// may go is for package limit.
//
// The package owns no clock: every reading takes the instant at which the response was read. Dialects have no state and
// are safe for concurrent use.
package quota

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

// Scope says who shares a limit. The zero Scope is not known.
type Scope string

const (
	Key   Scope = "key"   // an API key, its account, organization or project
	IP    Scope = "ip"    // an address
	Model Scope = "model" // a key and a model
	Route Scope = "route" // a key and an endpoint, method, resource or instrument
	All   Scope = "all"   // everybody
)

// Rule says how a limit counts. The zero Rule is not known.
type Rule string

const (
	Rolling     Rule = "rolling"  // in any span of the window's length
	Calendar    Rule = "calendar" // in intervals of the server's clock
	Anchored    Rule = "anchored" // in intervals that begin with the first request
	Bucket      Rule = "bucket"   // Limit flow in per Window, evenly; Burst are there at most
	Concurrency Rule = "concurrency"
)

// Source says how a policy is known. The zero Source is the response itself.
type Source string

const (
	Stated     Source = ""
	Documented Source = "documented" // in the provider's documentation
	Inferred   Source = "inferred"   // by arithmetic on what the response states
)

// Count is a number that a server may or may not have said. The zero Count: it did not.
type Count struct {
	N  int64 // 0 … MaxCount
	OK bool
}

// Policy is a limit as such: how much per how long.
type Policy struct {
	// Name is the server's for it, or its unit, or "" for a server that has one.
	Name  string
	Unit  Unit
	Scope Scope
	Rule  Rule
	// Limit is how much, 1 … MaxCount. 0: not known (Binance says what is used, and of which window).
	Limit int64
	// Window is per how long. 0: not known.
	Window time.Duration
	// Burst is how much a Bucket holds. 0: Limit.
	Burst int64
	// Alone: a request of more than Burst is served when the Bucket is full, and nothing else until what it took is refilled.
	Alone bool
	// Partition is the server's name for the share that the request counts in, in base64 as it was sent.
	Partition string
	// Source says how Limit is known, WindowSource how Window is.
	Source, WindowSource Source
}

// ServiceLimit is what is left of a policy now.
type ServiceLimit struct {
	// Policy is the Name of the policy it belongs to. There may be none.
	Policy    string
	Unit      Unit
	Scope     Scope
	Partition string
	// Remaining is what is left, Used what is not.
	Remaining, Used Count
	// Reset is when there will be more, on the caller's clock: between now and now + MaxWait, zero if it was not said.
	Reset time.Time
	// Whole: at Reset everything is there again. Otherwise there is more, and maybe everything.
	Whole bool
	// Next is when there will be one again of a bucket that has nothing left, where its provider documents that Reset is when it
	// is full: between now and Reset. The zero Time: as far as anybody knows, at Reset.
	Next time.Time
}

// Refusal says why a request was not served. Each asks for a decision of its own.
type Refusal string

const (
	None           Refusal = ""                   // served, or refused for a reason that is no limit's
	RateLimited    Refusal = "rate limited"       // over a short window: wait
	QuotaExhausted Refusal = "quota exhausted"    // over a quota of a day or more, or of points per hour: say when
	Unpaid         Refusal = "insufficient quota" // no credit: waiting does not help
	Banned         Refusal = "banned"             // stop using the key or the address
	TooLarge       Refusal = "request too large"  // more than the limit: it never fits
	TooMany        Refusal = "concurrency"        // too many at once
	Conflict       Refusal = "conflict"           // a lock or an edit conflict, no limit
	Misordered     Refusal = "misordered"         // a nonce that does not rise
	Overloaded     Refusal = "overloaded"         // the server's trouble, not the client's
)

// Refusals returns all of them but None.
func Refusals() []Refusal {
	return []Refusal{RateLimited, QuotaExhausted, Unpaid, Banned, TooLarge, TooMany, Conflict, Misordered, Overloaded}
}

// Observation is what one response says about limits. The zero Observation says nothing.
type Observation struct {
	// Dialect is the name of the dialect that it was read in.
	Dialect string
	// Policies and Limits are at most 32 each, in the order in which the server or its documentation names them.
	Policies []Policy
	Limits   []ServiceLimit
	// RetryAfter is how long the server asks to stay away: 0 … MaxWait. 0: not at all, or it did not say.
	RetryAfter time.Duration
	Refusal    Refusal
	// Sure: the server's word on when to come back is known to hold, and that a probe before then would be in vain, or would
	// make it longer. Otherwise who heeds it should see for himself after an hour or so. See Vouched.
	Sure bool
	// Worked is how long the server says that it worked on the request, which had arrived before that: 0 … MaxWait. 0: it did
	// not say.
	Worked time.Duration
	// RefusedBy are names of policies that were exceeded, where the server names them: see Refusers.
	RefusedBy []string
	// Notes are what a person would want to know besides. Problems are values that were ignored or bent, and why.
	Notes, Problems []string
	// Unread are fields that look like those of limits and were not read, as "Name: value". Only Explain fills it in.
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

// ComeBack returns when a request may do better than this one, and false if the server did not say. A wait that it asked
// for goes before resets, as RFC 9110 and the IETF draft have it. Otherwise it is the latest reset of the limits that have
// nothing left: the one that is exhausted longest binds; after a refusal that none of them explains, of those of which nobody
// said what is left. A bucket that says when it will be full again has one request more long before that. A request that was served and left something of every limit may be followed at once; one that was refused never.
//
// Unpaid and TooLarge say false, whatever the server says: neither waiting nor trying again helps.
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
			continue // it does not explain the refusal, and may be that of a day
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

// Vouched tells whether a wait of this answer's is known to be so long: by its row of the table (Sure), or by a window that
// is as long, of a policy that the answer or the documentation states.
func (o Observation) Vouched(wait time.Duration) bool {
	return o.Sure || slices.ContainsFunc(o.Policies, func(p Policy) bool { return p.WindowSource != Inferred && p.Window >= wait })
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// jsonPolicy and the two below are the documented form of an Observation in JSON. Fields are only ever added; what the
// server did not say is left out.
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

// finish is what all dialects have in common at the end of a reading.
func (o *Observation) finish() {
	// A window of a day is no short window, whatever the status says. An inferred one may be wrong.
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

// compact drops repetitions, in order, and what is too much.
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

// order sorts what has no order of its own, so that readings of equal responses are equal.
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

// sentence is fit to print even where the name of a field is not.
func sentence(format string, args []any) string { return printable(fmt.Sprintf(format, args...), 400) }
