package sending

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/secret"
)

// Next finds the page after an answer. ParseNext makes it.
type Next struct {
	link  bool    // the URL is in the header field Link
	at    pointer // where a URL or a cursor is in the answer's body
	param string  // the query parameter for the cursor; empty: none
	into  pointer // the place of the cursor in the body of the next request; nil: none
	while pointer // the place in the answer's body that says whether there are more pages; nil: none
}

const bodyCursor = "body:"

// ParseNext reads "link", a JSON pointer to a URL, NAME=POINTER for a cursor in the query, or
// body:POINTER=POINTER for a cursor in the body. while is empty, or a JSON pointer to a value that
// is true in all pages but the last.
func ParseNext(s, while string) (*Next, error) {
	n := new(Next)
	var err error
	name, at, isCursor := strings.Cut(s, "=")
	switch {
	case s == "link":
		n.link = true
	case strings.HasPrefix(s, "/"):
		n.at, err = parsePointer(s)
	case isCursor && strings.HasPrefix(s, bodyCursor):
		into, from, ok := cutPointers(s[len(bodyCursor):])
		if !ok {
			return nil, fmt.Errorf("%q, expected body:POINTER=POINTER, like body:/start_cursor=/next_cursor", s)
		}
		if n.into, err = parsePointer(into); err == nil {
			n.at, err = parsePointer(from)
		}
	case isCursor && name != "" && strings.HasPrefix(at, "/"):
		n.param = name
		n.at, err = parsePointer(at)
	default:
		return nil, fmt.Errorf("%q, expected link, a JSON pointer to a URL (/links/next), NAME=POINTER "+
			"(cursor=/meta/next_cursor), or body:POINTER=POINTER (body:/start_cursor=/next_cursor)", s)
	}
	if err != nil {
		return nil, err
	}
	if while != "" {
		if n.while, err = parsePointer(while); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// cutPointers cuts s into two pointers. It cuts at the first = before a slash, since names in a
// pointer may have a =, too.
func cutPointers(s string) (into, from string, ok bool) {
	into, from, ok = strings.Cut(s, "=/")
	return into, "/" + from, ok && into != "" && into[0] == '/'
}

// InBody reports whether the cursor is in the body of the next request.
func (n *Next) InBody() bool { return n.into != nil }

// Param returns the query parameter that is set for the next page; empty: none.
func (n *Next) Param() string { return n.param }

// String says where the next page is looked for.
func (n *Next) String() string {
	if n.link {
		return "in the header field Link"
	}
	return "at " + n.at.String()
}

// Lacks reports whether an answer has nothing where the next page would be, not even a null. So it is after the last
// page of some servers, and after every page where the place is wrong.
func (n *Next) Lacks(res *Response) bool {
	if n.link {
		return nextLink(res.Header["Link"]) == ""
	}
	raw, err := n.at.find(res.Body)
	return err == nil && raw == nil
}

// After reads the next page from an answer: a reference to a URL, a cursor, or a cursor as JSON.
// Empty: there is no next page.
func (n *Next) After(res *Response) (string, error) {
	if n.link && n.while == nil {
		return nextLink(res.Header["Link"]), nil
	}
	if res.Status == http.StatusNoContent || len(bytes.TrimSpace(res.Body)) == 0 && !res.Cut && res.Saved == nil {
		return "", nil
	}
	if res.Cut || res.Saved != nil || res.TooLong {
		return "", errors.New("of which the end is missing, where the next page may be (--max-response)")
	}
	if n.while != nil {
		more, err := n.while.find(res.Body)
		switch {
		case err != nil:
			return "", errors.New("which is no JSON, so that the next page (--next-while) is not to be found")
		case string(more) != "true":
			return "", nil
		case n.link:
			return nextLink(res.Header["Link"]), nil
		}
	}
	raw, err := n.at.find(res.Body)
	if err != nil {
		return "", errors.New("which is no JSON, so that the next page (--next) is not to be found")
	}
	return n.read(raw)
}

// read reads the value at a pointer: text, or a number if it is a cursor. null, false and "" mean
// that there is no next page.
func (n *Next) read(raw json.RawMessage) (string, error) {
	switch {
	case len(raw) == 0 || string(raw) == "null" || string(raw) == "false" || string(raw) == `""`:
		return "", nil
	case n.into != nil && (raw[0] == '"' || isNumber(raw)):
		return string(raw), nil
	case raw[0] == '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case n.param != "" && isNumber(raw):
		return string(raw), nil
	}
	return "", fmt.Errorf("where %s (--next) is %.40s, expected a text, or nothing at the end", n.at, raw)
}

func isNumber(raw json.RawMessage) bool { return raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' }

// Straying is the reason why a next page is not requested: its place is wrong, or the pages would
// never end.
type Straying struct {
	Class  format.DeadClass
	Reason string
}

func (e Straying) Error() string { return e.Reason }

// Turned makes the request for the page after q. from is the hop that answered q. next is the
// result of after or, if kept is set, the result of keeps in an earlier run. These differ for a
// cursor in the query.
func (s *Sender) Turned(n *Next, q *format.Request, from Hop, next string, kept bool) (*format.Request, error) {
	p := *q
	p.URL = nil
	if kept && next == lostPage {
		return &p, Straying{format.DeadRedirected, "not followed: where it is was not kept, as its dead letter says"}
	}
	p.URL = q.URL
	if key, found := s.secrets.Holds(next); found && (n.into != nil || n.param != "" && !kept) {
		p.URL = nil
		return &p, Straying{format.DeadRedirected, "not followed: the cursor has the value of " + key}
	}
	if n.into != nil {
		body, err := n.into.put(q.Body, json.RawMessage(next))
		if err != nil {
			return &p, Straying{format.DeadInvalid, "not followed: " + err.Error()}
		}
		p.Body = body
		if p.Header.Get("Content-Type") == "" {
			p.Header = p.Header.Clone()
			if p.Header == nil {
				p.Header = http.Header{}
			}
			p.Header.Set("Content-Type", "application/json")
		}
		return &p, nil
	}
	to, err := s.leadsTo(n, q, from, next, kept)
	p.URL = to
	return &p, err
}

// lostPage stands in a result for a next page that cannot be requested: its address has a key in
// it, or is no address.
const lostPage = "?"

// Keeps returns the part of the next page that a result keeps, to make its request again: a URL, or
// the cursor in the body.
func (n *Next) Keeps(q *format.Request, next string) string {
	switch {
	case q.URL == nil:
		return lostPage
	case n.into != nil:
		return next
	}
	u := *q.URL
	u.User, u.RawQuery = nil, withoutSecrets(u.RawQuery, q.Chain.Home.RawQuery) // a later run has both in its input
	return u.String()
}

// withoutSecrets returns a query without the secret parameters that it has in common with the first
// page.
func withoutSecrets(query, home string) string {
	own := secretParameters(home)
	if len(own) == 0 {
		return query
	}
	parts := strings.Split(query, "&")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return slices.Contains(own, part) }), "&")
}

// withSecrets undoes withoutSecrets. A parameter of a name that the query has already stays out.
func withSecrets(query, home string) string {
	named := map[string]bool{}
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		named[name] = true
	}
	for _, part := range secretParameters(home) {
		if name, _, _ := strings.Cut(part, "="); !named[name] {
			query = strings.TrimPrefix(query+"&"+part, "&")
		}
	}
	return query
}

// secretParameters are the parts of a query whose values are secret.
func secretParameters(query string) (all []string) {
	for part := range strings.SplitSeq(query, "&") {
		if _, some := secret.SanitizeQuery(part, nil); some {
			all = append(all, part)
		}
	}
	return all
}

// leadsTo returns the URL of a next page. As with redirects, it must be where the keys may go.
// Without a key the server would not serve the page.
func (s *Sender) leadsTo(n *Next, q *format.Request, from Hop, next string, kept bool) (*url.URL, error) {
	to := new(url.URL)
	*to = *q.URL
	if n.param != "" && !kept {
		to.RawQuery = format.SetParam(to.RawQuery, n.param, next)
	} else {
		var err error
		if to, err = from.URL.Parse(next); err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Hostname() == "" {
			return nil, Straying{format.DeadInvalid, "not followed: the next page is at no http or https URL"}
		}
		to.Fragment, to.RawFragment = "", ""
	}
	to.User = nil
	if key, found := s.secrets.OwnIn(q, to); found {
		return nil, Straying{format.DeadRedirected,
			fmt.Sprintf("not followed: the URL of the next page has the value of %s, which is not kept; expected it in "+
				"--query '%s={key}'", key, key)}
	}
	// A server may repeat a key in a link. The key is removed here. Its template adds it again.
	to.RawQuery = s.secrets.WithoutKeys(to.RawQuery)
	host, _ := s.secrets.HideIn(to.Host)
	if key, found := s.secrets.Holds(to.String()); found {
		return nil, Straying{format.DeadRedirected, fmt.Sprintf("not followed to %s: its URL has the value of %s", host, key)}
	}
	if from.Foreign || !append(secret.Places{secret.PlaceOf(q.Chain.Home)}, s.places...).Keep(from.URL, to) {
		return to, Straying{format.DeadRedirected,
			fmt.Sprintf("not followed to %s: the next page is at another host (--key-host)", host)}
	}
	if home := (secret.Places{secret.PlaceOf(q.Chain.Home)}); home.Have(to) {
		to.User = q.Chain.Home.User
		if kept {
			to.RawQuery = withSecrets(to.RawQuery, q.Chain.Home.RawQuery)
		}
	}
	return to, nil
}
