package transport

import (
	"cmp"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/provider/classify"
)

// refusedAgain is how long after a line about refusals of a partition the next one comes.
const refusedAgain = time.Minute

// refusals are those of a partition, under the Transport's lock.
type refusals struct {
	told  time.Time // the latest line of the log; zero: none
	count int       // since then
}

// tellRefused logs the first refusal of a partition at once, and further ones once a minute, with their number. pause
// is how long nothing goes; 0: it does not wait.
func (s *sent) tellRefused(at *node, pause time.Duration) {
	t := s.t
	t.mu.Lock()
	r := &at.refusals
	r.count++
	count, tells := r.count, r.told.IsZero() || s.headed.Sub(r.told) >= refusedAgain
	if tells {
		r.told, r.count = s.headed, 0
	}
	t.mu.Unlock()
	if !tells {
		return
	}
	var limits []string
	for _, of := range s.way.configured() {
		for i := range of.Rules {
			limits = append(limits, of.Rules[i].String())
		}
	}
	now := "the request waits"
	if pause > 0 {
		now = "nothing goes for " + text.Span(pause.Round(time.Millisecond))
	}
	t.log.Warn("the server refuses", "partition", at.partition, "refusals", count,
		"configured", cmp.Or(strings.Join(limits, ", "), "no limit"),
		"server", classify.DescribeRefusal(s.headed, s.verdict.Status, s.verdict.Said), "now", now)
}
