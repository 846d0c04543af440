package transport_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/transport"
)

// records notes in whose name each attempt is kept.
type records struct {
	mu  sync.Mutex
	who map[string]int
}

func (r *records) Send(p transport.Partition, _ limit.Cost) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.who[p.Client]++
	return 0, nil
}
func (*records) Settle(int64, limit.Cost, limit.Outcome) {}
func (*records) Earlier(transport.Partition, time.Time) ([]limit.Past, mono.Time) {
	return nil, mono.Min
}

// Two lines of one client count in its one limit, whichever comes first, also after both were idle for long. A record of either is the client's.
func TestCountsAs(t *testing.T) {
	for _, first := range []string{"ann", "ann in bulk"} {
		synctest.Test(t, func(t *testing.T) {
			g, kept, made := newGoing(), &records{who: map[string]int{}}, 0
			own := func() limit.Limiter { made++; return rolling(t, 6, 24*time.Hour, limit.Requests) }
			tr := mustNew(t, transport.Config{
				Base: g, Recorder: kept, MaxPartitions: 4, Idle: time.Minute, Limiter: rolling(t, 1000, time.Second, limit.Requests),
				Client: clients(map[string]transport.Client{"ann": {Limit: own}, "ann in bulk": {CountsAs: "ann", Limit: own, Weight: 0.25}}),
			})
			second := map[string]string{"ann": "ann in bulk", "ann in bulk": "ann"}[first]
			ask := func(who string) {
				t.Helper()
				if _, _, err := do(t, tr, get(t, "http://a.test/", "Client", who)); err != nil {
					t.Fatal(err)
				}
			}
			ask(first)
			ask(second)
			ask(first)
			time.Sleep(2 * time.Hour)
			for i := range 20 {
				ask("stranger" + strconv.Itoa(i))
			}
			ask(second)
			ask(first)
			ask(second)
			all := newCrowd(t)
			defer all.leave()
			all.ask(t, tr, 1, first, root)
			all.ask(t, tr, 1, second, root)
			synctest.Wait()
			if n := g.sent(); n != 26 {
				t.Errorf("%s first: %d sent, want 6 of its two lines and 20 of strangers", first, n)
			}
			kept.mu.Lock()
			if kept.who["ann"] != 6 || kept.who["ann in bulk"] != 0 || made > 2 {
				t.Errorf("%s first: recorded %v, %d limiters", first, kept.who, made)
			}
			kept.mu.Unlock()
			time.Sleep(25 * time.Hour)
			all.all.Wait()
			if n := g.sent(); n != 28 {
				t.Errorf("%s first: %d sent a day later", first, n)
			}
		})
	}
}

// A line in bulk does not delay the client's other line by more than its part.
func TestCountsAsHasLinesOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := mustNew(t, transport.Config{
			Base: newGoing(), Limiter: steady(t, 10, limit.Requests),
			Client: clients(map[string]transport.Client{"ann": {}, "ann in bulk": {CountsAs: "ann"}}),
		})
		all := newCrowd(t)
		defer all.leave()
		all.ask(t, tr, 100, "ann in bulk", root)
		synctest.Wait()
		began := time.Now()
		if _, _, err := do(t, tr, get(t, "http://a.test/", "Client", "ann")); err != nil || time.Since(began) > 200*time.Millisecond {
			t.Errorf("%v after %v, behind 100 in bulk at 10/s", err, time.Since(began))
		}
		if _, n, _ := transport.Remembered(tr); n != 2 {
			t.Errorf("%d clients", n)
		}
	})
}
