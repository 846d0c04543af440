package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Explain is d.Read for a person: in addition, Unread has each field that looks like a limit and
// was not read. Finding those takes memory, so Read does not do it. For a Dialect of another
// package, Unread is empty.
func Explain(d Dialect, now time.Time, r Response) Observation {
	row, ok := d.(*row)
	if !ok {
		return d.Read(now, r)
	}
	var l looked
	o := row.reading(now, r, &l).Observation
	o.Unread = l.unread(r.Header)
	return o
}

// looked collects the names of the header fields that a reading looks up, present or not. A nil one
// collects nothing.
type looked struct{ names []string }

func (l *looked) at(name string) {
	if l != nil && name != "" {
		l.names = append(l.names, name)
	}
}

// unread returns the fields that look like limits and that no reading looked up.
func (l *looked) unread(h http.Header) []string {
	seen := map[string]bool{}
	for _, name := range l.names {
		seen[http.CanonicalHeaderKey(name)] = true
	}
	var all []string
	for name, values := range h {
		if !seen[name] && ofLimits(name) {
			all = append(all, printable(fmt.Sprintf("%s: %s", name, clip(strings.Join(values, ", "))), 200))
		}
	}
	all = order(all, func(s string) string { return s })
	return all[:min(len(all), maxItems)]
}

// ofLimits reports whether the name of a field looks like a limit. "Rate" must be a whole word, so
// that "Generator" does not match.
func ofLimits(name string) bool {
	name = strings.ToLower(name)
	if slices.ContainsFunc([]string{"limit", "quota", "retry", "throttl", "usage", "remaining", "reset"}, func(s string) bool { return strings.Contains(name, s) }) {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }), func(s string) bool { return s == "rate" || s == "rates" })
}

// Fields returns the names of the header fields that the readings of a provider look up, sorted. A
// * stands for a part that the server fills in. The function finds the names by reading.
// Retry-After is left out, since every reading looks it up.
func Fields(provider string) []string {
	d := rowOf(provider)
	if d == nil {
		return nil
	}
	var l looked
	for _, status := range []int{http.StatusOK, http.StatusForbidden, http.StatusTooManyRequests} {
		d.reading(time.Time{}, Response{Status: status, Header: http.Header{}}, &l)
	}
	for _, s := range d.stated {
		l.at(s.called)
		l.at(s.window)
	}
	names := map[string]string{}
	for _, name := range l.names {
		if key := http.CanonicalHeaderKey(name); !slices.Contains(anybodysWait, key) {
			names[key] = max(names[key], name) // of two spellings, the one with fewer capitals
		}
	}
	var all []string
	for _, name := range names {
		all = append(all, name)
	}
	return order(all, http.CanonicalHeaderKey)
}

// anybodysWait has the fields that every reading looks up.
var anybodysWait = []string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms"}

// Sign describes a kind of refusal.
type Sign struct {
	// Status lists the possible statuses. Nil: any of 400 and above.
	Status []int
	// Field is the header field whose value decides. Path is the place of the value in the JSON of
	// the body, with * for every item of a list. Body means that the text is anywhere in the body.
	// If none of them is set, the status alone decides.
	Field, Path string
	Body        bool
	// Is are the values that decide. Nil: any.
	Is []Pattern
	// Means is the meaning; None: it only looks like a refusal by a limit.
	Means Refusal
	// By is the refuser, if the provider names it: a name of Refusers, or "=" for the found text.
	By string
	// Wait is the documented time to stay away, if the server states none.
	Wait time.Duration
	Note string
}

// Signs returns the kinds of refusal of a provider, in the order of the search. Those decided by a
// status alone come last. It leaves out refusals that the provider's code reads instead of the
// table. It also leaves out the general rules that 429 is a limit and 503 an overload.
func Signs(provider string) (all []Sign) {
	d := rowOf(provider)
	if d == nil {
		return nil
	}
	bare := map[int]bool{}
	for _, f := range d.refuse {
		s := Sign{Status: slices.Clone(f.status), Field: f.header, Path: f.path, Is: slices.Clone(f.is), Means: f.why, By: f.by, Wait: f.wait, Note: f.note}
		s.Body = f.header == "" && f.path == "" && f.is != nil
		if f.header == "" && f.path == "" && f.is == nil {
			for _, status := range f.status {
				bare[status] = true
			}
		}
		all = append(all, s)
	}
	if !d.reads() {
		return all
	}
	for status := 400; status < 600; status++ {
		r := d.reading(time.Time{}, Response{Status: status, Header: http.Header{}}, nil)
		if usual := r.byStatus(); r.Refusal == None || r.Refusal == usual || bare[status] {
			continue
		}
		all = append(all, Sign{Status: []int{status}, Means: r.Refusal, Wait: r.RetryAfter})
	}
	return all
}
