package provider

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// refused is what a refusal looks like: a status, and a text in the body or in a header field.
type refused struct {
	// status has the statuses that the answer may have. Nil: any of 400 and above.
	status []int
	// header is the field whose value is one of is. If it is empty, path is the place of that value in the JSON of the body, with * for
	// every item of a list. If both are empty, the text stands anywhere in the body.
	header, path string
	// is has the texts. "a*" is a beginning, and "*a*" stands anywhere. Nil: any text, or none.
	is []Pattern

	// why is None if it only looks like a refusal by its status.
	why Refusal
	// by is a name of Refusers; "=" means the text that was found. Empty: nobody says what refused.
	by string
	// wait is how long to stay away if the server does not say, by its documentation. waitAt is where in the body it says so, in units of
	// per (seconds, if zero); | stands between several places.
	wait   time.Duration
	waitAt string
	per    time.Duration
	// sure says that nothing may go before the time that the server said: a probe would prolong the wait, or is known to be in vain.
	sure bool
	note string
}

// served has the status of providers that refuse with 200.
var served = []int{http.StatusOK}

// refusals takes the first row that looks like the answer.
func (r *reading) refusals(rows []refused) {
	if r.Refusal != None {
		return
	}
	for i := range rows {
		if found, ok := r.looks(&rows[i]); ok {
			r.refusedAs(&rows[i], found)
			return
		}
	}
}

// looks reports whether the answer looks like this refusal, and returns the text that tells.
func (r *reading) looks(f *refused) (found string, ok bool) {
	if f.status == nil && r.Status < 400 || f.status != nil && !slices.Contains(f.status, r.Status) {
		return "", false
	}
	match := func(v string) bool {
		return f.is == nil || slices.ContainsFunc(f.is, func(p Pattern) bool { return p.Match(v) })
	}
	switch {
	case f.header != "":
		v, there := r.field(f.header)
		return v, there && match(v)
	case f.path != "":
		for _, v := range r.at(f.path) {
			if match(v) {
				return v, true
			}
		}
		return "", false
	case f.is == nil:
		return "", true
	}
	for _, p := range f.is {
		if text := strings.Trim(string(p), "*"); mentions(&r.Response, text) {
			return text, true
		}
	}
	return "", false
}

func (r *reading) refusedAs(f *refused, found string) {
	if f.why == None {
		r.other = true // it looks like a refusal by a limit, but is none
		return
	}
	r.refuse(f.why)
	r.Sure = r.Sure || f.sure
	switch f.by {
	case "":
	case "=":
		r.by(found)
	default:
		r.by(f.by)
	}
	if f.note != "" {
		r.note("%s", f.note)
	}
	if f.waitAt != "" && r.RetryAfter == 0 {
		for path := range strings.SplitSeq(f.waitAt, "|") {
			for _, v := range r.at(path) {
				if t := r.moment(path, v, f.per); !t.IsZero() {
					r.RetryAfter = max(r.RetryAfter, t.Sub(r.now))
				}
			}
		}
	}
	if f.wait > 0 && r.RetryAfter == 0 {
		r.RetryAfter = f.wait
		r.note("the server does not say how long; its documentation asks for %v", f.wait)
	}
}

// at returns what the JSON of the body has at a path, as text: "error.code", "errors.*.extensions.code".
func (r *reading) at(path string) []string {
	if !r.parsed {
		r.parsed = true
		r.object(&r.tree)
	}
	nodes := []any{r.tree}
	for name := range strings.SplitSeq(path, ".") {
		var next []any
		for _, n := range nodes {
			switch n := n.(type) {
			case map[string]any:
				if name == "*" {
					for _, key := range keys(n) {
						next = append(next, n[key])
					}
				} else if v, ok := n[name]; ok {
					next = append(next, v)
				}
			case []any:
				if name == "*" {
					next = append(next, n[:min(len(n), maxItems)]...)
				}
			}
		}
		nodes = next
	}
	var all []string
	for _, n := range nodes {
		switch n := n.(type) {
		case string:
			all = append(all, n)
		case float64:
			all = append(all, formatFloat(n))
		case bool:
			all = append(all, map[bool]string{true: "true", false: "false"}[n])
		}
	}
	return all
}

// keys returns the keys of an object in sorted order, so that equal objects are read alike.
func keys(m map[string]any) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	all = order(all, func(s string) string { return s })
	return all[:min(len(all), maxItems)]
}
