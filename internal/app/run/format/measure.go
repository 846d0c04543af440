package format

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/limit"
)

// measure sets the cost of a request to a language model. What is counted beside tokens stays. A request that ended in
// an earlier run needs none, and a count of its tokens would take long.
func (r *Reader) measure(q *Request) error {
	if q.URL == nil || r.Ended != nil && r.Ended(q.ID) {
		return nil
	}
	l, isBatch := r.format.(*LLM)
	bodyName, idName := "body", "id"
	if isBatch {
		names := memberNames[l.c.Provider]
		bodyName, idName = names[len(names)-1], names[0]
	}
	wrong := func(column int, format string, args ...any) error {
		return &InputError{File: r.in.Name(), Line: q.Line, Column: cmp.Or(column, q.Column),
			Reason: fmt.Sprintf(format, args...)}
	}
	body, err := meter.Body(q.Method, q.URL, q.Body)
	if err == nil && r.Meter.MaxTokens() > 0 {
		if q.Body, err = r.Meter.Bound(body.API, q.Body); err == nil {
			body, err = meter.Body(q.Method, q.URL, q.Body)
		}
	}
	if _, is := errors.AsType[*meter.Uncounted](err); is {
		return wrong(q.URLAt, "%v", err)
	}
	if err != nil {
		return wrong(q.BodyAt, "%s: %v", bodyName, err)
	}
	if q.Passed = r.Passes != nil && r.Passes(body.Model); q.Passed {
		return nil
	}
	if isBatch && body.Stream {
		return wrong(q.BodyAt, "the %s has \"stream\": true, expected none: the results of a batch are whole answers", bodyName)
	}
	all, err := r.Meter.Measure(body, r.Roughly || r.Pass == Checking, r.Pass == Checked)
	if err != nil {
		return wrong(q.Column, "%s %q %v", idName, q.ID, err)
	}
	q.Estimate, q.Unbounded = all.Estimate, all.Unbounded
	for _, unit := range []limit.Unit{limit.Input, limit.Output, limit.Tokens} {
		q.Cost[unit] = all.Cost[unit]
	}
	return nil
}

// Model returns the language model to which a request goes; empty: it goes to none, or does not name it.
func (q *Request) Model() string {
	if q.Estimate.Model != "" {
		return q.Estimate.Model
	}
	body, err := meter.Body(q.Method, q.URL, q.Body)
	if err != nil {
		return ""
	}
	return body.Model
}
