package format

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/secret"
)

const (
	// hiddenField is the member of a dead letter's request that lists secrets left out of it. A
	// line with it is not sent.
	hiddenField = "hidden"
	hiddenText  = secret.Hidden
)

// Secrets finds what nothing may show of requests: keys, tokens, and the secrets that a request has of its
// own. Safe for concurrent use.
type Secrets struct {
	Finder        // of keys and tokens
	keys          []secret.Key
	header, query []Template // the run's
	handed        bool       // requests were not written for paceline, and may have secrets of their own
	sets          secretSets
}

// NewSecrets looks for keys, and in requests of a format for their own secrets. header and query are the
// run's.
func NewSecrets(keys []secret.Key, header, query []Template, f Format) *Secrets {
	_, handed := f.(*Items)
	return &Secrets{Finder: secret.New(keys), keys: keys, header: header, query: query, handed: handed}
}

// Converted reports whether requests were made from another form of input.
func (s *Secrets) Converted() bool { return s.handed }

// Of returns the finder of all that must not be shown of a request.
func (s *Secrets) Of(r *Request) Finder {
	if r == nil || len(r.own) == 0 {
		return s.Finder
	}
	keys := s.keys
	if h, ok := s.Finder.(*Tokens); ok {
		keys = h.Keys()
	}
	return s.sets.of(append(slices.Clone(keys), r.own...))
}

// Conceal finds the secrets that a request has of its own: where it was not written for paceline,
// and where a line has one by its place.
func (s *Secrets) Conceal(q *Request) {
	if q.URL == nil || (!s.handed || q.Raw != nil) && !q.hasSecret() {
		return
	}
	q.own = s.whole(q).secrets
}

// hasSecret reports whether a line of JSON may have a secret. Most lines have none, and whole would
// take long for a long body.
func (q *Request) hasSecret() bool {
	if q.URL.User != nil {
		return true
	}
	for name := range q.Header {
		if secret.PrivateField(name) {
			return true
		}
	}
	if _, some := secret.SanitizeQuery(q.URL.RawQuery, nil); some && q.URL.RawQuery != "" {
		return true
	}
	return len(q.Body) > 0 &&
		(secret.InMembers(q.Body) || q.Header != nil && strings.Contains(q.Header.Get("Content-Type"), "form"))
}

// secretSets keeps the latest sets, since the commands of one file mostly have the same secrets.
type secretSets struct {
	mu  sync.Mutex
	all map[string]*secret.Set
}

func (c *secretSets) of(keys []secret.Key) *secret.Set {
	var name strings.Builder
	for _, k := range keys {
		name.WriteString(k.Name + "\x00" + k.Value + "\x00")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.all[name.String()]; s != nil {
		return s
	}
	const most = 64
	if c.all == nil || len(c.all) >= most {
		c.all = map[string]*secret.Set{}
	}
	s := secret.New(keys)
	c.all[name.String()] = s
	return s
}

// wholeRequest is a request as a line of Plain, without its secrets.
type wholeRequest struct {
	ID      string                 `json:"id"`
	Method  string                 `json:"method"`
	URL     string                 `json:"url"`
	Headers map[string]fieldValues `json:"headers,omitempty"`
	Body    *string                `json:"body,omitempty"`
	Hidden  []string               `json:"hidden,omitempty"` // the places where something was left out

	secrets []secret.Key
}

// fieldValues are the values of a header field. A single one is written as a string.
type fieldValues []string

func (f fieldValues) MarshalJSON() ([]byte, error) {
	if len(f) == 1 {
		return bytes.TrimSuffix(LineOf(f[0]), []byte("\n")), nil
	}
	return json.Marshal([]string(f))
}

// whole returns a request with the additions that the run's headers and query take from its row. A
// secret is recognized by its place.
func (s *Secrets) whole(q *Request) *wholeRequest {
	w := &wholeRequest{ID: q.ID, Method: q.Method}
	header := q.Header.Clone()
	v := &Values{ID: q.ID, Cells: q.Cell}
	var query []Template
	for _, t := range s.query {
		if !t.ofRow() {
			continue
		}
		if query = append(query, t); t.ofAttempt() || secret.PrivateParameter(t.name, t.Fill(v)) {
			w.hide("query " + t.name)
			w.secretCells(q, t)
		}
	}
	for _, t := range s.header {
		if !t.ofRow() {
			continue
		}
		if header == nil {
			header = http.Header{}
		}
		if header.Set(t.name, t.Fill(v)); t.ofAttempt() {
			header.Set(t.name, hiddenText)
			w.hide("header " + t.name)
		}
		if secret.PrivateField(t.name) {
			w.secretCells(q, t)
		}
	}
	u := *q.URL
	u.RawQuery = SetQuery(u.RawQuery, query, v)
	w.fill(&u, header, q.Body, nil)
	return w
}

// fill takes in the parts of a request without their secrets. Fields in open are shown as they are.
func (w *wholeRequest) fill(u *url.URL, header http.Header, body []byte, open []string) {
	w.url(u)
	for name, all := range header {
		if secret.PrivateField(name) && !slices.Contains(open, name) {
			for _, value := range all {
				w.field(name, value)
			}
			all = []string{hiddenText}
			w.hide("header " + name)
		}
		if w.Headers == nil {
			w.Headers = map[string]fieldValues{}
		}
		w.Headers[name] = all
	}
	if len(body) > 0 {
		w.body(body, header.Get("Content-Type"))
	}
	slices.Sort(w.Hidden)
}

func (w *wholeRequest) hide(where string) {
	if !slices.Contains(w.Hidden, where) {
		w.Hidden = append(w.Hidden, where)
	}
}

func (w *wholeRequest) secret(name, value string) {
	k := secret.Key{Name: name, Value: value}
	if value != "" && value != hiddenText && !slices.Contains(w.secrets, k) {
		w.secrets = append(w.secrets, k)
	}
}

// secretCells makes the cells secret that a template is filled with.
func (w *wholeRequest) secretCells(q *Request, t Template) {
	for _, c := range Columns(t) {
		w.secret("row."+c, q.Cell(c))
	}
}

// field takes in a header field that identifies the caller.
func (w *wholeRequest) field(name, value string) {
	for _, part := range secret.InField(name, value) {
		w.secret(name, part)
	}
}

func (w *wholeRequest) url(u *url.URL) {
	before := ""
	if u.User != nil {
		password, _ := u.User.Password()
		w.secret("password", password)
		w.secret("user", u.User.Username())
		w.secret("Authorization", base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
		before, u.User = hiddenText+"@", nil
		w.hide("url")
	}
	query, some := w.parameters(u.RawQuery)
	if some {
		w.hide("url")
	}
	u.RawQuery = query
	w.URL = strings.Replace(u.String(), "://", "://"+before, 1)
}

// parameters leaves the secrets out of a query or a form.
func (w *wholeRequest) parameters(raw string) (shown string, some bool) {
	return secret.SanitizeQuery(raw, w.secret)
}

func (w *wholeRequest) body(body []byte, contentType string) {
	if !utf8.Valid(body) {
		w.hide("body")
		return
	}
	text := string(body)
	switch media, _, _ := strings.Cut(contentType, ";"); {
	case strings.HasSuffix(media, "/x-www-form-urlencoded"):
		shown, some := w.parameters(text)
		if text = shown; some {
			w.hide("body")
		}
	case json.Valid(body):
		if shown, some := w.members(body); some {
			text = shown
			w.hide("body")
		}
	}
	w.Body = &text
}

// members leaves the secrets out of JSON.
func (w *wholeRequest) members(body []byte) (shown string, some bool) {
	var b bytes.Buffer
	at := 0
	var visit func(name string, v input.Value) error
	visit = func(name string, v input.Value) error {
		switch v.Raw[0] {
		case '{':
			return v.Object(func(name string, _, m input.Value) error { return visit(name, m) })
		case '[':
			return v.Array(func(e input.Value) error { return visit(name, e) })
		case '"':
			text, err := v.Text(name)
			if err != nil || !secret.PrivateParameter(name, text) {
				return nil
			}
			w.secret(name, text)
			b.Write(body[at : v.Column-1])
			b.WriteString(`"` + hiddenText + `"`)
			at, some = v.Column-1+len(v.Raw), true
		}
		return nil
	}
	begin := len(body) - len(bytes.TrimLeft(body, " \t\r\n"))
	_ = visit("", input.ValueAt("", 1, begin+1, bytes.TrimSpace(body)))
	b.Write(body[at:])
	return b.String(), some
}

// LineOf returns the line of a request for a dead letter: the line of the input, or one made from
// other forms of input.
func (s *Secrets) LineOf(q *Request) json.RawMessage {
	if q.Raw != nil || !s.handed || q.URL == nil {
		return q.Raw
	}
	return bytes.TrimSuffix(LineOf(s.shown(q)), []byte("\n"))
}

// shown returns a request without secrets, wherever else they stand in it.
func (s *Secrets) shown(q *Request) *wholeRequest {
	w := s.whole(q)
	w.hideIn(s.Of(q))
	return w
}

// hideIn hides the secrets wherever else they stand.
func (w *wholeRequest) hideIn(secrets Finder) {
	hide := func(text, where string) string {
		text, n := secrets.HideIn(text)
		if n > 0 {
			w.hide(where)
		}
		return text
	}
	w.URL = hide(w.URL, "url")
	for name, all := range w.Headers {
		for i := range all {
			all[i] = hide(all[i], "header "+name)
		}
	}
	if w.Body != nil {
		text := hide(*w.Body, "body")
		w.Body = &text
	}
}

// OwnIn names the request's own secret that would stand in another URL. Only requests in other
// forms of input have such secrets. Nothing sets one there again, and URLs of pages are kept.
func (s *Secrets) OwnIn(q *Request, u *url.URL) (name string, found bool) {
	if !s.handed || q.Raw != nil {
		return "", false
	}
	if own := s.whole(&Request{URL: u}).secrets; len(own) > 0 {
		return own[0].Name, true
	}
	return secret.New(q.own).Holds(u.String())
}

// Address returns the destination of a request, for people.
func (s *Secrets) Address(q *Request) string {
	if s.handed && q.Raw == nil || len(q.own) > 0 {
		return s.shown(q).URL
	}
	text, _ := s.Of(q).HideIn(q.URL.String())
	return text
}

// Columns returns the row of a request for expressions: text, or values of JSON if it is an object.
// Nil: it is no row.
func (q *Request) Columns(hide Finder) any {
	if q.row == nil {
		return nil
	}
	all := map[string]any{}
	for name, c := range q.row.All() {
		text, _ := hide.HideIn(cmp.Or(c.JSON, c.Text))
		if all[name] = text; c.JSON != "" {
			all[name] = Parsed([]byte(text))
		}
	}
	return all
}

// Shows reports whether expressions find a column of that name in the row of the request.
func (q *Request) Shows(name string) bool { return q.row != nil && q.row.Shows(name) }

// Hidden is the error if they do not.
func (q *Request) Hidden(name string) error {
	if q.row == nil {
		return fmt.Errorf("--select .row.%s: this input has no rows, but whole requests", name)
	}
	return q.row.Hidden(name)
}

// Cell returns the row's value in a column.
func (q *Request) Cell(column string) string {
	if i := slices.Index(q.filled, column); i >= 0 {
		return q.cells[i]
	}
	return ""
}

// ofRow reports that a template is filled with a row's columns. ofAttempt reports that it is filled
// with values of each attempt.
func (t Template) ofRow() bool { return len(Columns(t)) > 0 }
func (t Template) ofAttempt() bool {
	return t.uses("key") || t.uses("token") || t.uses("nonce") || t.uses("attempt")
}
