package paceline

import (
	"slices"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool/dispatch"
	"github.com/paceline-go/paceline/pool/queue"
)

// Share has a key, by its index in PoolConfig.Keys, count in these limits from now on, and no longer in those that it shared before: once an
// answer has told whose it is. Keys that are known to belong together have one dispatch.Shared from the start. See Dispatcher.Share for
// what becomes of requests in flight.
func (p *Pool) Share(key int, with ...*dispatch.Shared) (err error) {
	p.Update(func(now mono.Time, _ *queue.Queue, d *dispatch.Dispatcher) { err = d.Share(now, key, with...) })
	if err == nil {
		p.supply(with)
	}
	return err
}

// supply has limiters that are shared say when there is more of them.
func (p *Pool) supply(all []*dispatch.Shared) {
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

// waitingFor is how many requests may come to need limits that keys share.
func (p *Pool) waitingFor(s *dispatch.Shared) int {
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
