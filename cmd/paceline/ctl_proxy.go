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
	file       string // of its configuration; empty: it has none
	began      time.Time
	tell       func(string)
}

// helmOf is the helm of a proxy.
func helmOf(p adjustable, verb, what, file string, tell func(string)) *helm {
	return newHelm(&controlledProxy{p, verb, what, file, time.Now(), tell}, tell)
}

// State implements steered.
func (c *controlledProxy) State() any {
	set := c.Settings()
	s := ctlState{Verb: c.verb, What: c.what, File: c.file, Began: c.began,
		Limits: set.Limits, Clients: set.Clients, Pauses: set.Pauses,
		MostInFlight: set.InFlight, Changes: set.Changes}
	var all []observe.Snapshot
	for _, source := range c.Sources() {
		one := source.Snapshot()
		s.Waiting += one.Waiting
		s.InFlight += one.InFlight
		all = append(all, one)
	}
	s.Keys, s.Wrong = keysOf(all), wrongOf(all)
	s.Idle = len(all) == 0 && len(set.Limits) == 0
	return s
}

// change implements steered.
func (c *controlledProxy) change(t daemon.Turn, from string) (said string, err error) {
	if said, err = c.Turn(t); err == nil {
		c.tell(from + ": " + said)
	}
	return said, err
}

// settingLines are the lines of the page about what a user has changed.
func settingLines(p adjustable) (all []string) {
	set := p.Settings()
	if len(set.Changes) > 0 {
		all = append(all, "changed by its user: "+strings.Join(set.Changes, "; "))
	}
	for _, x := range set.Pauses {
		all = append(all, x.String())
	}
	return all
}
