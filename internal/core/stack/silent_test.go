package stack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/scheduler"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// asked is a Stack that a scheduler cannot skip.
type asked struct{ limit.Limiter }

// skips counts the sends of which a Stack got no Admit at once.
type skips struct {
	*stack.Stack
	admits int
}

func (s *skips) Admit(sent *limit.Sent) {
	s.admits++
	s.Stack.Admit(sent)
}

// side is a scheduler with stacks: those of a host and of two keys, which two lanes share.
type side struct {
	line   *scheduler.Scheduler
	stacks []*stack.Stack
	counts []*skips
	lanes  []*scheduler.Lane
	open   []scheduler.Pass
}

func newSide(configs func() []stack.Config, skip bool) *side {
	s := &side{line: scheduler.New(scheduler.Config{})}
	var limits []*scheduler.Limit
	for _, c := range configs() {
		g := must(stack.New(c))
		count := &skips{Stack: g}
		s.stacks, s.counts = append(s.stacks, g), append(s.counts, count)
		if skip {
			limits = append(limits, s.line.Limit(count, scheduler.Sharing{}))
		} else {
			limits = append(limits, s.line.Limit(asked{count}, scheduler.Sharing{}))
		}
	}
	for _, key := range limits[1:] {
		s.lanes = append(s.lanes, s.line.Lane(scheduler.LaneConfig{}, []*scheduler.Limit{key, limits[0]}))
	}
	return s
}

// silentConfigs are stacks without a limit, of all kinds, by a number.
func silentConfigs(kind byte) func() []stack.Config {
	return func() []stack.Config {
		all := make([]stack.Config, 3)
		for i := range all {
			c := &all[i]
			c.Pause, c.MaxPause = steady, 10*time.Second
			c.Slow, c.SlowAgain = kind&1 != 0, kind&2 != 0
			if kind&4 != 0 && i == 1 {
				c.Trial = 3 * time.Second
			}
			if kind&8 != 0 && i == 2 {
				c.Limiter = limit.MustRolling(20, time.Second)
			}
			if kind&16 != 0 && i != 2 {
				c.Limiter = limit.NewVarying()
			}
			c.Rand = rand.New(rand.NewPCG(1, uint64(i)))
		}
		return all
	}
}

// outcome is what two bytes make of an answer. Most are plain.
func outcome(a, b byte) (o limit.Outcome) {
	o.Result = limit.Result(b % 5)
	switch a % 16 {
	case 0, 1:
		o.Result, o.RetryAfter = limit.Limited, time.Duration(b)*100*ms
	case 2:
		o.Result = limit.Limited
	case 3:
		o.Result, o.Elsewhere = limit.Limited, true
	case 4, 5:
		o.Result, o.Known = limit.Accepted, 1
		o.Remaining[limit.Requests], o.Reset[limit.Requests] = int64(b%8), time.Duration(b)*50*ms
	case 6:
		o.Result, o.Known = limit.Accepted, 1
		o.Remaining[limit.Requests] = int64(b % 3)
	case 7:
		o.Result, o.RetryAfter, o.Sure = limit.Failed, time.Duration(b)*ms, b&1 == 0
	default:
		if o.Result == limit.Limited {
			o.Result = limit.Accepted
		}
	}
	return o
}

// skipped has the same history happen to stacks that are skipped while they are silent, and to stacks
// that are not. It returns the first difference, and how many calls of Admit were spared.
func skipped(program []byte) (spared int, err error) {
	if len(program) == 0 {
		return 0, nil
	}
	configs := silentConfigs(program[0])
	with, without := newSide(configs, true), newSide(configs, false)
	both := []*side{with, without}
	now := mono.Time(0)
	for i := 1; i+2 < len(program) && i < 3*400; i += 3 {
		op, a, b := program[i], program[i+1], program[i+2]
		which := int(a) % len(with.stacks)
		change := func(f func(g *stack.Stack)) {
			for _, s := range both {
				f(s.stacks[which])
			}
		}
		switch op % 16 {
		case 0, 1, 2:
			now = now.Add(time.Duration(a) * []time.Duration{1, ms, 20 * ms, 200 * ms}[b%4])
		case 3, 4, 5, 6, 7, 8:
			cost := limit.Cost{limit.Requests: int64(b%3) + 1}
			var at [2]mono.Time
			for k, s := range both {
				var p scheduler.Pass
				if p, at[k] = s.line.Try(now, s.lanes[int(a)%len(s.lanes)], &cost, nil); at[k] <= now {
					s.open = append(s.open, p)
				}
			}
			if at[0] != at[1] {
				return 0, fmt.Errorf("step %d, at %v: a send may go at %v if silent stacks are skipped, and at %v if not", i, now,
					at[0], at[1])
			}
		case 9, 10, 11, 12:
			if n := len(with.open); n > 0 {
				o, k := outcome(a, b), int(op>>4)*7%n
				for _, s := range both {
					own := o
					s.line.Settle(now, s.open[k], &own)
					s.open = append(s.open[:k:k], s.open[k+1:]...)
				}
			}
		case 13:
			change(func(g *stack.Stack) { g.Hold(now, now.Add(time.Duration(b)*20*ms)) })
		case 14:
			switch b % 4 {
			case 0:
				change(func(g *stack.Stack) { g.Lift(now) })
			case 2:
				change(func(g *stack.Stack) { vary(now, g) })
			case 1:
				change(func(g *stack.Stack) {
					if b&8 == 0 {
						g.Begin(now)
					} else {
						g.Surged(now)
					}
				})
			case 3:
				change(func(g *stack.Stack) { g.Rest(now, now.Add(time.Duration(b)*5*ms)) })
			}
		case 15:
			switch b % 4 {
			case 0:
				change((*stack.Stack).Close)
			case 1, 2:
				change((*stack.Stack).Open)
			case 3:
				o := outcome(4, b)
				change(func(g *stack.Stack) { g.Contain(now, limit.Cost{int64(b) + 1}, &o) })
			}
		}
		if err := with.differs(without, now, program[i]); err != nil {
			return 0, fmt.Errorf("step %d, at %v: %w", i, now, err)
		}
	}
	for k := range with.counts {
		spared += without.counts[k].admits - with.counts[k].admits
	}
	return spared, nil
}

// vary gives a limit that varies a part, or takes it away.
func vary(now mono.Time, g *stack.Stack) {
	v := limit.VaryingIn(g.Own())
	switch {
	case v == nil:
		return
	case len(limit.Parts(v)) > 0:
		v.Change(now)
	default:
		v.Change(now, limit.MustRolling(5, time.Second))
	}
	g.Follow(now)
}

// differs compares all that can be asked of two sides.
func (s *side) differs(other *side, now mono.Time, ask byte) error {
	one, some := limit.One, limit.Cost{limit.Requests: 3}
	for k, g := range s.stacks {
		h := other.stacks[k]
		if got, want := g.Ready(now, one), h.Ready(now, one); got != want {
			return fmt.Errorf("stack %d is ready at %v, want %v", k, got, want)
		}
		if got, want := g.Ready(now, some), h.Ready(now, some); got != want {
			return fmt.Errorf("stack %d is ready for three at %v, want %v", k, got, want)
		}
		if got, want := g.ReadyAfter(now, one, some), h.ReadyAfter(now, one, some); got != want {
			return fmt.Errorf("stack %d is ready after one more at %v, want %v", k, got, want)
		}
		if got, want := g.NotBefore(now, 2, some, one), h.NotBefore(now, 2, some, one); got != want {
			return fmt.Errorf("stack %d is ready behind two not before %v, want %v", k, got, want)
		}
		got, on := g.Paused(now)
		want, is := h.Paused(now)
		if got != want || on != is || g.Refusals() != h.Refusals() || g.Pauses() != h.Pauses() {
			return fmt.Errorf("stack %d pauses %+v (%d in a row, %d pauses), want %+v (%d, %d)", k, got,
				g.Refusals(), g.Pauses(), want, h.Refusals(), h.Pauses())
		}
		if ask%32 == 0 { // this ends that requests are skipped
			if got, want := inFlight(g), inFlight(h); got != want {
				return fmt.Errorf("stack %d has %d in flight, want %d", k, got, want)
			}
		}
	}
	return nil
}

func inFlight(g *stack.Stack) (n int) {
	for range g.InFlight() {
		n++
	}
	return n
}

// A stack that is skipped while it is silent decides as one that never is (laws Q1 to Q3).
func TestSkippedDecidesTheSame(t *testing.T) {
	spared := 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 33))
		program := make([]byte, 3*400+1)
		for i := range program {
			program[i] = byte(rng.IntN(256))
		}
		n, err := skipped(program)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		spared += n
	}
	if spared < 1000 {
		t.Errorf("%d calls of Admit were spared, want 1000 at least", spared)
	}
}

func FuzzSkipped(f *testing.F) {
	f.Add([]byte{0, 3, 0, 0, 3, 1, 0, 9, 4, 40, 3, 0, 0, 9, 0, 9})
	f.Add([]byte{1, 3, 0, 0, 3, 0, 0, 13, 1, 9, 9, 0, 9, 0, 200, 3, 3, 0, 0})
	f.Add([]byte{3, 3, 0, 0, 3, 0, 0, 14, 1, 1, 9, 9, 1, 3, 0, 0, 3, 0, 0})
	f.Add([]byte{16, 3, 0, 0, 3, 0, 0, 14, 0, 2, 3, 0, 2, 3, 0, 2, 9, 9, 1, 14, 0, 2, 3, 0, 0})
	f.Fuzz(func(t *testing.T, program []byte) {
		if _, err := skipped(program); err != nil {
			t.Error(err)
		}
	})
}

// While a stack is silent, any cost may go now, and a plain answer leaves it silent (law Q1).
func TestSilentIsReady(t *testing.T) {
	g := must(stack.New(stack.Config{}))
	on := g.Silent(func(func(*limit.Sent) bool) {})
	for n := range 100 {
		if !*on {
			t.Fatalf("after %d plain answers it is not silent", n)
		}
		now := at(time.Duration(n) * ms)
		s := &limit.Sent{At: now, Number: uint64(n + 1), Cost: limit.Cost{limit.Requests: limit.MaxCost}}
		if got := g.Ready(now, s.Cost); got != now {
			t.Fatalf("at %v it is ready at %v", now, got)
		}
		g.Admit(s)
		o := outcome(8, byte(n))
		g.Settle(now, s, &o)
	}
}

// A stack with a limit, a trial, or a pause is never skipped, and one after its pause is again.
func TestWhatIsNotSilent(t *testing.T) {
	silent := func(g *stack.Stack) bool { return *g.Silent(nil) }
	for name, c := range map[string]stack.Config{
		"Limiter": {Limiter: limit.MustRolling(5, time.Second)}, "InFlight": {InFlight: 1}, "Gap": {Gap: ms},
		"Ordered": {Ordered: true}, "LearnGap": {LearnGap: true}, "Adapt": {Adapt: &limit.AdaptiveConfig{}},
		"Trial": {Trial: time.Second},
	} {
		if silent(must(stack.New(c))) {
			t.Errorf("with %s it is silent", name)
		}
	}
	g := must(stack.New(stack.Config{Pause: steady}))
	send := func(number uint64, now mono.Time, r limit.Result) {
		s := &limit.Sent{At: now, Number: number, Cost: limit.One}
		g.Admit(s)
		g.Settle(now, s, &limit.Outcome{Result: r})
	}
	send(1, 0, limit.Limited)
	if silent(g) {
		t.Error("it is silent in a pause")
	}
	send(2, at(time.Minute), limit.Unsent)
	if silent(g) {
		t.Error("it is silent with a refusal to count from")
	}
	send(3, at(time.Minute), limit.Accepted)
	if !silent(g) {
		t.Error("it is not silent, although served after its pause")
	}
	g.Hold(at(10*time.Second), at(time.Hour))
	if g.Lift(at(11 * time.Second)); !silent(g) {
		t.Error("it is not silent, although its pause was lifted")
	}
	for name, change := range map[string]func(g *stack.Stack){
		"Close": (*stack.Stack).Close,
		"Begin": func(g *stack.Stack) { g.Begin(0) },
		"Hold":  func(g *stack.Stack) { g.Hold(0, at(time.Hour)) },
		"Rest":  func(g *stack.Stack) { g.Rest(0, at(time.Hour)) },
		"Contain": func(g *stack.Stack) {
			o := told(0, time.Minute)
			g.Contain(0, limit.Cost{60}, &o)
		},
	} {
		g := must(stack.New(stack.Config{Pause: steady}))
		if change(g); silent(g) {
			t.Errorf("after %s it is silent", name)
		}
	}
}

// A silent stack is not idle while a request is in flight that its driver skipped.
func TestSkippedIsNotIdle(t *testing.T) {
	g := must(stack.New(stack.Config{}))
	flying := []*limit.Sent{{At: at(0), Number: 1, Cost: limit.One}}
	g.Silent(slices.Values(flying))
	if _, ok := g.Idle(at(ms)); ok {
		t.Error("it is idle while a request is in flight")
	}
}
