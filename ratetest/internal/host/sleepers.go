package host

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/limit/mono"
)

// sleepers are the clients of a virtual clock. The clock advances to the earliest wake-up, and only
// while all of them sleep. One client at a time is awake, so a test has one order of events on
// every machine.
//
// It has no lock and no clock of its own. Instants count from the start of the virtual clock.
type sleepers struct {
	now     mono.Time
	n       int // clients that the clock waits for before it starts
	clients map[string]*sleeper
	awake   *sleeper // nil: all sleep
	turn    uint64   // number of wake-ups so far
}

type sleeper struct {
	name         string
	asleep, left bool
	wake         mono.Time
	since        uint64 // the turn in which it went to sleep
}

func newSleepers(n int) *sleepers { return &sleepers{n: n, clients: map[string]*sleeper{}} }

// sleep lets a client sleep for d. The first sleep of a name makes it one of the n clients.
func (s *sleepers) sleep(name string, d time.Duration) error {
	c := s.clients[name]
	switch {
	case name == "":
		return errors.New("client: the name is missing")
	case d < 0:
		return fmt.Errorf("client %q: a sleep of %v is negative", name, d)
	case s.now.Add(d) == mono.Max:
		return fmt.Errorf("client %q: the virtual clock ends before a sleep of %v does", name, d)
	case c == nil && len(s.clients) == s.n:
		return fmt.Errorf("client %q is not one of the %d clients of this clock: %s", name, s.n, s.names())
	case c == nil:
		c = &sleeper{name: name}
		s.clients[name] = c
	case c.left:
		return fmt.Errorf("client %q has left", name)
	case c.asleep:
		return fmt.Errorf("client %q sleeps already: each thread needs a name of its own", name)
	}
	c.asleep, c.wake, c.since = true, s.now.Add(d), s.turn
	if s.awake == c {
		s.awake = nil
	}
	return nil
}

// leave ends the part of a client for good. The clock no longer waits for it.
func (s *sleepers) leave(name string) error {
	c := s.clients[name]
	if c == nil {
		return fmt.Errorf("client %q has never slept by this clock", name)
	}
	c.asleep, c.left = false, true
	if s.awake == c {
		s.awake = nil
	}
	return nil
}

// next wakes the client with the earliest wake-up, if all clients sleep. Of several at one instant,
// the one that has slept since the earliest turn comes first, then the first by name.
func (s *sleepers) next() (name string, ok bool) {
	if s.awake != nil || len(s.clients) < s.n {
		return "", false
	}
	var first *sleeper
	for _, c := range s.clients {
		if c.asleep && (first == nil || cmp.Or(cmp.Compare(c.wake, first.wake), cmp.Compare(c.since, first.since),
			strings.Compare(c.name, first.name)) < 0) {
			first = c
		}
	}
	if first == nil {
		return "", false
	}
	s.now = first.wake
	s.turn++
	first.asleep, s.awake = false, first
	return first.name, true
}

// stands says why the clock does not advance.
func (s *sleepers) stands() string {
	if s.awake != nil {
		return fmt.Sprintf("client %q is awake, and neither sleeps nor leaves", s.awake.name)
	}
	return fmt.Sprintf("%d of %d clients have slept: %s", len(s.clients), s.n, s.names())
}

// names lists some of the clients.
func (s *sleepers) names() string {
	const most = 10
	names := slices.Sorted(maps.Keys(s.clients))
	for i, name := range names {
		if names[i] = strconv.Quote(name); i == most {
			names = append(names[:most], "…")
			break
		}
	}
	return strings.Join(names, ", ")
}
