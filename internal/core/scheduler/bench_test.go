package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// A turn: one is answered, the next goes, another comes.
func benchTurn(b *testing.B, l *scheduler.Scheduler, lanes []*scheduler.Lane, waiting int) {
	var under *scheduler.Ticket
	now := mono.Time(0)
	all := make([]scheduler.Ticket, waiting+2)
	free := make([]*scheduler.Ticket, 0, len(all))
	for i := range all {
		free = append(free, &all[i])
	}
	i := 0
	enter := func() {
		u := free[len(free)-1]
		free = free[:len(free)-1]
		u.Cost, u.Place, u.Deadline = limit.One, now, limit.Never
		if l.Enter(now, lanes[i%len(lanes)], u) == scheduler.Granted {
			under = u
		}
		i++
	}
	for range waiting + 1 {
		enter()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		now++
		free = append(free, under)
		l.Settle(now, under.Pass, &accepted)
		if under = l.Next(now); under == nil {
			b.Fatal("nobody went")
		}
		enter()
	}
}

func BenchmarkTurn(b *testing.B) {
	wide := func() limit.Limiter { return limit.MustRolling(1<<40, time.Millisecond) }
	for _, waiting := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("1limit/%d", waiting), func(b *testing.B) {
			l := scheduler.New(scheduler.Config{})
			benchTurn(b, l, []*scheduler.Lane{l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(slots(b, 1), scheduler.Sharing{})})}, waiting)
		})
		b.Run(fmt.Sprintf("4limits/%d", waiting), func(b *testing.B) {
			l := scheduler.New(scheduler.Config{})
			var way []*scheduler.Limit
			for range 3 {
				way = append(way, l.Limit(wide(), scheduler.Sharing{}))
			}
			way = append(way, l.Limit(slots(b, 1), scheduler.Sharing{}))
			benchTurn(b, l, []*scheduler.Lane{l.Lane(scheduler.LaneConfig{}, way)}, waiting)
		})
		b.Run(fmt.Sprintf("1000lanes/%d", waiting), func(b *testing.B) {
			l := scheduler.New(scheduler.Config{})
			shared := l.Limit(slots(b, 1), scheduler.Sharing{})
			var lanes []*scheduler.Lane
			for range 1000 {
				way := []*scheduler.Limit{l.Limit(wide(), scheduler.Sharing{}), l.Limit(wide(), scheduler.Sharing{}), l.Limit(wide(), scheduler.Sharing{}), shared}
				lanes = append(lanes, l.Lane(scheduler.LaneConfig{}, way))
			}
			benchTurn(b, l, lanes, waiting)
		})
	}
	for _, ways := range []int{5, 1000} {
		b.Run(fmt.Sprintf("%dways", ways), func(b *testing.B) {
			l := scheduler.New(scheduler.Config{})
			var all [][]*scheduler.Limit
			for range ways {
				all = append(all, []*scheduler.Limit{l.Limit(slots(b, 1), scheduler.Sharing{})})
			}
			lane := l.Lane(scheduler.LaneConfig{}, all...)
			for range ways - 1 {
				l.Enter(0, lane, ticket("", 0))
			}
			benchTurn(b, l, []*scheduler.Lane{lane}, 100)
		})
	}
}

// Leave without waiting tickets, and its settlement.
func BenchmarkPass(b *testing.B) {
	for _, limits := range []int{1, 4} {
		b.Run(fmt.Sprint(limits), func(b *testing.B) {
			l := scheduler.New(scheduler.Config{})
			var way []*scheduler.Limit
			for range limits {
				way = append(way, l.Limit(limit.MustRolling(1<<40, time.Millisecond), scheduler.Sharing{}))
			}
			lane := l.Lane(scheduler.LaneConfig{}, way)
			u := ticket("", 0)
			b.ReportAllocs()
			for i := range b.N {
				if l.Enter(mono.Time(i), lane, u) != scheduler.Granted {
					b.Fatal("it waits")
				}
				l.Settle(mono.Time(i), u.Pass, &accepted)
			}
		})
	}
}

func BenchmarkAsk(b *testing.B) {
	l := scheduler.New(scheduler.Config{})
	var way []*scheduler.Limit
	for range 4 {
		way = append(way, l.Limit(limit.MustRolling(20, time.Second), scheduler.Sharing{}))
	}
	lane := l.Lane(scheduler.LaneConfig{}, way)
	for range 40_020 {
		l.Enter(0, lane, ticket("", 0))
	}
	b.ReportAllocs()
	for range b.N {
		l.Ask(1, lane, &limit.One, &limit.One)
	}
}
