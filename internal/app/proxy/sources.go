package proxy

import "github.com/paceline-go/paceline/observe"

// Sources are the present upstreams, by name, each with its snapshots. Apply may change the list.
func (p *Proxy) Sources() (all []observe.Source) {
	for _, u := range p.latest.Load().routes {
		all = append(all, observe.NameSource(u.Name, u.transport))
	}
	return all
}
