package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// schedule is the arrivals of tickets and the ends of their requests, whatever the Scheduler
// decides.
type schedule struct {
	seed                uint64
	limits, lanes, ways int
	fill                int
	come                []arrival
	keys                bool        // each way is one limit of its own, and perhaps the last limit, as with several API keys
	asked               []mono.Time // what Ask said of each ticket when it came
}

type arrival struct {
	at, place, deadline mono.Time
	lane                int
	cost, least         limit.Cost
	hold                mono.Time // from its leave to its answer
	ends                limit.Outcome
}

// refusal is a ticket that was too late, and what was known of it.
type refusal struct {
	who     int
	at      mono.Time // Ticket.At
	waiting []int     // the tickets in line then
}

func newSchedule(seed uint64, fill int) *schedule {
	rng := rand.New(rand.NewPCG(seed, 3))
	s := &schedule{seed: seed, limits: rng.IntN(4) + 1, lanes: rng.IntN(4) + 1, ways: 1, fill: fill}
	if rng.IntN(3) == 0 {
		s.ways = 3
	}
	now := mono.Time(0)
	for range 40 {
		now += mono.Time(rng.IntN(3)/2*rng.IntN(12)) * ms
		a := arrival{at: now, place: now, deadline: limit.Never, lane: rng.IntN(s.lanes), hold: mono.Time(rng.IntN(20)) * ms}
		a.cost = limit.Cost{limit.Requests: 1, limit.Input: int64(rng.IntN(9) + 1)}
		a.cost[limit.Tokens] = a.cost[limit.Input] + int64(rng.IntN(2)*rng.IntN(10))
		a.least = a.cost.Least()
		if rng.IntN(2) == 0 {
			a.deadline = now + mono.Time(rng.IntN(150))*ms
		}
		if fill == 0 && rng.IntN(5) == 0 {
			a.place -= mono.Time(rng.IntN(20)) * ms
		}
		a.ends.Result = []limit.Result{limit.Accepted, limit.Accepted, limit.Accepted, limit.Limited, limit.Failed, limit.Unknown}[rng.IntN(6)]
		if rng.IntN(2) == 0 {
			a.ends.Metered, a.ends.Actual = true, a.cost
			a.ends.Actual[limit.Tokens] = a.least[limit.Tokens] + rng.Int64N(a.cost[limit.Tokens]-a.least[limit.Tokens]+1)
		}
		s.come = append(s.come, a)
	}
	return s
}

// newKeys is a schedule of up to five keys, with longer lines.
func newKeys(seed uint64, fill int) *schedule {
	s := newSchedule(seed, fill)
	rng := rand.New(rand.NewPCG(seed, 5))
	s.keys, s.limits, s.lanes = true, rng.IntN(4)+3, rng.IntN(2)+1
	more := newSchedule(seed+1<<32, fill).come
	s.come = append(s.come, more...)
	same := rng.IntN(2) == 0
	for i := range s.come {
		a := &s.come[i]
		a.lane = rng.IntN(s.lanes)
		if same { // as most requests of a program do, they cost the same
			a.cost, a.least, a.ends.Metered = limit.Cost{limit.Requests: 1, limit.Tokens: 4}, limit.Cost{limit.Requests: 1, limit.Tokens: 4}, false
		}
		a.place, a.deadline = a.at, limit.Never
	}
	slices.SortStableFunc(s.come, func(a, b arrival) int { return int(a.at - b.at) })
	return s
}

func (s *schedule) limit(rng *rand.Rand) (l limit.Limiter) {
	window := time.Duration(rng.IntN(40)+10) * time.Millisecond
	unit, n := limit.Requests, rng.Int64N(5)+1
	if rng.IntN(2) == 0 {
		unit, n = limit.Tokens, rng.Int64N(40)+18
	}
	late := limit.Arrivals{Late: time.Duration(rng.IntN(40)+1) * time.Millisecond}
	switch rng.IntN(9) {
	case 0:
		l, _ = limit.NewConcurrency(limit.ConcurrencyConfig{Limit: n, Late: late.Late})
	case 1:
		l, _ = limit.NewBucket(limit.BucketConfig{Limit: n, Window: window, Unit: unit, Arrivals: late})
	case 2:
		l, _ = limit.NewCalendar(limit.CalendarConfig{Limit: n, Window: window, Unit: unit, Arrivals: late})
	case 3:
		l, _ = limit.NewWeighted(limit.WeightedConfig{Limit: n, Window: window, Unit: unit, Arrivals: late})
	case 4:
		l, _ = limit.NewAnchored(limit.AnchoredConfig{Limit: n, Window: window, Unit: unit, Arrivals: late})
	case 5:
		l, _ = limit.NewSpacing(window / 8)
	case 6:
		l, _ = limit.NewCooldown(window)
	default:
		l, _ = limit.NewRolling(limit.RollingConfig{Limit: n, Window: window, Unit: unit, Margin: -1, Arrivals: late})
	}
	return l
}

// run plays the schedule with these deadlines. It returns the tickets refused as too late, and when
// each went; limit.Never: it did not. It ends when the ticket meant has gone.
func (s *schedule) run(deadlines []mono.Time, meant int) (late []refusal, went []mono.Time) {
	rng := rand.New(rand.NewPCG(s.seed, 4))
	l := scheduler.New(scheduler.Config{Fill: s.fill})
	var limits []*scheduler.Limit
	for range s.limits {
		limits = append(limits, l.Limit(s.limit(rng), scheduler.Sharing{Fair: rng.IntN(3) == 0}))
	}
	var lanes []*scheduler.Lane
	for range s.lanes {
		var ways [][]*scheduler.Limit
		if s.keys {
			both := rng.IntN(2)
			for _, m := range limits[:len(limits)-both] {
				ways = append(ways, append([]*scheduler.Limit{m}, limits[len(limits)-both:]...))
			}
			lanes = append(lanes, l.Lane(scheduler.LaneConfig{Weight: 2, Reserve: float64(rng.IntN(2)) * 0.3}, ways...))
			continue
		}
		for range rng.IntN(s.ways) + 1 {
			var way []*scheduler.Limit
			for _, i := range rng.Perm(s.limits)[:rng.IntN(s.limits)+1] {
				way = append(way, limits[i])
			}
			ways = append(ways, way)
		}
		lanes = append(lanes, l.Lane(scheduler.LaneConfig{Weight: float64(rng.IntN(3) + 1)}, ways...))
	}
	tickets := make([]scheduler.Ticket, len(s.come))
	went = slices.Repeat([]mono.Time{limit.Never}, len(s.come))
	s.asked = make([]mono.Time, len(s.come))
	var open []int
	verdict := func(now mono.Time, i int) {
		switch t := &tickets[i]; t.State {
		case scheduler.Granted:
			went[i] = now
			open = append(open, i)
		case scheduler.Late:
			r := refusal{who: i, at: t.At}
			for j := range tickets {
				if tickets[j].State == scheduler.Waiting {
					r.waiting = append(r.waiting, j)
				}
			}
			late = append(late, r)
		}
	}
	drain := func(now mono.Time) {
		for t := l.Next(now); t != nil; t = l.Next(now) {
			verdict(now, t.Of.(int))
		}
	}
	for came := 0; went[meant] == limit.Never; {
		now := l.Wake()
		if came < len(s.come) {
			now = min(now, s.come[came].at)
		}
		for _, i := range open {
			now = min(now, went[i]+s.come[i].hold)
		}
		if now == limit.Never {
			break
		}
		drain(now)
		for i := 0; i < len(open); {
			if a := &s.come[open[i]]; went[open[i]]+a.hold <= now {
				p := tickets[open[i]].Pass
				open = slices.Delete(open, i, i+1)
				l.Settle(now, p, &a.ends)
				drain(now)
			} else {
				i++
			}
		}
		for ; came < len(s.come) && s.come[came].at <= now; came++ {
			a, t := &s.come[came], &tickets[came]
			s.asked[came], _ = l.Ask(now, lanes[a.lane], &a.cost, &a.least)
			*t = scheduler.Ticket{Cost: a.cost, Metered: true, Least: a.least, Place: a.place, Deadline: deadlines[came], Of: came}
			if l.Enter(now, lanes[a.lane], t) != scheduler.Waiting {
				verdict(now, came)
			}
			drain(now)
		}
	}
	return late, went
}

// check plays the schedule, and once more for each refused ticket, without its deadline. The
// tickets in line with it stay.
func (s *schedule) check() (refused int, err error) {
	deadlines := make([]mono.Time, len(s.come))
	for i := range s.come {
		deadlines[i] = s.come[i].deadline
	}
	s.come = append(s.come, arrival{at: limit.AfterSettle - 1, deadline: limit.Never}) // the run goes on until all have gone
	deadlines = append(deadlines, limit.Never)
	late, _ := s.run(deadlines, len(s.come)-1)
	for _, r := range late {
		without := slices.Clone(deadlines)
		without[r.who] = limit.Never
		for _, i := range r.waiting {
			without[i] = limit.Never
		}
		_, went := s.run(without, r.who)
		if at := went[r.who]; at < r.at || at <= deadlines[r.who] {
			return len(late), fmt.Errorf("%d of lane %d came at %v and was refused, by its deadline %v and because it goes not before %v: it goes at %v",
				r.who, s.come[r.who].lane, s.come[r.who].at, deadlines[r.who], r.at, at)
		}
	}
	return len(late), nil
}

// Law 8: a ticket that is refused as too late would not have gone by its deadline, nor before the
// instant in its At. It holds if no ticket in line with it leaves, and no lease ends unsent or
// cheaper than its least use.
func TestLateIsNeverWrong(t *testing.T) {
	refused, seeds := 0, uint64(200)
	if long {
		seeds = 20_000
	}
	for seed := range seeds {
		for _, fill := range []int{0, 1, 4} {
			n, err := newSchedule(seed, fill).check()
			if err != nil {
				t.Fatalf("seed %d, fill %d: %v", seed, fill, err)
			}
			refused += n
		}
	}
	t.Logf("%d were refused", refused)
	if refused < 10*int(seeds) {
		t.Fatalf("of %d schedules only %d were refused", 3*seeds, refused)
	}
}

// checkAsked plays the schedule. Ask is a bound of the instant at which each ticket goes.
func (s *schedule) checkAsked() (foreseen int, err error) {
	s.come = append(s.come, arrival{at: limit.AfterSettle - 1, deadline: limit.Never})
	_, went := s.run(slices.Repeat([]mono.Time{limit.Never}, len(s.come)), len(s.come)-1)
	for i, asked := range s.asked {
		if went[i] < asked && asked < limit.AfterSettle {
			return foreseen, fmt.Errorf("%d of lane %d came at %v, and Ask said %v: it went at %v", i, s.come[i].lane, s.come[i].at, asked, went[i])
		}
		if asked > s.come[i].at {
			foreseen++
		}
	}
	return foreseen, nil
}

// In a line for several keys with limits of different kinds, too, no ticket goes before the instant
// that Ask foresees. Here all keys carry their parts of the line.
func TestAskOfKeysIsABound(t *testing.T) {
	foreseen := 0
	eachSeed(t, 70, func(seed uint64) error {
		for _, fill := range []int{0, 0, 1, 4} {
			n, err := newKeys(seed*4+uint64(fill), fill).checkAsked()
			if err != nil {
				return fmt.Errorf("fill %d: %w", fill, err)
			}
			foreseen += n
		}
		return nil
	})
	if foreseen < 5000 {
		t.Errorf("only %d waits were foreseen", foreseen)
	}
}

func FuzzLate(f *testing.F) {
	f.Add(uint64(1), uint8(0))
	f.Fuzz(func(t *testing.T, seed uint64, fill uint8) {
		if _, err := newSchedule(seed, int(fill%16)).check(); err != nil {
			t.Fatal(err)
		}
		if _, err := newKeys(seed, int(fill%16)).checkAsked(); err != nil {
			t.Fatal(err)
		}
	})
}

// A ticket with a head start before a long line learns at once that those before it alone are too
// many.
func TestLateBehindAFewOfMany(t *testing.T) {
	for _, waiting := range []int{30, 300} {
		l := scheduler.New(scheduler.Config{})
		lane := l.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{l.Limit(rolling(t, 1, time.Second), scheduler.Sharing{})})
		want(t, l.Enter(0, lane, ticket("first", 0)), scheduler.Granted)
		for i := range waiting {
			want(t, l.Enter(1, lane, ticket("", mono.Time(10*i+10))), scheduler.Waiting)
		}
		for n, state := range map[int]scheduler.State{5: scheduler.Waiting, 20: scheduler.Late} { // before it
			u := ticket("late", mono.Time(10*n+5))
			u.Deadline = 10 * second
			want(t, l.Enter(1, lane, u), state)
			if state == scheduler.Late && u.At < mono.Time(n)*second {
				t.Errorf("of %d %d are before it: it could go at %v", waiting, n, u.At)
			}
			l.Leave(1, u)
		}
	}
}
