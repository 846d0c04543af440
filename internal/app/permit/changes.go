package permit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/limit/mono"
	"github.com/paceline-go/paceline/observe"
)

// byUser is the reason of a Rest.
const byUser = "by its user"

// rateName names one rate of a limit, as a user gives it: "orders: 50/s".
func (l *namedLimit) rateName(i int) string { return l.Name + ": " + l.Rates[i].Text }

// Rates are the names of all rates that can change.
func (s *Server) Rates() (names []string) {
	all := *s.limits.Load()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for i := range all[name].Rates {
			names = append(names, all[name].rateName(i))
		}
	}
	return names
}

// Has reports whether name is that of a limit, or of one of its rates.
func (s *Server) Has(name string) bool {
	limitName, _, _ := strings.Cut(name, ":")
	return s.limit(limitName) != nil
}

// Change gives a limit another rate from now on, also for calls that wait. What was granted counts on. name
// is that of a limit, or of one of Rates; empty: the only one that can be meant.
func (s *Server) Change(name, to string) (said string, err error) {
	s.adding.Lock()
	defer s.adding.Unlock()
	if s.c.Share != nil {
		return "", fmt.Errorf("the limits of --share belong to all its processes; expected a new start of all of them")
	}
	was, i, err := s.meant(name, to)
	if err != nil {
		return "", err
	}
	next := *was
	next.Rates = slices.Clone(was.Rates)
	if next.Rates[i], err = was.Rates[i].Changed(to); err != nil {
		return "", err
	}
	ok := true
	if next.Rates[i] != was.Rates[i] {
		s.group.Update(func(now mono.Time) {
			ok = next.Rates[i].Turn(now, was.limiters[i], next.Rates[i].Per == was.Rates[i].Per)
		}, was.limit)
	}
	if !ok {
		return "", fmt.Errorf("limit %s is of a kind that cannot change; expected paceline daemon stop before", was.rateName(i))
	}
	all := maps.Clone(*s.limits.Load())
	all[was.Name] = &next
	s.limits.Store(&all)
	said = fmt.Sprintf("limit %s is %s now", was.rateName(i), next.Rates[i].Text)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = append(s.said, said)
	return said, nil
}

// meant returns the rate that a user means, as an index of its limit's Rates.
func (s *Server) meant(name, value string) (found *namedLimit, i int, err error) {
	to, err := rate.ParseCounted(value)
	if err != nil {
		return nil, 0, err
	}
	all, n, alike := *s.limits.Load(), 0, 0
	for _, l := range all {
		for at, r := range l.Rates {
			if name == l.rateName(at) {
				return l, at, nil
			}
			if name != "" && name != l.Name && name != r.Text {
				continue
			}
			n++
			switch like := r.Per == to.Per && r.Unit == to.Unit; {
			case like:
				alike++
				found, i = l, at
			case alike == 0:
				found, i = l, at
			}
		}
	}
	if n == 1 || alike == 1 {
		return found, i, nil
	}
	return nil, 0, fmt.Errorf("%s for which limit? expected its name before it: %s", value, strings.Join(s.Rates(), " or "))
}

// Rest grants nothing of a limit until then; the zero Time: until Resume. Without a name, it is all limits.
// Permits that are held stay.
func (s *Server) Rest(name string, until time.Time) error {
	at := limit.AfterSettle
	if !until.IsZero() {
		at = mono.Of(s.group.Time(0), until)
	}
	return s.rest(name, at)
}

// Resume ends a Rest. A pause that an answer asked for goes on.
func (s *Server) Resume(name string) error { return s.rest(name, mono.Min) }

func (s *Server) rest(name string, until mono.Time) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	all := *s.limits.Load()
	if name != "" && all[name] == nil {
		return fmt.Errorf("no limit %q, expected %s, or no name for all of them", name,
			strings.Join(slices.Sorted(maps.Keys(all)), " or "))
	}
	for _, l := range all {
		if name == "" || l.Name == name {
			s.group.Update(func(now mono.Time) { l.stack.Rest(now, until) }, l.limit)
		}
	}
	return nil
}

// Changes are what a user has changed, in words.
func (s *Server) Changes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.said)
}

// Rests are the pauses by a user, each with the limit as its Resource.
func (s *Server) Rests() (all []observe.PauseState) {
	limits := *s.limits.Load()
	s.group.Update(func(now mono.Time) {
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			if p, on := limits[name].rested(now, s.group.Time); on {
				p.Resource = name
				all = append(all, p)
			}
		}
	})
	return all
}

// restsNow reports whether a user has paused a limit.
func (s *Server) restsNow(l *namedLimit) (on bool) {
	s.group.Update(func(now mono.Time) { _, on = l.stack.Rests(now) })
	return on
}

// rested returns the pause of a limit by a user. It is called under the Group's lock.
func (l *namedLimit) rested(now mono.Time, time func(mono.Time) time.Time) (p observe.PauseState, on bool) {
	until, on := l.stack.Rests(now)
	if on && until < limit.AfterSettle {
		p.Until = time(until)
	}
	p.Next, p.Why = p.Until, byUser
	return p, on
}
