package node

import (
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// placeLimit is a limit.Concurrency in which the record of several requests counts as so many. So a turn
// admits all that a node holds at once. It is a Keeper of its number, which SetLimit may have changed.
type placeLimit struct{ *limit.Concurrency }

// ofPlaces makes the configuration one of places, if its limit is a limit.Concurrency. It reports whether it is.
func (c *Config) ofPlaces() bool {
	if _, ok := c.New().(*limit.Concurrency); !ok {
		return false
	}
	own := c.New
	c.New = func() limit.Limiter { return placeLimit{own().(*limit.Concurrency)} }
	c.Split = false // a node goes on with its places: see places.go
	return true
}

// Admit implements limit.Limiter.
func (l placeLimit) Admit(s *limit.Sent) {
	for range s.Cost[limit.Requests] {
		l.Concurrency.Admit(s)
	}
}

// Settle implements limit.Limiter. Only requests that cannot arrive any more are settled: see ripe.
func (l placeLimit) Settle(now mono.Time, s *limit.Sent, _ *limit.Outcome) {
	for range s.Cost[limit.Requests] {
		l.Concurrency.Settle(now, s, &limit.Outcome{Result: limit.Unsent})
	}
}

func (l placeLimit) number() int64 { return l.Rules()[0].N }

// AppendState implements limit.Keeper.
func (l placeLimit) AppendState(b []byte) []byte {
	w := writer(b)
	w.number(uint64(l.number()))
	return w
}

// Restore implements limit.Keeper.
func (l placeLimit) Restore(state []byte) error {
	r := reader{all: state}
	n := r.number()
	if r.err == nil && r.at != len(state) {
		r.fail("%d bytes too many", len(state)-r.at)
	}
	if r.err != nil {
		return r.err
	}
	return l.SetLimit(mono.Min, int64(min(n, limit.MaxCost)))
}

// configured is the limiter that the caller configured.
func configured(l limit.Limiter) limit.Limiter {
	if of, ok := l.(placeLimit); ok {
		return of.Concurrency
	}
	return l
}
