package format

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

// Sample describes a request as it would be sent, without its secrets. place stands for the value of the key.
func (s *Secrets) Sample(q *Request, sent *http.Request, place string) PlanRequest {
	header := sent.Header.Clone()
	if sent.Host != q.URL.Host {
		header.Set("Host", sent.Host)
	}
	var open []string // values with a key's name, and no other secret
	for _, t := range s.header {
		if name := http.CanonicalHeaderKey(t.Name()); (t.uses("key") || t.uses("token")) && !t.ofRow() {
			open = append(open, name)
		}
	}
	for _, t := range s.query {
		if t.ofRow() && secret.PrivateParameter(t.Name(), t.Fill(&Values{Cells: q.Cell, ID: q.ID})) {
			sent.URL.RawQuery = SetParam(sent.URL.RawQuery, t.Name(), hiddenText)
		}
	}
	u := *sent.URL
	w := &wholeRequest{}
	w.fill(&u, header, q.Body, open)
	w.hideIn(s.Of(q))
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
