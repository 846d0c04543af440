package paceline_test

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
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/testkit/golden"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// hall is goroutines that wait in the lanes of a Group, one action at a time, with all their
// results and all visible state. Between two actions all goroutines come to rest, and no two
// relevant instants coincide. So the results do not depend on which goroutine runs first.
type hall struct {
	ctx    context.Context
	rng    *rand.Rand
	group  *paceline.Group
	limits []*paceline.Limit
	share  *paceline.Class
	view   *paceline.View
	lanes  []*paceline.Lane
	log    bytes.Buffer
	began  time.Time
	visits []*visit
	open   []paceline.Permit
	said   strings.Builder
}

// visit is one goroutine's wait. Its fields but the first two are its own until it is done.
type visit struct {
	number int
	done   chan struct{}
	permit paceline.Permit
	stats  paceline.WaitStats
	err    error
}

func newHall(ctx context.Context, seed uint64, fair bool) *hall {
	h := &hall{ctx: ctx, rng: rand.New(rand.NewPCG(seed, 12)), began: time.Now()}
	h.group = must(paceline.NewGroup(paceline.GroupConfig{MaxWaiting: 12}))
	log := slog.New(slog.NewTextHandler(&h.log, nil))
	away := h.began.Add(7 * time.Second)
	for i, c := range []paceline.LimitConfig{
		{Limiter: limit.Named("a minute", limit.MustRolling(30, 20*time.Second)), Whose: observe.Whose{Host: "h"}, Logger: log},
		{Limiter: must(limit.NewRolling(limit.RollingConfig{Limit: 400, Window: 5 * time.Second, Unit: limit.Tokens})), Whose: observe.Whose{Host: "h", Key: "k"}},
		{Limiter: must(limit.NewConcurrency(limit.ConcurrencyConfig{Limit: 4})), Whose: observe.Whose{Host: "h", Model: "m"}},
		{Limiter: limit.NewAll(limit.MustRolling(3, time.Second), limit.Named("a while", limit.MustRolling(9, 9*time.Second)))},
	} {
		c.Fair, c.Unit = fair && i != 2, limit.Tokens
		if i == 3 {
			c.Paused = func(now mono.Time) (observe.PauseState, bool) {
				return observe.PauseState{Until: away, Why: "for a test"}, now < mono.Of(h.began, away)
			}
		}
		h.limits = append(h.limits, h.group.Limit(c))
	}
	h.share = h.group.Class(paceline.ClassConfig{Weight: 2, MaxWaiting: 6})
	h.view = h.group.View()
	for i, c := range []paceline.LaneConfig{
		{Client: "ann"}, {Client: "bob", Share: h.share, Logger: log}, {Client: "bob", Share: h.share, Told: true}, {Client: "cat", Weight: 3, View: h.view, HeadStart: 2 * time.Second, MaxWaiting: 3},
	} {
		ways := [][]*paceline.Limit{{h.limits[3], h.limits[0]}}
		if i%2 == 1 {
			ways = append(ways, []*paceline.Limit{h.limits[2], h.limits[1]})
		}
		h.lanes = append(h.lanes, h.group.Lane(c, ways...))
	}
	return h
}

func (h *hall) say(format string, args ...any) { fmt.Fprintf(&h.said, format+"\n", args...) }

// at is an instant as the time since it began; "never" if it is zero.
func (h *hall) at(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Sub(h.began).String()
}

func (h *hall) cost() limit.Cost {
	c := limit.Cost{limit.Requests: int64(1 + h.rng.IntN(2)), limit.Tokens: int64(h.rng.IntN(150))}
	if h.rng.IntN(40) == 0 {
		c[limit.Tokens], c[limit.Requests] = 500, 40
	}
	return c
}

// come has somebody wait, in one of the ways in which one can.
func (h *hall) come() {
	v := &visit{number: len(h.visits) + 1, done: make(chan struct{})}
	h.visits = append(h.visits, v)
	a, cost, how := h.lanes[h.rng.IntN(len(h.lanes))], h.cost(), h.rng.IntN(6)
	odd := time.Duration(h.rng.IntN(20))*time.Second + time.Duration(v.number)*337*time.Nanosecond // no other instant is so
	at, ahead, err := a.Ask(cost)
	expected, others := a.Expect(cost)
	h.say("%d asks: %s %d %v, expected %s %d", v.number, h.at(at), ahead, err != nil, h.at(expected), others)
	ctx, cancel := context.WithCancelCause(h.ctx)
	go func() {
		defer close(v.done)
		defer cancel(nil)
		switch how {
		case 0:
			v.permit, v.err = a.Wait(ctx, cost)
		case 1, 2:
			v.permit, v.stats, v.err = a.WaitWithStats(ctx, cost)
		case 3:
			v.permit, v.stats, v.err = a.WaitTurn(ctx, cost, paceline.Turn{MaxWait: odd})
		case 4:
			v.permit, v.stats, v.err = a.WaitTurn(ctx, cost, paceline.Turn{Came: time.Now().Add(-odd)})
		case 5:
			within, end := context.WithTimeout(ctx, odd)
			defer end()
			v.permit, v.stats, v.err = a.WaitWithStats(within, cost)
		}
	}()
	if how == 1 {
		time.AfterFunc(odd, func() { cancel(errors.New("a reason")) })
	}
}

// ended takes note of whoever waits no more.
func (h *hall) ended() {
	synctest.Wait()
	h.visits = slices.DeleteFunc(h.visits, func(v *visit) bool {
		select {
		case <-v.done:
		default:
			return false
		}
		h.say("%d waited %+v", v.number, v.stats)
		var e *paceline.WaitError
		switch {
		case v.err == nil:
			h.say("and goes by %d, fresh %t", v.permit.Way(), v.permit.Fresh())
			h.open = append(h.open, v.permit)
		case errors.As(v.err, &e):
			h.say("%v %v %v, %d ahead, waited %v, ready %s, deadline %s, %s %v, %d unsettled for %v", e.Reason, e.Cause, e.Cost, e.Ahead, e.Waited, h.at(e.Ready), h.at(e.Deadline), binds(e.Rule),
				slices.Index(h.limits, e.Limit), e.Unsettled, e.Oldest)
		}
		return true
	})
}

func (h *hall) settle() {
	if len(h.open) == 0 {
		return
	}
	i := h.rng.IntN(len(h.open))
	p := h.open[i]
	h.open = slices.Delete(h.open, i, i+1)
	o := limit.Outcome{Result: limit.Result(h.rng.IntN(int(limit.Unsent) + 1))}
	switch {
	case o.Result == limit.Limited:
		o.RetryAfter = time.Duration(h.rng.IntN(3)) * time.Second
	case h.rng.IntN(2) == 0:
		o.Metered, o.Actual = true, limit.Cost{limit.Requests: 1, limit.Tokens: int64(h.rng.IntN(30))}
	}
	if h.rng.IntN(3) == 0 {
		p.SettleEach(o, func(m *paceline.Limit) limit.Outcome {
			h.say("limit %d settles", slices.Index(h.limits, m))
			return o
		})
		return
	}
	p.Settle(o)
}

func (h *hall) change() {
	switch h.rng.IntN(4) {
	case 0:
		h.group.Update(func(now mono.Time) {
			h.limits[2].Limiter().(*limit.Concurrency).SetLimit(now, int64(1+h.rng.IntN(5)))
		}, h.limits[2])
	case 1:
		h.share.Set(paceline.ClassConfig{Weight: float64(h.rng.IntN(4)), HeadStart: time.Duration(h.rng.IntN(3)) * time.Second, MaxWaiting: 6})
	case 2:
		h.group.Note(observe.Event{Kind: observe.EventWrong, Whose: observe.Whose{Host: "h"}, Text: "noted"})
	default:
		if i := h.rng.IntN(2); h.lanes[i].Stats().Waiting == 0 {
			h.lanes[i].Retire()
			h.lanes[i] = h.group.Lane(paceline.LaneConfig{Client: []string{"ann", "dan"}[h.rng.IntN(2)]}, []*paceline.Limit{h.limits[3], h.limits[0]}, []*paceline.Limit{h.limits[2]})
		}
	}
}

// look has everything say what it knows.
func (h *hall) look() {
	if h.ended(); h.rng.IntN(5) > 0 {
		return
	}
	for _, source := range []observe.Source{h.group, h.view} {
		h.say("%s", must(json.Marshal(source.Snapshot())))
	}
	for _, a := range h.lanes {
		h.say("%+v", a.Stats())
	}
	h.say("%d of the share wait", h.share.Waiting())
	lines := strings.Split(h.log.String(), "\n") // whoever lets go of the lock writes them
	slices.Sort(lines)
	h.say("%s", strings.Join(lines, "\n"))
	h.log.Reset()
}

// A Group's answers are as before, and so is all visible state: waits and their limits, errors,
// foreseen instants, snapshots, events and the log.
func TestWhatAGroupSays(t *testing.T) {
	race.Without(t) // stress_test.go has these goroutines
	var b strings.Builder
	for _, fair := range []bool{false, true} {
		for seed := range uint64(2) {
			fmt.Fprintf(&b, "\nfair %t, %d\n", fair, seed)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				h := newHall(ctx, seed, fair)
				for step := 1; step <= 300; step++ {
					switch k := h.rng.IntN(16); {
					case k < 5:
						h.come()
					case k < 6:
						p, retry, ok := h.lanes[h.rng.IntN(len(h.lanes))].TryWait(h.cost())
						if h.say("tried: %v %t", retry, ok); ok {
							h.open = append(h.open, p)
						}
					case k < 11:
						h.settle()
					case k < 12:
						h.change()
					default:
						// Each time by another nanosecond more: so no instant is as far from one before as a limit's window is long.
						time.Sleep(time.Duration(h.rng.IntN(1<<uint(h.rng.IntN(13))))*time.Millisecond + time.Duration(step))
					}
					h.look()
					if step%30 == 0 {
						s := h.group.Snapshot()
						fmt.Fprintf(&b, "  at %v: %d sent, %d in flight, %d late, %d full, %d never, %d gave up, %d wait; all it says: %s\n", h.at(s.At), s.Sent, s.InFlight, s.Late, s.Full, s.Never,
							s.Cancelled, s.Waiting, golden.Sum(h.said.String()))
						h.said.Reset()
					}
				}
				cancel()
				h.ended()
				for len(h.open) > 0 {
					h.settle()
				}
				if s := h.group.Snapshot(); s.Waiting != 0 || s.InFlight != 0 {
					t.Errorf("at the end %d wait, and %d are in flight", s.Waiting, s.InFlight)
				}
				time.Sleep(time.Hour) // timers end
			})
		}
	}
	golden.CompareFloats(t, "group.golden", b.String())
}

// binds writes the rule that something waits for.
func binds(r limit.Rule) string { return fmt.Sprint(r.Name, ", ", r.Most(), " ", r.Unit) }
