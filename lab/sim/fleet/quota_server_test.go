package fleet

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// What is said to remain is exactly what would pass: one by one, that many do, and no more.
func FuzzQuotaRemaining(f *testing.F) {
	for kind := range uint8(len(quotaKinds)) {
		f.Add(uint64(kind), kind, uint16(17), uint16(40), uint8(1))
		f.Add(uint64(kind)+100, kind, uint16(300), uint16(3), uint8(9))
	}
	f.Fuzz(func(t *testing.T, seed uint64, kind uint8, limit, factor uint16, most uint8) {
		q := Quota{Kind: QuotaKind(kind % uint8(len(quotaKinds))), Limit: int64(limit%500) + 1, Window: time.Second}
		if q.Kind != DecreaseOnly {
			q.Changes = []Change{{time.Second, 1}} // so that it keeps what passed
		}
		s := Scenario{Server: q}.filled()
		server, twin := newQuotaServer(&s.Server), newQuotaServer(&s.Server)
		rng := rand.New(rand.NewPCG(seed, 1))
		now := mono.Time(0)
		for range 30 {
			now = now.Add(time.Duration(rng.Int64N(int64(time.Second) / 4)))
			if rng.IntN(8) == 0 && q.Kind != DecreaseOnly {
				by := float64(factor%400+1) / 100
				server.change(now, by)
				twin.change(now, by)
			}
			for range rng.IntN(int(q.Limit) + 2) {
				cost := 1 + rng.Int64N(int64(most)+1)
				if a, b := server.arrive(now, cost), twin.arrive(now, cost); a != b {
					t.Fatalf("%v at %v: %v, and %v if asked what remains", q.Kind, now, b, a)
				}
			}
			n := server.remaining(now)
			passed := int64(0)
			for twin.started && twin.rule.Fits(now, passed+1) {
				passed++
			}
			if twin.started && n != passed {
				t.Fatalf("%v at %v: said that %d remain, but %d would pass", q.Kind, now, n, passed)
			}
			// What is to come is told to the tick: not a tick before, but then.
			if at := server.ready(now, n+1); twin.started && n < server.most() && at > now {
				if twin.rule.Fits(at.Add(-time.Millisecond), n+1) || !server.rule.Fits(at, n+1) {
					t.Fatalf("%v at %v: %d are told for %v", q.Kind, now, n+1, at)
				}
				return // twin and server differ by what they were asked
			}
		}
	})
}
