package dispatch

import "github.com/paceline-go/paceline/limit/mono"

// Denied is how many denials are kept in mind.
func (d *Dispatcher) Denied() int { return len(d.denied) }

// Kept is how many hosts are kept in mind.
func (d *Dispatcher) Kept() int { return len(d.hosts.all) }

// KeyInfos are the states of all keys.
func (d *Dispatcher) KeyInfos(now mono.Time) (all []KeyInfo) {
	for i := range d.keys {
		all = append(all, d.KeyInfo(now, i))
	}
	return all
}

// Parts is how many resources are kept in mind, with the usual one.
func (d *Dispatcher) Parts() int { return len(d.parts) }
