package pool

import (
	"slices"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Share has a key, by its index in Config.Keys, count in these limits from now on, and no longer in those
// that it shared before: once an answer has shown whose it is. Keys that are known to belong together
// have one Shared from the start. See Dispatcher.Share for what becomes of requests in flight.
func (p *Pool) Share(key int, with ...*Shared) (err error) {
	p.Update(func(now mono.Time, _ *Queue, d *Dispatcher) { err = d.Share(now, key, with...) })
	if err == nil {
		p.supply(with)
	}
	return err
}

// again sends what may go now that a limit has more room than a settlement made.
func (p *Pool) again() {
	p.mu.Lock()
	defer p.unlock()
	p.dispatcher.Refresh()
	p.step()
}

// waiting is how many requests a key may come to need its limit for.
func (p *Pool) waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return (p.queue.Counts().Waiting + len(p.config.Keys) - 1) / len(p.config.Keys)
}

// supply has limiters that are shared call again when they have more room.
func (p *Pool) supply(all []*Shared) {
	for _, s := range all {
		p.mu.Lock()
		known := slices.Contains(p.shared, s)
		if !known {
			p.shared = append(p.shared, s)
		}
		p.mu.Unlock()
		if !known {
			limit.Supply(s.Limiter, p.again, func() int { return p.waitingFor(s) }, p.noteOf(s.Name))
		}
	}
}

// waitingFor is how many requests may come to need the limits of a Shared.
func (p *Pool) waitingFor(s *Shared) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, now := 0, p.Now()
	for i := range p.config.Keys {
		if slices.Contains(p.dispatcher.KeyInfo(now, i).Shared, s) {
			n++
		}
	}
	return (p.queue.Counts().Waiting*n + len(p.config.Keys) - 1) / len(p.config.Keys)
}
