package sends

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/paceline-go/paceline/transport"
)

// Place is where a request counts: in a partition of one of those who share a file.
type Place struct {
	Owner string // an upstream of a proxy, or a Transport's name
	transport.Partition
}

// leastFields is how many fields the place of a request has in the file of any version.
const leastFields = 6

// separator is escaped in fields. It needs no escape in JSON, so the journal writes lines by hand.
// Older files have & instead.
const separator = "|"

// String writes a place as ParsePlace reads it.
func (p Place) String() string {
	fields := []string{p.Owner, p.Host, p.Key, p.Model, p.Route, p.Client, p.Resource, p.Target}
	for len(fields) > leastFields && fields[len(fields)-1] == "" { // as earlier versions write it
		fields = fields[:len(fields)-1]
	}
	for i := range fields {
		fields[i] = url.QueryEscape(fields[i])
	}
	return strings.Join(fields, separator)
}

// ParsePlace reads a place of a file.
func ParsePlace(s string) (p Place, err error) {
	fields := strings.Split(s, separator)
	if len(fields) == 1 {
		fields = strings.Split(s, "&")
	}
	to := [...]*string{&p.Owner, &p.Host, &p.Key, &p.Model, &p.Route, &p.Client, &p.Resource, &p.Target}
	if len(fields) < leastFields || len(fields) > len(to) {
		return p, fmt.Errorf("%q names no partition of a Transport: expected %d to %d fields", s, leastFields, len(to))
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
