package prom

import (
	"sync"

	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/labels"
)

// other is the label value for all names without their own series.
const other = labels.Other

// source is a Source with the label values that have their own series.
type source struct {
	observe.Source
	number string

	mu                                  sync.Mutex // guards the fields below, for concurrent scrapes
	clients, limits, keys, hosts, waits labels.Names
}

func newSource(s observe.Source) *source {
	most := func(n int) labels.Names { return labels.Names{Most: n} }
	return &source{Source: s, clients: most(mostClients), limits: most(mostLimits), keys: most(mostKeys),
		hosts: most(mostHosts), waits: most(mostWaits)}
}

// key returns the label value of a key. Keys of different hosts differ.
func (s *source) key(host, name string) string {
	switch {
	case name == "":
		return ""
	case s.keys.Has(host + "\x00" + name):
		return labels.Bounded(name)
	}
	return other
}
