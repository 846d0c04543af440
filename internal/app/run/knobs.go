package run

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/tally"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/pool"
)

// knobs makes the changes by a user one after the other.
type knobs struct{ mu sync.Mutex }

// step is the limits of a group from an instant on.
type step struct {
	at     time.Time // zero: from the beginning
	limits []format.Rate
}

// begin gives the group its first limits.
func (g *group) begin(limits []format.Rate) { g.steps.Store(&[]step{{limits: limits}}) }

// limits are the limits of the group now. They have the same number and order in each step.
func (g *group) limits() []format.Rate {
	all := *g.steps.Load()
	return all[len(all)-1].limits
}

// within is Within of the n-th limit of the group, over all its steps.
func (g *group) within(n int, from time.Time, d time.Duration, goesOn bool) float64 {
	return g.over(from, d, func(limits []format.Rate, begins time.Time, span time.Duration, last bool) float64 {
		return limits[n].Within(begins, span, goesOn && last)
	})
}

// together is within of all limits of the group, in requests of which each costs the average of cost. It is infinite
// unless there are several limits.
func (g *group) together(cost limit.Cost, from time.Time, d time.Duration, goesOn bool) float64 {
	if len(g.limits()) < 2 {
		return math.Inf(1)
	}
	return g.over(from, d, func(limits []format.Rate, begins time.Time, span time.Duration, last bool) float64 {
		return rate.Play(begins, rate.Repeat(limits, 1), cost, nil, 0, span).Within(span, goesOn && last)
	})
}

// over adds up what the steps of the group let go.
func (g *group) over(from time.Time, d time.Duration,
	most func(limits []format.Rate, begins time.Time, span time.Duration, last bool) float64) (sum float64) {
	all, end := *g.steps.Load(), from.Add(d)
	for i, s := range all {
		begins, ends, last := s.at, end, i == len(all)-1
		if begins.Before(from) {
			begins = from
		}
		if !last && all[i+1].at.Before(end) {
			ends = all[i+1].at
		}
		if span := ends.Sub(begins); span > 0 || last {
			sum += most(s.limits, begins, max(span, 0), last)
		}
	}
	return sum
}

// allowed returns what the limits of each group let go within d, for each key. uses has what each group sent.
func (p pools) allowed(uses []tally.Use, from time.Time, d time.Duration) (all [][]tally.Allowed) {
	for i, g := range p {
		var of []tally.Allowed
		for n, l := range g.limits() {
			of = append(of, tally.Allowed{Unit: l.Unit, Most: g.within(n, from, d, false)})
		}
		of = append(of, tally.Allowed{Unit: limit.Requests, Most: g.together(uses[i].Spent, from, d, false)})
		all = append(all, of)
	}
	return all
}

// Limits are the limits of a key now, as they were given. Models with the same limit have it once.
func (r *Run) Limits() []string { return r.groups.limits() }

func (p pools) limits() (all []string) {
	for _, g := range p {
		for _, l := range g.limits() {
			if !slices.Contains(all, l.Text) {
				all = append(all, l.Text)
			}
		}
	}
	return all
}

// SetLimit changes a limit of all keys from now on, by its name in Limits. What was sent counts in
// it. If name is empty, it is the only limit, or the only one with the window of to. It returns the limit as it was, and as it is.
func (r *Run) SetLimit(name, to string) (was, is string, err error) {
	r.knobs.mu.Lock()
	defer r.knobs.mu.Unlock()
	if err := r.groups.fixed(&r.c); err != nil {
		return "", "", err
	}
	if name == "" {
		var all []format.Rate
		for _, g := range r.groups {
			all = append(all, g.limits()...)
		}
		if name, err = rate.Meant(all, to); err != nil {
			return "", "", err
		}
	}
	next := make([][]format.Rate, len(r.groups))
	for i, g := range r.groups {
		next[i] = slices.Clone(g.limits())
		for n, l := range next[i] {
			if l.Text != name {
				continue
			}
			if next[i][n], err = l.Changed(to); err != nil {
				return "", "", err
			}
			was, is = name, next[i][n].Text
		}
	}
	switch {
	case was == "":
		return "", "", fmt.Errorf("no limit %q, expected %s", name, strings.Join(r.Limits(), " or "))
	case was == is:
		return was, is, nil
	}
	r.organizations.mu.Lock()
	defer r.organizations.mu.Unlock()
	for i, g := range r.groups {
		if err := r.knobs.change(g, next[i]); err != nil {
			return "", "", err // all limiters of a limit are of one kind, so this is the first
		}
	}
	r.tally.LimitsChange()
	r.ceilings.note(r.gauge.sustained())
	return was, is, nil
}

// fixed says why no limit can change; nil: each can.
func (p pools) fixed(c *Config) error {
	switch {
	case c.Share != nil:
		return errors.New("the limits of --share belong to all its processes; expected a new start of all of them")
	case len(c.Servers) > 0:
		return errors.New("the limits are those of the file of --upstream; expected a new start with another file")
	case len(p.limits()) == 0:
		return errors.New("there is no limit; expected a new start with --limit")
	}
	return nil
}

// change gives all limiters of the group other limits.
func (*knobs) change(g *group, to []format.Rate) (err error) {
	was := g.limits()
	g.pool.Update(func(now mono.Time, _ *pool.Queue, _ *pool.Dispatcher) {
		for n, l := range to {
			if l == was[n] {
				continue
			}
			for _, of := range g.allowances {
				if !l.Turn(now, of.limiters[n], l.Per == was[n].Per) {
					err = fmt.Errorf("limit %s is of a kind that cannot change in a run; expected a new start", was[n].Text)
					return
				}
			}
		}
		all := append(slices.Clone(*g.steps.Load()), step{time.Now(), to})
		g.steps.Store(&all)
	})
	return err
}

// Keys are the names of the keys; nil: the run has none.
func (r *Run) Keys() (names []string) {
	if r.c.keyless {
		return nil
	}
	for _, k := range r.c.Keys {
		names = append(names, k.Name)
	}
	return names
}

// Pause lets no request go with a key until then, whatever answers say; the zero Time: until Resume.
// If name is empty, it pauses all keys.
func (r *Run) Pause(name string, until time.Time) error {
	t := limit.Never
	if !until.IsZero() {
		t = mono.Of(r.epoch, until)
	}
	return r.rest(name, t)
}

// Resume ends Pause. A pause that the server asked for goes on.
func (r *Run) Resume(name string) error { return r.rest(name, mono.Min) }

func (r *Run) rest(name string, t mono.Time) error {
	r.knobs.mu.Lock()
	defer r.knobs.mu.Unlock()
	names := r.Keys()
	switch {
	case name != "" && r.c.keyless:
		return fmt.Errorf("no key %q: there are no keys; expected no name, for all requests", name)
	case name != "" && !slices.Contains(names, name):
		return fmt.Errorf("no key %q, expected %s, or no name for all of them", name, strings.Join(names, " or "))
	}
	for _, g := range r.groups {
		g.pool.Update(func(now mono.Time, _ *pool.Queue, d *pool.Dispatcher) {
			for i, k := range r.c.Keys {
				if name == "" || k.Name == name {
					d.Rest(now, i, t)
				}
			}
		})
	}
	return nil
}

// restText says that a user has paused a key.
func restText(k *pool.KeyInfo, keyless bool) string {
	text := "paceline ctl resume"
	if k.Until < limit.AfterSettle {
		text = "the end of its pause by paceline ctl"
	}
	if keyless {
		return text
	}
	return text + ", of key " + k.Name
}

// SetConcurrency bounds the attempts in flight; 0: as many as the limits and the answers need, or the number that the
// run began with. Attempts beyond a lower bound go on, and are not replaced.
func (r *Run) SetConcurrency(n int) error {
	r.knobs.mu.Lock()
	defer r.knobs.mu.Unlock()
	most, why := r.c.mostEver(), "so many answers can be kept, and files be open"
	if own := r.c.MostInFlight; own > 0 && own <= most {
		most, why = own, "the server's limits allow so many"
	}
	if n < 0 || n > most {
		return fmt.Errorf("%d in flight, expected 1 to %d, as %s; or 0 for as many as at the start", n, most, why)
	}
	r.writer.roomFor(max(n, r.c.inFlight.Most))
	r.flights.Fix(n)
	r.groups.fly(r.course, r.flights.Most(), r.c.Queue)
	return nil
}

// InFlight is how many attempts may be in flight now.
func (r *Run) InFlight() int { return r.flights.Most() }
