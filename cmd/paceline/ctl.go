//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/observe"
)

const ctlLong = `List the runs, proxies and the daemon of this user that go on. Change their limits, keys and
requests in flight.
A change holds until the program ends, or until a proxy applies a file that states another value. The program writes a
line about each change on standard error.

If several go on, --pid says which one is meant: by its number, its address or its file.

A program and paceline ctl find one another in a folder: PACELINE_RUNTIME_DIR, RUNTIME_DIRECTORY (a service of systemd),
XDG_RUNTIME_DIR, or the one for temporary files. In a container, set the first of them to a folder of a volume. Root
reaches a service by --runtime-dir /run/paceline.`

const ctlExample = `  paceline ctl
  paceline ctl show
  paceline ctl pause
  paceline ctl pause KEY_A --until 09:00
  paceline ctl resume
  paceline ctl limit 10/s
  paceline ctl limit 500/m 300/m --pid 4711
  paceline ctl concurrency 20
  paceline ctl limit 'github: 20/s' 10/s
  paceline ctl limit 'client nightly' 10/m
  paceline ctl limit 'client nightly' none
  paceline ctl share nightly 5`

// ctlFlags choose a program.
type ctlFlags struct {
	pid, dir, output, until string
}

func newCtl() *cobra.Command {
	var f ctlFlags
	c := &cobra.Command{
		Use: "ctl", Short: "List runs and proxies that go on; pause them, or change their limits", Long: ctlLong,
		Example: ctlExample,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q; see %[2]s --help", args[0], c.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return f.list(cmd) },
	}
	c.PersistentFlags().StringVar(&f.dir, "runtime-dir", "",
		"the folder with the sockets of the programs, such as /run/paceline of a service (default: as for them)")
	show := &cobra.Command{
		Use: "show", Short: "Show the limits and keys of a program, and how far it is", Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.show(cmd) },
	}
	limit := &cobra.Command{
		Use: "limit [NAME] RATE", Short: "Change a limit, such as 20/s, to another rate", Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := daemon.Turn{Knob: daemon.Limit, Value: args[len(args)-1]}
			if len(args) > 1 {
				to.Name = args[0]
			}
			ofClient := strings.HasPrefix(to.Name, "client ") && to.Value == proxy.NoLimit
			if _, err := rate.ParseCounted(to.Value); err != nil && !ofClient {
				return cli.Usage(fmt.Errorf("RATE %w", err))
			}
			return f.turn(cmd, to)
		},
	}
	concurrency := &cobra.Command{
		Use: "concurrency [UPSTREAM] N", Short: "Bound the requests in flight; 0: as many as at the start",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := daemon.Turn{Knob: daemon.Concurrency, Value: args[len(args)-1]}
			if len(args) > 1 {
				to.Name = args[0]
			}
			if n, err := strconv.Atoi(to.Value); err != nil || n < 0 {
				return cli.Usage(fmt.Errorf("%q requests in flight, expected 1 or more; or 0 for as many as at the start", to.Value))
			}
			return f.turn(cmd, to)
		},
	}
	share := &cobra.Command{
		Use: "share CLIENT N", Short: "Change the weight of a client of a proxy", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n, err := strconv.ParseFloat(args[1], 64); err != nil || !(n > 0) {
				return cli.Usage(fmt.Errorf("a weight of %q, expected above 0", args[1]))
			}
			return f.turn(cmd, daemon.Turn{Knob: daemon.Share, Name: args[0], Value: args[1]})
		},
	}
	c.AddCommand(show)
	c.AddCommand(f.pauses()...)
	page := &cobra.Command{
		Use: "page", Short: "Print the address and a token to change a program from its page", Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.turn(cmd, daemon.Turn{Knob: daemon.Page}) },
	}
	c.AddCommand(limit, concurrency, share, page)
	c.PersistentFlags().StringVar(&f.pid, "pid", "",
		"number, address or file of the program, as paceline ctl lists it, if several go on")
	for _, of := range []*cobra.Command{c, show} {
		of.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
	}
	return c
}

// pauses are the commands that begin and end a pause.
func (f *ctlFlags) pauses() []*cobra.Command {
	pause := &cobra.Command{
		Use:   "pause [KEY|UPSTREAM]",
		Short: "Send nothing with a key, or nothing at all; what is in flight is still answered",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			until, err := parseUntil(f.until, time.Now())
			if err != nil {
				return cli.Usage(fmt.Errorf("--until %w", err))
			}
			return f.turn(cmd, daemon.Turn{Knob: daemon.Pause, Name: first(args), Until: until})
		},
	}
	pause.Flags().StringVar(&f.until, "until", "",
		"end of the pause: a time of day (09:00), an instant as in RFC 3339, or a duration (default: until resume)")
	resume := &cobra.Command{
		Use:   "resume [KEY|UPSTREAM]",
		Short: "End a pause of a key, or of all keys. Pauses that a server asked for go on",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.turn(cmd, daemon.Turn{Knob: daemon.Resume, Name: first(args)})
		},
	}
	return []*cobra.Command{pause, resume}
}

// noneGoesOn says that nothing can be changed.
const noneGoesOn = "no run or proxy of this user goes on"

// running returns the programs that go on, and what each says of itself.
func (f *ctlFlags) running(ctx context.Context) (all []daemon.Program, states []ctlState, silent []string, err error) {
	if f.dir != "" {
		if err = daemon.InDir(f.dir); err != nil {
			return nil, nil, nil, cli.Exit(cli.ExitFailure, fmt.Errorf("--runtime-dir %w", err))
		}
	}
	if all, silent, err = daemon.Programs(ctx); err != nil {
		return nil, nil, nil, cli.Exit(cli.ExitFailure, err)
	}
	var some []daemon.Program
	for _, p := range all {
		var s ctlState
		if err := json.Unmarshal(p.State, &s); err != nil {
			return nil, nil, nil, fmt.Errorf("program %s: %w; expected the same version of paceline", p.PID, err)
		}
		if s.PID = p.PID; !s.Idle {
			some, states = append(some, p), append(states, s)
		}
	}
	return some, states, silent, nil
}

// one returns the program that is meant.
func (f *ctlFlags) one(ctx context.Context) (p daemon.Program, s ctlState, err error) {
	all, states, silent, err := f.running(ctx)
	if err != nil {
		return p, s, err
	}
	var names []string
	for i, of := range states {
		if f.pid == of.PID || f.pid != "" && (f.pid == of.What || f.pid == of.File) || f.pid == "" && len(all) == 1 {
			return all[i], of, nil
		}
		names = append(names, "--pid "+of.PID+" ("+of.title()+")")
	}
	for _, pid := range silent {
		names = append(names, "--pid "+pid+", which does not answer")
	}
	switch {
	case len(names) == 0:
		err = cli.Exit(cli.ExitFailure, errors.New(noneGoesOn))
	case f.pid != "":
		err = cli.Usage(fmt.Errorf("--pid %s: no such program, expected %s", f.pid, strings.Join(names, ", or ")))
	case len(all) == 0:
		err = cli.Exit(cli.ExitFailure, fmt.Errorf("program %s does not answer, maybe since it is suspended",
			strings.Join(silent, ", ")))
	default:
		err = cli.Usage(fmt.Errorf("%d programs go on, expected %s", len(names), strings.Join(names, ", or ")))
	}
	return p, s, err
}

func (f *ctlFlags) turn(cmd *cobra.Command, t daemon.Turn) error {
	p, s, err := f.one(cmd.Context())
	if err != nil {
		return err
	}
	said, err := p.Turn(cmd.Context(), t)
	if err != nil {
		return cli.Exit(cli.ExitConfig, err)
	}
	_, err = fmt.Fprintf(cli.Harmless(cmd.OutOrStdout(), "text"), "%s, process %s: %s\n", s.title(), s.PID, said)
	return err
}

// ctlState is what a program says of itself.
type ctlState struct {
	PID  string `json:"pid"`
	Verb string `json:"verb"`
	// What is the input of a run, or the address of a proxy.
	What string `json:"what"`
	// File is the configuration file of a proxy.
	File     string    `json:"file,omitempty"`
	Began    time.Time `json:"began"`
	Progress string    `json:"progress,omitempty"`
	Waiting  int       `json:"waiting"`
	InFlight int       `json:"in_flight"`
	// Concurrency is how many requests may be in flight; 0: any number.
	Concurrency int      `json:"concurrency,omitempty"`
	Limits      []string `json:"limits,omitempty"`
	Keys        []ctlKey `json:"keys,omitempty"`
	// Wrong are the limits that refusals have shown to be too high, with what fits.
	Wrong []observe.LimitState `json:"wrong,omitempty"`

	// Of a proxy. Changes hold now, and MostInFlight are the bounds for each key.
	Clients      []proxy.ClientSetting `json:"clients,omitempty"`
	Pauses       []proxy.PauseSetting  `json:"pauses,omitempty"`
	MostInFlight []proxy.InFlight      `json:"most_in_flight,omitempty"`
	Changes      []string              `json:"changes,omitempty"`
	// Idle is a daemon that has served no program. It has nothing to change, and is not listed.
	Idle bool `json:"idle,omitempty"`
}

// ctlKey is a key of a program. A run without keys has one without a name.
type ctlKey struct {
	Name  string    `json:"name"`
	State string    `json:"state"`
	Until time.Time `json:"until,omitzero"`
	Why   string    `json:"why,omitempty"`
}

func (s *ctlState) title() string {
	if s.File != "" {
		return s.Verb + " " + s.What + " of " + s.File
	}
	return s.Verb + " " + s.What
}

func (f *ctlFlags) checkOutput() error {
	if f.output != "text" && f.output != "json" {
		return cli.Usage(fmt.Errorf("--output %q, expected text or json", f.output))
	}
	return nil
}

func (f *ctlFlags) list(cmd *cobra.Command) error {
	if err := f.checkOutput(); err != nil {
		return err
	}
	_, states, silent, err := f.running(cmd.Context())
	if err != nil {
		return err
	}
	out := cli.Harmless(cmd.OutOrStdout(), f.output)
	if f.output == "json" {
		return writeJSON(out, append([]ctlState{}, states...))
	}
	if len(states)+len(silent) == 0 {
		_, err := fmt.Fprintln(out, noneGoesOn)
		return err
	}
	var rows screen.Table
	rows.Head("pid", "program", "since", "waiting", "in flight", "limits")
	for _, s := range states {
		rows.Row(s.PID, text.Sanitize(s.title()), s.Began.Local().Format(time.TimeOnly),
			text.Thousands(int64(s.Waiting)),
			text.Thousands(int64(s.InFlight)), text.Sanitize(strings.Join(s.Limits, ", ")))
	}
	for _, pid := range silent {
		rows.Row(pid, "does not answer", "", "", "", "")
	}
	return rows.Write(out, screen.TableWidth)
}

func writeJSON(out io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", b)
	}
	return err
}

func (f *ctlFlags) show(cmd *cobra.Command) error {
	if err := f.checkOutput(); err != nil {
		return err
	}
	_, s, err := f.one(cmd.Context())
	if err != nil {
		return err
	}
	out := cli.Harmless(cmd.OutOrStdout(), f.output)
	if f.output == "json" {
		return writeJSON(out, s)
	}
	return s.write(out)
}

// write writes all of a program.
func (s *ctlState) write(out io.Writer) error {
	fmt.Fprintf(out, "%s, process %s, since %s\n", s.title(), s.PID, s.Began.Local().Format(time.DateTime))
	if s.Progress != "" {
		fmt.Fprintln(out, s.Progress)
	}
	for _, l := range s.Limits {
		fmt.Fprintf(out, "limit %s\n", l)
	}
	for i := range s.Wrong {
		fmt.Fprintln(out, wrongLine(&s.Wrong[i]))
	}
	for _, k := range s.Keys {
		line := "key " + k.Name
		if k.Name == "" {
			line = "all requests"
		}
		line += ": " + k.State
		if k.State == "paused" && !k.Until.IsZero() {
			line += " until " + k.Until.Local().Format(time.DateTime)
		}
		if k.Why != "" {
			line += ", " + k.Why
		}
		fmt.Fprintln(out, line)
	}
	s.writeProxy(out)
	most := "any number"
	if s.Concurrency > 0 {
		most = text.Thousands(int64(s.Concurrency)) + " at most"
	}
	_, err := fmt.Fprintf(out, "%s waiting, %s in flight (%s)\n",
		text.Thousands(int64(s.Waiting)), text.Thousands(int64(s.InFlight)), most)
	return err
}

// writeProxy writes what a run does not have.
func (s *ctlState) writeProxy(out io.Writer) {
	for _, x := range s.MostInFlight {
		fmt.Fprintf(out, "%s: %d in flight at most for each key\n", x.Upstream, x.Most)
	}
	for _, k := range s.Clients {
		fmt.Fprintf(out, "client %s: weight %g\n", k.Name, k.Weight)
	}
	for _, x := range s.Pauses {
		fmt.Fprintln(out, x)
	}
	if len(s.Changes) > 0 {
		fmt.Fprintf(out, "changed by its user: %s\n", strings.Join(s.Changes, "; "))
	}
}
