package run

import (
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/journal"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// If an earlier run used a bucket, only the refill since is known. An unused bucket is full.
func TestReplayBucket(t *testing.T) {
	cost := func(n int64) limit.Cost { return limit.Cost{limit.Requests: 1, limit.Tokens: n} }
	for _, c := range []struct {
		name  string
		last  int64 // sends of the runs before
		sends []journal.Sent
		free  int64 // tokens that may go at once
	}{
		{"no run before", 0, nil, 600},
		{"a run long ago", 1, nil, 600},
		{"200 a second ago", 1, []journal.Sent{{Key: "A", Cost: cost(200), Counts: -1e9, Result: limit.Accepted}}, 410},
		{"all a second ago", 1, []journal.Sent{{Key: "A", Cost: cost(600), Counts: -1e9, Result: limit.Accepted}}, 10},
		{"all a minute ago, and all of what came since", 2, []journal.Sent{{Key: "A", Cost: cost(600), Counts: -60e9, Result: limit.Accepted},
			{Key: "A", Cost: cost(590), Counts: -1e9, Result: limit.Accepted}}, 10},
		// It may have been empty before the first of these, but not below empty when it let them
		// go.
		{"half of it every 30 s", 4, []journal.Sent{{Key: "A", Cost: cost(300), Counts: -100e9, Result: limit.Accepted}, {Key: "A", Cost: cost(300), Counts: -70e9, Result: limit.Accepted},
			{Key: "A", Cost: cost(300), Counts: -40e9, Result: limit.Accepted}, {Key: "A", Cost: cost(300), Counts: -10e9, Result: limit.Accepted}}, 100},
		{"10 times as much as it holds now: the limit was higher", 2, []journal.Sent{{Key: "A", Cost: cost(3000), Counts: -20e9, Result: limit.Accepted},
			{Key: "A", Cost: cost(3000), Counts: -10e9, Result: limit.Accepted}}, 100},
	} {
		r, err := New(Config{Limits: []format.Rate{minutely(600, limit.Tokens, true)}, Keys: []format.Key{{Name: "A", Secret: ""}}})
		if err != nil {
			t.Fatal(err)
		}
		r.epoch, r.earlier.keep = time.Unix(1e9, 0), 126*time.Second
		r.store.History = &journal.History{Last: c.last, Sends: c.sends}
		for i := range c.sends {
			c.sends[i].Counts += r.epoch.UnixNano()
		}
		if err := r.newPools(); err != nil {
			t.Fatal(err)
		}
		l, free := r.groups[0].of[0].limiters[0], int64(0)
		for l.Ready(mono.Time(0), cost(1)) <= 0 {
			l.Settle(0, limittest.Admit(l, 0, cost(1)), &limit.Outcome{Result: limit.Accepted})
			free++
		}
		// The refill is a little less than stated.
		if free < c.free-1 || free > c.free {
			t.Errorf("%s: %d tokens may go, want %d", c.name, free, c.free)
		}
	}
}

// Attempts in flight when a run with a higher limit died may still arrive. The next run waits for
// one bucket at most.
func TestReplayBucketLate(t *testing.T) {
	r, err := New(Config{Limits: []format.Rate{minutely(600, limit.Tokens, true)}, Keys: []format.Key{{Name: "A", Secret: ""}}})
	if err != nil {
		t.Fatal(err)
	}
	r.epoch, r.earlier.keep = time.Unix(1e9, 0), 126*time.Second
	r.store.History = &journal.History{Last: 64}
	for range 64 {
		r.store.History.Sends = append(r.store.History.Sends, journal.Sent{Key: "A", Cost: limit.Cost{limit.Tokens: 4000}, Counts: r.epoch.Add(journal.Late).UnixNano(), Result: limit.Unknown})
	}
	if err := r.newPools(); err != nil {
		t.Fatal(err)
	}
	one := limit.Cost{limit.Tokens: 1}
	at := r.groups[0].of[0].limiters[0].Ready(0, one)
	if at == limit.AfterSettle || at == limit.Never {
		t.Fatalf("never")
	}
	if at < mono.Time(journal.Late) || at > mono.Time(journal.Late+time.Minute) {
		t.Errorf("the next goes at %v", at)
	}
}
