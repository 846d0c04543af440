package paceline_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/rule"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A Gate over output that counts as it is produced: 8,000 a minute. There are 40 requests of up to
// 4,096 that come to 300 in 2 s.
func TestGateOfWhatIsProduced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := limit.NewProduced(limit.ProducedConfig{Limit: 8000, Window: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		g := paceline.NewGate(l)
		server, err := rule.NewBucket(rule.BucketConfig{Limit: 8000, Window: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		begin := time.Now()
		now := func() mono.Time { return mono.Of(begin, time.Now()) }
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				p, err := g.Wait(t.Context(), limit.Cost{limit.Requests: 1, limit.Output: 4096})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if !server.Arrive(now(), 1) {
					t.Errorf("refused at %v", now())
				}
				mu.Unlock()
				for n := int64(1); n < 300; {
					time.Sleep(2 * time.Second / 30)
					k := min(10, 300-n)
					n += k
					mu.Lock()
					server.Amend(now(), now(), k)
					mu.Unlock()
				}
				p.Settle(limit.Outcome{Result: limit.Accepted, Metered: true, Actual: limit.Cost{limit.Requests: 1, limit.Output: 300}})
			})
		}
		all.Wait()
		if took := time.Since(begin); took > 40*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
