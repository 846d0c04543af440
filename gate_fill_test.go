package paceline_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
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

func filling(t testing.TB, l limit.Limiter, fill int) *paceline.Gate {
	t.Helper()
	g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: l, Fill: fill})
	try(t, err)
	return g
}

func TestFillNeedsForesight(t *testing.T) {
	r := rolling(t, 1, time.Second)
	for _, c := range []struct {
		fill int
		l    limit.Limiter
		want string // of the error; none if empty
	}{
		{-1, r, "Fill -1 is negative"},
		{1, &witness{Limiter: r}, "Fill 1: the Limiter, *paceline_test.witness, does not foresee"},
		{1, limit.NewAll(r, &witness{Limiter: r}), "does not foresee"},
		{0, &witness{Limiter: r}, ""},
		{64, limit.NewAll(r, limit.Named("model", concurrency(t, 1))), ""},
	} {
		g, err := paceline.NewGateWith(paceline.GateConfig{Limiter: c.l, Fill: c.fill})
		if (g == nil) != (err != nil) || (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v", c, g, err)
		}
	}
}

// 60 of 100 are used, until 60 s. Those in line ask at 10 s, 11 s, 12 s and so on.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		name     string
		fill     int
		inFlight int64
		weights  []int64
		want     []int // when they go, in seconds
	}{
		{"strictly", 0, 9, []int64{70, 30, 5}, []int{60, 60, 120}},
		{"at once if it does not delay the head", 4, 9, []int64{70, 30}, []int{60, 11}},
		{"it would delay the head", 4, 9, []int64{70, 31, 30}, []int{60, 120, 12}},
		{"it has no room itself", 4, 9, []int64{95, 41}, []int{60, 120}},
		{"what went ahead is gone", 4, 9, []int64{70, 20, 11, 10}, []int{60, 11, 71, 13}},
		{"too far down the line", 1, 9, []int64{70, 31, 30}, []int{60, 120, 60}}, // next in line by then
		{"overtaken as often as may be", 2, 9, []int64{70, 5, 5, 5}, []int{60, 11, 12, 60}},
		{"nobody knows when the head may go", 4, 1, []int64{70, 30}, []int{60, 60}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, err := limit.NewRolling(limit.RollingConfig{Limit: 100, Window: time.Minute, Unit: limit.Weight, Margin: -1})
			try(t, err)
			flights := concurrency(t, c.inFlight)
			w := &witness{Limiter: limit.NewAll(r, flights), t: t}
			g := filling(t, seer{w}, c.fill)
			start := time.Now()
			(<-waiting(bg, g, weight(0, 60))).p.Settle(accepted)
			got := make([]int, len(c.weights))
			var wg sync.WaitGroup
			for i, n := range c.weights {
				sleepUntil(start, time.Duration(10+i)*time.Second)
				wg.Go(func() {
					p, err := g.Wait(bg, weight(int64(i+1), n))
					if err != nil {
						t.Error(err)
						return
					}
					got[i] = int(time.Since(start) / time.Second)
					p.Settle(accepted)
				})
				synctest.Wait()
				if _, retry, ok := g.TryWait(weight(0, 1)); ok && g.Waiting() > 0 || retry < 0 {
					t.Errorf("%s: a TryWait overtakes those in line", c.name)
				}
			}
			wg.Wait()
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: they go at %v s, want %v", c.name, got, c.want)
			}
		})
	}
}

// With a deadline before the head's turn, a wait pays if the cost may go ahead. It does not if the
// cost is too far down the line.
func TestFillAndDeadlines(t *testing.T) {
	for fill, want := range map[int]string{0: "deadline (ready 1m0s)", 1: "ok"} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			r, err := limit.NewRolling(limit.RollingConfig{Limit: 100, Window: time.Minute, Unit: limit.Weight, Margin: -1})
			try(t, err)
			g := filling(t, r, fill)
			p := (<-waiting(bg, g, weight(0, 60))).p
			head, ctx := waiting(bg, g, weight(1, 70)), bg
			p.Settle(accepted)
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			r1 := <-waiting(ctx, g, weight(2, 30))
			if got := ending(start, r1.err); got != want {
				t.Errorf("Fill %d: %s, want %s", fill, got, want)
			}
			var e *paceline.WaitError
			if errors.As(r1.err, &e) && e.Rule.Name != "weight" {
				t.Errorf("%+v", e.Rule)
			}
			if (<-head).p.Settle(accepted); time.Since(start) != time.Minute {
				t.Errorf("Fill %d: the head goes at %v", fill, time.Since(start))
			}
		})
	}
}

// 10,000 requests with sizes like those of prompts, under requests and tokens a minute, strict and
// filled. There are at most two wake-ups per admission, and the whole of the limit is used. The
// memory of a waiter is that of its goroutine and little more:
//
//	go test -v -run TestTenThousandPrompts .
func TestTenThousandPrompts(t *testing.T) {
	var took [2]time.Duration
	for i, fill := range []int{0, 64} {
		synctest.Test(t, func(t *testing.T) {
			memory := func() (heap, stacks uint64) {
				var m runtime.MemStats
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&m)
				return m.HeapAlloc, m.StackInuse
			}
			all, _, _, _ := llmLimits(500, 30_000, 1000)
			g := filling(t, all, fill)
			rng := rand.New(rand.NewPCG(1, 1))
			heap, stacks := memory()
			start := time.Now()
			var wg sync.WaitGroup
			sum := int64(0)
			for range many {
				n := min(int64(100+600*rng.ExpFloat64()*rng.ExpFloat64()), 20_000)
				sum += n
				wg.Go(func() {
					p, s, err := g.WaitWithStats(bg, tokens(n))
					if err != nil {
						t.Error(err)
						return
					}
					if s.Waited != time.Since(start) {
						t.Errorf("%+v after %v", s, time.Since(start))
					}
					time.Sleep(time.Second)
					p.Settle(accepted)
				})
			}
			synctest.Wait()
			inLine := g.Waiting()
			heapNow, stacksNow := memory()
			wg.Wait()
			took[i] = time.Since(start)
			ticks, wakes := g.Counts()
			each := (heapNow - heap) / uint64(inLine)
			t.Logf("Fill %d: %.2f wake-ups per admission (%d ticks, %d waiters); %d in line at first, %d bytes of heap and %d of stack each; %v",
				fill, float64(ticks+wakes)/float64(many), ticks, wakes, inLine, each, (stacksNow-stacks)/uint64(inLine), took[i])
			if ticks+wakes > uint64(2*many) || inLine < many*9/10 || each > 2000 {
				t.Error("want at most 2 wake-ups per admission, nine in ten in line and 2000 bytes of heap each")
			}
			// The first window is free; each of the others begins when the answers of the one before are there.
			if least := time.Duration(sum/30_000-1) * (time.Minute + time.Second); took[i] > least*11/10+time.Minute {
				t.Errorf("Fill %d: %v for %d tokens, which take %v", fill, took[i], sum, least)
			}
		})
	}
	if took[1] >= took[0] {
		t.Errorf("filled %v, strict %v", took[1], took[0])
	}
}

// The limits rise and fall while others wait, each of the three. A cost that fits goes at once, any
// other waits longer, and none is sent back.
func TestLLMLimitsChangeForThoseInLine(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(now mono.Time, rpm, tpm *limit.Rolling, c *limit.Concurrency) error
		left   int           // in line then
		last   time.Duration // when the last of them goes
	}{
		// Three of 100 tokens are answered at 0, 10 and 20 s, one is in flight until 100 s, and four wait.
		{"nothing", func(mono.Time, *limit.Rolling, *limit.Rolling, *limit.Concurrency) error { return nil }, 4, 120 * time.Second},
		{"requests rise", func(now mono.Time, rpm, _ *limit.Rolling, _ *limit.Concurrency) error { return rpm.SetLimit(now, 6) }, 2, 70 * time.Second},
		{"requests fall", func(now mono.Time, rpm, _ *limit.Rolling, _ *limit.Concurrency) error { return rpm.SetLimit(now, 2) }, 4, 200 * time.Second},
		{"tokens fall", func(now mono.Time, _, tpm *limit.Rolling, _ *limit.Concurrency) error { return tpm.SetLimit(now, 200) }, 4, 200 * time.Second},
		{"tokens fall below what is asked for", func(now mono.Time, _, tpm *limit.Rolling, _ *limit.Concurrency) error { return tpm.SetLimit(now, 99) }, 0, 30 * time.Second},
		{"concurrency falls", func(now mono.Time, _, _ *limit.Rolling, c *limit.Concurrency) error { return c.SetLimit(now, 1) }, 4, 160 * time.Second},
	} {
		for _, fill := range []int{0, 8} {
			synctest.Test(t, func(t *testing.T) {
				all, rpm, tpm, flights, _ := exactly(t, 4, 1000, 10)
				g := filling(t, all, fill)
				start := time.Now()
				for at := range 3 {
					sleepUntil(start, time.Duration(at)*10*time.Second)
					pass(t, g, tokens(100))
				}
				open, err := g.Wait(bg, tokens(100))
				try(t, err)
				var wg sync.WaitGroup
				ended := make([]time.Duration, 4)
				for i := range ended {
					wg.Go(func() {
						if p, err := g.Wait(bg, tokens(100)); err == nil {
							p.Settle(accepted)
						} else if !errors.Is(err, paceline.ErrNever) {
							t.Error(err)
						}
						ended[i] = time.Since(start)
					})
				}
				sleepUntil(start, 30*time.Second)
				synctest.Wait()
				g.Update(func(now mono.Time) { try(t, c.change(now, rpm, tpm, flights)) })
				synctest.Wait()
				left := g.Waiting()
				sleepUntil(start, 100*time.Second)
				open.Settle(accepted)
				wg.Wait()
				if got := fmt.Sprint(left, " ", slices.Max(ended)); got != fmt.Sprint(c.left, " ", c.last) {
					t.Errorf("%s, Fill %d: in line and last: %s, want %d %v", c.name, fill, got, c.left, c.last)
				}
			})
		}
	}
}

// Where an Update refuses some, those who move up are looked at in the same breath.
func TestFillLooksAtWhoMovesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := limit.NewRolling(limit.RollingConfig{Limit: 100, Window: time.Minute, Unit: limit.Weight, Margin: -1})
		try(t, err)
		g := filling(t, r, 1)
		(<-waiting(bg, g, weight(0, 60))).p.Settle(accepted)
		head, large, small := waiting(bg, g, weight(1, 70)), waiting(bg, g, weight(2, 95)), waiting(bg, g, weight(3, 20))
		g.Update(func(now mono.Time) { try(t, r.SetLimit(now, 94)) })
		synctest.Wait()
		if got := fmt.Sprint(len(head), len(large), len(small)); got != "0 1 1" {
			t.Errorf("the one between them is refused: %s", got)
		}
		for _, w := range []<-chan result{small, head} {
			(<-w).p.Settle(accepted)
		}
	})
}
