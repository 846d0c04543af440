package pool

import (
	"slices"

	"github.com/paceline-go/paceline/limit/mono"
)

// Share makes a key count in these limits from now on, in place of those that it shared before. It
// is for when an answer has shown the key's owner. The key is an index in Config.Keys. Keys that
// are known to belong together have one Shared from the start. See Dispatcher.Share for requests in
// flight.
func (p *Pool) Share(key int, with ...*Shared) (err error) {
	p.Update(func(now mono.Time, _ *Queue, d *Dispatcher) {
		if err = p.takes("", nil, with); err == nil {
			err = d.Share(now, key, with...)
		}
	})
	return err
}

// again sends the requests that may go after a limit gained room without a settlement.
func (p *Pool) again() {
	p.mu.Lock()
	defer p.unlock()
	p.dispatcher.Refresh()
	p.step(p.Now())
}

// waitingFor returns how many of the requests that wait may come to need the limits of a Shared; nil: of one
// key. The Pool is locked while waits is called.
func (p *Pool) waitingFor(s *Shared, waits func() int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 1
	if s != nil {
		n = 0
		for i := range p.config.Keys {
			if slices.Contains(p.dispatcher.KeyInfo(p.Now(), i).Shared, s) {
				n++
			}
		}
	}
	return (waits()*n + len(p.config.Keys) - 1) / len(p.config.Keys)
}
