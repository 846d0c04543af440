package journal

import (
	"fmt"
	"net/url"
	"strings"
)

// Place is where a request of a proxy counts. It is the Key of the request's Send.
type Place struct{ Upstream, Host, Key, Model, Route, Client, Resource, Target string }

// fields are those of p, in the order of the text.
func (p *Place) fields() [8]*string {
	return [...]*string{&p.Upstream, &p.Host, &p.Key, &p.Model, &p.Route, &p.Client, &p.Resource, &p.Target}
}

// String writes a Place as ParsePlace reads it.
func (p Place) String() string {
	var fields []string
	for _, f := range p.fields() {
		fields = append(fields, *f)
	}
	for len(fields) > leastFields && fields[len(fields)-1] == "" { // as earlier versions write it
		fields = fields[:len(fields)-1]
	}
	for i := range fields {
		fields[i] = url.QueryEscape(fields[i])
	}
	return strings.Join(fields, separator)
}

// leastFields is how many fields a Place has in the file of any version.
const leastFields = 6

// separator is escaped in fields. It needs no escape in JSON, so the journal writes lines by hand.
// Older files have & instead.
const separator = "|"

// ParsePlace reads the name of a Place.
func ParsePlace(s string) (p Place, err error) {
	fields := strings.Split(s, separator)
	if len(fields) == 1 {
		fields = strings.Split(s, "&")
	}
	to := p.fields()
	if len(fields) < leastFields || len(fields) > len(to) {
		return p, fmt.Errorf("%q was not written by a proxy: expected %d to %d fields", s, leastFields, len(to))
	}
	for i, f := range fields {
		if *to[i], err = url.QueryUnescape(f); err != nil {
			return p, fmt.Errorf("%q: %w", s, err)
		}
	}
	return p, nil
}
