package prom

import (
	"sync"

	"github.com/paceline-go/paceline/observe"
)

// other is the label value for all names without their own series.
const other = observe.OtherLabel

// source is a Source with the label values that have their own series.
type source struct {
	observe.Source
	number string

	mu                                  sync.Mutex // guards the fields below, for concurrent scrapes
	clients, limits, keys, hosts, waits observe.LabelNames
}

func newSource(s observe.Source) *source {
	most := func(n int) observe.LabelNames { return observe.LabelNames{Most: n} }
	return &source{Source: s, clients: most(mostClients), limits: most(mostLimits), keys: most(mostKeys),
		hosts: most(mostHosts), waits: most(mostWaits)}
}

// key returns the label value of a key. Keys of different hosts differ.
func (s *source) key(host, name string) string {
	switch {
	case name == "":
		return ""
	case s.keys.Has(host + "\x00" + name):
		return observe.LabelValue(name)
	}
	return other
}
