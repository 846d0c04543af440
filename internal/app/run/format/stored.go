package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paceline-go/paceline/internal/secret"
)

// Storing says how requests are stored, for another process that sends them.
type Storing struct {
	// Read is when the input was read: durations begin then, if a request does not say when.
	Read time.Time
	// TTL is how long a request without a deadline is of use. If zero, for ever.
	TTL time.Duration
	// Secrets allows requests that have secrets of their own.
	Secrets bool
}

// Stored returns a request as a line of Plain, without a line break. What the templates take from its row is in
// it; keys and tokens are not. It fails if the request has a secret that may not be stored.
func (s *Secrets) Stored(q *Request, c Storing) (json.RawMessage, error) {
	line := q.Raw
	if line == nil {
		made, err := s.complete(q)
		if err != nil {
			return nil, err
		}
		line = bytes.TrimSuffix(LineOf(made), []byte("\n"))
	}
	if !c.Secrets {
		if where := s.secretIn(q); where != "" {
			return nil, fmt.Errorf("the request has a secret of its own (%s), which a backlog would keep; expected {key} in "+
				"--header or --query in its place, or --store-secrets", where)
		}
	}
	if _, n := s.Finder.HideIn(string(line)); n > 0 {
		return nil, errors.New("the request has the value of a key, which a backlog would keep; expected {key} in --header " +
			"or --query in its place")
	}
	if lasts := cmp.Or(q.TTL, c.TTL); q.At.IsZero() && lasts > 0 {
		if q.TTL == 0 {
			line = withMember(line, "deadline", lasts.String())
		}
		if q.Created.IsZero() {
			line = withMember(line, "created", c.Read.Format(time.RFC3339Nano))
		}
	}
	return line, nil
}

// secretIn names the places of a request's own secrets; empty: it has none.
func (s *Secrets) secretIn(q *Request) string {
	if q.Raw != nil && !q.hasSecret() {
		return ""
	}
	return strings.Join(s.whole(q).Hidden, ", ")
}

// complete returns a request that is made from another form of input as a line has it, with its secrets.
func (s *Secrets) complete(q *Request) (*wholeRequest, error) {
	if !utf8.Valid(q.Body) {
		return nil, errors.New("the body is no text in UTF-8, and a backlog keeps requests as text")
	}
	v := &Values{ID: q.ID, Cells: q.Cell}
	of := func(all []Template, private func(Template) bool) (own []Template, err error) {
		for _, t := range all {
			switch _, fixed := t.Fixed(); {
			case fixed && !private(t): // another process sends the request, without the flags of this one
				own = append(own, t)
			case !t.ofRow():
			case t.ofAttempt():
				return nil, fmt.Errorf("%s mixes {row.%s} with {key}, {token}, {nonce} or {attempt}, which are filled in when "+
					"a request is sent; expected one of them", t.name, Columns(t)[0])
			default:
				own = append(own, t)
			}
		}
		return own, nil
	}
	query, err := of(s.query, func(t Template) bool { return secret.PrivateParameter(t.name, t.Fill(v)) })
	if err != nil {
		return nil, err
	}
	header, err := of(s.header, func(t Template) bool { return secret.PrivateField(t.name) })
	if err != nil {
		return nil, err
	}
	u := *q.URL
	u.RawQuery = SetQuery(u.RawQuery, query, v)
	w := &wholeRequest{ID: q.ID, Method: q.Method, URL: u.String(), Headers: map[string]fieldValues{}}
	for name, values := range q.Header {
		w.Headers[name] = slices.Clone(values)
	}
	for _, t := range header {
		w.Headers[http.CanonicalHeaderKey(t.name)] = fieldValues{t.Fill(v)}
	}
	if len(q.Body) > 0 {
		text := string(q.Body)
		w.Body = &text
	}
	return w, nil
}
