package run

import (
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

var epoch = time.Unix(1_800_000_000, 0)

// The restart's promise: together with the sends of the dead process, no window of arrivals holds
// more than the limit. Instants are relative to the restart.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		name  string
		sends []journal.Sent // counts is relative here
		free  int            // how many may go at once
		then  time.Duration
	}{
		{"nothing", nil, 3, 1001200 * time.Microsecond},
		{"long ago", []journal.Sent{{Key: "A", Cost: limit.Cost{limit.Requests: 1}, Counts: -2e9, Result: limit.Accepted}}, 3, 1001200 * time.Microsecond},
		{"half a second ago", []journal.Sent{{Key: "A", Cost: limit.Cost{limit.Requests: 2}, Counts: -500e6, Result: limit.Accepted}}, 1, 501200 * time.Microsecond},
		{"on another key", []journal.Sent{{Key: "Z", Cost: limit.Cost{limit.Requests: 3}, Counts: -1, Result: limit.Accepted}}, 3, 1001200 * time.Microsecond},
		{"unanswered, may arrive for 5 s", []journal.Sent{{Key: "A", Cost: limit.Cost{limit.Requests: 3}, Counts: 5e9, Result: limit.Unknown}}, 0, 6001200 * time.Microsecond},
		{"timed out, bound passed", []journal.Sent{{Key: "A", Cost: limit.Cost{limit.Requests: 3}, Counts: -500e6, Result: limit.Unknown}}, 0, 501200 * time.Microsecond},
		{"refused, which counts", []journal.Sent{{Key: "A", Cost: limit.Cost{limit.Requests: 3}, Counts: -500e6, Result: limit.Limited}}, 0, 501200 * time.Microsecond},
		{"clock set back by an hour", []journal.Sent{{Key: "A", Cost: limit.Cost{limit.Requests: 3}, Counts: 3600e9, Result: limit.Accepted}}, 0, (15 * time.Second) + 1001200*time.Microsecond},
	} {
		r, err := New(Config{Limits: []format.Rate{{N: 3, Per: time.Second, Text: "3/s"}}, Timeout: 10 * time.Second, Keys: []format.Key{{Name: "A", Secret: ""}}})
		if err != nil {
			t.Fatal(err)
		}
		r.epoch, r.earlier.keep = epoch, time.Hour
		r.store.History = &journal.History{Sends: slices.Clone(c.sends)}
		for i := range r.store.History.Sends {
			r.store.History.Sends[i].Counts += epoch.UnixNano()
		}
		if err := r.newPools(); err != nil {
			t.Fatal(err)
		}
		l := r.groups[0].of[0].limiters[0]
		free := 0
		for l.Ready(0, limit.One) == 0 {
			l.Settle(0, limittest.Admit(l, 0, limit.One), &limit.Outcome{Result: limit.Accepted})
			free++
		}
		if next := l.Ready(0, limit.One); free != c.free || next != mono.Time(c.then) {
			t.Errorf("%s: %d go at once and the next at %v, want %d and %v", c.name, free, next, c.free, c.then)
		}
	}
}
