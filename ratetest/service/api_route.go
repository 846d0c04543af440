package service

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/ratetest/internal/host"
)

// route is an endpoint, with a pattern as in host.Match. answer gets the parts that the pattern
// leaves open.
type route struct {
	pattern string
	answer  func(a *asked, parts []string) *answer
}

// routed returns the endpoints of a row. check is asked first, for a route that is there. Its answer
// is nil if the request may go on.
func routed(check func(*asked) *answer, routes ...route) func(*asked) *answer {
	return func(a *asked) *answer {
		for _, r := range routes {
			parts, ok := host.Match(r.pattern, a.Method, a.path())
			if !ok {
				continue
			}
			if refused := check(a); refused != nil {
				return refused
			}
			return r.answer(a, parts)
		}
		return nil
	}
}

// entries is the length of every made-up list.
const entries = 35

// made returns a list of made-up entries. make gets numbers from 1.
func made(make func(n int) object) []object {
	var all []object
	for n := range entries {
		all = append(all, make(n+1))
	}
	return all
}

// field returns a field of the query, of a form or of an object of JSON.
func (a *asked) field(name string) string {
	if v := a.URL.Query().Get(name); v != "" {
		return v
	}
	if strings.HasPrefix(a.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		form, _ := url.ParseQuery(string(a.Body)) // of a broken form, the fields before the break
		return form.Get(name)
	}
	switch v := a.fields()[name].(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// fields returns the body as an object of JSON. It is empty if the body is none.
func (a *asked) fields() object {
	var all object
	json.Unmarshal(a.Body, &all)
	return all
}

// base returns the server's address as the client has written it.
func (a *asked) base() string {
	scheme := "http"
	if a.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + a.Host
}

// keyed is a check for a key.
func keyed(refusal *answer) func(*asked) *answer {
	return func(a *asked) *answer {
		if a.Keyed {
			return nil
		}
		return refusal
	}
}

// position returns the index of the entry with an id, -1 if there is none.
func position(all []object, id string) int {
	return slices.IndexFunc(all, func(o object) bool { return o["id"] == id })
}
