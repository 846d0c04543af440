package journal

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/paceline-go/paceline/transport"
)

// Place is where a request counts: in a partition of one of those who share a file. Its text is the Key of the
// request's Send.
type Place struct {
	Owner string // an upstream of a proxy, or a Transport's name
	transport.Partition
}

// fields are those of p, in the order of the text.
func (p *Place) fields() [8]*string {
	return [...]*string{&p.Owner, &p.Host, &p.Key, &p.Model, &p.Route, &p.Client, &p.Resource, &p.Target}
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
		return p, fmt.Errorf("%q is not the place of a request: expected %d to %d fields", s, leastFields, len(to))
	}
	for i, f := range fields {
		if *to[i], err = url.QueryUnescape(f); err != nil {
			return p, fmt.Errorf("%q: %w", s, err)
		}
	}
	return p, nil
}

// Names remembers the names of places in a file. The zero Names are ready. Safe for concurrent use.
type Names struct {
	all   sync.Map
	count atomic.Int64
}

// MostNames is how many names are remembered. A client that asks for nonexistent paths makes more
// places than are worth remembering.
const MostNames = 1 << 10

// Of is the name of a place in the file, computed once for each place.
func (n *Names) Of(p Place) string {
	if name, ok := n.all.Load(p); ok {
		return name.(string)
	}
	name := p.String()
	if n.count.Add(1) > MostNames {
		n.count.Store(1)
		n.all.Clear()
	}
	n.all.Store(p, name)
	return name
}
