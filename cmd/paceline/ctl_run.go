//go:build unix

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/observe"
)

// controlledRun is a run that paceline ctl changes.
type controlledRun struct {
	*run.Run
	verb, what string
	began      time.Time
	tell       func(string)
}

// control lets paceline ctl change a run until close is called. Without a socket the run goes on all the same.
func (f *runFlags) control(r *run.Run, in *runInput, tell func(string)) (h *helm, close func()) {
	h = newHelm(&controlledRun{r, "run", in.name, time.Now(), tell}, tell)
	return h, h.open(func(err error) { f.log.Info("paceline ctl does not reach this run", "err", err) })
}

// State implements steered.
func (c *controlledRun) State() any {
	p := c.Progress()
	s := ctlState{Verb: c.verb, What: c.what, Began: c.began, Waiting: p.Waiting, InFlight: p.InFlight,
		Limits: c.Limits()}
	line := runLine(&p)
	s.Progress = line.Fit(progressWidth, func(_, text string) string { return text })
	s.Concurrency = c.InFlight()
	var all []observe.Snapshot
	for _, source := range c.Sources() {
		all = append(all, source.Snapshot())
	}
	s.Keys, s.Wrong = keysOf(all), wrongOf(all)
	if len(c.Keys()) == 0 {
		s.Keys[0].Name = ""
	}
	return s
}

// progressWidth is the width of the progress line in paceline ctl show.
const progressWidth = 120

// keysOf returns the keys of some snapshots. A key that several have is once there, in its worst state.
func keysOf(all []observe.Snapshot) (keys []ctlKey) {
	for i := range all {
		for _, k := range all[i].Keys {
			one := ctlKey{k.Name, k.State, k.Until, k.Why}
			if i := slices.IndexFunc(keys, func(k ctlKey) bool { return k.Name == one.Name }); i < 0 {
				keys = append(keys, one)
			} else if keys[i].State == observe.KeyOK {
				keys[i] = one
			}
		}
	}
	return keys
}

// wrongOf returns the limits of some snapshots in whose place less fits.
func wrongOf(all []observe.Snapshot) (wrong []observe.LimitState) {
	for i := range all {
		for _, l := range all[i].Limits {
			if l.Fits > 0 {
				wrong = append(wrong, l)
			}
		}
	}
	return wrong
}

// wrongLine says what fits in the place of a limit, and whose it is.
func wrongLine(l *observe.LimitState) string {
	var whose strings.Builder
	for _, part := range [...][2]string{{"at", l.Server()}, {"key", l.Key}} {
		if part[1] != "" {
			whose.WriteString(" " + part[0] + " " + part[1])
		}
	}
	return fmt.Sprintf("limit %s%s: %s fit, as refusals showed", limitName(l, ""), whose.String(), text.Thousands(l.Fits))
}

// change implements steered.
func (c *controlledRun) change(t daemon.Turn, from string) (said string, err error) {
	switch t.Knob {
	case daemon.Pause:
		err, said = c.Pause(t.Name, t.Until), t.Words(c.all())
	case daemon.Resume:
		err, said = c.Resume(t.Name), t.Words(c.all())
	case daemon.Limit:
		var was, is string
		was, is, err = c.SetLimit(t.Name, t.Value)
		said = fmt.Sprintf("limit %s is %s now", was, is)
	case daemon.Concurrency:
		n, bad := strconv.Atoi(t.Value)
		if err = bad; t.Name != "" {
			err = fmt.Errorf("%q before the number, and a run has no upstreams; expected the number alone", t.Name)
		}
		if err == nil {
			err = c.SetConcurrency(n)
		}
		if said = fmt.Sprintf("%d in flight at most", n); n == 0 {
			said = "as many in flight as at the start"
		}
	default:
		err = fmt.Errorf("a run has no %s; expected pause, resume, limit or concurrency", t.Knob)
	}
	if err != nil {
		return "", err
	}
	c.tell(from + ": " + said)
	return said, nil
}

// Turn makes a change that is not by paceline ctl, and from no page: it is told by its caller.
func (c *controlledRun) Turn(t daemon.Turn) (said string, err error) {
	return c.change(t, "the terminal")
}

// all says what a pause without a name is of.
func (c *controlledRun) all() string {
	if len(c.Keys()) == 0 {
		return "all requests"
	}
	return "all keys"
}
