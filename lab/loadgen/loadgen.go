// Package loadgen runs the strategies of package fairshare as real HTTP clients. The threads of a
// process share its knowledge, and processes share nothing. The clock may run faster than ours.
package loadgen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/learn"
	"github.com/paceline-go/paceline/lab/strategy"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
)

// Config is what a client process has to know. It crosses to another process as JSON.
type Config struct {
	URL      string          `json:"url"`
	Strategy string          `json:"strategy"` // a name that strategy.Named knows
	Params   strategy.Params `json:"params"`
	Process  int             `json:"process"` // its number
	Threads  int             `json:"threads"`
	// Scale is how many times faster its clock runs than the real one. Duration is how long it runs, by that clock.
	Scale    float64       `json:"scale"`
	Duration time.Duration `json:"duration"`
	Seed     uint64        `json:"seed"`
	// Share, if it names a store, has the process share the quota by that, instead of following a strategy.
	Share Share `json:"share"`
}

// Line is what a client tells of an answer, as both published demos do. Times are in seconds by its clock.
type Line struct {
	Process int     `json:"process"`
	Thread  int     `json:"thread"`
	At      float64 `json:"at_s"`
	Status  int     `json:"status"`
	// Remaining is what is left according to the answer; −1: it does not say.
	Remaining int `json:"remaining"`
	Retries   int `json:"retry_count"`      // answers of this thread that were limited
	Requests  int `json:"request_count"`    // of this thread
	Limited   int `json:"rate_limit_count"` // answers of this process that were limited
	// Guess is how many clients the throttle believes there are: Sleep in units of the quota's refill.
	Guess    float64 `json:"client_guess"`
	Sleep    float64 `json:"sleep_s"`     // how long it throttles from now on, without jitter
	MaxSleep float64 `json:"max_sleep_s"` // the longest that this thread slept, with jitter
	Slept    float64 `json:"slept_s"`     // the longest since its line before, likewise
}

// String is the line that people read.
func (l Line) String() string {
	return fmt.Sprintf("%d#%d: status=%d remaining=%d retry_count=%d request_count=%d rate_limit_count=%d "+
		"client_guess=%.2f sleep=%.2f max_sleep_s=%.2f",
		l.Process, l.Thread, l.Status, l.Remaining, l.Retries, l.Requests, l.Limited, l.Guess, l.Sleep, l.MaxSleep)
}

// giveUp is after how many failures in a row a thread gives up.
const giveUp = 10

// Run is a client process: it sends until its time is over or ctx is done, and calls tell for each
// answer, one at a time. It returns an error for an impossible configuration, for an answer that is
// neither 2xx nor 429, and for a server that cannot be reached ten times in a row. open may be nil
// where nothing is shared.
func Run(ctx context.Context, c Config, open Opener, tell func(Line)) (err error) {
	p, err := newProcess(c, tell)
	if err != nil {
		return err
	}
	defer p.http.CloseIdleConnections()
	if c.Share.Store != "" {
		shared, err := p.share(ctx, open)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, shared.Close()) }()
	}
	ctx, cancel := context.WithTimeout(ctx, p.real(c.Duration))
	defer cancel()
	var threads sync.WaitGroup
	errs := make([]error, c.Threads)
	for i := range errs {
		threads.Go(func() {
			errs[i] = p.thread(ctx, i)
			if errs[i] != nil {
				cancel()
			}
		})
	}
	threads.Wait()
	return errors.Join(errs...)
}

type process struct {
	Config
	base time.Time
	http *http.Client
	tell func(Line)

	gate    *paceline.Gate // nil: its threads decide by themselves
	limiter limit.Limiter  // that of the gate, if it follows a strategy
	sleeper strategy.Sleeper

	mu      sync.Mutex // guards what follows
	threads []strategy.Thread
	limited int
}

func newProcess(c Config, tell func(Line)) (*process, error) {
	switch {
	case c.Threads < 1:
		return nil, fmt.Errorf("live: Threads %d is not above 0", c.Threads)
	case !(c.Scale > 0 && c.Scale <= 1000):
		return nil, fmt.Errorf("live: Scale %v is not above 0 and at most 1000", c.Scale)
	case c.Duration <= 0:
		return nil, fmt.Errorf("live: Duration %v is not above 0", c.Duration)
	}
	p := &process{Config: c, base: time.Now(), tell: tell}
	p.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.Threads}, Timeout: time.Minute,
		// a redirect would need leave, too
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.Share.Store != "" {
		_, err := p.Quota()
		return p, err
	}
	s, err := strategy.Named(c.Strategy)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(c.Seed, uint64(c.Process)))
	if s.NewLimiter != nil {
		l, err := s.NewLimiter(c.realParams(), rng)
		if err != nil {
			return nil, err
		}
		p.sleeper, _ = l.(strategy.Sleeper)
		p.gate, p.limiter = paceline.NewGate(l), l
		return p, nil
	}
	shared, err := s.New(c.Params)
	if err != nil {
		return nil, err
	}
	for range c.Threads {
		p.threads = append(p.threads, shared.Thread(rng))
	}
	return p, nil
}

// realParams returns the Params for the real clock, by which a Gate goes, and so its limiter: in
// real time the quota is refilled Scale times as fast, and how fast its rate grows per second is
// Scale² times as much.
func (c *Config) realParams() strategy.Params {
	p := c.Params
	p.Increase = cmp.Or(p.Increase, p.Rate/1000) * c.Scale * c.Scale
	p.Rate *= c.Scale
	p.MinRate *= c.Scale
	for _, d := range []*time.Duration{&p.Window, &p.Start, &p.MinSleep, &p.MaxWait} {
		*d = time.Duration(float64(*d) / c.Scale)
	}
	return p
}

func (p *process) now() mono.Time { return mono.Time(float64(time.Since(p.base)) * p.Scale) }

func (p *process) thread(ctx context.Context, number int) error {
	l := Line{Process: p.Process, Thread: number}
	longest := time.Duration(0) // since the line before
	for failures := 0; ; {
		slept, settle, ok := p.leave(ctx, number)
		if !ok {
			return nil
		}
		longest = max(longest, slept)
		l.MaxSleep = max(l.MaxSleep, slept.Seconds())
		sent := p.now()
		began := time.Now()
		a, err := p.get(ctx)
		rtt := time.Since(began)
		if err != nil {
			settle(sent, rtt, answer{remaining: -1})
			if ctx.Err() != nil {
				return nil
			}
			if failures++; failures == giveUp {
				return fmt.Errorf("live: process %d, thread %d: %d failures in a row: %w", p.Process, number, failures, err)
			}
			continue
		}
		failures = 0
		sleep := settle(sent, rtt, a)
		if !a.served() && !a.limited() {
			return fmt.Errorf("live: process %d, thread %d: %s answered %d, neither 2xx nor 429", p.Process, number, p.URL,
				a.status)
		}
		l.Requests++
		p.mu.Lock()
		if a.limited() {
			l.Retries++
			p.limited++
		}
		l.At, l.Status, l.Remaining, l.Limited = p.now().Sub(0).Seconds(), a.status, a.remaining, p.limited
		l.Slept, longest = longest.Seconds(), 0
		l.Sleep, l.Guess = sleep.Seconds(), sleep.Seconds()*p.Params.Rate
		p.tell(l)
		p.mu.Unlock()
	}
}

// settler tells the throttle how a try ended, and returns how long it throttles now.
type settler func(sent mono.Time, rtt time.Duration, a answer) time.Duration

// leave waits until the thread may send, and returns how long that took by its clock. It returns
// false if the time is over.
func (p *process) leave(ctx context.Context, number int) (time.Duration, settler, bool) {
	asked := p.now()
	if p.gate != nil {
		permit, err := p.gate.Wait(ctx, limit.One)
		for ; err == nil && !permit.Fresh(); permit, err = p.gate.Wait(ctx, limit.One) {
			permit.Settle(limit.Outcome{Result: limit.Unsent})
		}
		if errors.Is(err, paceline.ErrDeadline) { // its turn would come after the end, until which it is there like any other
			<-ctx.Done()
		}
		if err != nil {
			return 0, nil, false
		}
		return p.now().Sub(asked), p.permitted(permit), true
	}
	t := p.threads[number]
	p.mu.Lock()
	at := t.Send(asked)
	p.mu.Unlock()
	if wait := at.Sub(asked); wait > 0 {
		timer := time.NewTimer(p.real(wait))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return 0, nil, false
		}
	}
	return max(at.Sub(asked), 0), func(sent mono.Time, _ time.Duration, a answer) time.Duration {
		p.mu.Lock()
		defer p.mu.Unlock()
		if a.status != 0 {
			t.Answer(p.now(), a.heard(sent))
		}
		return t.Sleep()
	}, ctx.Err() == nil
}

func (p *process) permitted(permit paceline.Permit) settler {
	return func(_ mono.Time, rtt time.Duration, a answer) (sleep time.Duration) {
		if all := a.stated(p.real); p.limiter != nil && len(all) > 0 {
			p.gate.Update(func(now mono.Time) { learn.State(p.limiter, now, all) })
		}
		permit.Settle(a.outcome(rtt, p.real))
		if p.sleeper != nil {
			// The limiter plans for the process, whose threads take turns.
			p.gate.Update(func(mono.Time) { sleep = time.Duration(float64(p.sleeper.Sleep()) * p.Scale * float64(p.Threads)) })
		}
		return sleep
	}
}
