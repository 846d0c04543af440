package sends

import (
	"sync"
	"sync/atomic"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/transport"
)

// Place is where a request counts: in a partition of one of those who share a file.
type Place struct {
	Owner string // an upstream of a proxy, or a Transport's name
	transport.Partition
}

// String writes a place as ParsePlace reads it.
func (p Place) String() string {
	return journal.Place{Upstream: p.Owner, Host: p.Host, Key: p.Key, Model: p.Model, Route: p.Route, Client: p.Client,
		Resource: p.Resource, Target: p.Target}.String()
}

// ParsePlace reads a place of a file.
func ParsePlace(s string) (Place, error) {
	p, err := journal.ParsePlace(s)
	return Place{p.Upstream, transport.Partition{Host: p.Host, Key: p.Key, Model: p.Model, Route: p.Route, Client: p.Client,
		Resource: p.Resource, Target: p.Target}}, err
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
