package telling

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// Servings find out the rate that a server accepts if no limit was given (--limit none). They count
// the accepted requests between refusals. Refusals of requests in flight together count as one. In
// the long run the rate is never above the limit. The zero value is ready for use; safe for
// concurrent use.
type Servings struct {
	mu       sync.Mutex
	accepted int
	refusals []refusal // the first ones; later ones replace the last of them
	told     float64   // the last reported rate per second; 0: none yet
}

type refusal struct {
	at       time.Time
	accepted int // requests accepted before the refusal
}

// EnoughRefusals is how many refusals show a rate. Before the second refusal there may have been
// only the rest of a window, in which as much was accepted as in a whole one.
const EnoughRefusals = 3

// Hear takes in the answer to a request. It returns true for a refusal of a request that was sent
// after the refusal before it.
func (s *Servings) Hear(sent, now time.Time, result limit.Result) (refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.refusals)
	switch {
	case result == limit.Accepted || result == limit.Failed:
		s.accepted++
		return false
	case result != limit.Limited || n > 0 && !sent.After(s.refusals[n-1].at):
		return false
	case n == EnoughRefusals:
		s.refusals = s.refusals[:n-1]
	}
	s.refusals = append(s.refusals, refusal{now, s.accepted})
	return true
}

// News returns how many requests were accepted between the last two refusals, and in what time. It
// returns false if there were fewer than least refusals, or if that rate was reported already.
func (s *Servings) News(least int) (n int, in time.Duration, is bool) {
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
	if s.told > 0 && (least >= EnoughRefusals || math.Abs(rate-s.told) < s.told/4) {
		return 0, 0, false
	}
	s.told = rate
	return n, in, true
}

// RateText returns a rate in the form of --limit. It is never higher than n in the given time.
func RateText(n int, in time.Duration) string {
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
