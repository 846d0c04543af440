package service

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/internal/model"
)

// asked has the facts about a request that a provider's limits use.
type asked struct {
	*http.Request
	Client string // "key 1"; the address if there is no key
	Addr   string
	Keyed  bool
	Body   []byte // the beginning of the body
	Model  string
	Tokens int64 // estimated input
	Output int64 // the most output that the request allows
	// answer is what the endpoint answers if the request passes. Nil: the row has no such endpoint.
	answer *answer
}

// keyFields are the header fields in which providers expect a key.
var keyFields = []string{
	"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Mbx-Apikey", "Ok-Access-Key", "X-Bapi-Api-Key",
	"Cb-Access-Key",
	"X-Shopify-Access-Token", "X-Auth-Key", "Private-Token", "X-Riot-Token",
}

const mostRead = model.MostBody

// read takes the facts for the limits from a request. It accepts any request.
func (s *Server) read(r *http.Request) *asked {
	a := &asked{Request: r, Addr: r.RemoteAddr}
	if addr, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		a.Addr = addr
	}
	if a.URL == nil || a.Header == nil {
		a.Request = (&http.Request{Method: r.Method, URL: r.URL, Header: r.Header}).Clone(r.Context())
	}
	if r.Body != nil {
		a.Body, _ = io.ReadAll(io.LimitReader(r.Body, mostRead)) // a body that breaks off counts as a shorter body
	}
	var body struct {
		Model      string `json:"model"`
		Max        int64  `json:"max_tokens"`
		Completion int64  `json:"max_completion_tokens"`
		Response   int64  `json:"max_output_tokens"`
		Generation struct {
			Max int64 `json:"maxOutputTokens"`
		} `json:"generationConfig"`
	}
	json.Unmarshal(a.Body, &body) // a body that is no JSON has none of the fields
	a.Model = clipped(body.Model)
	for _, before := range []string{"/models/", "/deployments/"} {
		if _, rest, ok := strings.Cut(a.path(), before); ok && a.Model == "" {
			a.Model, _, _ = strings.Cut(clipped(rest), "/")
			a.Model, _, _ = strings.Cut(a.Model, ":")
		}
	}
	a.Tokens = max(1, int64(len(a.Body)+3)/4)
	a.Output = min(max(body.Max, body.Completion, body.Response, body.Generation.Max, 0), 1<<32)

	secret := ""
	for _, f := range keyFields {
		if v := r.Header.Get(f); v != "" && secret == "" {
			secret = v
		}
	}
	if secret == "" && r.URL != nil {
		q := r.URL.Query()
		secret = cmp.Or(q.Get("key"), q.Get("apikey"))
	}
	a.Addr = clipped(a.Addr)
	a.Client, a.Keyed = a.Addr, secret != ""
	if s.row.api != nil {
		a.answer = s.row.api(a)
	}
	if a.Keyed {
		s.mu.Lock()
		defer s.mu.Unlock()
		name, ok := s.keys[secret]
		if !ok && len(s.keys) < mostGauges {
			name = fmt.Sprintf("key %d", len(s.keys)+1)
			s.keys[secret] = name
		} else if !ok {
			name = everybody
		}
		a.Client = name
	}
	return a
}

// path returns the path of any request.
func (a *asked) path() string {
	if a.URL == nil {
		return ""
	}
	return a.URL.Path
}

// clipped bounds the length of a stranger's text, for memory and for the log.
func clipped(s string) string {
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), 200)], "")
}

// who returns the client, address, model or route whose requests share a policy with this request.
func (s *Server) who(a *asked, p *provider.Policy) string {
	switch p.Scope {
	case provider.IP:
		return a.Addr
	case provider.Model:
		return strings.TrimSpace(a.Client + " " + a.Model)
	case provider.Route:
		if s.row.route != nil {
			return a.Client + " " + clipped(s.row.route(a))
		}
		return a.Client + " " + clipped(a.Method+" "+a.path())
	case provider.Resource:
		if s.row.resource != nil {
			if part, ok := strings.CutPrefix(s.row.resource(a), ofAddress); ok {
				return a.Addr + " " + clipped(part)
			}
			return a.Client + " " + clipped(s.row.resource(a))
		}
	case provider.All:
		return "all"
	}
	return a.Client
}
