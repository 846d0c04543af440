package paceline_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// measured starts a WaitWithStats and returns once it is in line, or over.
func measured(ctx context.Context, g *paceline.Gate, cost limit.Cost) <-chan stats {
	ended := make(chan stats, 1)
	go func() {
		p, s, err := g.WaitWithStats(ctx, cost)
		ended <- stats{s, p, err}
	}()
	synctest.Wait()
	return ended
}

type stats struct {
	paceline.WaitStats
	p   paceline.Permit
	err error
}

// String has all of it, without the margins of the windows: "5s (2s behind, 1 round): tokens 3s, requests 2s".
func (s stats) String() string {
	var each []string
	for _, l := range s.Limits {
		each = append(each, fmt.Sprintf("%s %v", l.Limit, l.Waited))
	}
	return fmt.Sprintf("%v (%v behind, %d rounds): %s", s.Waited, s.Behind, s.Rounds, strings.Join(each, ", "))
}

// exactly has windows of a minute without a margin.
func exactly(t testing.TB, requests, tokens, inFlight int64) (all *limit.All, rpm, tpm *limit.Rolling, c *limit.Concurrency, cool *limit.Cooldown) {
	minute := func(n int64, u limit.Unit) *limit.Rolling {
		r, err := limit.NewRolling(limit.RollingConfig{Limit: n, Window: time.Minute, Unit: u, Margin: -1})
		try(t, err)
		return r
	}
	cool, err := limit.NewCooldown(0)
	try(t, err)
	rpm, tpm, c = minute(requests, limit.Requests), minute(tokens, limit.Tokens), concurrency(t, inFlight)
	return limit.NewAll(rpm, tpm, c, cool), rpm, tpm, c, cool
}

// The limits of a wait, one by one: those behind others wait for the limit of the head.
func TestWaitStats(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, at func(time.Duration)) []stats
		want []string
	}{
		{"no wait", func(t *testing.T, at func(time.Duration)) []stats {
			all, _, _, _, _ := exactly(t, 2, 100, 2)
			return []stats{<-measured(bg, paceline.NewGate(all), tokens(100))}
		}, []string{"0s (0s behind, 0 rounds): "}},
		{"requests, and one behind", func(t *testing.T, at func(time.Duration)) []stats {
			all, _, _, _, _ := exactly(t, 2, 100, 9)
			g := paceline.NewGate(all)
			pass(t, g, tokens(1))
			at(10 * time.Second)
			pass(t, g, tokens(1))
			at(20 * time.Second)
			first := measured(bg, g, tokens(1))
			at(30 * time.Second)
			second := measured(bg, g, tokens(1))
			return []stats{<-first, <-second}
		}, []string{"40s (0s behind, 1 rounds): requests 40s", "40s (30s behind, 1 rounds): requests 40s"}},
		// At 20 s one is in flight, whose answer at 25 s leaves the tokens to wait for: those of it and of the first.
		{"concurrency, then tokens, then a cool-down", func(t *testing.T, at func(time.Duration)) []stats {
			all, _, _, _, cool := exactly(t, 9, 100, 1)
			g := paceline.NewGate(all)
			pass(t, g, tokens(60))
			at(20 * time.Second)
			p, err := g.Wait(bg, tokens(30))
			try(t, err)
			waits := measured(bg, g, tokens(60))
			behind := measured(bg, g, tokens(10))
			at(25 * time.Second)
			p.Settle(accepted)
			at(50 * time.Second)
			g.Update(func(now mono.Time) { cool.Extend(now.Add(30 * time.Second)) })
			s := <-waits
			s.p.Settle(accepted)
			return []stats{s, <-behind}
		}, []string{
			"1m0s (0s behind, 3 rounds): cool-down 30s, tokens 25s, concurrency 5s",
			"1m0s (1m0s behind, 1 rounds): cool-down 30s, tokens 25s, concurrency 5s", // at the head until the first is answered, at once
		}},
		// The limit falls to 1 at 20 s, so that the second has to leave the window too.
		{"an Update makes it later", func(t *testing.T, at func(time.Duration)) []stats {
			all, rpm, _, _, _ := exactly(t, 2, 100, 9)
			g := paceline.NewGate(all)
			pass(t, g, tokens(1))
			at(10 * time.Second)
			pass(t, g, tokens(1))
			first := measured(bg, g, tokens(1))
			at(20 * time.Second)
			g.Update(func(now mono.Time) { try(t, rpm.SetLimit(now, 1)) })
			return []stats{<-first}
		}, []string{"1m0s (0s behind, 2 rounds): requests 1m0s"}},
		// The head, who wants 60 tokens, gives up at 15 s: then the second is at the head, for its request.
		{"the head gives up", func(t *testing.T, at func(time.Duration)) []stats {
			all, rpm, _, _, _ := exactly(t, 2, 100, 9)
			g := paceline.NewGate(all)
			pass(t, g, tokens(50))
			at(5 * time.Second)
			ctx, cancel := context.WithCancel(bg)
			first := measured(ctx, g, tokens(60))
			second := measured(bg, g, tokens(1))
			at(7 * time.Second)
			g.Update(func(now mono.Time) { try(t, rpm.SetLimit(now, 1)) })
			at(15 * time.Second)
			cancel()
			f := <-first
			if f.err == nil || f.p != (paceline.Permit{}) {
				t.Errorf("it gave up: %v", f.err)
			}
			return []stats{f, <-second}
		}, []string{"10s (0s behind, 1 rounds): requests 8s, tokens 2s", "55s (10s behind, 1 rounds): requests 53s, tokens 2s"}},
		{"an Update makes it hopeless", func(t *testing.T, at func(time.Duration)) []stats {
			all, _, tpm, _, _ := exactly(t, 9, 100, 9)
			g := paceline.NewGate(all)
			pass(t, g, tokens(50))
			first, second := measured(bg, g, tokens(60)), measured(bg, g, tokens(70))
			at(15 * time.Second)
			g.Update(func(now mono.Time) { try(t, tpm.SetLimit(now, 65)) })
			s := <-second
			if e := s.err.(*paceline.WaitError); e.Rule != (limit.Rule{Name: "tokens", Unit: limit.Tokens, N: 65, Per: time.Minute, Counts: limit.CountsRolling}) {
				t.Errorf("%+v", e.Rule)
			}
			return []stats{<-first, s}
		}, []string{"1m0s (0s behind, 1 rounds): tokens 1m0s", "15s (15s behind, 0 rounds): tokens 15s"}},
		{"who does not say", func(t *testing.T, at func(time.Duration)) []stats {
			g := paceline.NewGate(&witness{Limiter: rolling(t, 1, time.Second), t: t})
			(<-waiting(bg, g, weight(0, 1))).p.Settle(accepted)
			return []stats{<-measured(bg, g, weight(1, 1))}
		}, []string{"1s (0s behind, 1 rounds): limit 1s"}},
		{"filled: it was behind, and goes ahead", func(t *testing.T, at func(time.Duration)) []stats {
			all, _, _, _, _ := exactly(t, 9, 100, 9)
			g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: all, Fill: 4})
			try(t, err)
			p, err := g.Wait(bg, tokens(60))
			try(t, err)
			first, second := measured(bg, g, tokens(70)), measured(bg, g, tokens(30))
			at(10 * time.Second)
			p.Settle(accepted) // only now is it known when the first may go
			return []stats{<-first, <-second}
		}, []string{"1m10s (0s behind, 2 rounds): tokens 1m10s", "10s (10s behind, 0 rounds): tokens 10s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				got := c.run(t, func(d time.Duration) { sleepUntil(start, d); synctest.Wait() })
				for i, s := range got {
					if s.String() != c.want[i] {
						t.Errorf("%d: %v, want %s", i, s, c.want[i])
					}
					if len(s.Limits) > 0 && (s.Reason() != s.Limits[0].Limit || s.On(s.Reason()) != s.Limits[0].Waited) || s.On("nothing") != 0 {
						t.Errorf("%d: the reason is %q for %v", i, s.Reason(), s.On(s.Reason()))
					}
				}
			})
		})
	}
}

// The spinner of a precise Gate counts as any head of the line, in real time.
func TestWaitStatsOfASpinner(t *testing.T) {
	g := precise(t, limit.Named("gap", rolling(t, 1, 5*ms)))
	p, s, err := g.WaitWithStats(bg, weight(0, 1))
	try(t, err)
	if s.Reason() != "" || s.Waited != 0 {
		t.Errorf("%+v, and it went at once", s)
	}
	p.Settle(accepted)
	start := time.Now()
	_, s, err = g.WaitWithStats(bg, weight(0, 1))
	try(t, err)
	if s.Reason() != "gap" || s.Waited <= 0 || s.Waited > time.Since(start) || s.On("gap") != s.Waited || s.Behind != 0 || s.Rounds != 1 {
		t.Errorf("%+v in %v", s, time.Since(start))
	}
}

// FuzzWaitStats: whatever happens, the times per limit add up to the whole wait, and Behind is a
// part of it. No two were at the head at the same time.
func FuzzWaitStats(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 12))
			all, rpm, _, flights, cool := exactly(t, 5, 100, 3)
			g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: all, Fill: rng.IntN(2) * 3})
			try(t, err)
			start := time.Now()
			var mu sync.Mutex
			var at []time.Duration // the head of the line: from, to
			var wg sync.WaitGroup
			for range 40 {
				cost, rtt, after := tokens(1+rng.Int64N(70)), time.Duration(rng.IntN(20))*time.Second, time.Duration(1+rng.IntN(300))*time.Second
				kind, plain := rng.IntN(3), rng.IntN(3) == 0
				wg.Go(func() {
					ctx, cancel := context.WithCancel(bg)
					defer cancel()
					switch kind {
					case 0:
						ctx, cancel = context.WithTimeout(bg, after)
						defer cancel()
					case 1:
						time.AfterFunc(after, cancel)
					}
					if plain { // among others
						if p, err := g.Wait(ctx, cost); err == nil {
							time.Sleep(rtt)
							p.Settle(accepted)
						}
						return
					}
					asked := time.Since(start)
					p, s, err := g.WaitWithStats(ctx, cost)
					ended := time.Since(start)
					sum := time.Duration(0)
					for _, l := range s.Limits {
						sum += l.Waited
					}
					if sum != s.Waited || s.Waited != ended-asked || s.Behind < 0 || s.Behind > s.Waited ||
						s.Behind < s.Waited && s.Rounds == 0 || !slices.IsSortedFunc(s.Limits, func(a, b paceline.LimitWait) int { return int(b.Waited - a.Waited) }) {
						t.Errorf("from %v to %v: %+v", asked, ended, s)
					}
					if s.Behind < s.Waited {
						mu.Lock()
						at = append(at, asked+s.Behind, ended)
						mu.Unlock()
					}
					if err == nil {
						time.Sleep(rtt)
						p.Settle(limit.Outcome{Result: limit.Result(rtt % 3)})
					}
				})
				time.Sleep(time.Duration(rng.IntN(8000)) * ms)
				synctest.Wait()
				switch rng.IntN(6) {
				case 0:
					n := 1 + rng.Int64N(6)
					g.Update(func(now mono.Time) { try(t, rpm.SetLimit(now, n)) })
				case 1:
					n := 1 + rng.Int64N(4)
					g.Update(func(now mono.Time) { try(t, flights.SetLimit(now, n)) })
				case 2:
					g.Update(func(now mono.Time) { cool.Extend(now.Add(5 * time.Second)) })
				}
			}
			wg.Wait()
			type span struct{ from, to time.Duration }
			var spans []span
			for i := 0; i < len(at); i += 2 {
				spans = append(spans, span{at[i], at[i+1]})
			}
			slices.SortFunc(spans, func(a, b span) int { return int(a.from - b.from) })
			for i := 1; i < len(spans); i++ {
				if spans[i].from < spans[i-1].to {
					t.Errorf("two at the head: %v and %v", spans[i-1], spans[i])
				}
			}
		})
	})
}

// lines is a slog.Handler that keeps its records, after use has been called.
type lines struct {
	mu  sync.Mutex
	got []string
	use func()
}

func (l *lines) Enabled(_ context.Context, at slog.Level) bool { return at >= slog.LevelDebug }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler            { return l }
func (l *lines) WithGroup(string) slog.Handler                 { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	s := r.Message
	r.Attrs(func(a slog.Attr) bool { s += " " + a.String(); return true })
	l.mu.Lock()
	l.got = append(l.got, s)
	use := l.use
	l.mu.Unlock()
	if use != nil {
		use()
	}
	return nil
}

func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	got := l.got
	l.got = nil
	return got
}

// A line per round, by any goroutine that finds out: a new Wait, the timer, a Settle, an Update,
// one that gives up.
func TestGateLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		log := &lines{}
		all, rpm, _, _, _ := exactly(t, 2, 1000, 2)
		g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: all, Logger: slog.New(log)})
		try(t, err)
		// A handler may use the Gate.
		log.use = func() {
			if _, _, ok := g.TryWait(tokens(1)); ok {
				t.Error("there is a line")
			}
			g.Update(func(mono.Time) {})
		}
		want := func(what string, lines ...string) {
			t.Helper()
			synctest.Wait()
			if got := log.take(); !slices.Equal(got, lines) {
				t.Errorf("%s: %q, want %q", what, got, lines)
			}
		}
		pass(t, g, tokens(1))
		sleepUntil(start, 2*time.Second)
		p, err := g.Wait(bg, tokens(1))
		try(t, err)
		want("nobody waits")
		sleepUntil(start, 55500*ms)
		var waits []<-chan result
		ctx, cancel := context.WithCancel(bg)
		for range 4 {
			waits = append(waits, waiting(bg, g, tokens(1)))
		}
		waits = append(waits, waiting(ctx, g, tokens(1)))
		want("the first", "requests: 1 waiting, next in 4.5 s limit=requests waiting=1 next=4.5s round=1 rule=2 requests per 1m0s")
		sleepUntil(start, time.Minute) // it goes, and the next waits for a Settle: nobody knows how long
		want("nobody knows")
		(<-waits[0]).p.Settle(accepted)
		want("a Settle says when", "requests: 4 waiting, next in 60.0 s limit=requests waiting=4 next=1m0s round=2 rule=2 requests per 1m0s")
		sleepUntil(start, 70*time.Second)
		p.Settle(accepted)
		want("another changes nothing")
		g.Update(func(now mono.Time) { try(t, rpm.SetLimit(now, 1)) })
		want("an Update", "requests: 4 waiting, next in 60.0 s limit=requests waiting=4 next=1m0s round=3 rule=1 request per 1m0s")
		g.Update(func(mono.Time) {})
		want("nothing new")
		sleepUntil(start, 130*time.Second)
		(<-waits[1]).p.Settle(accepted)
		want("the timer admits one, its Settle tells the next when", "requests: 3 waiting, next in 60.0 s limit=requests waiting=3 next=1m0s round=4 rule=1 request per 1m0s")
		g.Update(func(now mono.Time) { try(t, rpm.SetLimit(now, 9)) })
		for _, w := range waits[2:] {
			(<-w).p.Settle(accepted)
		}
		cancel()
		want("room for all")
		if n := g.Waiting(); n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}

// A line that moves on all the time is logged once in ten seconds, and at once if its wait grows by more.
func TestGateLogsNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		r := limit.MustRolling(1, time.Second)
		g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: r, Logger: slog.New(log)})
		try(t, err)
		start := time.Now()
		var all sync.WaitGroup
		defer all.Wait()
		for range 28 { // each goes a second after the one before
			all.Go(func() { pass(t, g, limit.One) })
		}
		sleepUntil(start, 25*time.Second+ms)
		if n := len(log.take()); n != 3 {
			t.Errorf("%d lines in 25 s, want 3", n)
		}
		g.Update(func(now mono.Time) { try(t, r.SetWindow(now, time.Minute)) })
		if n := len(log.take()); n != 1 {
			t.Errorf("%d lines when the wait became longer, want 1", n)
		}
	})
}

// A wait of up to 5 ms gets no line, and neither does a request that goes at once.
func TestGateLogsNoShortWaits(t *testing.T) {
	for d, want := range map[time.Duration][]string{
		5 * ms:                  nil,
		5*ms + time.Microsecond: {"requests: 1 waiting, next in 5 ms limit=requests waiting=1 next=5.001ms round=1 rule=1 request per 5.001ms"},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := &lines{}
			r, err := limit.NewRolling(limit.RollingConfig{Limit: 1, Window: d, Margin: -1})
			try(t, err)
			g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: r, Logger: slog.New(log)})
			try(t, err)
			pass(t, g, limit.One)
			pass(t, g, limit.One)
			if got := log.take(); !slices.Equal(got, want) {
				t.Errorf("%v: %q, want %q", d, got, want)
			}
		})
	}
}

// A Handler that blocks does not hold the Gate.
func TestGateLogsWithoutTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		block := make(chan struct{})
		log.use = func() { <-block }
		r, c := rolling(t, 1, time.Minute), concurrency(t, 2)
		g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: limit.NewAll(r, c), Logger: slog.New(log)})
		try(t, err)
		(<-waiting(bg, g, weight(0, 1))).p.Settle(accepted)
		line := waiting(bg, g, weight(1, 1))
		if len(log.take()) != 1 || g.Waiting() != 1 {
			t.Error("nothing is logged")
		}
		g.Update(func(now mono.Time) { try(t, r.SetLimit(now, 2)) })
		if g.Waiting() != 0 {
			t.Error("there is room, and it waits")
		}
		close(block)
		(<-line).p.Settle(accepted)
	})
}

func TestWaitStatsLog(t *testing.T) {
	s := paceline.WaitStats{Waited: 1500 * ms, Behind: ms, Rounds: 2, Limits: []paceline.LimitWait{{"tokens", time.Second}, {"requests", 500 * ms}}}
	log := &strings.Builder{}
	h := slog.NewJSONHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	slog.New(h).Info("sent", "wait", s)
	want := `{"level":"INFO","msg":"sent","wait":{"waited_ms":1500,"behind_ms":1,"rounds":2,"limit":"tokens","ms":{"tokens":1000,"requests":500}}}` + "\n"
	if log.String() != want {
		t.Errorf("%s, want %s", log, want)
	}
}

func ExampleGate_WaitWithStats() {
	gate := paceline.NewGate(limit.MustRolling(1, 20*time.Millisecond))
	for range 2 {
		permit, stats, err := gate.WaitWithStats(context.Background(), limit.One)
		if err != nil {
			fmt.Println(err)
			return
		}
		permit.Settle(limit.Outcome{Result: limit.Accepted})
		fmt.Printf("waited: %v, rounds: %d, because of: %q\n", stats.Waited > 0, stats.Rounds, stats.Reason())
	}
	// Output:
	// waited: false, rounds: 0, because of: ""
	// waited: true, rounds: 1, because of: "requests"
}

// The waits of a request at one Gate and then at another.
func TestWaitStatsAdd(t *testing.T) {
	a := paceline.WaitStats{Waited: 5, Behind: 1, Rounds: 2, Limits: []paceline.LimitWait{{"requests", 3}, {"tokens", 2}}}
	b := paceline.WaitStats{Waited: 9, Behind: 2, Rounds: 1, Limits: []paceline.LimitWait{{"tokens", 8}, {"pause", 1}}}
	want := paceline.WaitStats{Waited: 14, Behind: 3, Rounds: 3, Limits: []paceline.LimitWait{{"tokens", 10}, {"requests", 3}, {"pause", 1}}}
	if got := a.Add(b); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := a.Add(paceline.WaitStats{}); !reflect.DeepEqual(got, a) || a.Limits[1].Waited != 2 {
		t.Errorf("%+v", got)
	}
	if got := (paceline.WaitStats{}).Add(b); !reflect.DeepEqual(got, b) {
		t.Errorf("%+v", got)
	}
}

// Those that an Update refuses are not counted any more.
func TestGateLogsWhoIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		r, err := limit.NewRolling(limit.RollingConfig{Limit: 100, Window: time.Minute, Unit: limit.Tokens, Margin: -1})
		try(t, err)
		g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: r, Logger: slog.New(log)})
		try(t, err)
		pass(t, g, tokens(40))
		time.Sleep(time.Second)
		pass(t, g, tokens(60))
		head, large := waiting(bg, g, tokens(30)), waiting(bg, g, tokens(90))
		log.take()
		time.Sleep(10 * time.Second)
		g.Update(func(now mono.Time) { try(t, r.SetLimit(now, 80)) })
		if got, want := log.take(), []string{"tokens: 1 waiting, next in 50.0 s limit=tokens waiting=1 next=50s round=2 rule=80 tokens per 1m0s"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if err := (<-large).err; err == nil {
			t.Error("90 of 80 go")
		}
		(<-head).p.Settle(accepted)
	})
}

// Answers that used less make the head's instant a little sooner, again and again. That is not worth a line each; a much
// later one is, at once.
func TestGateLogsNoFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &lines{}
		b, err := limit.NewBucket(limit.BucketConfig{Limit: 6000, Window: time.Minute, Unit: limit.Tokens})
		try(t, err)
		cool, err := limit.NewCooldown(0)
		try(t, err)
		g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: limit.NewAll(b, cool), Logger: slog.New(log)})
		try(t, err)
		const n = 100
		var open []paceline.Permit
		for range n {
			p, err := g.Wait(bg, tokens(50))
			try(t, err)
			open = append(open, p)
		}
		pass(t, g, tokens(1000))
		head := waiting(bg, g, tokens(3000))
		time.Sleep(ms)
		for _, p := range open[:n-50] {
			p.Settle(accepted)
		}
		time.Sleep(10 * time.Second)
		log.take()
		for _, p := range open[n-50:] {
			time.Sleep(10 * ms)
			p.Settle(limit.Outcome{Result: limit.Accepted, Metered: true, Actual: tokens(20)})
		}
		if got := log.take(); len(got) == 0 || len(got) > 2 {
			t.Errorf("%d lines in half a second: %q", len(got), got)
		}
		g.Update(func(now mono.Time) { cool.Extend(now.Add(time.Minute)) })
		if got := log.take(); len(got) != 1 || !strings.HasPrefix(got[0], "cool-down: 1 waiting, next in 60.0 s") {
			t.Errorf("a minute later: %q", got)
		}
		(<-head).p.Settle(accepted)
	})
}

// While no waiter is measured, the limit of the head may change. A new waiter gets the present one.
func TestWaitStatsOfWhatChangedUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cool, err := limit.NewCooldown(0)
		try(t, err)
		g := paceline.NewGate(limit.NewAll(limit.Named("gap", rolling(t, 1, 10*time.Second)), limit.Named("cool", cool)))
		p, err := g.Wait(bg, weight(0, 1))
		try(t, err)
		p.Settle(accepted)
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		go g.Wait(ctx, weight(0, 1)) // the head, which does not measure
		synctest.Wait()
		measure := func(d time.Duration) paceline.WaitStats {
			ctx, cancel := context.WithCancel(bg)
			time.AfterFunc(d, cancel)
			_, s, err := g.WaitWithStats(ctx, weight(0, 1))
			if err == nil {
				t.Fatal("it went")
			}
			return s
		}
		if s := measure(2 * time.Second); s.On("gap") != 2*time.Second {
			t.Errorf("at first: %+v", s)
		}
		g.Update(func(now mono.Time) { cool.Extend(now.Add(time.Hour)) })
		time.Sleep(time.Second)
		if s := measure(3 * time.Second); s.On("gap") != 0 || s.On("cool") != 3*time.Second {
			t.Errorf("then: %+v", s)
		}
	})
}
