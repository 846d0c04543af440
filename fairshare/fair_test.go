package fairshare_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/internal/core/ability"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/limittest"
	"github.com/paceline-go/paceline/limit/mono"
)

func fair(t testing.TB, c fairshare.FairConfig) *fairshare.Fair {
	t.Helper()
	if c.Rng == nil {
		c.Rng = rand.New(rand.NewPCG(1, 1))
	}
	f, err := fairshare.NewFair(c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A Fair that has sent nothing may send at any instant: a run may begin before the zero of its
// clock.
func TestFairBeginsAtAnyInstant(t *testing.T) {
	for name, c := range fairs {
		for _, now := range []mono.Time{mono.Time(-time.Hour), 0, mono.Time(1000 * time.Hour)} {
			if at := fair(t, c).Ready(now, limit.One); at != now {
				t.Errorf("%s: asked at %v, it may go at %v", name, time.Duration(now), time.Duration(at))
			}
		}
	}
}

// fairs are the kinds that laws and hostile servers try.
var fairs = map[string]fairshare.FairConfig{
	"unknown":        {Limit: 3600, Window: time.Hour},
	"bucket":         {Kind: fairshare.TokenBucket, Limit: 3600, Window: time.Hour},
	"small bucket":   {Kind: fairshare.TokenBucket, Limit: 3600, Window: time.Hour, Capacity: 3},
	"heavy":          {Kind: fairshare.TokenBucket, Limit: 3600, Window: time.Hour, Weight: 40},
	"rolling":        {Kind: fairshare.RollingWindow, Limit: 3600, Window: time.Hour},
	"entitled":       {Limit: 3600, Window: time.Hour, Sharers: 10},
	"window":         {Kind: fairshare.FixedWindow, Limit: 3600, Window: time.Hour},
	"minute":         {Kind: fairshare.FixedWindow, Limit: 75, Window: time.Minute},
	"tokens, bucket": {Kind: fairshare.TokenBucket, Limit: 3600, Window: time.Hour, Unit: limit.Tokens},
}

func TestFairLaws(t *testing.T) {
	for name, c := range fairs {
		if c.Unit != limit.Requests {
			continue // requests that an estimate delayed stay lost: law 7 does not hold
		}
		t.Run(name, func(t *testing.T) { limittest.Laws(t, fairSpec(c)) })
	}
}

func fairSpec(c fairshare.FairConfig) limittest.Spec {
	return limittest.Spec{
		New: func() limit.Limiter {
			c.Rng = rand.New(rand.NewPCG(1, 1))
			f, err := fairshare.NewFair(c)
			if err != nil {
				panic(err)
			}
			return f
		},
		Scale: 20 * time.Second, ClosedLoop: true, Burst: 400,
	}
}

func FuzzFairLaws(f *testing.F) { limittest.Fuzz(f, fairSpec(fairs["unknown"])) }

// A server answers at random. Under all answers no wait is longer than MaxWait. After a refusal
// nothing goes sooner than a sixteenth of a token's time later. No more is refused than was served
// or can have come.
func FuzzFairHostileServer(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x01\x00\x00\x02\x00\x00"))
	f.Add([]byte("\x01\x80\xff\x02\x00\x00\x01\x80\xff\x02\x00\x00\x01\x80\xff\x02\x00\x00\x01\x90\xff\x11\x91\xff"))
	for seed := range uint64(30) {
		if testing.Short() && seed > 2 {
			break
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		program := make([]byte, 1500)
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, program []byte) {
		for _, name := range []string{"unknown", "bucket", "window", "rolling", "entitled", "tokens, bucket"} {
			c := fairs[name]
			c.MaxWait = 2 * time.Hour
			h := hostile{t: t, name: name, unit: c.Unit, longest: c.MaxWait, l: fair(t, c)}
			for i := 0; i+2 < len(program); i += 3 {
				h.step(i/3, program[i], program[i+1], program[i+2])
			}
		}
	})
}

// hostile is a server whose answers come from a program.
type hostile struct {
	t                      *testing.T
	name                   string
	unit                   limit.Unit
	longest                time.Duration
	l                      limit.Limiter
	now, sentAt            mono.Time
	open                   []hostileRequest
	sends, served, refused int
	told                   func() bool // a limit was stated, which may allow any rate; nil: it was not
}

type hostileRequest struct {
	lease  *limit.Sent
	number int
}

func (h *hostile) cost() limit.Cost {
	c := limit.One
	c[limit.Tokens] = 2 + int64(h.sends%3)
	return c
}

func (h *hostile) step(i int, op, a, b byte) {
	at := h.l.Ready(h.now, h.cost())
	if at >= limit.AfterSettle || at.Sub(max(h.now, h.sentAt)) > h.longest {
		h.t.Fatalf("%s: step %d at %v: waits until %v", h.name, i, h.now, at)
	}
	if len(h.open) == 0 || op&1 == 1 && len(h.open) < 8 {
		h.now, h.sentAt = at, at
		h.sends++
		h.open = append(h.open, hostileRequest{limittest.Admit(h.l, h.now, h.cost()), h.sends})
		return
	}
	h.now = h.now.Add(time.Duration(a) * 5 * time.Millisecond)
	o := limit.Outcome{Result: limit.Result(op >> 1 % 5), Known: op >> 4 & 1 << h.unit}
	o.Remaining[h.unit] = int64(int8(b)) << (a % 64)
	if op>>5&1 == 1 {
		o.Remaining[h.unit] = int64(b) * 14
	}
	if op>>6&1 == 1 {
		o.Reset[h.unit] = time.Duration(int8(a)) << (b % 50)
	}
	if a&1 == 1 {
		o.RetryAfter = time.Duration(b) << (a % 48)
	}
	switch o.Result {
	case limit.Accepted:
		h.served++
	case limit.Limited:
		h.refused++
	}
	k := int(b) % len(h.open)
	settled := h.open[k]
	h.open = append(h.open[:k], h.open[k+1:]...)
	h.l.Settle(h.now, settled.lease, &o)
	if h.told != nil && h.told() {
		return
	}
	// A refusal that a later send has outlived says nothing new.
	if o.Result == limit.Limited && len(h.open) == 0 && settled.number == h.sends {
		if next := h.l.Ready(h.now, h.cost()); next.Sub(h.sentAt) < time.Second/16 {
			h.t.Fatalf("%s: step %d: refused, and sends %v after", h.name, i, next.Sub(h.sentAt))
		}
	}
	if most := h.served + 16*int(h.now.Sub(0)/time.Second) + 24; h.refused > most {
		h.t.Fatalf("%s: step %d at %v: %d refused, %d served", h.name, i, h.now, h.refused, h.served)
	}
}

func TestFairAllocates(t *testing.T) {
	for name, c := range fairs {
		l := fair(t, c)
		now, k := mono.Time(0), 0
		cost := limit.Cost{limit.Requests: 1, limit.Tokens: 3}
		sent := limit.Sent{Cost: cost}
		if n := testing.AllocsPerRun(1000, func() {
			now = l.Ready(now, cost)
			limittest.Again(l, now, &sent)
			now = now.Add(time.Second)
			k++
			o := limit.Outcome{Result: limit.Accepted, Known: 1 << c.Unit, Remaining: limit.Cost{limit.Requests: int64(20 + k%9), limit.Tokens: 30}}
			o.Reset[c.Unit] = time.Minute
			if k%50 == 0 {
				o.Result = limit.Limited
			}
			l.Settle(now, &sent, &o)
		}); n != 0 {
			t.Errorf("%s: %v allocations per request", name, n)
		}
	}
}

func TestFairConfig(t *testing.T) {
	good := fairshare.FairConfig{Limit: 10, Window: time.Second, Rng: rand.New(rand.NewPCG(1, 1))}
	for want, change := range map[string]func(*fairshare.FairConfig){
		"Kind 9 is none":                func(c *fairshare.FairConfig) { c.Kind = 9 },
		"Limit -1 is not":               func(c *fairshare.FairConfig) { c.Limit = -1 },
		"Window -1s is negative":        func(c *fairshare.FairConfig) { c.Window = -time.Second },
		"Limit 0 is not from 1":         func(c *fairshare.FairConfig) { c.Limit = 0 },
		"Window is 0":                   func(c *fairshare.FairConfig) { c.Window = 0 },
		"Capacity -3 is not":            func(c *fairshare.FairConfig) { c.Capacity = -3 },
		"Unit 99 is none":               func(c *fairshare.FairConfig) { c.Unit = 99 },
		"MeanCost NaN":                  func(c *fairshare.FairConfig) { c.MeanCost = math.NaN() },
		"Weight -1":                     func(c *fairshare.FairConfig) { c.Weight = -1 },
		"Weight NaN":                    func(c *fairshare.FairConfig) { c.Weight = math.NaN() },
		"Sharers -1 is not from 0":      func(c *fairshare.FairConfig) { c.Sharers = -1 },
		"MaxWait -1s is negative":       func(c *fairshare.FairConfig) { c.MaxWait = -time.Second },
		"Start -1s is negative":         func(c *fairshare.FairConfig) { c.Start = -time.Second },
		"Rng is nil":                    func(c *fairshare.FairConfig) { c.Rng = nil },
		"MeanCost 1e+16 is not above 0": func(c *fairshare.FairConfig) { c.MeanCost = 1e16 },
	} {
		c := good
		change(&c)
		if _, err := fairshare.NewFair(c); err == nil || !strings.Contains(err.Error(), "fairshare: Fair: "+want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	c := good
	c.Unit = limit.Unit(len(limit.Cost{}))
	if _, err := fairshare.NewFair(c); err == nil {
		t.Error("a unit beyond the last is none")
	}
	most := fairshare.FairConfig{Limit: limit.MaxCost, Capacity: limit.MaxCost, Window: math.MaxInt64, MeanCost: limit.MaxCost, Weight: 1e6, Sharers: 1e9,
		MaxWait: math.MaxInt64, Start: math.MaxInt64, Rng: good.Rng}
	for _, c := range []fairshare.FairConfig{good, most} {
		if f, err := fairshare.NewFair(c); err != nil || !ability.Learns(f) {
			t.Errorf("%+v: %v, and has to hear of refusals", c, err)
		}
	}
}
