package quota

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Explain reads a response as d.Read does, for a person: Unread says besides what looks like a field of limits and was not read.
// To know that takes memory, so Read does not say it; nor is it known of a Dialect that is not of this package.
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

// looked are the names of the header fields that a reading looked at, there or not. A nil one does not listen.
type looked struct{ names []string }

func (l *looked) at(name string) {
	if l != nil && name != "" {
		l.names = append(l.names, name)
	}
}

// unread returns the fields that look like those of limits and were not looked at.
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

// ofLimits tells whether a name of a field looks as if it spoke of limits. "Rate" is a word of its own, for the sake of Generator.
func ofLimits(name string) bool {
	name = strings.ToLower(name)
	if slices.ContainsFunc([]string{"limit", "quota", "retry", "throttl", "usage", "remaining", "reset"}, func(s string) bool { return strings.Contains(name, s) }) {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' }), func(s string) bool { return s == "rate" || s == "rates" })
}

// Fields returns the names of the header fields that the readings of a provider look at, sorted, with * for what its server fills
// in. It asks the reading itself. Retry-After is left out: it is read of all.
func Fields(provider string) []string {
	i := slices.IndexFunc(rows, func(d *row) bool { return d.Provider.Name == provider })
	if i < 0 {
		return nil
	}
	var l looked
	for _, status := range []int{http.StatusOK, http.StatusForbidden, http.StatusTooManyRequests} {
		rows[i].reading(time.Unix(0, 0), Response{Status: status, Header: http.Header{}}, &l)
	}
	for _, s := range rows[i].stated {
		l.at(s.called)
		l.at(s.window)
	}
	names := map[string]string{}
	for _, name := range l.names {
		if key := http.CanonicalHeaderKey(name); !slices.Contains(anybodysWait, key) {
			names[key] = max(names[key], name) // of two spellings, that with fewer capitals
		}
	}
	var all []string
	for _, name := range names {
		all = append(all, name)
	}
	return order(all, http.CanonicalHeaderKey)
}

// anybodysWait are the fields that every reading looks at.
var anybodysWait = []string{"Retry-After", "Retry-After-Ms", "X-Ms-Retry-After-Ms"}

// Sign is what a refusal looks like.
type Sign struct {
	// Status is one of these. Nil: 400 and above.
	Status []int
	// Field is the header field whose value tells it, or Path is where in the JSON of the body that is, with * for every item of a
	// list, or Body says that the body has it somewhere. Neither: the status is all.
	Field, Path string
	Body        bool
	// Is are the values. Nil: any.
	Is []Pattern
	// Means is what it is; None: it only looks like one.
	Means Refusal
	// By is who refuses, if the provider tells: a name of Refusers, or "=" for what was found.
	By string
	// Wait is how long to stay away where the server does not say, by its documentation.
	Wait time.Duration
	Note string
}

// Signs returns what refusals of a provider look like, in the order in which they are looked for, those by nothing but a status
// last. What its reading tells by code and not by the table is not among them, and that 429 is a limit and 503 an overload, either.
func Signs(provider string) (all []Sign) {
	i := slices.IndexFunc(rows, func(d *row) bool { return d.Provider.Name == provider })
	if i < 0 {
		return nil
	}
	d := rows[i]
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
		r := d.reading(time.Unix(0, 0), Response{Status: status, Header: http.Header{}}, nil)
		if usual := r.byStatus(); r.Refusal == None || r.Refusal == usual || bare[status] {
			continue
		}
		all = append(all, Sign{Status: []int{status}, Means: r.Refusal, Wait: r.RetryAfter})
	}
	return all
}
