package limit_test

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// remote is a limiter whose truth is elsewhere. It gets a grant for a while, and may not use a
// lapsed grant.
type remote struct {
	most        int64 // the largest single grant
	granted     int64 // less the used part
	from, until mono.Time
	last        mono.Time
	open        int64
	fault       string
}

// Update sets the grant.
func (r *remote) Update(now mono.Time, granted int64, from, until mono.Time) {
	r.last = max(r.last, now)
	r.granted, r.from, r.until = granted, from, until
}

func (r *remote) Ready(now mono.Time, c limit.Cost) mono.Time {
	now = max(now, r.last)
	t := max(now, r.from)
	switch w := c[limit.Requests]; {
	case w > r.most:
		return limit.Never
	case r.fault == "forgets that it has lapsed" && t >= r.until.Add(time.Second):
	case w > r.granted-r.open, t >= r.until:
		return limit.AfterSettle
	}
	return t
}

func (r *remote) Admit(s *limit.Sent) {
	r.last = max(r.last, s.At)
	r.open += s.Cost[limit.Requests]
}

func (r *remote) Settle(now mono.Time, s *limit.Sent, o *limit.Outcome) {
	r.last = max(r.last, now)
	w := s.Cost[limit.Requests]
	r.open -= w
	if o.Metered {
		w = o.Actual[limit.Requests]
	}
	if o.Result != limit.Unsent {
		r.granted -= w
	}
}

// remotely returns the laws for it. Its grants are for half a second or a whole one.
func remotely(fault string) limittest.Spec {
	return limittest.Spec{
		New:   func() limit.Limiter { return &remote{most: 5, last: mono.Min, until: mono.Min, fault: fault} },
		Costs: costs,
		News: func(l limit.Limiter, now mono.Time, b byte) {
			granted := int64(b % 6)
			if fault == "is granted too little" {
				granted = min(granted, 4)
			}
			l.(*remote).Update(now, granted, now.Add(time.Duration(b/6%2)*500*ms), now.Add(time.Second))
		},
		Programs: 200,
	}
}

func TestLawsWhereTheTruthIsElsewhere(t *testing.T) {
	limittest.Laws(t, remotely(""))
	for _, fault := range []string{"is granted too little", "forgets that it has lapsed"} {
		if !killed(remotely(fault)) {
			t.Errorf("a limiter that %s passes the laws", fault)
		}
	}
	strict := remotely("")
	strict.News = nil
	if !killed(strict) {
		t.Error("one that waits for news without saying so passes the laws")
	}
}
