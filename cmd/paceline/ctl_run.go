//go:build unix

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/run"
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
func (f *runFlags) control(r *run.Run, in *runInput, tell func(string)) (close func()) {
	c, err := daemon.Controlled(&controlledRun{r, "run", in.name, time.Now(), tell})
	if err != nil {
		f.log.Info("paceline ctl does not reach this run", "err", err)
	}
	return c.Close
}

// State implements daemon.Controllable.
func (c *controlledRun) State() any {
	p := c.Progress()
	s := ctlState{Verb: c.verb, What: c.what, Began: c.began, Waiting: p.Waiting, InFlight: p.InFlight,
		Limits: c.Limits()}
	line := runLine(&p)
	s.Progress = line.Fit(progressWidth, func(_, text string) string { return text })
	s.Concurrency, _ = c.InFlight()
	s.Keys = keysOf(c.Sources())
	if len(c.Keys()) == 0 {
		s.Keys[0].Name = ""
	}
	return s
}

// progressWidth is the width of the progress line in paceline ctl show.
const progressWidth = 120

// keysOf returns the keys of some sources. A key that several have is once there, in its worst state.
func keysOf(all []observe.Source) (keys []ctlKey) {
	for _, source := range all {
		s := source.Snapshot()
		for _, k := range s.Keys {
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

// Turn implements daemon.Controllable.
func (c *controlledRun) Turn(t daemon.Turn) (said string, err error) {
	switch t.Knob {
	case "pause":
		err, said = c.Pause(t.Name, t.Until), pausedWords(t, c.all())
	case "resume":
		err, said = c.Resume(t.Name), cmp.Or(t.Name, c.all())+" resumed"
	case "limit":
		var was, is string
		was, is, err = c.SetLimit(t.Name, t.Value)
		said = fmt.Sprintf("limit %s is %s now", was, is)
	case "concurrency":
		n, bad := strconv.Atoi(t.Value)
		if err = bad; err == nil {
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
	c.tell("paceline ctl: " + said)
	return said, nil
}

// all says what a pause without a name is of.
func (c *controlledRun) all() string {
	if len(c.Keys()) == 0 {
		return "all requests"
	}
	return "all keys"
}

// pausedWords say what is paused, and until when.
func pausedWords(t daemon.Turn, all string) string {
	said := cmp.Or(t.Name, all) + " paused"
	if t.Until.IsZero() {
		return said + " until paceline ctl resume"
	}
	return said + " until " + t.Until.Local().Format(time.DateTime)
}
