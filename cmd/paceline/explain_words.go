package main

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/pasted"
	"github.com/paceline-go/paceline/quota"
)

// explained is the output in JSON. Fields are only ever added.
type explained struct {
	From   string `json:"from"`
	Status int    `json:"status"`
	// Assumed: the text did not have a status.
	Assumed bool   `json:"status_assumed,omitempty"`
	Host    string `json:"host,omitempty"`
	// ToldBy is what tells the provider, where neither a host nor the fields do; others refuse in the same words.
	ToldBy string    `json:"told_by,omitempty"`
	Others []string  `json:"others,omitempty"`
	At     time.Time `json:"at"`
	// ComeBack is missing where the server does not say, or where coming back does not help.
	ComeBack        *time.Time        `json:"come_back,omitempty"`
	ComeBackSeconds *float64          `json:"come_back_seconds,omitempty"`
	Advice          string            `json:"advice"`
	Observation     quota.Observation `json:"observation"`
	// Published are limits of the table's, where the response states none.
	Published []publishedRow `json:"published,omitempty"`
}

// saying is all that there is to say of an answer.
type saying struct {
	from      string
	now       time.Time
	answer    pasted.Answer
	who       answerer
	o         quota.Observation
	provider  quota.Provider
	published []publishedRow // where the answer states no limit
	stranger  bool           // nobody of the table
}

func (s *saying) json() explained {
	v := explained{From: s.from, Status: s.answer.Status, Assumed: !s.answer.Said, Host: s.answer.Host, ToldBy: s.who.by, Others: s.who.others, At: s.now.UTC(), Advice: advice(s.now, s.answer.Status, s.o), Observation: s.o, Published: s.published}
	if at, ok := s.o.ComeBack(s.now); ok {
		at = at.UTC()
		seconds := at.Sub(s.now).Seconds()
		v.ComeBack, v.ComeBackSeconds = &at, &seconds
	}
	return v
}

// words is the output in text.
func (s *saying) words() string {
	var b strings.Builder
	o, now, status := s.o, s.now, s.answer.Status
	assumed := ""
	if s.answer.Bare && !s.answer.Said {
		assumed = " (assumed)"
	}
	fmt.Fprintf(&b, "%d %s%s, read as %s at %s\n", status, cmp.Or(http.StatusText(status), "(no status of RFC 9110)"), assumed, o.Dialect, now.UTC().Format("2006-01-02 15:04:05 MST"))
	if o.Refusal != quota.None {
		fmt.Fprintf(&b, "Refused: %s", o.Refusal)
		if len(o.RefusedBy) > 0 {
			fmt.Fprintf(&b, ", by %s", strings.Join(o.RefusedBy, ", "))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	if len(o.Policies)+len(o.Limits) == 0 {
		b.WriteString("  The response says nothing of limits.\n")
	}
	seen := make([]bool, len(o.Limits))
	for _, p := range o.Policies {
		fmt.Fprintf(&b, "  %s%s", policyName(p.Name, p.Unit), policyWords(p))
		for i, l := range o.Limits {
			if l.Policy == p.Name && l.Unit == p.Unit && !seen[i] {
				seen[i] = true
				fmt.Fprintf(&b, ", %s", leftWords(now, l, p.Limit))
			}
		}
		b.WriteString("\n")
	}
	for i, l := range o.Limits {
		if !seen[i] {
			fmt.Fprintf(&b, "  %s%s: %s\n", policyName(l.Policy, l.Unit), l.Unit, leftWords(now, l, 0))
		}
	}
	s.fromTheTable(&b)
	fmt.Fprintf(&b, "\n%s\n", advice(now, s.answer.Status, o))
	if s.who.by != "" {
		fmt.Fprintf(&b, "Note: that it is of %s is told by %s; if it is not, --provider NAME.\n", s.provider.Title, s.who.by)
	}
	if len(s.who.others) > 0 {
		fmt.Fprintf(&b, "Note: refusals of %s look the same.\n", strings.Join(s.who.others, ", "))
	}
	for _, n := range o.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", n)
	}
	for _, n := range o.Problems {
		fmt.Fprintf(&b, "Odd: %s.\n", n)
	}
	for _, n := range o.Unread {
		fmt.Fprintf(&b, "Not read: %s\n", n)
	}
	if s.stranger {
		who := "This server"
		if s.answer.Host != "" {
			who = s.answer.Host
		}
		fmt.Fprintf(&b, "\n%s is not in the table, and is read as any server is. If it is one that is there: --provider NAME, of\n"+
			"paceline explain --providers. To add it: a row in package quota, in the file of its kind, with an answer of its in\n"+
			"quota/testdata; or a quota.Dialect of your own, as transport.Config.Provider.\n", who)
	}
	return b.String()
}

// fromTheTable says what the provider publishes, where its answer states no limit.
func (s *saying) fromTheTable(b *strings.Builder) {
	p := s.provider
	if len(s.o.Policies) == 0 && p.Silent {
		fmt.Fprintf(b, "  %s documents its limits, and does not send them: %s (as of %s)\n", p.Title, p.Docs, p.AsOf)
	}
	if len(s.published) == 0 {
		return
	}
	b.WriteString("  From the table, and not from the response (an account may have others):\n")
	const most = 6
	for _, v := range s.published[:min(most, len(s.published))] {
		fmt.Fprintf(b, "    %s\n", v.words())
	}
	if more := len(s.published) - most; more > 0 {
		fmt.Fprintf(b, "    and %d more: paceline explain --provider %s\n", more, p.Name)
	}
}

// policyName is what a policy is called, where its unit does not say it.
func policyName(name string, unit quota.Unit) string {
	if plain := strings.ReplaceAll(name, "-", " "); name == "" || plain == string(unit) {
		return ""
	}
	return name + ": "
}

// policyWords writes "500 requests per minute (rolling, per key)".
func policyWords(p quota.Policy) string {
	var b strings.Builder
	if p.Limit > 0 {
		b.WriteString(thousands(p.Limit) + " ")
	}
	b.WriteString(string(p.Unit))
	if p.Limit == 1 {
		s := strings.TrimSuffix(b.String(), "s")
		b.Reset()
		b.WriteString(s)
	}
	if p.Window > 0 {
		b.WriteString(" per " + windowWords(p.Window))
	}
	var more []string
	if p.Rule != "" && p.Rule != quota.Concurrency {
		more = append(more, string(p.Rule))
	}
	if p.Burst > 0 && p.Burst != p.Limit {
		more = append(more, thousands(p.Burst)+" at once")
	}
	if p.Scope != "" {
		more = append(more, map[quota.Scope]string{
			quota.Key: "per key", quota.IP: "per address", quota.Model: "per model", quota.Route: "per endpoint", quota.All: "of everybody",
		}[p.Scope])
	}
	if p.Partition != "" {
		more = append(more, "partition "+p.Partition)
	}
	switch {
	case p.Limit == 0:
		more = append(more, "how many is not said")
	case p.Source != quota.Stated:
		more = append(more, string(p.Source))
	case p.Window > 0 && p.WindowSource != quota.Stated:
		more = append(more, "window "+string(p.WindowSource))
	}
	if len(more) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(more, ", "))
	}
	return b.String()
}

// leftWords writes "499 left, full again in 120 ms".
func leftWords(now time.Time, l quota.ServiceLimit, limit int64) string {
	var parts []string
	switch {
	case l.Remaining.OK && l.Remaining.N == limit && limit > 0:
		return "all left"
	case l.Remaining.OK:
		parts = append(parts, thousands(l.Remaining.N)+" left")
	case l.Used.OK:
		parts = append(parts, thousands(l.Used.N)+" used")
	}
	if d := l.Next.Sub(now); !l.Next.IsZero() && d > 0 {
		parts = append(parts, "one in "+spanWords(d))
	}
	if !l.Reset.IsZero() {
		again := "more in "
		if l.Whole {
			again = "full again in "
		}
		d := l.Reset.Sub(now)
		if d <= 0 {
			parts = append(parts, strings.TrimSuffix(again, " in ")+" now")
		} else {
			parts = append(parts, again+spanWords(d))
		}
	}
	return strings.Join(parts, ", ")
}

// advice says when to come back.
func advice(now time.Time, status int, o quota.Observation) string {
	at, ok := o.ComeBack(now)
	wait := at.Sub(now)
	when := ""
	if ok {
		second := at.Add(time.Second - 1).Truncate(time.Second)
		when = fmt.Sprintf("in %s (%s)", spanWords(wait), second.UTC().Format("2006-01-02 15:04:05 MST"))
		if wait <= 0 {
			when = "at once"
		}
	}
	switch o.Refusal {
	case quota.None:
		switch {
		case status >= 400 && wait <= 0:
			return "It failed, and for no limit that is known: no wait is asked for, and the same again may fail the same."
		case !ok:
			return "Nothing is left, and the server does not say when there will be more."
		case wait <= 0:
			return "Come back at once."
		case o.RetryAfter > 0:
			return "Come back " + when + ": the server asks for it."
		}
		return "Come back " + when + ": until then nothing is left of one of the limits."
	case quota.Unpaid:
		return "Do not come back before the account has credit: waiting does not help."
	case quota.TooLarge:
		return "Do not send this request again: it is larger than the limit and never fits. Make it smaller."
	case quota.Banned:
		if ok {
			return "Stop using this key or address until it is over, " + when + "; more requests make it longer."
		}
		return "Stop using this key or address: the server does not say until when."
	case quota.Conflict:
		return "This is no limit: somebody else holds the same object. Try again with a growing, random delay."
	case quota.Misordered:
		return "Send it again with a larger nonce: one that was sent later came first."
	case quota.TooMany:
		if !ok {
			return "Have fewer requests under way at once; then try again."
		}
		return "Have fewer requests under way at once; come back " + when + "."
	case quota.QuotaExhausted:
		if !ok {
			return "The quota is used up; the server does not say when it is back. Do not wait with a request in hand."
		}
		return "The quota is used up; come back " + when + "."
	}
	if !ok {
		return "Come back later: the server does not say when. Wait longer each time, with some randomness."
	}
	return "Come back " + when + "."
}

// thousands writes 30000 as 30,000.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// windowWords writes what comes after "per".
func windowWords(d time.Duration) string {
	switch d {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	}
	return spanWords(d)
}

// spanWords writes a duration by its two largest units: 120 ms, 7.66 s, 2 min 59.6 s, 23 h 47 min, 6 days 2 h. It rounds up,
// so that who waits as long as it says has waited long enough.
func spanWords(d time.Duration) string {
	type unit struct {
		name string
		d    time.Duration
	}
	units := []unit{{"days", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}}
	up := func(step time.Duration) {
		if r := d % step; r > 0 {
			d += step - r
		}
	}
	switch {
	case d < time.Second:
		up(time.Microsecond)
		return strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64) + " ms"
	case d < time.Minute:
		up(time.Millisecond)
	case d < time.Hour:
		up(100 * time.Millisecond)
	case d < 24*time.Hour:
		up(time.Minute)
	default:
		up(time.Hour)
	}
	if d < time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
	}
	i := slices.IndexFunc(units, func(u unit) bool { return d >= u.d })
	s := fmt.Sprintf("%d %s", d/units[i].d, units[i].name)
	if d/units[i].d == 1 && i == 0 {
		s = "1 day"
	}
	rest := d % units[i].d
	switch {
	case rest == 0:
		return s
	case i == len(units)-1:
		return s + " " + strconv.FormatFloat(rest.Seconds(), 'f', -1, 64) + " s"
	}
	if n := rest / units[i+1].d; n > 0 {
		s += fmt.Sprintf(" %d %s", n, units[i+1].name)
	}
	return s
}
