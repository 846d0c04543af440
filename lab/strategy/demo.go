package strategy

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/fairshare"
	"github.com/paceline-go/paceline/limit/mono"
)

// The client of the demo that came before the gem, and the laws that its author tried on the way to
// it. All threads of a process share one sleep s, in seconds, without losing updates. A call is
//
//	sleep s + Jitter·s·U, then send
//	limited: the first thread to be limited retries for the process; its second limit in a row and each one more multiplies
//	s, the first does not (it sleeps the same again); the other threads only sleep again, until that thread is served
//	served: s −= decrease, but not below MinSleep/10
//
// The floor is not in the demo's text but in its code. Without one a sleep that came to 0 would
// never rise again.
var demo = []Strategy{
	// s −= remaining·s/(limit·F), F = 1/(1 − e^(−t/3600)), t the seconds since s was last multiplied: 120 after 30 s,
	// 1.58 after an hour. Before the first time, t counts from half an hour before the start, as in the demo's code.
	demos("demo", "doubles on the second limit in a row; served: less by remaining·sleep/(limit·F), F falling with the "+
		"time since", timeLaw),
	// s −= 1
	demos("demo-second", "the demo with a decrease of 1 s", secondLaw),
	// s −= 1/2
	demos("demo-half-second", "the demo with a decrease of 1/2 s", halfSecondLaw),
	// s −= 1/limit
	demos("demo-limit", "the demo with a decrease of 1/limit s", limitLaw),
	// s −= remaining/limit
	demos("demo-remaining", "the demo with a decrease of remaining/limit s", remainingLaw),
	// s −= remaining·s/limit
	demos("demo-remaining-sleep", "the demo with a decrease of remaining·sleep/limit", remainingSleepLaw),
	// s −= remaining·s/(limit·20)
	demos("demo-remaining-sleep-20", "the demo with a decrease of remaining·sleep/(limit·20)", remainingSleep20Law),
	// s −= remaining·s/(limit·count), count being 1 + how often s was multiplied
	demos("demo-remaining-sleep-count",
		"the demo with a decrease of remaining·sleep/(limit·count), by how often it doubled", remainingSleepCountLaw),
	// s −= s·gain/limit, gain being remaining − (remaining in the answer before − 1), and 0 at least:
	// the idea that the demo's author wrote down and did not try. In a system at rest as much is left
	// after a request as after the one before; so that nobody stays at a high sleep, one less will do.
	// A falling count leaves s as it is. Each thread compares its own answers.
	demos("demo-change", "the demo with a decrease of sleep·gain/limit, by how much more is left than after the "+
		"thread's answer before", changeLaw),
}

// DemoAtFirst and DemoEachThread are the demo without one of the two rules by which it doubles:
// they are what its author tells of as worse. Nobody compares them with others, so All does not
// have them.
var (
	DemoAtFirst    = demos("demo-at-first", "the demo, but it doubles on the first limit, too", atFirstLaw)
	DemoEachThread = demos("demo-each-thread", "the demo, but each thread that is limited doubles for itself",
		eachThreadLaw)
)

type demoLaw uint8

const (
	timeLaw demoLaw = iota
	secondLaw
	halfSecondLaw
	limitLaw
	remainingLaw
	remainingSleepLaw
	remainingSleep20Law
	remainingSleepCountLaw
	changeLaw
	atFirstLaw
	eachThreadLaw
)

func demos(name, text string, l demoLaw) Strategy {
	return Strategy{Name: name, Text: text, Baseline: true,
		New: func(p Params) (Process, error) {
			c, err := sleepsOf(p, name, 2)
			if err != nil {
				return nil, err
			}
			c.start = cmp.Or(c.start, c.min)
			return &demoProcess{sleeps: c, law: l, s: c.start, count: 1}, nil
		}}
}

type demoProcess struct {
	sleeps
	law        demoLaw
	s          float64
	count      float64 // 1 + multiplications
	begun      bool
	multiplied mono.Time
	retrying   *demoThread // the first to be limited, until it is served
}

// Thread implements Process.
func (p *demoProcess) Thread(rng *rand.Rand) Thread { return &demoThread{p: p, rng: rng} }

type demoThread struct {
	p      *demoProcess
	rng    *rand.Rand
	seen   bool    // an answer
	before float64 // what it said remained
	limits int     // in a row, of those that count for the process
}

// Send implements Thread.
func (t *demoThread) Send(now mono.Time) mono.Time {
	p := t.p
	if !p.begun {
		p.begun, p.multiplied = true, now.Add(-30*time.Minute)
	}
	return now.Add(p.jittered(p.s, t.rng))
}

// Answer implements Thread.
func (t *demoThread) Answer(now mono.Time, a Answer) {
	p := t.p
	gain := 0.0
	if t.seen {
		gain = max(remaining(a)-t.before+1, 0)
	}
	t.seen, t.before = true, remaining(a)
	if !a.Limited {
		p.s = max(p.s-p.decrease(now, a, gain), p.min/10)
		t.limits = 0
		if p.retrying == t {
			p.retrying = nil
		}
		return
	}
	if p.law != eachThreadLaw && p.retrying != nil && p.retrying != t {
		return
	}
	if t.limits > 0 || p.law == atFirstLaw {
		p.s = min(p.s*p.multiplier, longest)
		p.count++
		p.multiplied = now
	}
	t.limits++
	p.retrying = t
}

func (p *demoProcess) decrease(now mono.Time, a Answer, gain float64) float64 {
	switch p.law {
	case secondLaw:
		return 1
	case halfSecondLaw:
		return 0.5
	case limitLaw:
		return 1 / p.divisor
	case remainingLaw:
		return remaining(a) / p.divisor
	case changeLaw:
		return gain * p.s / p.divisor
	}
	d := remaining(a) * p.s / p.divisor
	switch p.law {
	case remainingSleep20Law:
		d /= 20
	case remainingSleepCountLaw:
		d /= p.count
	case timeLaw, atFirstLaw, eachThreadLaw:
		// 1/F, which is 0 where F is infinite.
		d *= -math.Expm1(-max(now.Sub(p.multiplied).Seconds(), 0) / 3600)
	}
	return d
}

// Sleep implements Thread.
func (t *demoThread) Sleep() time.Duration { return fairshare.Seconds(t.p.s) }
