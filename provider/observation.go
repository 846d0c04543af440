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
	// MaxWait bounds every wait and every reset: a month, the longest quota that the known
	// providers publish.
	MaxWait = 31 * 24 * time.Hour
	// MaxCount bounds every count, like limit.MaxCost.
	MaxCount = 1 << 44
	// MaxBody is how much of a body is read; a caller need not keep more of it.
	MaxBody = 64 << 10
	// maxItems bounds each list of an Observation.
	maxItems = 32
)

// Unit is what a limit counts. The names are those of limit.Unit where it has one.
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

// Rule is how a limit counts. The zero Rule means unknown.
type Rule string

const (
	Rolling     Rule = "rolling"  // in any span of the window's length
	Calendar    Rule = "calendar" // in intervals of the server's clock
	Anchored    Rule = "anchored" // in intervals that begin with the first request
	Bucket      Rule = "bucket"   // Limit flow in per Window, evenly; it holds at most Burst
	Concurrency Rule = "concurrency"
)

// Source is the origin of a policy. The zero Source means the response itself.
type Source string

const (
	Stated     Source = ""
	Documented Source = "documented" // in the provider's documentation
	Inferred   Source = "inferred"   // by arithmetic on what the response states
)

// Count is a number that a server may have stated. The zero Count means that it did not.
type Count struct {
	N  int64 // 0 … MaxCount
	OK bool
}

// Policy is a limit: how much per window.
type Policy struct {
	// Name is the server's name for it, or its unit, or "" if the server has only one.
	Name  string
	Unit  Unit
	Scope Scope
	Rule  Rule
	// Limit is how much is allowed, 1 … MaxCount. 0: unknown (Binance states only what is used, and
	// in which window).
	Limit int64
	// Window is the time in which Limit is allowed. 0: unknown.
	Window time.Duration
	// Burst is how much a Bucket holds. If 0, Limit.
	Burst int64
	// Alone means that a full Bucket serves a request of more than Burst. The next is served only
	// when its amount is refilled.
	Alone bool
	// Zone is the place whose clock has the windows of a Calendar, by its name in the tz database. If
	// empty, it is UTC or not known.
	Zone string
	// Resource is the name of the resource, or a pattern of such names. Only a policy of the Scope
	// Resource has one.
	Resource string
	// Partition is the server's name for the part of the quota in which the request counts, in
	// base64 as it was sent.
	Partition string
	// Source is the origin of Limit, and WindowSource that of Window.
	Source, WindowSource Source
}

// ServiceLimit is the present state of a policy.
type ServiceLimit struct {
	// Policy is the Name of its policy. That policy may be missing.
	Policy string
	Unit   Unit
	Scope  Scope
	// Resource is the name of the resource, for a limit of the Scope Resource.
	Resource  string
	Partition string
	// Remaining is what is left, and Used what is used.
	Remaining, Used Count
	// Reset is when there will be more, on the caller's clock: between now and now + MaxWait. Zero:
	// not stated.
	Reset time.Time
	// Whole means that everything is there again at Reset. Otherwise there is more, and perhaps
	// everything.
	Whole bool
	// Next is when an empty bucket will have one again, between now and Reset. It is set if the
	// provider documents Reset as the instant of the full bucket. The zero Time: at Reset, as far
	// as is known.
	Next time.Time
}

// Refusal is why a request was not served. Each kind asks for its own decision.
type Refusal string

const (
	None        Refusal = ""             // served, or refused for another reason than a limit
	RateLimited Refusal = "rate limited" // over the limit of a short window: wait
	// QuotaExhausted: over a quota of a day or more, or of points per hour: report when it is back.
	QuotaExhausted Refusal = "quota exhausted"
	Unpaid         Refusal = "insufficient quota" // no credit: waiting does not help
	// NoQuota: over a limit of 0. The key may not use the model, or the part of the API, at all.
	// Waiting does not help.
	NoQuota    Refusal = "quota of 0"
	Banned     Refusal = "banned"            // stop using the key or the address
	TooLarge   Refusal = "request too large" // more than the limit: it never fits
	TooMany    Refusal = "concurrency"       // too many at once
	Conflict   Refusal = "conflict"          // a lock or an edit conflict, no limit
	Misordered Refusal = "misordered"        // a nonce that does not rise
	Overloaded Refusal = "overloaded"        // the server's trouble, not the client's
)

// Refusals returns all Refusals except None.
func Refusals() []Refusal {
	return []Refusal{RateLimited, QuotaExhausted, Unpaid, NoQuota, Banned, TooLarge, TooMany, Conflict, Misordered, Overloaded}
}

// Observation is what one response states about limits. The zero Observation states nothing.
type Observation struct {
	// Dialect is the name of the dialect of the reading.
	Dialect string
	// Policies and Limits have at most 32 entries each, in the order of the server or its
	// documentation.
	Policies []Policy
	Limits   []ServiceLimit
	// RetryAfter is how long the server asks to stay away: 0 … MaxWait. 0: it did not ask.
	RetryAfter time.Duration
	Refusal    Refusal
	// Denied means that the account has no right to what the request asks for, by an answer with
	// 402. Another key may have it. It is not set for 401 and 403, which say so by their status.
	Denied bool
	// Partly means that the answer has a refusal in it, and something that was served, too. It
	// counts as served, and whoever the refusal concerns stays away. Parts counts its parts.
	Partly bool
	// Sure means that the server's instant for coming back is known to hold. A probe before then
	// would be in vain, or would make the wait longer. If false, send a probe after an hour or so.
	// See also Vouched.
	Sure bool
	// Surged means that the request was refused since the load rose too quickly. No limit on what goes
	// in a time is known to be exceeded. More goes if the load rises slowly.
	Surged bool
	// Parts are those of an answer that is Partly served.
	Parts Parts
	// Worked is how long the server worked on the request, as it states: 0 … MaxWait. The request
	// had arrived before that time. 0: not stated.
	Worked time.Duration
	// RefusedBy has the names of the exceeded policies, if the server names them: see Refusers.
	RefusedBy []string
	// Notes are further facts for a person. Problems are the values that were ignored or changed,
	// and the reasons.
	Notes, Problems []string
	// Unread has the fields that look like limits and were not read, as "Name: value". Only Explain
	// fills it in.
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

// ComeBack returns when a request may do better than this one, and false if the server did not
// state it. The rules are, in this order:
//
//   - A wait that the server asked for counts before resets, as in RFC 9110 and the IETF draft.
//   - Otherwise it is the latest reset of the limits with nothing left, since the longest exhausted
//     limit binds.
//   - After a refusal without such a limit, it is the latest reset of the limits whose remainder is
//     unknown.
//
// A bucket that states when it will be full again has room for one request long before that. After
// a served request that left something of every limit, the next may go at once; after a refusal
// never.
//
// For Unpaid, NoQuota and TooLarge it returns false, whatever the server states: neither waiting nor trying
// again helps.
func (o Observation) ComeBack(now time.Time) (time.Time, bool) {
	if o.Refusal == Unpaid || o.Refusal == NoQuota || o.Refusal == TooLarge {
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

// Vouched reports whether a wait of this length is known to be real. Either the provider's row of
// the table says so (Sure), or a stated or documented policy has a window as long as that.
func (o Observation) Vouched(wait time.Duration) bool {
	return o.Sure || slices.ContainsFunc(o.Policies, func(p Policy) bool { return p.WindowSource != Inferred && p.Window >= wait })
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// jsonPolicy and the two types below are the documented form of an Observation in JSON. Fields are
// only ever added; values that the server did not state are left out.
type jsonPolicy struct {
	Name          string  `json:"name,omitempty"`
	Unit          Unit    `json:"unit"`
	Scope         Scope   `json:"scope,omitempty"`
	Resource      string  `json:"resource,omitempty"`
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
	Resource  string `json:"resource,omitempty"`
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
	Denied     bool         `json:"denied,omitempty"`
	RefusedBy  []string     `json:"refused_by,omitempty"`
	RetryAfter float64      `json:"retry_after_seconds,omitempty"`
	Partly     *Parts       `json:"partly,omitempty"`
	Sure       bool         `json:"sure,omitempty"`
	Surged     bool         `json:"surged,omitempty"`
	Worked     float64      `json:"worked_seconds,omitempty"`
	Policies   []jsonPolicy `json:"policies,omitempty"`
	Limits     []jsonLimit  `json:"limits,omitempty"`
	Notes      []string     `json:"notes,omitempty"`
	Problems   []string     `json:"problems,omitempty"`
	Unread     []string     `json:"unread,omitempty"`
}

// MarshalJSON writes durations in seconds, as window_seconds, and instants in RFC 3339, in UTC.
func (o Observation) MarshalJSON() ([]byte, error) {
	j := jsonObservation{Dialect: o.Dialect, Refusal: o.Refusal, Denied: o.Denied, RefusedBy: o.RefusedBy, RetryAfter: o.RetryAfter.Seconds(), Sure: o.Sure,
		Surged: o.Surged, Worked: o.Worked.Seconds(), Notes: o.Notes, Problems: o.Problems, Unread: o.Unread}
	if o.Partly {
		j.Partly = &o.Parts
	}
	for _, p := range o.Policies {
		j.Policies = append(j.Policies, jsonPolicy{p.Name, p.Unit, p.Scope, p.Resource, p.Rule, p.Limit, p.Window.Seconds(), p.Burst, p.Partition, p.Source, p.WindowSource})
	}
	for _, l := range o.Limits {
		v := jsonLimit{Policy: l.Policy, Unit: l.Unit, Scope: l.Scope, Resource: l.Resource, Partition: l.Partition, Remaining: l.Remaining.pointer(), Used: l.Used.pointer(), Whole: l.Whole}
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

// finish does the last steps of a reading, common to all dialects.
func (o *Observation) finish() {
	// A limit with a window of a day is a quota, whatever the status. An inferred window may be
	// wrong.
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

// compact drops repetitions, keeps the order, and cuts off the surplus.
func compact(s []string) []string {
	var out []string
	for _, v := range s {
		if !slices.Contains(out, v) && len(out) < maxItems {
			out = append(out, v)
		}
	}
	return out
}

// clip makes a server's text fit to print: short, and without control characters.
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

// order sorts lists without an order of their own, so that equal responses have equal readings.
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

// sentence formats a text and makes it fit to print, even if a field's name in it is not.
func sentence(format string, args []any) string { return printable(fmt.Sprintf(format, args...), 400) }
