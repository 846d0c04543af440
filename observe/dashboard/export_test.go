package dashboard

import (
	"time"

	"github.com/paceline-go/paceline/observe"
)

// Backfill makes a history as if the page had looked every second since ago.
func (p *Page) Backfill(ago time.Duration, of func(source int, at time.Time) observe.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for at := now.Add(-ago); at.Before(now); at = at.Add(every) {
		for i := range p.histories {
			s := of(i, at)
			p.histories[i].add(at, &s)
		}
	}
}
