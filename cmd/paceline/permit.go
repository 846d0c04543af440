//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/daemon"
	"github.com/paceline-go/paceline/internal/app/permit"
	"github.com/paceline-go/paceline/internal/app/run/format"
)

const permitLong = `Wait for the turn at a limit of paceline daemon, run a command, and report how it ended.

NAME is that of a --limit, or a server to which paceline exec leads programs: then HTTP and permits count in one limit.
It is for what is not HTTP: a mail, a query, an order, a call by somebody else's program. The command is one request.
Of a server with several keys or targets, PACELINE_PERMIT_KEY and PACELINE_PERMIT_TARGET name those that it has to use.
Exit code 0 is an accepted request, and a code of --refused-code is a refused one. With any other code the request
may have been sent, and counts. The exit code is the command's; signals reach the command.

Nothing is sent without a permit. If the daemon is away, this command waits 30 s for it.`

const permitExample = `  paceline daemon --limit orders=50/s --limit mail=14/s &
  paceline permit orders -- ./send-one.sh
  paceline permit mail --max-wait 30s -- sendmail -t < mail.txt`

// permitFlags are the flags of paceline permit.
type permitFlags struct {
	cost    string
	maxWait time.Duration
	client  string
	refused []int
	away    time.Duration

	credentialEnv string
}

func newPermit() *cobra.Command {
	f := permitFlags{}
	c := &cobra.Command{
		Use:     "permit [flags] NAME -- COMMAND [ARGUMENT...]",
		Short:   "Wait for the turn at a limit of the daemon, and run a command",
		Long:    permitLong,
		Example: permitExample,
		Args:    permitArguments,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	p := c.Flags()
	p.StringVar(&f.cost, "cost", "", "what the request costs beside one request: "+permit.CostForms)
	p.DurationVar(&f.maxWait, "max-wait", 0, "longest wait for the turn; if more is expected, the command ends at once (default: as "+
		"long as it takes)")
	p.StringVar(&f.credentialEnv, "credential-env", "", "name of an environment variable with the key of the request, for a server of "+
		"paceline exec: the whole value of Authorization, such as Bearer KEY, or KEY alone if it is in another field or a parameter. "+
		"The permit counts in the limits of that key")
	p.StringVar(&f.client, "client", "", "name of the client whose turn it is: clients get turns by weight")
	p.IntSliceVar(&f.refused, "refused-code", nil, "exit codes of the command that mean a refused request, such as 75")
	p.DurationVar(&f.away, "daemon-wait", 30*time.Second, "how long to wait for a daemon that is away")
	return c
}

func permitArguments(c *cobra.Command, args []string) error {
	const example = "expected paceline permit orders -- ./send-one.sh"
	switch dash := c.ArgsLenAtDash(); {
	case len(args) == 0 || dash == 0:
		return errors.New("no limit, " + example)
	case dash != 1:
		return fmt.Errorf("the command does not begin after %q --, %s", args[0], example)
	case len(args) == 1:
		return errors.New("no command after --, " + example)
	}
	return nil
}

// Exit codes as shells have them.
const (
	notFound      = 127
	notExecutable = 126
	bySignal      = 128
)

// errAway means that no daemon came in time.
var errAway = errors.New("the daemon is away")

func (f *permitFlags) run(cmd *cobra.Command, args []string) error {
	cost, err := permit.ParseCost(f.cost)
	if err != nil {
		return cli.Usage(fmt.Errorf("--cost %w", err))
	}
	w := permit.Want{Limit: args[0], Cost: cost, Bounded: cmd.Flag("max-wait").Changed, MaxWait: f.maxWait}
	if f.credentialEnv != "" {
		keys, err := format.KeysFromEnv("credential-env", []string{f.credentialEnv}, os.LookupEnv)
		if err != nil {
			return cli.Exit(cli.ExitConfig, err)
		}
		w.Credential = keys[0].Secret
	}
	child := exec.Command(args[1], args[2:]...)
	switch {
	case errors.Is(child.Err, exec.ErrNotFound):
		return cli.Exit(notFound, child.Err)
	case child.Err != nil:
		return cli.Exit(notExecutable, child.Err)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	client, granted, err := f.acquire(cmd.Context(), w, signals)
	if err != nil {
		return err
	}
	defer client.HTTP.CloseIdleConnections()
	child.Env = permitEnv(child.Environ(), granted)
	child.Stdin, child.Stdout, child.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	state, err := f.runs(child, client, granted, signals)
	result, code := "unsent", notExecutable
	if err == nil {
		result, code = f.ended(state)
	}
	settled, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = client.Settle(settled, granted, result) // else the daemon takes it as unknown
	if err != nil {
		return cli.Exit(code, err)
	}
	return endAs(state, code)
}

// endAs ends this process as a command ended: by the same signal, or with code.
func endAs(state *os.ProcessState, code int) error {
	if sig := state.Sys().(syscall.WaitStatus); sig.Signaled() {
		endBy(sig.Signal())
	}
	return cli.Exit(code, nil)
}

// Variables of the command: in whose limits its permit counts.
const (
	permitKey    = "PACELINE_PERMIT_KEY"
	permitTarget = "PACELINE_PERMIT_TARGET"
)

// permitEnv is the environment of a command with a permit. An outer permit's names say nothing of this one.
func permitEnv(env []string, g permit.Granted) []string {
	for _, v := range [...][2]string{{permitKey, g.Key}, {permitTarget, g.Target}} {
		env = slices.DeleteFunc(env, func(pair string) bool { return strings.HasPrefix(pair, v[0]+"=") })
		if v[1] != "" {
			env = append(env, v[0]+"="+v[1])
		}
	}
	return env
}

// passed are the signals that reach the command. Those of a terminal reach it anyway.
var passed = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH}

// acquire waits for the daemon and for the turn. A daemon that is killed meanwhile is waited for again.
func (f *permitFlags) acquire(ctx context.Context, w permit.Want, signals <-chan os.Signal) (c *permit.Client, g permit.Granted,
	err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case s := <-signals:
				if n := s.(syscall.Signal); n != syscall.SIGWINCH {
					cancel(cli.Exit(bySignal+int(n), errInterrupted))
				}
			}
		}
	}()
	for seen := time.Now(); ; {
		c, err := connect(ctx)
		if err == nil {
			c.Name = f.client
			seen = time.Now()
			g, err = c.Acquire(ctx, w)
		}
		if err == nil {
			return c, g, nil
		}
		if cause := context.Cause(ctx); cause != nil {
			return nil, g, cause
		}
		if again, err := f.again(err, time.Since(seen)); !again {
			return nil, g, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func connect(ctx context.Context) (*permit.Client, error) {
	h, err := daemon.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return &permit.Client{HTTP: h}, nil
}

// again reports whether to try again after an error, and else what the error is for the user. away is
// how long there was no daemon.
func (f *permitFlags) again(err error, away time.Duration) (bool, error) {
	if other, ok := errors.AsType[*daemon.VersionError](err); ok {
		return false, cli.Exit(cli.ExitConfig, other)
	}
	if x, ok := errors.AsType[*permit.RefusedError](err); ok {
		switch {
		case x.Kind == "stopping":
		case x.Status == 429:
			return false, cli.Exit(cli.ExitBudget, x)
		default:
			return false, cli.Exit(cli.ExitConfig, x)
		}
	}
	if away < f.away {
		return true, nil
	}
	return false, cli.Exit(cli.ExitFailure, fmt.Errorf("%w for %v, and nothing goes without a permit: %w", errAway, f.away, err))
}

// runs runs the command, and renews its permit until it ends.
func (f *permitFlags) runs(child *exec.Cmd, c *permit.Client, g permit.Granted, signals <-chan os.Signal) (*os.ProcessState, error) {
	renew := time.NewTicker(g.TTL / 4)
	defer renew.Stop()
	return runChild(child, signals, renew.C, func(ctx context.Context) { _, _ = c.Renew(ctx, g) }) // else it ends as unknown
}

// runChild runs a command to its end, and passes signals on to it. At each tick it calls each.
func runChild(child *exec.Cmd, signals <-chan os.Signal, ticks <-chan time.Time, each func(context.Context)) (
	*os.ProcessState, error) {
	runtime.LockOSThread() // of whose end the command would notice
	defer runtime.UnlockOSThread()
	dieTogether(child)
	if err := child.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks:
				each(ctx)
			case s := <-signals:
				if !ofTerminal(s) {
					_ = child.Process.Signal(s)
				}
			}
		}
	}()
	err := child.Wait()
	cancel()
	<-over
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		err = nil
	}
	return child.ProcessState, err
}

// ended is what the end of the command says about the request.
func (f *permitFlags) ended(s *os.ProcessState) (result string, code int) {
	if status := s.Sys().(syscall.WaitStatus); status.Signaled() {
		return "unknown", bySignal + int(status.Signal())
	}
	switch code = s.ExitCode(); {
	case code == 0:
		return "accepted", code
	case slices.Contains(f.refused, code):
		return "refused", code
	}
	return "unknown", code
}

// ofTerminal reports whether a signal is one that a terminal sends to all processes in front, the
// command too.
func ofTerminal(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT && s != syscall.SIGWINCH {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	front, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && front == unix.Getpgrp()
}

// endBy ends this process by the signal that ended the command, if that is one of those that ask for an
// end.
func endBy(s syscall.Signal) {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL:
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s)
		time.Sleep(time.Second) // the signal comes before that
	}
}
