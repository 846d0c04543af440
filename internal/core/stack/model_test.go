package stack_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

// story is all that ever happened, from which every question is answered anew: the law of pauses,
// without state.
type story struct {
	most  time.Duration
	slow  int // 1: after each pause; 2: after the second refusal in a row; 0: never
	deeds []deed
}

type deed struct {
	what  string // "send", "end", "hold", "lift", "begin"
	at    mono.Time
	send  int // of an end: the index of its send
	o     limit.Outcome
	until mono.Time // of a hold
}

// chapter is a pause in the story.
type chapter struct {
	end     mono.Time
	began   mono.Time
	probes  []int // sends
	checked mono.Time
	failed  int
}

// told returns when the next request may go, given all that happened, and how many pauses began.
func (s *story) told(now mono.Time) (ready mono.Time, pauses int) {
	var on *chapter             // the last pause, on or over
	fence, row := -1, 0         // the last refusal that began or went on with a pause; refusals in a row
	slowed := -1                // since when load begins slowly
	out := func(upTo int) int { // the probe that is out
		if on != nil {
			for _, p := range on.probes {
				if !slices.ContainsFunc(s.deeds[:upTo], func(d deed) bool { return d.what == "end" && d.send == p }) {
					return p
				}
			}
		}
		return -1
	}
	mayProbe := func(upTo int, t mono.Time) bool {
		return on != nil && t < on.end && t >= on.checked && out(upTo) < 0
	}
	for i, d := range s.deeds {
		switch d.what {
		case "hold":
			if on == nil || on.end <= d.at {
				if d.until <= d.at {
					break
				}
				on = &chapter{began: d.at, end: d.at, checked: d.at.Add(s.most)}
			}
			on.end = max(on.end, d.until)
		case "lift":
			on, fence, row = nil, i, 0
		case "begin":
			slowed = i
		case "send":
			if mayProbe(i, d.at) {
				on.probes = append(on.probes, i)
			}
		case "end":
			isProbe := on != nil && slices.Contains(on.probes, d.send)
			news := d.send > fence
			refusal := (d.o.Result == limit.Limited || d.o.RetryAfter > 0) && !d.o.Elsewhere
			answered := d.o.Result == limit.Accepted || d.o.Result == limit.Failed
			switch {
			case refusal:
				if isProbe && d.at < on.end {
					on.failed++
					on.checked = d.at.Add(s.most * time.Duration(pow2(on.failed)))
				}
				length := d.o.RetryAfter
				if length <= 0 && !news {
					break
				}
				guess := func(n int) time.Duration { return min(time.Second*time.Duration(pow2(min(n-1, 5))), 30*time.Second) }
				if news && !(isProbe && length > 0) {
					row++
				}
				if length <= 0 {
					length = guess(row)
				} else if news && row > 20 {
					length = max(length, guess(row-20))
				}
				if on == nil || on.end <= d.at {
					on = &chapter{began: d.at, end: mono.Min, checked: d.at.Add(s.most)}
					if news {
						pauses++
					}
				}
				on.end = max(on.end, d.at.Add(length))
				if news {
					fence = i
				}
				if s.slow == 1 || s.slow == 2 && row > 1 {
					slowed = i
				}
			case isProbe && (d.o.Elsewhere || d.o.Result == limit.Unknown):
				on.checked = d.at.Add(s.most * time.Duration(pow2(on.failed)))
			case answered && !d.o.Elsewhere:
				if news {
					row = 0
				}
				if isProbe {
					on.end = min(on.end, d.at)
				}
			}
		}
	}
	ready = now
	if on != nil && now < on.end {
		if out(len(s.deeds)) >= 0 {
			ready = max(ready, on.end)
		} else {
			ready = max(ready, min(on.end, on.checked))
		}
	}
	if s.full(slowed) {
		ready = limit.AfterSettle
	}
	return ready, pauses
}

// full reports whether the requests in flight that were sent since are as many as those of them
// that were answered, and one.
func (s *story) full(since int) bool {
	if since < 0 {
		return false
	}
	open, room := 0, 1
	for i, d := range s.deeds {
		switch {
		case i > since && d.what == "send":
			open++
		case d.what == "end" && d.send > since:
			open--
			if (d.o.Result == limit.Accepted || d.o.Result == limit.Failed) && d.o.RetryAfter <= 0 {
				room++
			}
		}
	}
	return open >= room
}

func pow2(n int) int { return 1 << n }

// play has a Stack and the story go through a program, three bytes a step, and returns the first
// disagreement.
func play(program []byte) error {
	c := stack.Config{Pause: steady, MaxPause: 10 * time.Second}
	slow := 0
	if len(program) > 0 {
		slow = int(program[0] % 3)
	}
	c.Slow, c.SlowAgain = slow == 1, slow == 2
	g := must(stack.New(c))
	s := &story{most: c.MaxPause, slow: slow}
	type open struct {
		lease *limit.Sent
		send  int
	}
	var opened []open
	now := mono.Time(0)
	for i := 0; i+2 < len(program) && i < 3*300; i += 3 {
		op, a, b := program[i], program[i+1], program[i+2]
		ready := g.Ready(now, limit.One)
		switch op % 8 {
		case 0:
			now = now.Add(time.Duration(a) * []time.Duration{1, ms, 100 * ms, time.Second}[b%4])
		case 1, 2, 3:
			if op%8 == 2 && ready < limit.AfterSettle {
				now = ready
			} else if ready > now && op%8 != 3 { // 3: a driver that does not ask
				break
			}
			if ready > now && b > 30 {
				break
			}
			opened = append(opened, open{limittest.Admit(g, now, limit.One), len(s.deeds)})
			s.deeds = append(s.deeds, deed{what: "send", at: now})
		case 4, 5, 6:
			if len(opened) == 0 {
				break
			}
			k := int(a) % len(opened)
			o := limit.Outcome{Result: limit.Result(b % 5)}
			if b>>3&1 == 1 {
				o.Elsewhere = o.Result == limit.Limited
			} else if b>>4&1 == 1 && (o.Result == limit.Limited || o.Result == limit.Failed) {
				o.RetryAfter = time.Duration(b) * []time.Duration{ms, 100 * ms, time.Second, time.Minute}[op>>3%4]
			}
			g.Settle(now, opened[k].lease, &o)
			s.deeds = append(s.deeds, deed{what: "end", at: now, send: opened[k].send, o: o})
			opened = slices.Delete(opened, k, k+1)
		case 7:
			switch {
			case a < 20:
				g.Lift(now)
				s.deeds = append(s.deeds, deed{what: "lift", at: now})
			case a < 60:
				t := now.Add(time.Duration(b) * 100 * ms)
				g.Hold(now, t)
				s.deeds = append(s.deeds, deed{what: "hold", at: now, until: t})
			case a < 80:
				g.Begin(now)
				s.deeds = append(s.deeds, deed{what: "begin", at: now})
			}
		}
		want, pauses := s.told(now)
		if got := g.Ready(now, limit.One); got != want {
			return fmt.Errorf("step %d at %v: ready at %v, by the story at %v", i/3, now, got, want)
		}
		if got := g.Pauses(); got != pauses {
			return fmt.Errorf("step %d at %v: %d pauses, by the story %d", i/3, now, got, pauses)
		}
		if p, ok := g.Paused(now); ok && (p.Until <= now || p.Next > p.Until || p.Next < now) {
			return fmt.Errorf("step %d at %v: %+v", i/3, now, p)
		}
	}
	return nil
}

func TestModel(t *testing.T) {
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		program := make([]byte, 3*(20+rng.IntN(100)))
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		if err := play(program); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func FuzzModel(f *testing.F) {
	f.Add([]byte{1, 0, 0, 4, 0, 18, 2, 0, 0, 4, 0, 2, 2, 0, 0, 4, 0, 1})
	f.Fuzz(func(t *testing.T, program []byte) {
		if err := play(program); err != nil {
			t.Fatal(err)
		}
	})
}
