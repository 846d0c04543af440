package prom

import (
	"sync"

	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/observe/labels"
)

// other is the value of a label for all that have no series of their own.
const other = labels.Other

// source is a Source with the values that have series of their own.
type source struct {
	observe.Source
	number string

	mu                                  sync.Mutex // stacks what follows: it is scraped by several at once
	clients, limits, keys, hosts, waits labels.Names
}

func newSource(s observe.Source) *source {
	most := func(n int) labels.Names { return labels.Names{Most: n} }
	return &source{Source: s, clients: most(mostClients), limits: most(mostLimits), keys: most(mostKeys), hosts: most(mostHosts), waits: most(mostWaits)}
}

// key returns a key as a label has it. Those of different hosts are different.
func (s *source) key(host, name string) string {
	switch {
	case name == "":
		return ""
	case s.keys.Has(host + "\x00" + name):
		return labels.Bounded(name)
	}
	return other
}
