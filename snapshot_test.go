package paceline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// The counts of a Gate, and its waiting requests with their limits, as of one instant.
func TestGateSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		g := paceline.NewGate(limit.NewAll(limit.MustRolling(2, 10*time.Second), must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 5}))))
		a := must(g.Wait(t.Context(), limit.One))
		b := must(g.Wait(t.Context(), limit.One))
		a.Settle(limit.Outcome{Result: limit.Accepted})
		time.Sleep(time.Second)
		b.Settle(limit.Outcome{Result: limit.Limited, RetryAfter: 3 * time.Second})
		for range 3 {
			go g.Wait(t.Context(), limit.One)
		}
		synctest.Wait()
		time.Sleep(2 * time.Second)
		s := g.Snapshot()
		if !s.At.Equal(began.Add(3*time.Second)) || !s.Since.Equal(began) || s.Waiting != 3 || s.InFlight != 0 || s.LongestWait != 2*time.Second {
			t.Errorf("%+v", s)
		}
		if s.Sent != 2 || s.Accepted != 1 || s.Limited != 1 || len(s.Clients) != 1 || s.Clients[0].Waiting != 3 || s.Clients[0].Share != 1 {
			t.Errorf("%+v", s)
		}
		if len(s.Limits) != 2 {
			t.Fatalf("%d limits: %+v", len(s.Limits), s.Limits)
		}
		free := began.Add(10*time.Second + 2100*time.Microsecond)
		want := observe.LimitState{
			Name: "requests", Unit: "requests", Used: 2, Allowed: 2, Window: 10 * time.Second, PerWindow: 2, Total: 2, Recent: 2, Share: 1, Next: free, Waiting: 3,
		}
		if got := s.Limits[0]; got != want {
			t.Errorf("the limit is %+v, want %+v", got, want)
		}
		if got := s.Limits[1]; got.Unit != "in flight" || got.Used != 0 || got.Allowed != 5 || got.Waiting != 0 {
			t.Errorf("in flight: %+v", got)
		}
		if c := s.Clients[0]; c.LongestWait != 2*time.Second || c.LastGoes.Before(free.Add(10*time.Second)) || c.LastGoes.After(free.Add(12*time.Second)) {
			t.Errorf("the last goes at %v after %v: %+v", c.LastGoes.Sub(free), c.LongestWait, c)
		}
		if len(s.Events) != 1 || s.Events[0].Kind != observe.EventRefused || s.Events[0].Text != "the server refused a request, and asks to stay away for 3 s" || !s.Events[0].At.Equal(began.Add(time.Second)) {
			t.Errorf("%+v", s.Events)
		}
		if len(s.Waits) != 1 || s.Waits[0].Limit != "" || s.Waits[0].Count != 2 || s.Waits[0].Upto[0] != 2 {
			t.Errorf("waits: %+v", s.Waits)
		}
		time.Sleep(time.Minute)
	})
}

// Waits are counted by their limit, measured or not, and those that gave up are among them.
func TestWaitsByLimit(t *testing.T) {
	for _, measured := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			j := must(paceline.NewGroup(paceline.GroupConfig{}))
			minute := j.Limit(paceline.LimitConfig{Limiter: limit.Named("minute", limit.MustRolling(4, time.Minute)), Whose: observe.Whose{Host: "h"}})
			second := j.Limit(paceline.LimitConfig{Limiter: limit.Named("second", limit.MustRolling(1, time.Second)), Whose: observe.Whose{Host: "h", Key: "k"}})
			lane := j.Lane(paceline.LaneConfig{Client: "c"}, []*paceline.Limit{second, minute})
			for i := range 6 {
				go func() {
					ctx := t.Context()
					if i == 5 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithCancel(ctx)
						time.AfterFunc(30*time.Second, cancel)
					}
					var p paceline.Permit
					var err error
					if measured {
						p, _, err = lane.WaitWithStats(ctx, limit.One)
					} else {
						p, err = lane.Wait(ctx, limit.One)
					}
					if err == nil {
						p.Settle(limit.Outcome{Result: limit.Accepted})
					}
				}()
				synctest.Wait()
			}
			time.Sleep(2 * time.Minute)
			s := j.Snapshot()
			count := map[string]int64{}
			for _, w := range s.Waits {
				if w.Client != "c" || len(w.Upto) != len(s.Bounds) || w.Upto[len(w.Upto)-1] != w.Count {
					t.Errorf("%+v", w)
				}
				count[w.Limit] = w.Count
			}
			if want := map[string]int64{"": 1, "second": 3, "minute": 2}; !reflect.DeepEqual(count, want) {
				t.Errorf("measured %v: waits were %v, want %v", measured, count, want)
			}
			if s.Cancelled != 1 || s.Sent != 5 || len(s.Limits) != 2 || s.Limits[0].Name != "minute" || s.Limits[1].Key != "k" {
				t.Errorf("%+v", s)
			}
			for _, w := range s.Waits {
				if w.Limit == "minute" && (w.Sum < 85*time.Second || w.Sum > 95*time.Second) {
					t.Errorf("the waits for the minute took %v together, want 60 and 30 s", w.Sum)
				}
			}
		})
	}
}

// When the last of a client goes depends on who else waits for the same.
func TestLastGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		j := must(paceline.NewGroup(paceline.GroupConfig{}))
		all := j.Limit(paceline.LimitConfig{Limiter: must(limit.NewBucket(limit.BucketConfig{Limit: 10, Window: time.Second, Burst: 1})), Fair: true})
		last := map[string]time.Time{}
		var mu sync.Mutex
		var each [2]*paceline.Lane
		for i, name := range []string{"many", "few"} {
			each[i] = j.Lane(paceline.LaneConfig{Client: name}, []*paceline.Limit{all})
		}
		for i, n := range []int{200, 20} {
			name := []string{"many", "few"}[i]
			for range n {
				go func() {
					must(each[i].Wait(t.Context(), limit.One)).Settle(limit.Outcome{Result: limit.Accepted})
					mu.Lock()
					defer mu.Unlock()
					last[name] = time.Now()
				}()
			}
			synctest.Wait()
		}
		s := j.Snapshot()
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for _, c := range s.Clients {
			if off := c.LastGoes.Sub(last[c.Name]); off < -300*time.Millisecond || off > 300*time.Millisecond {
				t.Errorf("the last of %s went after %v, and %v was told", c.Name, last[c.Name].Sub(began), c.LastGoes.Sub(began))
			}
		}
	})
}

// The counts of a retired lane stay, under its client, and its requests in flight end there.
func TestSnapshotOfRetiredLanes(t *testing.T) {
	j := must(paceline.NewGroup(paceline.GroupConfig{}))
	m := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(1000, time.Minute)})
	for i := range 3 {
		lane := j.Lane(paceline.LaneConfig{Client: "c", Weight: 2}, []*paceline.Limit{m})
		must(lane.Wait(t.Context(), limit.One)).Settle(limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Tokens: 7}})
		p := must(lane.Wait(t.Context(), limit.One))
		lane.Retire()
		if s := j.Snapshot(); s.InFlight != 1 || s.Clients[0].InFlight != 1 || s.Sent != int64(2*i+2) {
			t.Errorf("%+v", s)
		}
		p.Settle(limit.Outcome{Result: limit.Failed})
	}
	s := j.Snapshot()
	if c := s.Clients[0]; len(s.Clients) != 1 || c.Sent != 6 || c.Accepted != 3 || c.Failed != 3 || c.InFlight != 0 || c.Used.Tokens != 21 {
		t.Errorf("%+v", s.Clients)
	}
	if len(s.Waits) != 1 || s.Waits[0].Count != 6 {
		t.Errorf("%+v", s.Waits)
	}
}

// However many clients come and go, only so many are remembered.
func TestRetiredClientsAreBounded(t *testing.T) {
	j := must(paceline.NewGroup(paceline.GroupConfig{}))
	m := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(10_000, time.Minute)})
	for i := range 1500 {
		lane := j.Lane(paceline.LaneConfig{Client: fmt.Sprint(i)}, []*paceline.Limit{m})
		must(lane.Wait(t.Context(), limit.One)).Settle(limit.Outcome{Result: limit.Accepted})
		lane.Retire()
	}
	s := j.Snapshot()
	if len(s.Clients) != 1001 || s.Accepted != 1500 {
		t.Errorf("%d clients, %d accepted", len(s.Clients), s.Accepted)
	}
	for _, c := range s.Clients {
		if c.Name == "other" && c.Accepted != 500 {
			t.Errorf("%+v", c)
		}
	}
}

// Snapshots while requests come, go and are settled, and lanes with them, have right sums.
func TestSnapshotWhileBusy(t *testing.T) {
	j := must(paceline.NewGroup(paceline.GroupConfig{}))
	m := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(500, 10*time.Millisecond), Fair: true})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				lane := j.Lane(paceline.LaneConfig{Client: fmt.Sprint(i)}, []*paceline.Limit{m})
				for range 10 {
					must(lane.Wait(t.Context(), limit.One)).Settle(limit.Outcome{Result: limit.Accepted})
				}
				lane.Retire()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	for {
		s := j.Snapshot()
		if s.Sent != s.Accepted+int64(s.InFlight) {
			t.Errorf("%d sent, %d accepted, %d in flight", s.Sent, s.Accepted, s.InFlight)
		}
		select {
		case <-done:
			if s := j.Snapshot(); s.Accepted != 1600 || s.InFlight != 0 || len(s.Clients) != 8 {
				t.Errorf("%+v", s)
			}
			return
		default:
		}
	}
}

// A pause of a limit's owner is shown with the limit.
func TestSnapshotOfAPause(t *testing.T) {
	j := must(paceline.NewGroup(paceline.GroupConfig{}))
	whose := observe.Whose{Host: "h", Client: "c"}
	until := time.Now().Add(time.Hour)
	m := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(10, time.Minute), Whose: whose, Paused: func(mono.Time) (observe.PauseState, bool) {
		return observe.PauseState{Whose: whose, Until: until, Why: "because"}, true
	}})
	j.Lane(paceline.LaneConfig{}, []*paceline.Limit{m})
	j.Lane(paceline.LaneConfig{}, []*paceline.Limit{m})
	s := j.Snapshot()
	if len(s.Limits) != 1 || s.Limits[0].PausedUntil != until || s.Limits[0].Why != "because" || s.Limits[0].Whose != whose || len(s.Paused) != 1 || s.Paused[0].Why != "because" {
		t.Errorf("%+v", s)
	}
}

// The same again at once is one Event, and the latest are kept.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := must(paceline.NewGroup(paceline.GroupConfig{}))
		for i := range 400 {
			for k := range 3 {
				j.Note(observe.Event{Kind: observe.EventRefused, Text: fmt.Sprint(i, " ", k)})
				j.Note(observe.Event{Kind: observe.EventPaused, Whose: observe.Whose{Host: "h"}})
			}
			time.Sleep(2 * time.Second)
		}
		all := j.Snapshot().Events
		if len(all) != 256 {
			t.Fatalf("%d events", len(all))
		}
		for i, e := range all {
			if want := int64(800 - 256 + i + 1); e.Number != want || e.Count != 3 || e.Kind == observe.EventRefused && e.Text != fmt.Sprint((e.Number-1)/2, " 2") {
				t.Fatalf("event %d is %+v, want number %d", i, e, want)
			}
		}
	})
}

// A Snapshot goes through JSON and back as it is.
func TestSnapshotJSON(t *testing.T) {
	g := paceline.NewGate(limit.MustRolling(2, time.Minute))
	must(g.Wait(t.Context(), limit.One)).Settle(limit.Outcome{Result: limit.Limited})
	s := observe.NameSource("a gate", g).Snapshot()
	raw := must(json.Marshal(s))
	var back observe.Snapshot
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if again := must(json.Marshal(back)); string(again) != string(raw) || back.Name != "a gate" || back.Limited != 1 {
		t.Errorf("%s\nand then\n%s", raw, again)
	}
}

// BenchmarkSnapshot is what it costs to look at so many clients, each with a limit of its own beside one that all share.
func BenchmarkSnapshot(b *testing.B) {
	for _, clients := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(clients), func(b *testing.B) {
			j := must(paceline.NewGroup(paceline.GroupConfig{}))
			all := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(100_000, time.Minute), Fair: true})
			for i := range clients {
				own := j.Limit(paceline.LimitConfig{Limiter: limit.MustRolling(10, time.Hour)})
				lane := j.Lane(paceline.LaneConfig{Client: fmt.Sprint(i)}, []*paceline.Limit{own, all})
				for range 10 {
					must(lane.Wait(b.Context(), limit.One)).Settle(limit.Outcome{Result: limit.Accepted})
				}
				go lane.Wait(b.Context(), limit.One)
			}
			for b.Loop() {
				j.Snapshot()
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A full bucket's store besides its inflow is no more than all of the ceiling.
func TestShareOfABucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := paceline.NewGate(must(limit.NewBucket(limit.BucketConfig{Limit: 10, Window: 10 * time.Second, Burst: 10})))
		for range 15 {
			must(g.Wait(t.Context(), limit.One)).Settle(limit.Outcome{Result: limit.Accepted})
		}
		if l := g.Snapshot().Limits[0]; l.Recent != 15 || l.Share != 1 {
			t.Errorf("after a burst: %d counted lately, share %v", l.Recent, l.Share)
		}
		time.Sleep(8 * time.Second)
		if l := g.Snapshot().Limits[0]; l.Share <= 0 || l.Share >= 0.5 {
			t.Errorf("8 s later: %d counted lately, share %v", l.Recent, l.Share)
		}
	})
}
