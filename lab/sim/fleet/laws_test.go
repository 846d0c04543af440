package fleet_test

import (
	"math/rand/v2"
	"time"

	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/ratetest/latency"
)

var around30ms = latency.Uniform(20*time.Millisecond, 40*time.Millisecond)

// proportional multiplies its sleep by 1.2 at each refusal, and lessens it by a share of Burst at each success.
var proportional = strategy.Strategy{Name: "test-proportional", New: func(p strategy.Params) (strategy.Process, error) {
	return &sharedSleep{params: p, sleep: p.Start}, nil
}}

type sharedSleep struct {
	params strategy.Params
	sleep  time.Duration
}

type sharedSleepThread struct {
	*sharedSleep
	rng *rand.Rand
}

func (s *sharedSleep) Thread(rng *rand.Rand) strategy.Thread { return sharedSleepThread{s, rng} }

func (t sharedSleepThread) Send(now mono.Time) mono.Time {
	return now.Add(t.sleep + time.Duration(float64(t.sleep)*0.1*t.rng.Float64()))
}

func (t sharedSleepThread) Answer(_ mono.Time, a strategy.Answer) {
	if a.Limited {
		t.sleep = time.Duration(float64(t.sleep+time.Duration(1e9/t.params.Rate)) * 1.2)
	} else {
		t.sleep -= time.Duration(float64(t.sleep) * (1 + a.Remaining) / t.params.Burst)
	}
	t.sharedSleep.sleep = max(t.sleep, 0)
}

func (t sharedSleepThread) Sleep() time.Duration { return t.sharedSleep.sleep }

// spaced is a limiter per process that keeps a gap between sendings.
func spaced(gap time.Duration) strategy.Strategy {
	return strategy.Strategy{Name: "test-spaced", NewLimiter: func(strategy.Params, *rand.Rand) (limit.Limiter, error) {
		l, err := limit.NewSpacing(gap)
		if err != nil {
			return nil, err
		}
		return gapLimiter{l, gap}, nil
	}}
}

type gapLimiter struct {
	limit.Limiter
	gap time.Duration
}

func (g gapLimiter) Sleep() time.Duration { return g.gap }

// scripted sends each try as late after the request as the next of its sleeps says, the last one again and again.
func scripted(givesUp bool, sleeps ...time.Duration) strategy.Strategy {
	return strategy.Strategy{Name: "test-scripted", GivesUp: givesUp, New: func(strategy.Params) (strategy.Process, error) {
		return script(sleeps), nil
	}}
}

type script []time.Duration

func (s script) Thread(*rand.Rand) strategy.Thread { return &scriptThread{sleeps: s} }

type scriptThread struct {
	sleeps  []time.Duration
	answers []strategy.Answer
}

func (t *scriptThread) Send(now mono.Time) mono.Time {
	d := t.sleeps[0]
	if len(t.sleeps) > 1 {
		t.sleeps = t.sleeps[1:]
	}
	return now.Add(d)
}
func (t *scriptThread) Answer(_ mono.Time, a strategy.Answer) { t.answers = append(t.answers, a) }
func (t *scriptThread) Sleep() time.Duration                  { return t.sleeps[0] }
