package pool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// plant is a Pool at work, one action at a time, as hall is a Group. How an attempt ends, and when, its request and its number say alone.
type plant struct {
	rng   *rand.Rand
	pool  *pool.Pool
	began time.Time
	log   bytes.Buffer
	came  int
	said  strings.Builder

	mu   sync.Mutex
	told []string       // since the latest look
	sent map[string]int // attempts, by request
	away bool           // nothing arrives at host b
}

func (p *plant) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, fmt.Sprintf(format, args...))
}

// isAway says whether anything arrives at host b.
func (p *plant) isAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

func (p *plant) say(format string, args ...any) { fmt.Fprintf(&p.said, format+"\n", args...) }

func (p *plant) send(ctx context.Context, a pool.Attempt) (ans pool.Answer) {
	p.note("%s goes, the %d. time, by %d, %v, fresh %t", a.Request.ID, a.Number, a.Key, time.Since(p.began), p.pool.Fresh(&a))
	var id uint64
	fmt.Sscan(a.Request.ID, &id)
	p.mu.Lock()
	p.sent[a.Request.ID]++
	n := uint64(p.sent[a.Request.ID])
	p.mu.Unlock()
	rng := rand.New(rand.NewPCG(id, n))
	pass := time.Duration(10+rng.IntN(1<<rng.IntN(12)))*time.Millisecond + time.Duration(id*337+n*11)
	select {
	case <-time.After(pass):
	case <-ctx.Done():
		return pool.Answer{Reason: "broken off"}
	}
	p.mu.Lock()
	away := p.away
	p.mu.Unlock()
	if ans.Result = limit.Accepted; away && a.Host() == "b" {
		ans.Result, ans.Link, ans.Reason = limit.Unsent, limit.Unreachable, "nothing there"
		return ans
	}
	switch rng.IntN(14) {
	case 0, 1:
		ans.Result, ans.RetryAfter = limit.Limited, time.Duration(rng.IntN(3))*time.Second
	case 2:
		ans.Result, ans.Reason = limit.Failed, "500"
	case 3:
		ans.Result = limit.Unknown
	case 4:
		ans.Invalid, ans.Reason = true, "400"
	case 5:
		ans.Returned, ans.Result = true, limit.Unsent
	case 6:
		ans.More = true
	case 7:
		ans.Denied, ans.Result, ans.Reason = true, limit.Failed, "403"
	case 8:
		if a.Key == 1 && rng.IntN(3) == 0 {
			ans.Banned, ans.Result, ans.Reason = true, limit.Failed, "401"
		}
	case 9:
		ans.RTT, ans.Metered, ans.Actual = pass/2, true, limit.Cost{limit.Requests: 1, limit.Tokens: int64(rng.IntN(50))}
	}
	return ans
}

func newPlant(seed uint64, c pool.Config) *plant {
	p := &plant{rng: rand.New(rand.NewPCG(seed, 16)), began: time.Now(), sent: map[string]int{}}
	c.Keys = []pool.Key{
		{Name: "x", Limiter: limit.MustRolling(6, 3*time.Second)},
		{Name: "y", Limiter: limit.NewAll(limit.Named("a minute", limit.MustRolling(30, time.Minute)), must(limit.NewRolling(limit.RollingConfig{Limit: 200, Window: 4 * time.Second, Unit: limit.Tokens})))},
		{Name: "z", Limiter: must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 2})), Slow: true},
	}
	c.Send, c.Rand, c.Backoff = p.send, rand.New(rand.NewPCG(seed, 17)), pool.Backoff{Base: 100 * time.Millisecond, Jitter: -1}
	c.Queue.Host = func(r *pool.Request) string { return r.Value.(string) }
	c.Log = slog.New(slog.NewTextHandler(&p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c.Ended = func(e pool.Ended) { p.note("%s ended: %v, %d, %s", e.Request.ID, e.State, e.Attempts, e.Reason) }
	c.Learned = func(key int, all []limit.Lesson) { p.note("%d learned %v", key, all) }
	p.pool = must(pool.New(c))
	return p
}

func (p *plant) submit(ctx context.Context) {
	p.came++
	r := pool.Request{ID: fmt.Sprint(p.came), Value: []string{"a", "b"}[p.rng.IntN(2)], Priority: p.rng.IntN(2), Cost: limit.Cost{limit.Requests: 1, limit.Tokens: int64(p.rng.IntN(80))}}
	switch p.rng.IntN(10) {
	case 0:
		r.TTL = time.Duration(p.rng.IntN(9))*time.Second + time.Duration(p.came*331)
	case 1:
		r.ID = fmt.Sprint(1 + p.rng.IntN(p.came))
	case 2:
		p.say("%s, tried: %v", r.ID, p.pool.TrySubmit(r))
		return
	}
	within, cancel := context.WithTimeout(ctx, time.Duration(p.rng.IntN(5))*time.Second+time.Duration(p.came*347))
	go func() {
		defer cancel()
		p.note("%s comes: %v", r.ID, p.pool.Submit(within, r))
	}()
	synctest.Wait()
}

func (p *plant) change() {
	switch p.rng.IntN(5) {
	case 0, 1:
		p.isAway(!p.away) // nobody else sets it
	case 2:
		p.pool.Update(func(now mono.Time, q *pool.Queue, d *pool.Dispatcher) {
			if all := q.Waiting(); len(all) > 0 {
				p.say("killed: %v", q.Kill(now, all[p.rng.IntN(len(all))], "by hand").State)
			}
		})
	case 3:
		p.pool.Update(func(now mono.Time, q *pool.Queue, d *pool.Dispatcher) { d.Lift(now, p.rng.IntN(3)) })
	default:
		p.pool.Update(func(now mono.Time, q *pool.Queue, d *pool.Dispatcher) { d.Resume(1) })
	}
}

func (p *plant) look() {
	synctest.Wait()
	if p.rng.IntN(4) > 0 {
		return
	}
	p.mu.Lock()
	lines := slices.Concat(p.told, strings.Split(p.log.String(), "\n")) // of one instant, in any order
	p.told = nil
	p.mu.Unlock()
	p.log.Reset()
	slices.Sort(lines)
	p.say("%s", strings.Join(lines, "\n"))
	snapshot, err := json.Marshal(p.pool.Snapshot())
	p.say("%s %v\n%+v\n%+v\n%+v\n%+v\n%d", snapshot, err, p.pool.Stats(), p.pool.Counts(), p.pool.Keys(), p.pool.Hosts(), p.pool.WakeUps())
}

// For any ends of attempts, keys and hosts, a Pool sends, waits, gives up and reports as before.
// The golden has each send with its instant and key, each request's end, every snapshot, every line
// of the log, and the end of Run.
func TestWhatAPoolSays(t *testing.T) {
	race.Without(t) // one call after another
	var b strings.Builder
	for _, c := range []struct {
		name   string
		config pool.Config
		end    func(p *plant, cancel func())
	}{
		{"closed", pool.Config{}, func(p *plant, _ func()) { p.pool.Close() }},
		{"with bounds, drained", pool.Config{InFlight: 4, Timeout: 700 * time.Millisecond, Queue: pool.QueueConfig{MaxLen: 6}}, func(p *plant, _ func()) { p.pool.Drain() }},
		{"cancelled", pool.Config{Queue: pool.QueueConfig{MaxLen: 10, MaxAttempts: 3}}, func(_ *plant, cancel func()) { cancel() }},
		{"given up", pool.Config{MaxOutage: 20 * time.Second}, func(p *plant, _ func()) {
			p.isAway(true)
			p.pool.TrySubmit(pool.Request{ID: "last", Value: "b"})
		}},
	} {
		fmt.Fprintf(&b, "\n%s\n", c.name)
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context()) // of Run alone: who waits in Submit has another
			defer cancel()
			p := newPlant(1, c.config)
			p.submit(t.Context())
			p.look()
			ran := make(chan error, 1)
			go func() { ran <- p.pool.Run(ctx) }()
			synctest.Wait()
			for step := 1; step <= 300; step++ {
				if k := p.rng.IntN(14); k < 5 {
					p.submit(t.Context())
				} else if k == 5 {
					p.change()
				} else {
					// Each time by another nanosecond more: so no instant is as far from one before as a limit's window is long.
					time.Sleep(time.Duration(p.rng.IntN(1<<p.rng.IntN(12)))*time.Millisecond + time.Duration(step))
				}
				p.look()
				if step%30 == 0 {
					n := p.pool.Counts()
					fmt.Fprintf(&b, "  at %v: %d came, %d wait, %d in flight, %d done, %d expired, %d dead; all it says: %s\n", time.Since(p.began), n.Submitted, n.Waiting, n.InFlight, n.Done, n.Expired,
						n.Dead, golden.Sum(p.said.String()))
					p.said.Reset()
				}
			}
			p.isAway(false)
			c.end(p, cancel)
			err := <-ran
			p.look()
			n, outage := p.pool.Counts(), errors.Is(err, pool.ErrOutage)
			fmt.Fprintf(&b, "  ended at %v, error %t, outage %t: %d done, %d wait, %d dead; all it says: %s\n", time.Since(p.began), err != nil, outage, n.Done, n.Waiting, n.Dead,
				golden.Sum(p.said.String()))
			time.Sleep(time.Hour)
		})
	}
	golden.CompareFloats(t, "pool.golden", b.String())
}
