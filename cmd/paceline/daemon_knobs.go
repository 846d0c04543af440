//go:build unix

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/keeper"
	"github.com/paceline-go/paceline/internal/app/permit"
	"github.com/paceline-go/paceline/internal/app/proxy"
)

// daemonKnobs are what a user changes of a daemon: the limits of programs by paceline exec, and those with
// names.
type daemonKnobs struct {
	*keeper.Keeper
	permits *permit.Server
}

// Turn implements adjustable. A name of both is that of the named limit.
func (d daemonKnobs) Turn(t daemon.Turn) (said string, err error) {
	named := d.permits.Rates()
	switch {
	case t.Knob == daemon.Limit && (d.permits.Has(t.Name) || len(d.Keeper.Settings().Limits) == 0 && len(named) > 0):
		return d.permits.Change(t.Name, t.Value)
	case t.Knob == daemon.Limit:
		if said, err = d.Keeper.Turn(t); err != nil && len(named) > 0 {
			err = fmt.Errorf("%w; of limits with names, expected %s", err, strings.Join(named, " or "))
		}
		return said, err
	case t.Knob != daemon.Pause && t.Knob != daemon.Resume || len(named) == 0:
		return d.Keeper.Turn(t)
	case d.permits.Has(t.Name) || t.Name == "":
		if err = d.rest(t); err != nil || t.Name != "" {
			return t.Words(""), err
		}
		if len(d.Keeper.Sources()) > 0 { // programs are served, too
			_, err = d.Keeper.Turn(t)
		}
		return t.Words("all requests"), err
	}
	if said, err = d.Keeper.Turn(t); err != nil {
		err = errors.Join(err, fmt.Errorf("of limits with names, expected %s", strings.Join(named, " or ")))
	}
	return said, err
}

func (d daemonKnobs) rest(t daemon.Turn) error {
	if t.Knob == daemon.Resume {
		return d.permits.Resume(t.Name)
	}
	return d.permits.Rest(t.Name, t.Until)
}

// Settings implements adjustable.
func (d daemonKnobs) Settings() proxy.Settings {
	s := d.Keeper.Settings()
	s.Limits = append(d.permits.Rates(), s.Limits...)
	s.Changes = append(d.permits.Changes(), s.Changes...)
	for _, p := range d.permits.Rests() {
		s.Pauses = append(s.Pauses, proxy.PauseSetting{Upstream: p.Resource, Until: p.Until})
	}
	return s
}
