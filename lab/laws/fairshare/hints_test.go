package fairshare_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/lab/sim"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// windowServer counts in aligned intervals, and says what is left and when the next begins, rounded up to whole seconds.
type windowServer struct {
	limit, used int64
	window      time.Duration
	ends        mono.Time
}

func (s *windowServer) arrive(now mono.Time, n int64) (o limit.Outcome) {
	for now >= s.ends {
		s.used, s.ends = 0, s.ends.Add(s.window)
	}
	o = limit.Outcome{Result: limit.Accepted, Known: 1 << limit.Requests}
	if s.used+n > s.limit {
		o.Result = limit.Limited
	} else {
		s.used += n
	}
	o.Remaining[limit.Requests] = s.limit - s.used
	o.Reset[limit.Requests] = (s.ends.Sub(now) + time.Second - 1).Truncate(time.Second)
	return o
}

// Hints alone, of a quota that nothing else is known of, with up to 8 requests in flight whose answers come back in any
// order: alone they are never refused. Strangers may take what is left after it was said.
func TestHintsKeepAQuotaTheyDoNotKnow(t *testing.T) {
	for _, strangers := range []bool{false, true} {
		refused, accepted, least := 0, 0, 1<<62
		for seed := range uint64(20) {
			rng := rand.New(rand.NewPCG(seed, 0))
			server := &windowServer{limit: 100, window: 10 * time.Second}
			h := must(fairshare.NewHints(fairshare.HintsConfig{}))
			all := limit.NewAll(h, must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 8})))
			type event struct {
				kind  int // 0: try, 1: arrives, 2: answered, 3: a stranger
				lease *limit.Sent
				o     limit.Outcome
			}
			var loop sim.Loop[event]
			var lastReset mono.Time
			loop.At(0, event{})
			if strangers {
				loop.At(0, event{kind: 3})
			}
			windows := map[mono.Time]int{}
			latency := func() time.Duration { return time.Duration(rng.IntN(300)) * ms }
			for {
				e, ok := loop.Next(at(200 * time.Second))
				if !ok {
					break
				}
				now := loop.Now()
				switch e.kind {
				case 0:
					switch r := all.Ready(now, limit.One); {
					case r <= now:
						loop.At(now.Add(latency()), event{kind: 1, lease: limittest.Admit(all, now, limit.One)})
						loop.At(now, event{})
					case r < limit.AfterSettle && r != lastReset:
						lastReset = r
						loop.At(r, event{})
					}
				case 1:
					e.o = server.arrive(now, 1)
					if e.o.Result == limit.Limited {
						refused++
					} else {
						accepted++
						windows[server.ends]++
					}
					loop.At(now.Add(latency()), event{2, e.lease, e.o})
				case 2:
					all.Settle(now, e.lease, &e.o)
					loop.At(now, event{})
				case 3:
					server.arrive(now, 1)
					loop.At(now.Add(time.Duration(rng.IntN(400))*ms), event{kind: 3})
				}
			}
			for end, n := range windows {
				if end < at(200*time.Second) {
					least = min(least, n)
				}
			}
		}
		t.Logf("strangers %t: %d of %d refused, at least %d of 100 a window", strangers, refused, refused+accepted, least)
		switch {
		case !strangers && (refused > 0 || least < 100):
			t.Error("alone: all of the quota is ours, and no refusal")
		case strangers && (refused*50 > accepted || least < 60):
			t.Error("beside strangers: more than 2 % refused, or less than 60 of 100")
		}
	}
}
