package permit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/paceline-go/paceline/limit"
)

// limit returns the limit of a name; nil: there is none.
func (s *Server) limit(name string) *namedLimit { return (*s.limits.Load())[name] }

// names are those of the limits and of the upstreams, sorted.
func (s *Server) names() []string {
	all := slices.Collect(maps.Keys(*s.limits.Load()))
	if p := s.upstreams(); p != nil {
		for _, line := range p.Lines() {
			all = append(all, line[0])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Add adds limits and clients, all of them or, with an error, none. Those that are there already, in the
// same words, stay as they are. They last as long as the Server: what was granted may count.
func (s *Server) Add(limits []Limit, clients []ClientConfig) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	next := maps.Clone(*s.limits.Load())
	var fresh []Limit
	for i, l := range limits {
		err := l.check(s.c.Late)
		switch was := next[l.Name]; {
		case slices.ContainsFunc(limits[:i], func(o Limit) bool { return o.Name == l.Name }):
			err = errors.New("it is there twice, expected all rates of a name in one limit")
		case err != nil:
		case was == nil:
			fresh = append(fresh, l)
		case was.text() != l.text() && was.began.text() != l.text() || was.Provider != l.Provider:
			err = fmt.Errorf("it is %s at the daemon already, and %s here; expected the same, or paceline daemon stop before",
				was.words(), l.words())
		}
		if err != nil {
			return fmt.Errorf("limit %s: %w", l.Name, err)
		}
	}
	all, err := s.joined(clients)
	if err != nil {
		return err
	}
	if len(fresh) > 0 {
		if err := s.recall(fresh); err != nil {
			return err
		}
	}
	for _, l := range fresh {
		if next[l.Name], err = s.named(l, s.known); err != nil {
			return fmt.Errorf("limit %s: %w", l.Name, err)
		}
	}
	s.mu.Lock()
	s.c.Clients = all
	s.mu.Unlock()
	s.c.Limits = append(s.c.Limits, fresh...)
	s.limits.Store(&next)
	return nil
}

// joined are the clients with more.
func (s *Server) joined(more []ClientConfig) ([]ClientConfig, error) {
	all := slices.Clone(s.c.Clients)
	for _, c := range more {
		c.Weight = cmp.Or(c.Weight, 1)
		i := slices.IndexFunc(all, func(o ClientConfig) bool { return o.Name == c.Name })
		switch {
		case i < 0:
			all = append(all, c)
		case all[i] != c:
			return nil, fmt.Errorf("client %s has weight %v and head start %v already, and %v and %v here; expected the same",
				c.Name, all[i].Weight, all[i].HeadStart, c.Weight, c.HeadStart)
		}
	}
	return all, nil
}

// about is the configuration of a client.
func (s *Server) about(client string) ClientConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.aboutLocked(client)
}

func (s *Server) aboutLocked(client string) ClientConfig {
	for _, c := range s.c.Clients {
		if c.Name == client {
			return c
		}
	}
	return ClientConfig{Name: client}
}

// words are the rates and the provider.
func (c *Limit) words() string {
	if c.Provider == "" {
		return c.text()
	}
	return c.text() + " of " + c.Provider
}

// Counts is how long a permit may count that is granted now.
func (s *Server) Counts() (longest time.Duration) {
	for _, l := range *s.limits.Load() {
		longest = max(longest, limit.Span(l.stack)+s.c.SendWithin+s.c.Late)
	}
	return longest
}
