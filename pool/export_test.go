package pool

import "time"

// Epoch is instant 0 of p.
func Epoch(p *Pool) time.Time { return p.epoch }

// Submitters returns how many wait for room in p.
func Submitters(p *Pool) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := p.submitters.first; s != nil; s = s.next {
		n++
	}
	return n
}

var Without = without
