//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/keeper"
	"github.com/paceline-go/paceline/internal/app/permit"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/text/rate"
)

// A user changes the named limits of a daemon that serves no program, and names that are none list what there is.
func TestDaemonKnobs(t *testing.T) {
	r, err := rate.ParseCounted("20/s")
	if err != nil {
		t.Fatal(err)
	}
	s, err := permit.New(permit.Config{Limits: []permit.Limit{{Name: "orders", Rates: []rate.Limit{r}}}, State: filepath.Join(t.TempDir(), "state")})
	if err != nil {
		t.Fatal(err)
	}
	k := keeper.New(proxy.Config{})
	defer k.Close()
	defer s.Close()
	d := daemonKnobs{k, s}
	for _, c := range []struct {
		turn      daemon.Turn
		said, err string
	}{
		{daemon.Turn{Knob: daemon.Limit, Value: "30/s"}, "limit orders: 20/s is 30/s now", ""},
		{daemon.Turn{Knob: daemon.Limit, Name: "orders", Value: "40/s"}, "limit orders: 30/s is 40/s now", ""},
		{daemon.Turn{Knob: daemon.Pause, Name: "orders"}, "orders paused until paceline ctl resume", ""},
		{daemon.Turn{Knob: daemon.Pause, Name: "mail"}, "", "of limits with names, expected orders: 40/s"},
		{daemon.Turn{Knob: daemon.Share, Name: "a", Value: "2"}, "", "no program is served yet"},
	} {
		said, err := d.Turn(c.turn)
		if said != c.said || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %q, %v", c.turn, said, err)
		}
	}
	h := helmOf(d, "daemon", "of this user", "", func(string) {})
	state, ok := h.State().(ctlState)
	if !ok || state.Idle || strings.Join(state.Limits, "; ") != "orders: 40/s" || len(state.Pauses) != 1 || len(state.Changes) != 2 {
		t.Errorf("it shows %+v", state)
	}
	if said, err := d.Turn(daemon.Turn{Knob: daemon.Resume}); err != nil || said != "all requests resumed" || len(d.Settings().Pauses) > 0 {
		t.Errorf("%q, %v: %+v", said, err, d.Settings().Pauses)
	}
}
