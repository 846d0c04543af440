package pool_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/pool"
)

// load is requests at a steady rate to a server that serves one each gap.
type load struct {
	config pool.Config
	gap    time.Duration // between sends
	every  time.Duration // between requests
	ttl    func(n int) time.Duration
	takes  func(at time.Duration, n int) time.Duration // the round trip of a send
	length time.Duration
}

// times is what became of a load.
type times struct {
	inTime, late, sent, most int
	counts                   pool.Counts
	slow                     []string
	answered                 []time.Duration // when
	lapsed                   int
	took                     map[time.Duration]int // answers, by TTL
	events                   []observe.Event
}

// run measures, by a clock of its own, which answers came before the TTL had passed.
func (l load) run(t *testing.T) (got times) {
	t.Helper()
	got.took = map[time.Duration]int{}
	synctest.Test(t, func(t *testing.T) {
		began, flying := time.Now(), 0
		c := l.config
		c.Keys = []pool.Key{{Gap: l.gap}}
		if l.gap < 0 {
			c.Keys = []pool.Key{{InFlight: 1}}
		}
		lock := make(chan struct{}, 1)
		c.Send = func(_ context.Context, a pool.Attempt) pool.Answer {
			lock <- struct{}{}
			got.sent++
			flying++
			got.most = max(got.most, flying)
			takes := l.takes(time.Since(began), got.sent)
			<-lock
			time.Sleep(takes)
			lock <- struct{}{}
			flying--
			since := time.Since(a.Request.Value.(time.Time))
			got.took[a.Request.TTL]++
			if a.Request.TTL == 0 || since < a.Request.TTL {
				got.inTime++
			} else {
				got.late++
			}
			got.answered = append(got.answered, time.Since(began))
			<-lock
			return served
		}
		c.Slow = func(h pool.HostInfo, whole time.Duration) {
			got.slow = append(got.slow, fmt.Sprintf("%s %v > %v", h.Host, h.AnswerTime, whole))
		}
		c.Ended = func(e pool.Ended) {
			if e.Lapsed && strings.Contains(e.Reason, "are left, and answers take") {
				got.lapsed++
			}
		}
		p := must(pool.New(c))
		go func() {
			for n := 0; time.Since(began) < l.length; n++ {
				try(t, p.Submit(bg, pool.Request{Cost: limit.One, TTL: l.ttl(n), Value: time.Now()}))
				time.Sleep(l.every)
			}
			p.Close()
		}()
		try(t, p.Run(bg))
		got.counts, got.events = p.Counts(), p.Snapshot().Events
		try(t, got.counts.Check())
	})
	if got.counts.Late != got.late && l.config.Queue.OnExpiry == pool.End {
		t.Errorf("%d are counted as late, and %d were", got.counts.Late, got.late)
	}
	return got
}

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func constant(d time.Duration) func(time.Duration, int) time.Duration {
	return func(time.Duration, int) time.Duration { return d }
}

func between(low, high time.Duration) func(time.Duration, int) time.Duration {
	rng := rand.New(rand.NewPCG(1, 2))
	return func(time.Duration, int) time.Duration { return low + time.Duration(rng.Int64N(int64(high-low))) }
}

// overload is 30 requests a second of 1 s each, into 20 a second.
func overload(takes func(time.Duration, int) time.Duration) load {
	return load{gap: 50 * ms, every: time.Second / 30, ttl: always(time.Second), takes: takes, length: 30 * time.Second}
}

// Without time for the answer nearly all answers of an overload are late. By default 95 % of what
// the server can serve come in time.
func TestAnswersInTime(t *testing.T) {
	for name, takes := range map[string]func() func(time.Duration, int) time.Duration{
		"constant":               func() func(time.Duration, int) time.Duration { return constant(150 * ms) },
		"from 10 to 200 ms":      func() func(time.Duration, int) time.Duration { return between(10*ms, 200*ms) },
		"one in thirty is slow":  func() func(time.Duration, int) time.Duration { return oneIn(30, 100*ms, 5*time.Second) },
		"one in eight is slower": func() func(time.Duration, int) time.Duration { return oneIn(8, 100*ms, 400*ms) },
		"slower from now on":     func() func(time.Duration, int) time.Duration { return steps(80*ms, 400*ms) },
		"slow, and quick again":  func() func(time.Duration, int) time.Duration { return steps(600*ms, 80*ms) },
		"the first one connects": func() func(time.Duration, int) time.Duration { return first(800*ms, 80*ms) },
		"a pause, and then quick": func() func(time.Duration, int) time.Duration {
			return steps(80*ms, 1200*ms, 80*ms, 80*ms, 80*ms, 80*ms)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := overload(takes())
			got := l.run(t)
			l.takes, l.config.AnswerTime = takes(), -1
			before := l.run(t)
			// An answer that takes longer than 1 s is late whenever it is sent.
			lost := 0
			for n, ask := 1, takes(); n <= 600; n++ {
				if ask(time.Duration(n)*50*ms, n) >= time.Second {
					lost++
				}
			}
			ideal := 600 - lost
			if got.inTime < ideal*95/100 {
				t.Errorf("%d of %d in time, %d late; without time for the answer %d and %d", got.inTime, ideal, got.late, before.inTime, before.late)
			}
			if got.inTime <= before.inTime {
				t.Errorf("%d in time, and without time for the answer %d", got.inTime, before.inTime)
			}
			if len(got.slow) > 1 {
				t.Errorf("the host is slow: %v", got.slow)
			}
		})
	}
}

func oneIn(n int, most, some time.Duration) func(time.Duration, int) time.Duration {
	return func(_ time.Duration, i int) time.Duration {
		if i%n == 0 {
			return some
		}
		return most
	}
}

// steps divides the 30 s of an overload.
func steps(all ...time.Duration) func(time.Duration, int) time.Duration {
	return func(at time.Duration, _ int) time.Duration {
		return all[min(int(at*time.Duration(len(all))/(30*time.Second)), len(all)-1)]
	}
}

func first(connects, most time.Duration) func(time.Duration, int) time.Duration {
	return func(_ time.Duration, n int) time.Duration {
		if n == 1 {
			return connects
		}
		return most
	}
}

// Where nothing was measured, and where the caller says so, nothing is kept back. A fixed time is
// kept back from the first request on.
func TestAnswerTimeAsConfigured(t *testing.T) {
	l := overload(constant(150 * ms))
	for _, c := range []struct {
		time       time.Duration
		late, most int // the bounds of how many are late
	}{{150 * ms, 0, 0}, {200 * ms, 0, 0}, {-1, 400, 600}, {50 * ms, 400, 600}, {0, 0, 10}} {
		l.config.AnswerTime = c.time
		if got := l.run(t); got.late < c.late || got.late > c.most {
			t.Errorf("%v: %d late, %d in time", c.time, got.late, got.inTime)
		} else if (c.time >= 0) != (got.lapsed > 0) {
			t.Errorf("%v: %d lapsed", c.time, got.lapsed)
		}
	}
	synctest.Test(t, func(t *testing.T) { // the first request waits until its last moment, and goes
		l := &poolLog{asleep: 500 * ms}
		l.pool = must(pool.New(pool.Config{Keys: []pool.Key{{Gap: time.Second}}, Send: l.send}))
		try(t, l.pool.Submit(bg, pool.Request{ID: "1", Cost: limit.One, TTL: 50 * ms}))
		try(t, l.pool.Submit(bg, pool.Request{ID: "2", Cost: limit.One, TTL: 1001 * ms}))
		l.pool.Close()
		try(t, l.pool.Run(bg))
		if len(l.sends) != 1 || l.pool.Counts().Late != 1 {
			t.Errorf("sent %v: %+v", l.sends, l.pool.Counts())
		}
	})
}

// If answers take longer than requests may wait, one at a time goes, which is said once. Then the
// host is quick again, and all goes as before.
func TestSlowHost(t *testing.T) {
	var log strings.Builder
	l := overload(steps(1200*ms, 1200*ms, 100*ms))
	l.config.Queue.Host = func(*pool.Request) string { return "a.test" }
	got := l.run(t)
	one, three := 0, 0
	for _, at := range got.answered {
		if at > 5*time.Second && at < 20*time.Second {
			one++
		}
		if at > 27*time.Second {
			three++
		}
	}
	if one < 11 || one > 14 { // 15 s of 1.2 s each
		t.Errorf("%d answers while the host was slow", one)
	}
	if three < 55 {
		t.Errorf("%d answers in the last 3 s, when it was quick", three)
	}
	if want := "a.test 1.2s > 1s"; len(got.slow) != 1 || got.slow[0] != want {
		t.Errorf("said %q, want %q once", got.slow, want)
	}
	if len(got.events) != 1 || got.events[0].Kind != observe.EventSlow || got.events[0].Host != "a.test" {
		t.Errorf("events %+v", got.events)
	}

	synctest.Test(t, func(t *testing.T) { // without Slow, the log has it
		l := &poolLog{asleep: 2 * time.Second}
		l.pool = must(pool.New(pool.Config{
			Keys: []pool.Key{{}}, Send: l.send, Log: slog.New(slog.NewTextHandler(&log, nil)),
		}))
		try(t, l.pool.Submit(bg, pool.Request{ID: "1", Cost: limit.One, TTL: time.Second}))
		go func() {
			time.Sleep(3 * time.Second)
			for _, id := range []string{"2", "3"} {
				try(t, l.pool.Submit(bg, pool.Request{ID: id, Cost: limit.One, TTL: time.Second}))
			}
			l.pool.Close()
		}()
		try(t, l.pool.Run(bg))
		if len(l.sends) != 2 || l.pool.Counts().Expired != 1 {
			t.Errorf("sent %v: %+v", l.sends, l.pool.Counts())
		}
	})
	if s := log.String(); strings.Count(s, "level=WARN") != 1 || !strings.Contains(s, "answers take 2 s (p95), and a request may wait 1 s in all") {
		t.Errorf("logged %s", s)
	}
}

// Requests with too little time do not keep those with enough from being sent, nor the other way
// round.
func TestShortAndLongTTL(t *testing.T) {
	l := overload(constant(500 * ms))
	l.every = 60 * ms // 16 a second
	l.ttl = func(n int) time.Duration { return []time.Duration{400 * ms, 5 * time.Second, 0}[n%3] }
	got := l.run(t)
	// One of the short ones at a time: each 500 ms. All others go.
	if short := got.took[400*ms]; short < 50 || short > 62 {
		t.Errorf("%d of the short ones went", short)
	}
	if got.took[0] != 166 || got.took[5*time.Second] != 167 {
		t.Errorf("%v were answered", got.took)
	}
	if got.counts.Waiting+got.counts.Dead > 0 {
		t.Errorf("%+v", got.counts)
	}
}

// A fresh deadline is one that can be met: a retry gets its whole time.
func TestAnswerTimeAndFreshDeadlines(t *testing.T) {
	l := overload(constant(150 * ms))
	l.config.Queue = pool.QueueConfig{OnExpiry: pool.Retry, MaxAttempts: 1 << 30}
	got := l.run(t)
	if got.counts.Expired+got.counts.Dead > 0 || got.counts.Done < 890 {
		t.Errorf("%+v", got.counts)
	}
	l.takes, l.length = constant(1200*ms), 5*time.Second
	if got = l.run(t); got.counts.Done < 140 { // one at a time, and none hangs
		t.Errorf("%+v", got.counts)
	}
}
