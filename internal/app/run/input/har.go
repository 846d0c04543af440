package input

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// har reads the requests of a HAR, the network log that a browser saves. It holds one entry at a
// time, as the answers in a HAR may be long.
type har struct {
	array // of entries
	c     Config
	found bool // the array of entries has begun
}

// entry is the part of an entry that says what was sent.
type entry struct {
	Request *struct {
		Method, URL string
		Headers     []harPair
		PostData    *struct {
			Text   *string
			Params []harPair
		}
		BodySize int64
	}
}

type harPair struct{ Name, Value string }

func (h *har) next() (*Item, error) {
	if !h.found {
		for _, name := range []string{"log", "entries"} {
			if err := h.member(name); err != nil {
				return nil, err
			}
		}
		h.found = true
	}
	for {
		item, err := h.array.next()
		if err != nil {
			return nil, err
		}
		call, err := h.call(item)
		if err != nil {
			return nil, err
		}
		if call != nil {
			item.Row, item.JSON, item.Call = nil, nil, call
			item.sum = sumOf(call.texts)
			return item, nil
		}
	}
}

// member enters an object, and goes to the value of one of its members.
func (h *har) member(want string) error {
	for separator := byte('{'); ; separator = ',' {
		if err := h.expect(separator); err != nil {
			return err
		}
		name, err := h.element()
		if err == nil {
			err = h.expect(':')
		}
		if err != nil || string(name) == `"`+want+`"` {
			return err
		}
		if _, err := h.element(); err != nil {
			return err
		}
	}
}

// expect skips one byte, and the white space before it.
func (h *har) expect(want byte) error {
	got, err := h.token()
	switch {
	case err != nil && err != io.EOF:
		return err
	case err != nil || got != want:
		return h.broken("expected a HAR, which has its requests in log.entries")
	}
	h.at++
	return nil
}

// element reads a value, and the white space before it.
func (h *har) element() ([]byte, error) {
	if _, err := h.token(); err != nil && err != io.EOF {
		return nil, err
	}
	line, _ := h.Read()
	return h.value(line, h.column+h.at)
}

// call makes the request of an entry. It returns nil for an entry that only a browser sends.
func (h *har) call(item *Item) (*Call, error) {
	wrong := func(format string, args ...any) error { return h.Errorf(item.Line, item.Column, format, args...) }
	var e entry
	if err := json.Unmarshal(item.JSON, &e); err != nil {
		if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, wrong("%s is a %s, expected a %v", strings.ToLower(kind.Field), kind.Value, kind.Type)
		}
		return nil, wrong("%v, expected an entry of a HAR", err)
	}
	q := e.Request
	if q == nil || q.Method == "" || q.URL == "" {
		return nil, wrong("an entry without a request, expected one with a method and a URL")
	}
	c := &Call{Method: q.Method, URL: q.URL, URLColumn: item.Column, Header: http.Header{}}
	for _, f := range q.Headers {
		name := http.CanonicalHeaderKey(f.Name)
		if name != "" && name[0] != ':' && name != "Host" && !WireFields[name] && name != "Accept-Encoding" {
			c.Header.Add(name, f.Value)
		}
	}
	switch {
	case c.Method == http.MethodOptions && c.Header["Access-Control-Request-Method"] != nil:
		h.ignore("preflights", "a browser sends them for itself")
		return nil, nil
	case !isURL(c.URL) && strings.Contains(c.URL, ":"):
		scheme, _, _ := strings.Cut(c.URL, ":")
		h.ignore(scheme+": URLs", "")
		return nil, nil
	}
	body := q.PostData
	form := strings.HasPrefix(c.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
	switch {
	case body != nil && body.Text != nil:
		c.Body = []byte(*body.Text)
	case body != nil && len(body.Params) > 0 && form:
		c.Body = []byte(formOf(body.Params))
	case q.BodySize > 0 || body != nil && len(body.Params) > 0:
		return nil, wrong("the body of this request is not in the HAR, since the browser has left it out")
	}
	return c, nil
}

func formOf(params []harPair) string {
	var pairs []string
	for _, p := range params {
		pairs = append(pairs, url.QueryEscape(p.Name)+"="+url.QueryEscape(p.Value))
	}
	return strings.Join(pairs, "&")
}

func (h *har) ignore(what, instead string) {
	if h.c.Ignored != nil {
		h.c.Ignored(what, instead)
	}
}

// texts yields what makes two requests differ.
func (c *Call) texts(yield func(string) bool) {
	all := []string{c.Method, c.URL, string(c.Body)}
	for name, values := range c.Header {
		all = append(all, name+": "+strings.Join(values, "\x00"))
	}
	slices.Sort(all[3:])
	for _, s := range all {
		if !yield(s) {
			return
		}
	}
}
