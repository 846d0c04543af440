package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/observe/dashboard"
)

const proxyLong = `Pass HTTP requests on, each at the first moment at which the server surely takes it. A program in any language needs only
another base URL (OPENAI_BASE_URL=http://127.0.0.1:7878/v1). It sends at once. If the limit requires it, the answer comes later.

If the server refuses a request, the proxy waits and sends it again where that does no harm. If the expected wait is longer than
--max-wait, the proxy refuses the request at once, with 429 and Retry-After. A client may have a shorter limit
(Paceline-Max-Wait: 30, a timeout of an SDK or of gRPC). Each client, known by its key or address, has a line of its own.
Paceline-Waited in an answer has the milliseconds that the request waited.

The proxy listens on this machine only, unless clients have keys (--client-key-env), or with --open. After Ctrl-C or SIGTERM it
takes no new requests and finishes those in flight. A second signal breaks them off. After SIGUSR1 it tries keys again that are
out of use (banned, denied, without credit). After SIGUSR2 it starts its program anew, which takes over without a drop (--state).`

const proxyExample = `  paceline proxy --to https://api.openai.com --preset openai:tier1
  paceline proxy --to https://api.example.com --limit 100/m --key-env K1 -H 'X-Api-Key: {key}'
  curl -i http://127.0.0.1:7878/v1/things`

func newProxy() *cobra.Command {
	f := proxyFlags{maxHeader: 64 << 10, maxBody: 1 << 30, maxFrozen: 64 << 20, instead: proxyInit()}
	c := &cobra.Command{
		Use:     "proxy",
		Short:   "Pass requests of programs in any language on within a server's limits",
		Long:    proxyLong,
		Example: proxyExample,
		Args:    f.arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.instead.Wanted() {
				return f.instead.Run(cmd, args)
			}
			return f.run(cmd)
		},
	}
	f.add(c)
	f.addService(c.Flags())
	f.instead.Add(c.Flags())
	c.AddCommand(newProxyCheck(), newProxyCA())
	return c
}

// arguments checks the arguments: --init takes the name of a file, and without --init there are
// none.
func (f *proxyFlags) arguments(c *cobra.Command, args []string) error {
	switch {
	case f.instead.Wanted():
		return f.instead.Check(args)
	case len(args) == 1 && c.Flags().NFlag() == 0 && isFile(args[0]):
		return fmt.Errorf("%s is an argument, expected it as a flag: paceline proxy --config %s", args[0],
			cli.Quoted(args[0]))
	}
	return cli.NoArguments(c, args)
}

// run makes a proxy of the flags and serves until a signal comes.
func (f *proxyFlags) run(cmd *cobra.Command) error {
	if cmd.Flags().NFlag() == 0 {
		return cli.Usage(errors.New("expected a server and what it allows, such as: paceline proxy --to " +
			"https://api.example.com --limit 100/m; see paceline proxy --help"))
	}
	if f.file != "" {
		return f.runFile(cmd)
	}
	c, err := f.config(cmd)
	if err != nil {
		return err
	}
	checked, err := c.Checked()
	if err != nil {
		return cli.Usage(inFlags(err))
	}
	if f.env != "" {
		return printEnvironment(cmd.OutOrStdout(), checked, f.env)
	}
	c.Live, c.Flags = true, true // paceline ctl changes it
	p, l, err := f.open(cmd, &c, func(err error) error { return cli.Usage(inFlags(err)) })
	if err != nil {
		return err
	}
	defer c.Shared.Close()
	signals, stop := notified()
	defer stop()
	return f.attend(cmd, p, c, l, signals, nil)
}

// open makes the proxy, with its store and its listeners. These come first: a proxy that cannot have its
// addresses does not touch the files that another one may use. inWords tells of a wrong configuration.
func (f *proxyFlags) open(cmd *cobra.Command, c *proxy.Config, inWords func(error) error) (p *proxy.Proxy, l listeners, err error) {
	if err = openProxyShare(cmd.Context(), c); err != nil {
		return nil, l, err
	}
	if c.Taken, err = f.takeOver(cmd, c); err == nil {
		l, err = openListeners(c)
	}
	if err == nil {
		c.Beside = proxy.Beside{Folder: notesIn(cmd, f.recent), Door: "proxy", Way: throughProxy(c, l.main.Addr().String())}
		if p, err = proxy.New(*c); err == nil {
			return p, l, nil
		}
		if err = inUse(inWords(err)); cli.Code(err) == cli.ExitFailure {
			err = fmt.Errorf("%w; expected another file, or --takeover, which takes the place of that process", err)
		}
	}
	l.close()
	if c.Taken != nil {
		c.Taken.Close()
	}
	c.Shared.Close()
	return nil, l, err
}

// throughProxy says how other programs send to an upstream by a proxy.
func throughProxy(c *proxy.Config, at string) func(*proxy.Upstream) string {
	scheme := "http://"
	if c.TLS != nil {
		scheme = "https://"
	}
	return func(u *proxy.Upstream) string {
		return fmt.Sprintf("with %s in place of %s in its requests, they do", reachable(scheme+at+u.Path),
			secret.SanitizeAddress(u.To.String()))
	}
}

// inUse is the error of a proxy that does not begin. A state file of another process is a matter of what runs, and
// not of the configuration.
func inUse(err error) error {
	if _, is := errors.AsType[*proxy.InUseError](err); is {
		return cli.Exit(cli.ExitFailure, err)
	}
	return err
}

// teller writes what people are to know, whatever the level of the log: a line in the form of --log.
func (f *proxyFlags) teller(cmd *cobra.Command) func(line string) {
	if f.log == "json" {
		log := logOf(cmd, f.log, slog.LevelInfo)
		return func(line string) { log.Info(line) }
	}
	errs := cli.Harmless(cmd.ErrOrStderr(), "text")
	return func(line string) { fmt.Fprintln(errs, line) }
}

// attend serves until a signal comes. The second signal breaks off requests in flight. r is nil without a
// configuration file.
func (f *proxyFlags) attend(cmd *cobra.Command, p *proxy.Proxy, c proxy.Config, l listeners, signals <-chan os.Signal,
	r *reload) error {
	cli.Ballast()
	again, next := make(chan os.Signal, 1), make(chan os.Signal, 1)
	notifyAgain(again, next)
	defer signal.Stop(again)
	defer signal.Stop(next)
	tell := f.teller(cmd)
	watched, h, err := mountPage(p, l, r, tell)
	if err != nil {
		l.close()
		return err
	}
	defer watched.Close()
	if l.admin != nil { // the page records from now on, so that its first visitor sees the past
		ctx, stop := context.WithCancel(cmd.Context())
		defer stop()
		go watched.Record(ctx)
	}
	s := p.Start(l.main, l.admin)
	letGo := h.open(func(err error) { c.Log.Warn("paceline ctl does not reach this proxy", "err", err) })
	defer letGo()
	serveMetrics(&c, p, s, l.metrics, r)
	var handed atomic.Bool
	forwards, err := serveForward(c, s, l.forward)
	if err == nil {
		err = passOn(&c, s, proxy.Handover{Listeners: l.goingOver(&c), Handed: func() {
			handed.Store(true)
			letGo()
			staysBehind(p, tell)
		}})
	}
	if err != nil {
		s.Stop()
		s.Stop()
		return cmp.Or(err, s.Wait())
	}
	if tell(strings.TrimSpace(proxyGreeting(c, l).text())); forwards != "" {
		tell(forwards)
	}
	tellSystemd := func(state string) {
		if err := proxy.Notify(state, os.Getenv); err != nil {
			c.Log.Warn("systemd is not told", "state", state, "err", err)
		}
	}
	if c.Taken != nil {
		tellSystemd(fmt.Sprintf("READY=1\nMAINPID=%d", os.Getpid()))
	} else {
		tellSystemd("READY=1")
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	var stopped time.Time
	for done := cmd.Context().Done(); ; {
		select {
		case err := <-ended:
			return err
		case <-done: // a test ends it
			done = nil
		case <-again:
			tell(triedAgain(p.Readmit()))
			continue
		case <-next:
			err := startNext(func(err error) {
				if !handed.Load() {
					c.Log.Error("the next process has ended before it took over, as it says above; this one goes on", "err", err)
				}
			})
			if err != nil {
				c.Log.Error("the next process does not start", "err", err)
			}
			continue
		case s := <-signals:
			if !stopped.IsZero() && !isAnother(s, stopped) {
				continue
			}
		}
		tellSystemd("STOPPING=1")
		tell("stopping: finishing what is in flight; once more breaks it off")
		s.Stop()
		stopped = time.Now()
	}
}

// mountPage mounts the page, the numbers, and the forms that change the proxy.
func mountPage(p *proxy.Proxy, l listeners, r *reload, tell func(string)) (*dashboard.Page, *helm, error) {
	h := helmOf(p, "proxy", l.main.Addr().String(), r.file(), tell)
	watched, err := dashboard.New(dashboard.Config{Live: p.Sources, Title: "paceline proxy", Forms: h.reaches,
		Beside: func() []string { return append(r.lines(), settingLines(p)...) }})
	if err != nil {
		return nil, nil, err
	}
	p.Mount("/", watched)
	p.Mount("/metrics", proxyMetrics(p, r))
	if l.admin != nil {
		p.MountForms(knobsPath, h.serves("http://"+l.admin.Addr().String()))
	}
	return watched, h, nil
}

// triedAgain writes which keys are back in use.
func triedAgain(keys []string) string {
	if len(keys) == 0 {
		return "no key is out of use"
	}
	return "tried again: " + strings.Join(keys, ", ")
}

// listeners are those of a proxy. Each but main may be nil.
type listeners struct{ main, admin, forward, metrics net.Listener }

func (l listeners) close() {
	for _, x := range []net.Listener{l.main, l.admin, l.forward, l.metrics} {
		if x != nil {
			x.Close()
		}
	}
}

// openListeners opens the addresses, or takes the listeners that systemd has opened.
func openListeners(c *proxy.Config) (l listeners, err error) {
	if l.main, l.admin, err = proxy.Inherited(os.Getenv); err != nil {
		return l, cli.Exit(cli.ExitConfig, err)
	}
	warnOfPort(c, "listen", c.Listen, l.main)
	warnOfPort(c, "admin", c.Admin, l.admin)
	for _, x := range []struct {
		to                 *net.Listener
		use, address, flag string
	}{{&l.main, "main", c.Listen, "--listen"}, {&l.admin, "admin", c.Admin, "--admin"},
		{&l.forward, "forward", c.Forward.Listen, "--forward"}, {&l.metrics, "metrics", c.Metrics.Listen, "--metrics"}} {
		if *x.to != nil || x.address == "" && x.use != "main" && x.use != "admin" || x.address == proxy.Off {
			continue
		}
		if *x.to, err = listening(c, x.use, x.address, x.flag); err != nil {
			return l, err
		}
	}
	return l, nil
}

// warnOfPort tells if systemd opened another port than that of a setting of the file. l may be nil.
func warnOfPort(c *proxy.Config, setting, address string, l net.Listener) {
	if l == nil || c.Flags { // a flag has a default, which nobody may have meant
		return
	}
	_, want, err := net.SplitHostPort(address)
	if _, port, _ := net.SplitHostPort(l.Addr().String()); err == nil && port != want {
		c.Log.Warn("systemd opened another port than the file has, and that of systemd holds", "setting", setting,
			"file", address, "opened", l.Addr().String())
	}
}

func proxyGreeting(c proxy.Config, l listeners) greeting {
	scheme := "http"
	if c.TLS != nil {
		scheme = "https"
	}
	var to []string
	for _, u := range c.Upstreams {
		for _, x := range u.Servers() {
			to = append(to, secret.SanitizeAddress(x.To.String()))
		}
	}
	g := greeting{what: fmt.Sprintf("passing on from %s to %s", reachable(scheme+"://"+l.main.Addr().String()),
		text.Some(to, 3))}
	if l.admin != nil {
		g.what += fmt.Sprintf("; to look at: http://%s/", l.admin.Addr())
	}
	if l.metrics != nil {
		g.what += fmt.Sprintf("; numbers: http://%s/metrics", l.metrics.Addr())
	}
	if c.Taken != nil {
		g.what += fmt.Sprintf("; taken over from process %d", c.Taken.PID)
	}
	g.what += fmt.Sprintf("; paceline %s, process %d", cli.Version(), os.Getpid())
	return g
}

// inFlags turns an error about a field of the configuration into one about the flag behind the
// field.
func inFlags(err error) error {
	e, ok := errors.AsType[*proxy.ConfigError](err)
	if !ok {
		return err
	}
	name := strings.TrimPrefix(e.Field, "Upstreams[0].")
	name, _, _ = strings.Cut(name, "[")
	if name = strings.TrimPrefix(name, "Bounds."); proxyFields[name] != "" {
		return fmt.Errorf("--%s %w", proxyFields[name], e.Err)
	}
	return err
}

// proxyFields maps fields of the configuration to their flags.
var proxyFields = map[string]string{
	"Listen": "listen", "Forward.Listen": "forward", "Forward.Bundle": "forward-bundle", "Forward.Tunnels": "tunnels",
	"State": "state", "Sent": "sent", "Handover": "handover", "Metrics.Listen": "metrics", "Auto": "limit",
	"Admin": "admin", "Grace": "grace", "To": "to", "H2C": "to",
	"Preset": "preset", "PerSecond": "per-second", "Limits": "limit", "Use": "use",
	"Ramp": "ramp", "Strangers": "strangers", "InFlight": "in-flight",
	"Share": "share", "Arrivals": "latency-max", "Keys": "key-env", "Header": "header", "Query": "query",
	"Attempts": "attempts", "ConnectTimeout": "connect-timeout", "Connections": "max-connections", "Frozen": "max-frozen",
}

// logOf returns a logger that writes in the form of --log, json or text. With any other form it
// writes text. Durations are in milliseconds, and their names say so.
func logOf(cmd *cobra.Command, form string, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindDuration {
			return slog.Float64(a.Key+"_ms", float64(a.Value.Duration().Microseconds())/1000)
		}
		return a
	}}
	if form == "json" {
		return slog.New(slog.NewJSONHandler(cli.Harmless(cmd.ErrOrStderr(), "json"), options))
	}
	return slog.New(slog.NewTextHandler(cli.Harmless(cmd.ErrOrStderr(), "text"), options))
}
