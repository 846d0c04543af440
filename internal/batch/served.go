package batch

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// servings find out what a server lets through of which no limit was given (--limit none): what it accepted between refusals that were
// not of requests in flight together. In the long run that is never more than the limit. The zero value is ready; safe for concurrent use.
type servings struct {
	mu       sync.Mutex
	accepted int
	refusals []refusal // the first two, and the last
	told     float64   // per second; 0: nothing yet
}

type refusal struct {
	at       time.Time
	accepted int // until then
}

// enoughRefusals tell: the time before the second may be the rest of a window, and what was accepted in it all of one.
const enoughRefusals = 3

// hear takes in the answer to a request, and reports whether it is a refusal that those before it do not explain.
func (s *servings) hear(sent, now time.Time, result limit.Result) (refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.refusals)
	switch {
	case result == limit.Accepted || result == limit.Failed:
		s.accepted++
		return false
	case result != limit.Limited || n > 0 && !sent.After(s.refusals[n-1].at):
		return false
	case n == enoughRefusals:
		s.refusals = s.refusals[:n-1]
	}
	s.refusals = append(s.refusals, refusal{now, s.accepted})
	return true
}

// news returns how many were accepted in what time, if at least so many refusals tell and it is not what was told.
func (s *servings) news(least int) (n int, in time.Duration, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refusals) < max(least, 2) {
		return 0, 0, false
	}
	first, last := s.refusals[len(s.refusals)-2], s.refusals[len(s.refusals)-1]
	n, in = last.accepted-first.accepted, last.at.Sub(first.at)
	if n == 0 || in <= 0 {
		return 0, 0, false
	}
	rate := float64(n) / in.Seconds()
	if s.told > 0 && (least >= enoughRefusals || math.Abs(rate-s.told) < s.told/4) {
		return 0, 0, false
	}
	s.told = rate
	return n, in, true
}

// tellServed tells, where no limit was given, what would fit, once so many refusals tell.
func (g *group) tellServed(key, least int) {
	if len(g.limits) > 0 {
		return
	}
	n, in, is := g.served[key].news(least)
	if !is {
		return
	}
	whom := "the server refuses requests"
	if !g.r.c.keyless {
		whom = "requests of key " + g.called(key) + " are refused"
	}
	g.r.tell("%s, and no limit was given; %d in %v were accepted: --limit %s would fit", whom, n, in.Round(time.Millisecond), rateText(n, in))
}

// rateText is a rate as --limit takes it: not more than n in so long.
func rateText(n int, in time.Duration) string {
	for _, unit := range []struct {
		text string
		d    time.Duration
	}{{"s", time.Second}, {"m", time.Minute}} {
		if whole := int(float64(n) * unit.d.Seconds() / in.Seconds()); whole >= 1 {
			return fmt.Sprintf("%d/%s", whole, unit.text)
		}
	}
	return fmt.Sprintf("1/%v", (in/time.Duration(n) + time.Second - 1).Truncate(time.Second))
}
