//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/app/launch"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/provider"
)

const execLong = `Run a program, in any language and as it is, within the limits of the servers that it calls. The program
keeps its addresses. Its requests to the host of --to wait for their turn, and other hosts are reached unread.

The command starts a proxy for this run and becomes the program: its exit code, signals and terminal are the
program's. The environment leads the program to the proxy (HTTPS_PROXY and certificates; --print-env shows all
of it). The certificates hold for the named hosts alone, and for this run. Nothing is installed, and nothing
stays. At the end of the program, one line on standard error has the figures.`

const execExample = `  paceline exec --to https://api.example.com --limit 100/m -- python job.py
  paceline exec --preset openai:tier1 -- node eval.mjs
  paceline exec --config paceline.yaml -- make nightly`

// execFlags are the flags of paceline exec: those of the proxy that make sense for one program.
type execFlags struct {
	proxyFlags
	hidden   []string // variables of the environment that the program does not get
	keeper   int      // the process id of the program; 0: this is not the keeper
	quiet    bool
	summary  string // a file
	printEnv bool
}

// notForExec are the flags of the proxy that are about other clients.
var notForExec = []string{"listen", "open", "client-key-env", "client-header", "max-waiting", "forward",
	"forward-bundle", "tunnels", "env", "tls-cert", "tls-key", "forwarded", "keep-host", "keep-links", "grace", "max-header",
	"max-connections", "max-frozen", "header-timeout", "idle-timeout", "stall", "admin", "log"}

func newExec() *cobra.Command {
	x := execFlags{proxyFlags: proxyFlags{maxHeader: 256 << 10, maxBody: 1 << 30, maxFrozen: 64 << 20}}
	c := &cobra.Command{
		Use:     "exec [flags] -- PROGRAM [ARGUMENT...]",
		Short:   "Run a program as it is, within the limits of the servers that it calls",
		Long:    execLong,
		Example: execExample,
		Args:    x.arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if x.keeper != 0 {
				return x.keep(cmd)
			}
			return x.run(cmd, args)
		},
	}
	all := &cobra.Command{}
	x.add(all)
	all.Flags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(notForExec, f.Name) {
			c.Flags().AddFlag(f)
		}
	})
	p := c.Flags()
	p.IntVar(&x.keeper, "keeper", 0, "the proxy of a run; for paceline itself")
	_ = p.MarkHidden("keeper")
	p.BoolVarP(&x.quiet, "quiet", "q", false, "no line at the end")
	p.StringVar(&x.summary, "summary", "", "file for the figures of the end, as JSON")
	p.BoolVar(&x.printEnv, "print-env", false,
		"print the variables that are set for a program, with the programs that read them, and end")
	completeNames(c)
	return c
}

func (x *execFlags) arguments(c *cobra.Command, args []string) error {
	const example = "paceline exec --to https://api.example.com --limit 100/m -- "
	switch dash := c.ArgsLenAtDash(); {
	case x.keeper != 0 || x.printEnv:
		return cli.NoArguments(c, args)
	case dash > 0 || dash < 0 && len(args) > 0:
		return fmt.Errorf("%q before --, expected the program after it: %s%s", args[0], example,
			strings.Join(args, " "))
	case len(args) == 0:
		return errors.New("no program, expected it after --: " + example + "python job.py")
	}
	return nil
}

// forever is longer than any program waits: a program's own timeout decides.
const forever = 365 * 24 * time.Hour

// configured returns the configuration of the proxy, with defaults filled in.
func (x *execFlags) configured(cmd *cobra.Command) (c proxy.Config, err error) {
	x.log, x.hidden = "off", x.keyEnv
	if x.file == "" {
		if err := x.named(); err != nil {
			return c, err
		}
		if !cmd.Flag("max-wait").Changed {
			x.maxWait = forever
		}
		if c, err = x.proxyFlags.config(cmd); err != nil {
			return c, err
		}
	} else {
		if err := besideConfig(cmd, "keeper", "quiet", "summary", "log-level"); err != nil {
			return c, err
		}
		file, err := loadProxy(x.file)
		if err != nil {
			return c, err
		}
		for _, from := range file.From {
			if name, ok := strings.CutPrefix(from, "env "); ok {
				x.hidden = append(x.hidden, name)
			}
		}
		c = file.Config
		if c.Log, c.Access, err = x.logs(cmd); err != nil {
			return c, err
		}
		c.MaxWait = max(c.MaxWait, forever)
	}
	c.Listen, c.Admin, c.Open, c.TLS = "127.0.0.1:0", proxy.Off, false, nil
	c.Forward, c.Clients, c.Bounds.Stall = proxy.Forward{}, proxy.Clients{}, forever
	if c, err = c.Checked(); err != nil {
		return c, cli.Usage(inFlags(err))
	}
	return c, nil
}

// named finds the server by the preset, if it is not given.
func (x *execFlags) named() error {
	if x.to != "" || x.u.Preset == "" {
		return nil
	}
	if _, ok := provider.LookupPreset(x.u.Preset); !ok {
		return cli.Usage(unknownPreset(x.u.Preset))
	}
	publisher, _, _ := strings.Cut(x.u.Preset, ":")
	for _, row := range provider.Providers() {
		for _, host := range row.Hosts {
			if row.Name == publisher && !strings.HasPrefix(host, ".") {
				x.to = "https://" + host
				return nil
			}
		}
	}
	return cli.Usage(fmt.Errorf("--preset %s without --to: its host is not known, expected --to URL", x.u.Preset))
}

// run becomes the program.
func (x *execFlags) run(cmd *cobra.Command, args []string) error {
	if x.printEnv {
		return x.printVariables(cmd.OutOrStdout())
	}
	c, err := x.configured(cmd)
	if err != nil {
		return err
	}
	var hosts []*url.URL
	for _, u := range c.Upstreams {
		hosts = append(hosts, u.To)
	}
	if what := launch.TakenOut(os.Environ(), hosts); what != "" {
		return cli.Exit(cli.ExitConfig,
			fmt.Errorf("%s: the program would go past the limits; expected it without", what))
	}
	const notFound, notExecutable = 127, 126 // as shells have it
	path, err := exec.LookPath(args[0])
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist):
		return cli.Exit(notFound, err)
	case err != nil:
		return cli.Exit(notExecutable, err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	keeper := append([]string{self, "exec", "--keeper", strconv.Itoa(os.Getpid())}, given(cmd.Flags())...)
	err = launch.Run(path, args, keeper, x.hidden)
	if k, ok := errors.AsType[*launch.KeeperError](err); ok {
		return cli.Exit(k.Code, k)
	}
	if p, ok := errors.AsType[*os.PathError](err); ok && p.Op == "exec" {
		return cli.Exit(notExecutable, err)
	}
	return cli.Exit(cli.ExitConfig, err)
}

// given are the flags of a command line, again.
func given(flags *pflag.FlagSet) (all []string) {
	flags.Visit(func(f *pflag.Flag) {
		if values, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range values.GetSlice() {
				all = append(all, "--"+f.Name+"="+v)
			}
			return
		}
		all = append(all, "--"+f.Name+"="+f.Value.String())
	})
	return all
}

func (x *execFlags) printVariables(w io.Writer) error {
	at := forward.At{URL: "the proxy", Bundle: "the certificates"}
	for _, v := range forward.Variables {
		fmt.Fprintf(w, "%-34s %-17s %s\n", v.Name, v.Of(at), v.For)
	}
	for _, v := range launch.FileVariables() {
		fmt.Fprintf(w, "%-34s %-17s %s\n", v[0], "a file", v[1])
	}
	return nil
}

// closed is a context that ends when the keeper is asked to stop.
func closed(ctx context.Context, signals <-chan os.Signal) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
