package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
)

// Any number of waiting requests may expire at once. All are reported, in order. Moving on in their
// list takes no time: it is done under the lock.
func TestMoveOnInTheUntold(t *testing.T) {
	const many = 200_000
	all := make([]pool.Ended, many)
	for i := range all {
		all[i].Attempts = i + 1
	}
	moved := 0
	for want := 1; len(all) > 0; {
		n := min(64, len(all))
		if all[0].Attempts != want || all[n-1].Attempts != want+n-1 {
			t.Fatalf("%d to %d, want from %d on", all[0].Attempts, all[n-1].Attempts, want)
		}
		want += n
		before := all
		all = pool.Without(all, n)
		switch {
		case len(all) > 0 && &all[0] != &before[n]:
			moved += len(all)
		case before[0].Attempts != 0:
			t.Fatal("what was told is held on to")
		}
	}
	if moved > many {
		t.Errorf("%d were moved", moved)
	}
}

// The memory of reported ends is reused.
func TestRoomOfTheUntold(t *testing.T) {
	all := make([]pool.Ended, 100, 128)
	if n := testing.AllocsPerRun(100, func() { all = append(pool.Without(all, 64), make([]pool.Ended, 64)...) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if rest := pool.Without(append(all[:0], pool.Ended{Attempts: 1}), 1); len(rest) != 0 || rest[:1][0].Attempts != 0 {
		t.Error("what was told is held on to")
	}
}

func TestPoolSaysThatEveryKeyIsBanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *pool.Pool
		var ends []string
		p, err := pool.New(pool.Config{
			Keys: []pool.Key{{Name: "k"}},
			Send: func(context.Context, pool.Attempt) pool.Answer {
				time.Sleep(2 * time.Second)
				return pool.Answer{Banned: true, Reason: "418"}
			},
			Ended: func(e pool.Ended) {
				ends = append(ends, e.Request.ID+" "+e.State.String())
				if err := p.TrySubmit(pool.Request{}); !errors.Is(err, pool.ErrClosed) || !errors.Is(err, pool.ErrExhausted) {
					t.Errorf("TrySubmit when it is over: %v", err)
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Submit(context.Background(), pool.Request{ID: "a", TTL: time.Second}); err != nil {
			t.Fatal(err)
		}
		// Nothing waits, a has expired; but more might have come.
		if err := p.Run(context.Background()); !errors.Is(err, pool.ErrExhausted) {
			t.Errorf("Run returned %v", err)
		}
		wantLines(t, "ends", ends, "a expired")
	})
}

func TestPoolLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		var l poolLog
		p := newPool(t, &l, pool.Config{
			Log: slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		submit(t, p, "a")
		if err := p.Submit(context.Background(), pool.Request{ID: "late", Cost: limit.One, TTL: time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		p.Close()
		if err := p.Run(context.Background()); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"msg=answer id=a attempt=1 key=k result=accepted", "took=10ms", "msg=expired id=late attempts=0"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("log has no %q:\n%s", want, &text)
			}
		}
	})
}

// Each end is reported once, alone or as one of more than fit into a call. No call is empty, even
// if there is something else to report.
func TestPoolTellsEachEndOfAnyNumber(t *testing.T) {
	for _, n := range []int{1, 2, 64, 65, 130} {
		synctest.Test(t, func(t *testing.T) {
			var told []string
			outages := 0
			var sent atomic.Int32
			p := must(pool.New(pool.Config{
				Keys: []pool.Key{{}},
				Send: func(context.Context, pool.Attempt) pool.Answer {
					time.Sleep(time.Second)
					if sent.Add(1) <= 5 { // so many make an outage
						return pool.Answer{Outcome: limit.Outcome{Result: limit.Unsent, Link: limit.Unreachable}, Reason: "nobody there"}
					}
					return served
				},
				Outage: func(pool.HostInfo) { outages++ },
				EndedAll: func(all []pool.Ended) {
					if len(all) == 0 || len(all) > 64 {
						t.Errorf("of %d: told of %d at once", n, len(all))
					}
					for _, e := range all {
						told = append(told, e.Request.ID)
					}
				},
			}))
			for i := range n {
				submit(t, p, fmt.Sprint(i))
			}
			p.Close()
			try(t, p.Run(context.Background()))
			slices.Sort(told)
			if ends := len(told); ends != n || len(slices.Compact(told)) != n || n == 1 && outages == 0 {
				t.Errorf("of %d, %d were told, and %d outages", n, ends, outages)
			}
		})
	}
}
