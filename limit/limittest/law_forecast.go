package limittest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// line checks law 12 in the state after a program. Requests stand in line, and each gets a
// forecast. Then they are sent one by one, as early as possible, while an adversary answers.
type line struct {
	*run
	rng       *rand.Rand
	subject   limit.Limiter
	costs     []limit.Cost
	least     []limit.Cost // the actual cost of each
	notBefore []mono.Time  // the latest of all forecasts
	excess    limit.Cost   // so much less than admitted will the open requests cost
	open      []standing
	eager     int // of 4: how readily the adversary answers
}

type standing struct {
	sent  *limit.Sent
	least limit.Cost
}

// forecast checks law 12 on a few lines, one after the other.
func (r *run) forecast(program []byte) error {
	if !limit.Forecasts(r.subject) {
		return nil
	}
	seed := uint64(12)
	for _, b := range program {
		seed = seed*31 + uint64(b)
	}
	rng := rand.New(rand.NewPCG(seed, 12))
	l := line{run: r, rng: rng, subject: r.subject}
	for _, s := range r.open {
		l.opened(standing{s.sent, l.part(s.sent.Cost)})
	}
	for range 3 {
		if err := l.run12(); err != nil {
			return fmt.Errorf("law 12: %w", err)
		}
	}
	return nil
}

// part returns the metered cost of a request: all of it, or half.
func (l *line) part(c limit.Cost) limit.Cost {
	if l.rng.IntN(3) == 0 {
		for u := range c {
			c[u] /= 2
		}
	}
	return c
}

func (l *line) opened(s standing) {
	l.open = append(l.open, s)
	for u := range s.least {
		l.excess[u] += s.sent.Cost[u] - s.least[u]
	}
}

func (l *line) run12() error {
	l.eager = l.rng.IntN(5)
	l.costs, l.least = nil, nil
	for range 1 + l.rng.IntN([]int{3, 12, 60}[l.rng.IntN(3)]) {
		c := l.Costs[l.rng.IntN(len(l.Costs))]
		if l.subject.Ready(l.now, c) == limit.Never {
			if t := limit.NotBefore(l.subject, l.now, 0, limit.Cost{}, c); t != limit.Never {
				return fmt.Errorf("cost %v can never go; it is forecast for %v", c, t)
			}
			continue
		}
		l.costs, l.least = append(l.costs, c), append(l.least, l.part(c))
	}
	l.notBefore = slices.Repeat([]mono.Time{mono.Min}, len(l.costs))
	for i := range l.costs {
		if i == 0 || l.rng.IntN(4) == 0 {
			if err := l.forecast(i); err != nil {
				return err
			}
		}
		if err := l.send(i); err != nil {
			return err
		}
	}
	return nil
}

// forecast calls NotBefore for the requests from i on, when all before have gone.
func (l *line) forecast(i int) error {
	var ahead limit.Cost
	for u := range ahead {
		ahead[u] = -l.excess[u]
	}
	for k := i; k < len(l.costs); k++ {
		before := l.subject.Ready(l.now, l.costs[k])
		t := limit.NotBefore(l.subject, l.now, k-i, ahead, l.costs[k])
		if t < l.now || t >= limit.AfterSettle {
			return fmt.Errorf("at %v cost %v is forecast for %v", l.now, l.costs[k], t)
		}
		if after := l.subject.Ready(l.now, l.costs[k]); after != before {
			return fmt.Errorf("a forecast made cost %v ready at %v instead of %v", l.costs[k], after, before)
		}
		l.notBefore[k] = max(l.notBefore[k], t)
		for u := range ahead {
			ahead[u] += l.least[k][u]
		}
	}
	return nil
}

// send sends the i-th request as early as possible.
func (l *line) send(i int) error {
	for tries := 0; ; tries++ {
		for len(l.open) > 0 && l.rng.IntN(4) < l.eager {
			l.answer()
		}
		t := l.subject.Ready(l.now, l.costs[i])
		switch {
		case t <= l.now:
			if l.now < l.notBefore[i] {
				return fmt.Errorf("number %d of the line, %v, goes at %v; it was not to go before %v", i, l.costs[i], l.now, l.notBefore[i])
			}
			l.opened(standing{Admit(l.subject, l.now, l.costs[i]), l.least[i]})
			return nil
		case t == limit.AfterSettle && len(l.open) > 0:
			l.answer()
		case t >= limit.AfterSettle || tries > 1e5:
			return fmt.Errorf("number %d of the line, %v, is ready at %v with %d open", i, l.costs[i], t, len(l.open))
		case len(l.open) > 0 && l.rng.IntN(2) == 0:
			l.now = min(t, l.now.Add(time.Duration(l.rng.Int64N(int64(l.Scale)))))
			l.answer()
		default:
			l.now = t
		}
	}
}

// answer settles any one of the open requests, in the way that frees the most, or in any other.
func (l *line) answer() {
	i := l.rng.IntN(len(l.open))
	s := l.open[i]
	l.open[i] = l.open[len(l.open)-1]
	l.open = l.open[:len(l.open)-1]
	for u := range s.least {
		l.excess[u] -= s.sent.Cost[u] - s.least[u]
	}
	o := limit.Outcome{Result: limit.Accepted, Metered: s.least != s.sent.Cost, Actual: s.least}
	age := max(l.now.Sub(s.sent.At), 0)
	switch l.rng.IntN(8) {
	case 0:
		o.Result = limit.Failed
	case 1:
		if !l.RejectsFree {
			o.Result = limit.Limited
		}
	case 2:
		o.Result = limit.Unknown
	}
	switch l.rng.IntN(4) {
	case 0:
	case 1:
		o.ArrivedAgo = time.Duration(l.rng.Int64N(int64(age) + 1))
	default:
		o.ArrivedAgo = age
	}
	if l.OneWayMax > 0 || age > l.Scale/4 { // a round trip longer than all before lets a learned lead grow
		o.RTT = age
	}
	l.subject.Settle(l.now, s.sent, &o)
}
