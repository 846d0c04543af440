//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/permit"
)

// moreLimits is what paceline daemon sends to a daemon that runs already.
type moreLimits struct {
	Flags []string `json:"flags"`
}

// join adds the limits to the daemon that runs already, and stays until a signal, or until that daemon
// ends. The daemon does not end by itself meanwhile.
func (f *limitFlags) join(cmd *cobra.Command) error {
	named := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(limitFlags).addNamed(named)
	var bad error
	cmd.Flags().Visit(func(g *pflag.Flag) {
		if named.Lookup(g.Name) == nil {
			bad = fmt.Errorf("--%s beside a daemon that runs already: it is a setting of that one; expected none, or paceline daemon stop before",
				g.Name)
		}
	})
	if bad != nil {
		return cli.Exit(cli.ExitConfig, bad)
	}
	signals, stop := notified()
	defer stop()
	ctx, cancel := closed(cmd.Context(), signals)
	defer cancel()
	client, err := daemon.Dial(ctx)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	body, _ := json.Marshal(moreLimits{given(cmd.Flags())}) // cannot fail
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, daemon.Base+"/v1/limits", bytes.NewReader(body))
	if err != nil {
		return err
	}
	a, err := client.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if err := daemon.Refusal(a); err != nil {
		return err
	}
	said, err := daemon.Ask(ctx)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(cli.Harmless(cmd.ErrOrStderr(), "text"), "listening at %s, as process %d, which runs already\n",
		said.Socket, said.PID); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, a.Body) // until either ends
	return nil
}

// endsSoon reports whether an error of join is that of a daemon which just ends, and else what the error
// is for the user.
func endsSoon(err error) (again bool, _ error) {
	refused, _ := errors.AsType[*daemon.RefusalError](err)
	switch {
	case errors.Is(err, daemon.ErrNone), endsNow(err):
		return true, err
	case refused != nil:
		return refused.Status == http.StatusServiceUnavailable, cli.Exit(cli.ExitConfig, err)
	}
	return false, err
}

// takeLimits adds the limits of another paceline daemon, which stays as long as its call.
func takeLimits(d *daemon.Server, s *permit.Server) http.Handler {
	over := make(chan struct{})
	d.Tune(func(h *http.Server) { h.RegisterOnShutdown(func() { close(over) }) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limits, clients, err := readLimits(r.Body)
		if err != nil {
			daemon.Refuse(w, http.StatusBadRequest, "%v", err)
			return
		}
		release, ok := d.Stay()
		if !ok {
			daemon.Refuse(w, http.StatusServiceUnavailable, "the daemon ends")
			return
		}
		defer release()
		if err := s.Add(limits, clients); err != nil {
			daemon.Refuse(w, http.StatusConflict, "%v", err)
			return
		}
		daemon.Answer(w, http.StatusOK, struct{}{})
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
		case <-over:
		}
	})
}

// readLimits reads what another paceline daemon sends.
func readLimits(body io.Reader) ([]permit.Limit, []permit.ClientConfig, error) {
	var m moreLimits
	if err := json.NewDecoder(body).Decode(&m); err != nil {
		return nil, nil, err
	}
	var f limitFlags
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.addNamed(flags)
	if err := flags.Parse(m.Flags); err != nil {
		return nil, nil, err
	}
	err := f.read()
	return f.c.Limits, f.c.Clients, err
}
