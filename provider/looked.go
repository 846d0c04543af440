package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Explain reads a response as d.Read does, for a person: in addition, Unread has what looks like a field of limits and was not read.
// Finding that out takes memory, so Read does not do it. For a Dialect of another package it is not known.
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

// looked collects the names of the header fields that a reading looks for, whether they are there or not. A nil one collects nothing.
type looked struct{ names []string }

func (l *looked) at(name string) {
	if l != nil && name != "" {
		l.names = append(l.names, name)
	}
}

// unread returns the fields that look like those of limits and that no reading looked at.
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

// ofLimits reports whether the name of a field looks as if it spoke of limits. "Rate" must be a word of its own, so that "Generator" is
// not one.
func ofLimits(name string) bool {
	name = strings.ToLower(name)
	if slices.ContainsFunc([]string{"limit", "quota", "retry", "throttl", "usage", "remaining", "reset"}, func(s string) bool { return strings.Contains(name, s) }) {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }), func(s string) bool { return s == "rate" || s == "rates" })
}

// Fields returns the names of the header fields that the readings of a provider look at, sorted, with * for a part that its server fills
// in. It finds them out by reading. Retry-After is left out, since it is read of all providers.
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

// anybodysWait has the fields that every reading looks at.
var anybodysWait = []string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms"}

// Sign is what a refusal looks like.
type Sign struct {
	// Status lists the statuses that it may have. Nil: any of 400 and above.
	Status []int
	// Field is the header field whose value tells, or Path is the place in the JSON of the body, with * for every item of a list, or Body
	// says that the text stands anywhere in the body. If none of them is set, the status alone tells.
	Field, Path string
	Body        bool
	// Is are the values that tell. Nil: any.
	Is []Pattern
	// Means is what it means; None: it only looks like a refusal by a limit.
	Means Refusal
	// By says who refuses, if the provider tells: a name of Refusers, or "=" for the text that was found.
	By string
	// Wait is how long to stay away if the server does not say, by its documentation.
	Wait time.Duration
	Note string
}

// Signs returns what the refusals of a provider look like, in the order in which they are looked for; those that only a status tells come
// last. It leaves out what the provider's reading tells by code instead of by the table, and the general rules that 429 is a limit and
// 503 an overload.
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
