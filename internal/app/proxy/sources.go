package proxy

import "github.com/paceline-go/paceline/observe"

// Sources are what can be looked at of each upstream that there is now, by its name: Apply may change which there are.
func (p *Proxy) Sources() (all []observe.Source) {
	for _, u := range p.latest.Load().routes {
		all = append(all, observe.NameSource(u.Name, u.transport))
	}
	return all
}
