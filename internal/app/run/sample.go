package run

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/secret"
)

// PlanRequest is one of the first requests of a plan, as it would be sent, without its secrets.
type PlanRequest struct {
	Line    int      `json:"line"`
	ID      string   `json:"id"`
	Method  string   `json:"method"`
	URL     string   `json:"url"`
	Headers []string `json:"headers,omitempty"` // Name: value
	Body    string   `json:"body,omitempty"`
}

// mostSamples is how many requests a plan shows.
const mostSamples = 3

// sample returns a request as the sender would make it with the first key. The key's name stands in
// place of its value.
func (s *sender) sample(q *Request, key string) PlanRequest {
	s.conceal(q)
	q = &Request{ID: q.ID, Line: q.Line, Method: q.Method, URL: q.URL, Header: q.Header.Clone(), Body: q.Body,
		filled: q.filled, cells: q.cells, own: q.own}
	place := "[" + key + "]"
	sent := s.request(q, firstHop(q),
		&values{key: place, token: "[token]", id: q.ID, attempt: 1, isShown: true, cells: q.cell})
	header := sent.Header.Clone()
	if sent.Host != q.URL.Host {
		header.Set("Host", sent.Host)
	}
	var open []string // values with a key's name, and no other secret
	for _, t := range s.header {
		if name := http.CanonicalHeaderKey(t.name); (t.uses("key") || t.uses("token")) && !t.ofRow() {
			open = append(open, name)
		}
	}
	for _, t := range s.query {
		if t.ofRow() && secret.PrivateParameter(t.name, t.fill(&values{cells: q.cell, id: q.ID})) {
			sent.URL.RawQuery = setQuery(sent.URL.RawQuery, []Template{{name: t.name, parts: []string{hiddenText}}}, nil)
		}
	}
	u := *sent.URL
	w := &wholeRequest{}
	w.fill(&u, header, q.Body, open)
	w.hideIn(s.of(q))
	// A name in brackets is not escaped for people.
	for _, text := range []string{place, "[token]", "{nonce}", hiddenText} {
		w.URL = strings.ReplaceAll(w.URL, url.QueryEscape(text), text)
	}
	p := PlanRequest{Line: q.Line, ID: q.ID, Method: q.Method, URL: w.URL}
	for _, name := range slices.Sorted(maps.Keys(w.Headers)) {
		for _, v := range w.Headers[name] {
			p.Headers = append(p.Headers, name+": "+v)
		}
	}
	if w.Body != nil {
		p.Body = *w.Body
	} else if len(q.Body) > 0 {
		p.Body = "(no text)"
	}
	return p
}
