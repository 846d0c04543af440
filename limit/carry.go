package limit

import "github.com/paceline-go/paceline/mono"

// CarryTo has another Produced count what was drawn here by now, and what is open here, as where two clients turn out to share a bucket.
// Nothing may be admitted here any more. Call end once, when all that is open has been settled: then it counts as what it came to. What
// was produced of it by now counts twice from then on.
func (p *Produced) CarryTo(now mono.Time, to *Produced) (end func(now mono.Time)) {
	p.tick(now)
	w := int64(0)
	if p.full > p.last {
		missing := p.full.Sub(p.last)
		if w = int64(missing / p.per); p.times(w) < missing {
			w++
		}
	}
	var leases []Lease
	carry := func(r *producing) {
		w = plus(w, p.by(r, p.last)) // what may have been produced by now; or nothing was, and then all of it is to come
		leases = append(leases, to.Admit(p.last, to.of(r.cost)))
	}
	for r := range p.book.All() {
		carry(r)
	}
	for i := range p.lingers {
		carry(&p.lingers[i].producing)
	}
	to.came(p.last, w, Accepted)
	before := p.drew
	return func(now mono.Time) {
		p.tick(now)
		for _, l := range leases {
			to.Settle(p.last, l, Outcome{Result: Unsent})
		}
		to.came(p.last, p.drew-before, Accepted)
		for i := range p.lingers {
			to.came(p.last, p.by(&p.lingers[i].producing, p.lingers[i].until), Unknown)
		}
	}
}

func (p *Produced) of(n int64) (c Cost) {
	c[p.unit] = min(n, MaxCost)
	return c
}

// came counts what has been produced by now.
func (p *Produced) came(now mono.Time, w int64, r Result) {
	p.Settle(now, p.Admit(now, p.of(w)), Outcome{Result: r, Metered: true, Actual: p.of(w)})
}
