package permit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/paceline-go/paceline"
	"github.com/paceline-go/paceline/internal/core/stack"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
	"github.com/paceline-go/paceline/provider"
)

// Limit is a limit with a name, which programs ask for.
type Limit struct {
	Name string
	// Rates hold together. There is at least one.
	Rates []rate.Limit
	// Provider is the dialect in which answers are read. If empty, their format decides.
	Provider string
}

// ClientConfig is a client with a part of its own.
type ClientConfig struct {
	Name string
	// Weight is its part where several want more than there is. If zero, 1.
	Weight float64
	// HeadStart is its priority: how much earlier its calls count as having come.
	HeadStart time.Duration
}

// defaultLate is the default of limit.Arrivals.
const defaultLate = 5 * time.Second

// mostLanes is how many clients of a limit have a lane at a time, if they do not wait.
const mostLanes = 1024

// namedLimit is a limit with its lanes.
type namedLimit struct {
	Limit
	dialect provider.Dialect
	limit   *paceline.Limit
	stack   *stack.Stack
	lanes   map[string]*lane // by client; guarded by the Server's lock
	// limiters are those of Rates, each; began is the Limit of the start. Another namedLimit takes its place
	// when a user changes a rate.
	limiters []limit.Limiter
	began    Limit
}

// lane is the line of a client.
type lane struct {
	*paceline.Lane
	users int
}

// named makes a limit. known is what an earlier process granted.
func (s *Server) named(c Limit, known *known) (*namedLimit, error) {
	l := &namedLimit{Limit: c, began: c, lanes: map[string]*lane{}}
	if c.Provider != "" {
		l.dialect, _ = provider.Lookup(c.Provider) // it was checked
	}
	var err error
	if l.limiters, err = c.made(s.c.Late); err != nil {
		return nil, err
	}
	made := together(l.limiters)
	if s.c.Share != nil {
		if made, err = s.c.Share(c.Name, func() limit.Limiter {
			own, err := c.made(s.c.Late)
			if err != nil {
				panic(err) // it was made before
			}
			return together(own)
		}); err != nil {
			return nil, err
		}
	}
	if s.c.Share == nil {
		known.replay(c.Name, made, s.group.Time(0))
	}
	seed := uint64(time.Now().UnixNano())
	if l.stack, err = stack.New(stack.Config{Limiter: made, Rand: rand.New(rand.NewPCG(seed, seed))}); err != nil {
		return nil, err
	}
	whose := observe.Whose{Resource: c.Name}
	l.limit = s.group.Limit(paceline.LimitConfig{Limiter: l.stack, Fair: true, Unit: c.Rates[0].Unit, Whose: whose,
		Paused: func(now mono.Time) (p observe.PauseState, on bool) {
			time := s.group.Time
			at, on := l.stack.Paused(now)
			switch rest, by := l.rested(now, time); {
			case by:
				on, p = true, rest
				p.Whose = whose
			case on:
				p = observe.PauseState{Whose: whose, Since: time(at.Since), Until: time(at.Until), Next: time(at.Next)}
			}
			return p, on
		}})
	if s.c.Share == nil && known == nil { // nothing goes until all that an earlier process granted counts no more
		s.group.Update(func(now mono.Time) {
			l.stack.Hold(now, now.Add(limit.Span(made)+s.c.SendWithin+s.c.Late))
		}, l.limit)
	}
	return l, nil
}

// check says what is wrong with a limit.
func (c *Limit) check(late time.Duration) error {
	if !limitName.MatchString(c.Name) {
		return fmt.Errorf("%q, expected %s", c.Name, nameForms)
	}
	if _, ok := provider.Lookup(c.Provider); c.Provider != "" && !ok {
		return fmt.Errorf("provider %q is not known, expected one of %s", c.Provider, strings.Join(provider.Names(), ", "))
	}
	_, err := c.made(late)
	return err
}

// made makes the limiters of all rates.
func (c *Limit) made(late time.Duration) ([]limit.Limiter, error) {
	if len(c.Rates) == 0 {
		return nil, errors.New("there is no rate")
	}
	all := make([]limit.Limiter, len(c.Rates))
	for i, r := range c.Rates {
		var err error
		if all[i], err = r.Limiter(limit.Arrivals{Late: late}); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// together is one limiter of all.
func together(all []limit.Limiter) limit.Limiter {
	if len(all) == 1 {
		return all[0]
	}
	return limit.NewAll(all...)
}

// text is the rates, as their user wrote them.
func (c *Limit) text() string {
	all := make([]string, len(c.Rates))
	for i, r := range c.Rates {
		all[i] = r.Text
	}
	return strings.Join(all, ", ")
}

// lane returns the lane of a client, until release is called.
func (s *Server) lane(l *namedLimit, client string) (line *paceline.Lane, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := l.lanes[client]
	if a == nil {
		if len(l.lanes) >= mostLanes {
			l.pruneLocked()
		}
		about := s.aboutLocked(client)
		class := s.group.Class(paceline.ClassConfig{Weight: about.Weight, HeadStart: about.HeadStart})
		a = &lane{Lane: s.group.Lane(paceline.LaneConfig{Share: class, Client: client}, []*paceline.Limit{l.limit})}
		l.lanes[client] = a
	}
	a.users++
	return a.Lane, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		a.users--
	}
}

// pruneLocked forgets the lanes that no call uses.
func (l *namedLimit) pruneLocked() {
	for client, a := range l.lanes {
		if a.users == 0 {
			a.Retire()
			delete(l.lanes, client)
		}
	}
}
