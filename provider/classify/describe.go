package classify

import (
	"fmt"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/provider"
)

// PolicyName is the name of a policy, or empty if its unit says the same.
func PolicyName(name string, unit provider.Unit) string {
	if plain := strings.ReplaceAll(name, "-", " "); name == "" || plain == string(unit) {
		return ""
	}
	return name + ": "
}

// DescribePolicy writes "500 requests per minute (rolling, per key)".
func DescribePolicy(p provider.Policy) string {
	var b strings.Builder
	if p.Limit > 0 {
		b.WriteString(text.Thousands(p.Limit) + " ")
	}
	b.WriteString(string(p.Unit))
	if p.Limit == 1 {
		s := strings.TrimSuffix(b.String(), "s")
		b.Reset()
		b.WriteString(s)
	}
	if p.Window > 0 {
		b.WriteString(" per " + text.Window(p.Window))
	}
	var more []string
	if p.Rule != "" && p.Rule != provider.Concurrency {
		rule := string(p.Rule)
		if p.Zone != "" {
			rule += " of " + p.Zone
		}
		more = append(more, rule)
	}
	if p.Burst > 0 && p.Burst != p.Limit {
		more = append(more, text.Thousands(p.Burst)+" at once")
	}
	switch part, shared := strings.CutPrefix(p.Resource, "address "); {
	case p.Scope == provider.Resource && shared:
		more = append(more, "per address, for "+strings.TrimRight(part, "*"))
	case p.Scope == provider.Resource && p.Resource != "" && !strings.Contains(p.Resource, "*"):
		more = append(more, "per key, for "+p.Resource)
	case p.Scope != "":
		more = append(more, p.Scope.Info().Per)
	}
	if p.Partition != "" {
		more = append(more, "partition "+p.Partition)
	}
	switch {
	case p.Limit == 0:
		more = append(more, "how many is not said")
	case p.Source != provider.Stated:
		more = append(more, string(p.Source))
	case p.Window > 0 && p.WindowSource != provider.Stated:
		more = append(more, "window "+string(p.WindowSource))
	}
	if len(more) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(more, ", "))
	}
	return b.String()
}

// DescribeLeft writes "499 left, full again in 120 ms".
func DescribeLeft(now time.Time, l provider.ServiceLimit, limit int64) string {
	var parts []string
	switch {
	case l.Remaining.OK && l.Remaining.N == limit && limit > 0:
		return "all left"
	case l.Remaining.OK:
		parts = append(parts, text.Thousands(l.Remaining.N)+" left")
	case l.Used.OK:
		parts = append(parts, text.Thousands(l.Used.N)+" used")
	}
	if d := l.Next.Sub(now); !l.Next.IsZero() && d > 0 {
		parts = append(parts, "one in "+text.Span(d))
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
			parts = append(parts, again+text.Span(d))
		}
	}
	return strings.Join(parts, ", ")
}

// Advice writes when to come back.
func Advice(now time.Time, status int, o provider.Observation) string {
	at, ok := o.ComeBack(now)
	wait := at.Sub(now)
	when := ""
	if ok {
		second := at.Add(time.Second - 1).Truncate(time.Second)
		when = fmt.Sprintf("in %s (%s)", text.Span(wait), second.UTC().Format("2006-01-02 15:04:05 MST"))
		if wait <= 0 {
			when = "at once"
		}
	}
	switch o.Refusal {
	case provider.None:
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
	case provider.Unpaid:
		return "Do not come back before the account has credit: waiting does not help."
	case provider.NoQuota:
		return "Do not come back with this key: its limit is 0 here. Use another key or another model; waiting does not help."
	case provider.TooLarge:
		return "Do not send this request again: it is larger than the limit and never fits. Make it smaller."
	case provider.Banned:
		if ok {
			return "Stop using this key or address until it is over, " + when + "; more requests make it longer."
		}
		return "Stop using this key or address: the server does not say until when."
	case provider.Conflict:
		return "This is no limit: somebody else holds the same object. Try again with a growing, random delay."
	case provider.Misordered:
		return "Send it again with a larger nonce: one that was sent later came first."
	case provider.TooMany:
		if !ok {
			return "Have fewer requests under way at once; then try again."
		}
		return "Have fewer requests under way at once; come back " + when + "."
	case provider.QuotaExhausted:
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

// DescribeRefusal writes one line about a refusal: the limits behind it, as far as the server names
// them, and when to come back. Only the names of limits are the server's own text.
func DescribeRefusal(now time.Time, status int, o provider.Observation) string {
	var b strings.Builder
	if status > 0 {
		fmt.Fprintf(&b, "%d: ", status)
	}
	refusal := o.Refusal
	if refusal == provider.None {
		refusal = "refused"
	}
	b.WriteString(string(refusal))
	if len(o.RefusedBy) > 0 {
		fmt.Fprintf(&b, ", by %s", strings.Join(o.RefusedBy, ", "))
	}
	for _, p := range o.Policies {
		for _, l := range o.Limits {
			if l.Policy == p.Name && l.Unit == p.Unit && l.Remaining.OK && l.Remaining.N == 0 {
				fmt.Fprintf(&b, "; %s%s, %s", PolicyName(p.Name, p.Unit), DescribePolicy(p), DescribeLeft(now, l, p.Limit))
			}
		}
	}
	fmt.Fprintf(&b, ". %s", Advice(now, status, o))
	return b.String()
}
