//go:build unix

package main

import (
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/observe"
)

// adjustable is a proxy, or the one of a daemon.
type adjustable interface {
	Turn(daemon.Turn) (said string, err error)
	Settings() proxy.Settings
	Sources() []observe.Source
}

// controlledProxy is a proxy that paceline ctl changes.
type controlledProxy struct {
	adjustable
	verb, what string
	began      time.Time
	tell       func(string)
}

// controlProxy lets paceline ctl change a proxy until close is called. Without a socket it goes on all the same.
func controlProxy(p adjustable, verb, what string, tell func(string), failed func(error)) (close func()) {
	c, err := daemon.Controlled(&controlledProxy{p, verb, what, time.Now(), tell})
	if err != nil {
		failed(err)
	}
	return c.Close
}

// State implements daemon.Controllable.
func (c *controlledProxy) State() any {
	set := c.Settings()
	s := ctlState{Verb: c.verb, What: c.what, Began: c.began, Limits: set.Limits, Clients: set.Clients, Pauses: set.Pauses,
		MostInFlight: set.InFlight, Changes: set.Changes}
	var all []observe.Snapshot
	for _, source := range c.Sources() {
		one := source.Snapshot()
		s.Waiting += one.Waiting
		s.InFlight += one.InFlight
		all = append(all, one)
	}
	s.Keys = keysOf(all)
	s.Idle = len(all) == 0
	return s
}

// Turn implements daemon.Controllable.
func (c *controlledProxy) Turn(t daemon.Turn) (said string, err error) {
	if said, err = c.adjustable.Turn(t); err == nil {
		c.tell("paceline ctl: " + said)
	}
	return said, err
}

// settingLines are the lines of the page about what a user has changed.
func settingLines(p adjustable) (all []string) {
	set := p.Settings()
	if len(set.Changes) > 0 {
		all = append(all, "changed by paceline ctl: "+strings.Join(set.Changes, "; "))
	}
	for _, x := range set.Pauses {
		all = append(all, x.String())
	}
	return all
}
