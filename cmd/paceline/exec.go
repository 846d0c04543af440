//go:build unix

package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/capture"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/forward"
	"github.com/paceline-go/paceline/internal/app/keeper"
	"github.com/paceline-go/paceline/internal/app/launch"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/provider"
)

const execLong = `Run a program, in any language and as it is, within the limits of the servers that it calls. The program
keeps its addresses. Its requests to the host of --to wait for their turn, and other hosts are reached unread.

The command joins this user's daemon, which it starts where there is none, and becomes the program: its exit code,
signals and terminal are the program's. Runs with the same host count together, also one after the other. The
environment leads the program to the daemon (HTTPS_PROXY and certificates; --print-env shows all of it). The
certificates hold for the named hosts alone, and for this run. Nothing is installed. At the end of the program,
one line on standard error has the figures. A program that reads no HTTPS_PROXY goes past the limits, and so do
those in Go and Ruby to an address of this machine: --capture leads them, too (Linux).`

const execExample = `  paceline exec --to https://api.example.com --limit 100/m -- python job.py
  paceline exec --to https://api.example.com --limit 100/m --share sqlite:limits.db -- python job.py
  paceline exec --preset openai:tier1 -- node eval.mjs
  paceline exec --config paceline.yaml -- make nightly`

// execFlags are the flags of paceline exec: those of the proxy that make sense for one program.
type execFlags struct {
	proxyFlags
	hidden   []string // variables of the environment that the program does not get
	keeper   int      // the process id of the program; 0: this is not the keeper
	isChild  bool     // this process becomes the program, and its parent awaits the figures
	inside   bool     // this process is in the namespaces of a captured program, and becomes it
	capture  bool     // the program's connections are captured
	local    []uint   // ports of this machine that a captured program reaches
	apart    bool     // a proxy of this run alone
	client   proxy.Client
	quiet    bool
	summary  string // a file
	sent     string // a file
	printEnv bool
	sum      string // of the file of --config
}

// notForExec are the flags of the proxy that are about other clients.
var notForExec = []string{"listen", "open", "client-key-env", "client-header", "max-waiting", "forward",
	"forward-bundle", "tunnels", "env", "tls-cert", "tls-key", "forwarded", "keep-host", "keep-links", "grace", "max-header",
	"max-connections", "max-frozen", "header-timeout", "idle-timeout", "stall", "admin", "log"}

func newExec() *cobra.Command {
	_, c := newExecFlags()
	return c
}

// newExecFlags returns the command, and where it puts its flags.
func newExecFlags() (*execFlags, *cobra.Command) {
	x := &execFlags{proxyFlags: proxyFlags{maxHeader: 256 << 10, maxBody: 1 << 30, maxFrozen: 64 << 20}}
	c := &cobra.Command{
		Use:     "exec [flags] -- PROGRAM [ARGUMENT...]",
		Short:   "Run a program as it is, within the limits of the servers that it calls",
		Long:    execLong,
		Example: execExample,
		Args:    x.arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case x.inside:
				return cli.Exit(cli.ExitConfig, launch.Inside(args))
			case x.keeper != 0:
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
	wait := p.Lookup("max-wait")
	wait.Usage, wait.DefValue = "longest wait for a turn. A request that would wait longer is refused at once "+
		"(default: as long as the program waits)", "0s"
	p.IntVar(&x.keeper, "keeper", 0, "the proxy of a run; for paceline itself")
	_ = p.MarkHidden("keeper")
	p.BoolVar(&x.isChild, "awaited", false, "its parent awaits the summary; for paceline itself")
	_ = p.MarkHidden("awaited")
	p.BoolVar(&x.inside, "inside", false, "in the namespaces of a program; for paceline itself")
	_ = p.MarkHidden("inside")
	p.BoolVar(&x.capture, "capture", false, "lead all connections of the program here, whatever it reads (Linux)")
	p.UintSliceVar(&x.local, "allow-local", nil, "ports of this machine that a captured program reaches")
	p.BoolVar(&x.apart, "apart", false, "a proxy of this run alone, which knows nothing of other runs")
	p.Float64Var(&x.client.Weight, "weight", 1, "this run's share beside other runs, where they want more than the limits allow")
	p.DurationVar(&x.client.HeadStart, "head-start", 0,
		"the requests of this run count as earlier by so much than those of other runs")
	p.BoolVarP(&x.quiet, "quiet", "q", false, "no line at the end")
	p.StringVar(&x.summary, "summary", "", "file for the figures of the end, as JSON")
	p.BoolVar(&x.printEnv, "print-env", false,
		"print the variables that are set for a program, with the programs that read them, and end")
	return x, c
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

// configured returns the configuration of the proxy, with defaults filled in.
func (x *execFlags) configured(cmd *cobra.Command) (c proxy.Config, err error) {
	x.log, x.hidden = "off", x.keyEnv
	if x.file == "" {
		if err := x.named(); err != nil {
			return c, err
		}
		if !cmd.Flag("max-wait").Changed {
			x.maxWait = keeper.Forever
		}
		if c, err = x.proxyFlags.config(cmd); err != nil {
			return c, err
		}
	} else {
		if err := besideConfig(cmd, "apart", "capture", "allow-local", "weight", "head-start", "keeper", "awaited", "quiet",
			"summary", "sent", "log-level"); err != nil {
			return c, err
		}
		file, err := loadProxy(x.file, x.lookup())
		if err != nil {
			return c, err
		}
		for _, from := range file.From {
			if name, ok := strings.CutPrefix(from, "env "); ok {
				x.hidden = append(x.hidden, name)
			}
		}
		c, x.sum = file.Config, hex.EncodeToString(file.Sum[:])
		if c.Log, c.Access, err = x.logs(cmd); err != nil {
			return c, err
		}
		c.MaxWait = max(c.MaxWait, keeper.Forever)
	}
	x.sent, c.Sent = cmp.Or(x.c.Sent, c.Sent), "" // it is of this run alone
	c.Listen, c.Admin, c.Open, c.TLS = "127.0.0.1:0", proxy.Off, false, nil
	c.Forward, c.Clients, c.Bounds.Stall = proxy.Forward{}, proxy.Clients{}, keeper.Forever
	if !(x.client.Weight > 0 && x.client.Weight <= 1e6) || x.client.HeadStart < 0 {
		return c, cli.Usage(fmt.Errorf("--weight %v and --head-start %v, expected above 0 and up to a million, and 0s or more",
			x.client.Weight, x.client.HeadStart))
	}
	if i := slices.IndexFunc(x.local, func(p uint) bool { return p < 1 || p > 65535 }); i >= 0 {
		return c, cli.Usage(fmt.Errorf("--allow-local %d, expected a port from 1 to 65535", x.local[i]))
	}
	if err := x.dividedByStore(cmd, &c); err != nil {
		return c, cli.Usage(err)
	}
	if c, err = c.Checked(); err != nil {
		return c, cli.Usage(inFlags(err))
	}
	return c, nil
}

// dividedByStore refuses flags for runs of one daemon where a store divides the limits.
func (x *execFlags) dividedByStore(cmd *cobra.Command, c *proxy.Config) error {
	if c.Share.Store == "" {
		return nil
	}
	if cmd.Flag("weight").Changed {
		return fmt.Errorf("--weight %v with --share, which divides the limits by its own weights: expected --share-weight %v",
			x.client.Weight, x.client.Weight)
	}
	if cmd.Flag("head-start").Changed {
		return errors.New("--head-start with --share: a store knows no order of requests; expected --share-weight, such as 1000 " +
			"for a run that comes before all others")
	}
	return nil
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
	if what := launch.TakenOut(os.Environ(), hosts); what != "" && !x.capture {
		return cli.Exit(cli.ExitConfig,
			fmt.Errorf("%s: the program would go past the limits; expected it without, or --capture (Linux)", what))
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
	if err == nil && x.capture {
		_, _, err = capture.Command(self)
	}
	if err != nil {
		return cli.Exit(cli.ExitConfig, err)
	}
	if x.summary != "" && !x.isChild {
		return x.awaited(cmd, self, args)
	}
	if x.alone(&c) {
		line := append([]string{self, "exec", "--keeper", strconv.Itoa(os.Getpid())}, given(cmd.Flags())...)
		err = launch.Run(path, args, line, x.hidden)
	} else {
		var made launch.Made
		if made, err = x.join(cmd, self, args[0]); err == nil {
			err = launch.Become(path, args, made, x.hidden)
		}
	}
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
