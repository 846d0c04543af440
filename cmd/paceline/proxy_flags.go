package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/charge"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
)

// proxyFlags are the flags of paceline proxy. Those whose value needs no reading are fields of c and u.
type proxyFlags struct {
	minuteFlags
	c                             proxy.Config
	u                             proxy.Upstream
	file                          string // --config
	env                           string // --env
	instead                       cli.Initial
	to, provider                  string
	limits, charges               []string
	headers, query                []string
	keyEnv, clientKeyEnv, keyIn   []string
	maxWait, timeout, maxOutage   time.Duration
	maxHeader, maxBody, maxFrozen byteSize
	tlsCert, tlsKey, caFile       string
	log, logLevel                 string
	store                         storeFlags
	takeover, recent              bool
	metricsToken                  string
	getenv                        func(string) (string, bool) // nil: that of this process
}

// lookup reads the environment of whoever has given the flags.
func (f *proxyFlags) lookup() func(string) (string, bool) {
	if f.getenv != nil {
		return f.getenv
	}
	return os.LookupEnv
}

func (f *proxyFlags) add(c *cobra.Command) {
	p := c.Flags()
	p.StringVar(&f.file, "config", "",
		"file with all settings: several servers, clients, keys; see paceline proxy --init")
	p.StringVar(&f.to, "to", "",
		"the URL of the server. A path in it is put in front of each request's path; h2c://HOST is HTTP/2 without TLS")
	p.StringArrayVar(&f.limits, "limit", nil,
		"the server's limit, per key: "+rate.Forms+", or "+rate.ZoneForm+
			" for the days of a place; 'search: 30/m' is of one resource; repeatable: all hold; 'auto' finds it out; 'none' if "+
			"there is none")
	p.StringArrayVar(&f.charges, "charge", nil, chargeUsage)
	p.BoolVar(&f.u.Strangers, "strangers", false,
		"with --limit auto: others use the same keys, so take a fair share of what the server states")
	p.StringVar(&f.u.Preset, "preset", "", "published limits by name, such as openai:tier1; with --limit, all hold")
	f.minuteFlags.add(p, "")
	p.BoolVar(&f.u.PerSecond, "per-second", false,
		"limits per minute of --preset, --rpm, --tpm, --itpm, --otpm also hold per second, 60000 as 1000, rounded "+
			"down. OpenAI documents that they may")
	p.IntVar(&f.u.InFlight, "in-flight", 0, "most requests in flight at the server, per key (default: any number)")
	partVar(p, &f.u.Use, "use", useUsage)
	p.DurationVar(&f.u.Ramp, "ramp", 0, rampUsage)
	p.BoolVar(&f.u.Tokens, "tokens", false, "count tokens of language models even without a limit of tokens")
	p.BoolVar(&f.u.Arrivals.RejectsFree, "rejects-free", false, "the server does not count requests that it refuses with 429")
	p.DurationVar(&f.u.Arrivals.OneWayMax, "latency-max", 0,
		"your promise: the server counts each request within this time of its send. The proxy is a little faster, and "+
			"as safe as the promise")
	p.StringVar(&f.provider, "provider", "",
		"provider whose forms of refusals are known (default: by host, by --preset, or by the answers); see paceline "+
			"explain --providers")
	p.StringSliceVar(&f.keyEnv, "key-env", nil,
		"environment variables with an API key each, A,B. Each key has the limits for itself. A request goes with the "+
			"key that may go soonest")
	p.StringArrayVarP(&f.headers, "header", "H", nil,
		"'Name: value' for every request, in place of the client's field; {key} and {nonce} are filled in; repeatable")
	p.StringArrayVar(&f.query, "query", nil, "'name=value' for the query of every request, likewise; repeatable")
	p.StringArrayVar(&f.keyIn, "key-in", nil,
		"where a client's request has its key, which counts apart: 'header NAME', 'parameter NAME' of the query or the body, "+
			"or none: all count together; repeatable (default: the places of known providers)")
	p.DurationVar(&f.u.NonceUnit, "nonce-unit", 0, "unit of a {nonce} (default 1ms)")
	p.DurationVar(&f.u.NonceGap, "nonce-gap", 0,
		"least time between two requests of a key with a {nonce}, if the one-way latency varies by less (default: one in "+
			"flight per key)")
	f.addClients(p)
	p.DurationVar(&f.maxWait, "max-wait", proxy.DefaultMaxWait,
		"longest wait for a turn. A request that would wait longer is refused at once; 0s: no request waits")
	p.BoolVar(&f.c.FinalOnly, "final-only", false,
		"send no interim answers (1xx) to clients in line, since a server in front of the proxy does not pass them on")
	p.DurationVar(&f.c.Grace, "grace", 0,
		"at the end of the proxy, waiting requests may go on for so long; requests in flight are always finished")
	p.StringVar(&f.c.State, "state", "",
		"file for sent requests that may still count, so that a restart forgets no window (default: none)")
	p.StringVar(&f.c.Sent, "sent", "",
		"file that gets a line of each attempt, to prove afterwards that each limit was kept (default: none)")
	f.store.Add(p, "")
	f.store.AddPart(p)
	p.DurationVar(&f.timeout, "timeout", 10*time.Minute, "longest time until the header of an answer; 0s: any")
	p.DurationVar(&f.u.ConnectTimeout, "connect-timeout", 10*time.Second, "longest time for a connection to the server")
	p.IntVar(&f.u.Attempts, "attempts", 3,
		"attempts of a request, where a repeat does no harm. A refusal by a limit is no attempt: the request waits "+
			"until --max-wait. With 1, the client gets it at once")
	p.DurationVar(&f.maxOutage, "max-outage", 10*time.Second,
		"longest wait for a server that nothing reaches; 0s: no wait")
	p.DurationVar(&f.u.MaxPause, "max-pause", time.Hour, "longest pause of all requests because of one answer")
	p.Var(&f.maxHeader, "max-header", "largest header of a request")
	p.Var(&f.maxBody, "max-body", "largest body of a request; 0: any")
	p.IntVar(&f.c.Bounds.Connections, "max-connections", 16384, "most connections of clients; more wait to be accepted")
	p.Var(&f.maxFrozen, "max-frozen",
		"memory for the counts of idle keys; if it is full, new keys get 429")
	p.DurationVar(&f.c.Bounds.HeaderTimeout, "header-timeout", 10*time.Second, "longest time for a client to send a header")
	p.DurationVar(&f.c.Bounds.IdleTimeout, "idle-timeout", 2*time.Minute,
		"longest time of a client's connection without a request")
	p.DurationVar(&f.c.Bounds.Stall, "stall", time.Minute,
		"longest time in which a client sends nothing of its body, or takes nothing of its answer")
	p.StringVar(&f.tlsCert, "tls-cert", "",
		"file with the certificate chain for --listen, as PEM")
	p.StringVar(&f.tlsKey, "tls-key", "", "file with its private key, as PEM")
	p.StringVar(&f.caFile, "ca-file", "",
		"file with the trusted authorities for the server's certificate, as PEM (default: the system's)")
	p.BoolVar(&f.u.Forwarded, "forwarded", false, "name the client to the server, in X-Forwarded-For, -Host and -Proto")
	p.BoolVar(&f.u.KeepLinks, "keep-links", false,
		"leave the server's own addresses in Link, Location and next pages; without it they lead to the proxy")
	p.BoolVar(&f.u.KeepHost, "keep-host", false, "pass on the Host of the client's request, instead of that of --to")
	p.StringVar(&f.log, "log", "text", "a line per request on standard error: text, json or off")
	p.StringVar(&f.logLevel, "log-level", "warn", "level of other messages: debug, info, warn or error; a new configuration is told at each")
}

// addClients adds the flags about clients and listeners.
func (f *proxyFlags) addClients(p *pflag.FlagSet) {
	p.StringVar(&f.c.Listen, "listen", proxy.DefaultListen,
		"address for clients; beyond this machine it needs --client-key-env or --open")
	p.StringVar(&f.c.Forward.Listen, "forward", "",
		"address of a forward proxy: programs keep their own addresses and reach it by HTTPS_PROXY; beyond this machine it "+
			"needs --client-key-env")
	p.StringVar(&f.c.Forward.Bundle, "forward-bundle", defaultBundle,
		"file to write for --forward: the certificates that programs are to trust, new at each start, without a key")
	p.StringVar(&f.c.Forward.Tunnels, "tunnels", "",
		"which other hosts --forward reaches: public (port 443 on the public network) or none (default: public on this "+
			"machine, none beyond it)")
	p.StringVar(&f.env, "env", "", "print the variables by which programs reach --forward, as sh, docker or json, and end")
	p.StringVar(&f.c.Admin, "admin", proxy.DefaultAdmin,
		"address on this machine for the page, /metrics, /livez and /readyz; off: none")
	p.BoolVar(&f.c.Open, "open", false, "anybody who reaches --listen may send, with your limits and your keys")
	p.StringSliceVar(&f.clientKeyEnv, "client-key-env", nil,
		"environment variables, A,B, each with a key that a client sends. The client has the name of the variable. "+
			"Requests without a key are refused")
	p.StringVar(&f.c.Clients.Header, "client-header", "",
		"field of a request that names a client without a key (default: its address)")
	p.IntVar(&f.c.Clients.Default.MaxWaiting, "max-waiting", 0, "most requests of a client that may wait (default 10000)")
}

// config makes the configuration of one upstream.
func (f *proxyFlags) config(cmd *cobra.Command) (c proxy.Config, err error) {
	usage := func(format string, args ...any) (proxy.Config, error) {
		return proxy.Config{}, cli.Usage(fmt.Errorf(format, args...))
	}
	log, access, err := f.logs(cmd)
	if err != nil {
		return c, err
	}
	if err := f.durations(cmd); err != nil {
		return c, cli.Usage(err)
	}
	if err := f.store.Check(cmd); err != nil {
		return c, cli.Usage(err)
	}
	c = f.c
	c.Share, c.MaxWait, c.Log, c.Access = shareBy(&f.store), orNone(f.maxWait), log, access
	c.Bounds.Header, c.Bounds.Body, c.Bounds.Frozen = int(f.maxHeader), orAny(int64(f.maxBody)), int64(f.maxFrozen)
	if c.Clients.List, err = f.clients(); err != nil {
		return c, cli.Exit(cli.ExitConfig, err)
	}
	if f.metricsToken != "" {
		keys, err := format.KeysFromEnv("metrics-token-env", []string{f.metricsToken}, f.lookup())
		if err != nil {
			return c, cli.Exit(cli.ExitConfig, err)
		}
		token := proxy.HashKey(keys[0].Secret)
		c.Metrics.Token = &token
	}
	u, err := f.upstream(cmd)
	if err != nil {
		return c, err
	}
	c.Upstreams = []proxy.Upstream{u}
	if (f.tlsCert == "") != (f.tlsKey == "") {
		return usage("--tls-cert and --tls-key, expected both or neither")
	}
	if f.tlsCert != "" {
		pair, err := tls.LoadX509KeyPair(f.tlsCert, f.tlsKey)
		if err != nil {
			return c, cli.Exit(cli.ExitConfig, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", f.tlsCert, f.tlsKey, err))
		}
		c.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	return c, nil
}

// logs returns two loggers: log for events of the proxy itself, and access for a line per request.
func (f *proxyFlags) logs(cmd *cobra.Command) (log, access *slog.Logger, err error) {
	if !slices.Contains([]string{"text", "json", "off"}, f.log) {
		return nil, nil, cli.Usage(fmt.Errorf("--log %q, expected text, json or off", f.log))
	}
	var level slog.Level
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, f.logLevel) {
		return nil, nil, cli.Usage(fmt.Errorf("--log-level %q, expected debug, info, warn or error", f.logLevel))
	}
	_ = level.UnmarshalText([]byte(f.logLevel))
	if access = slog.New(slog.DiscardHandler); f.log != "off" {
		access = logOf(cmd, f.log, slog.LevelInfo)
	}
	return logOf(cmd, f.log, level), access, nil
}

// logsJSON reports whether a command is a proxy whose log is JSON.
func logsJSON(c *cobra.Command) bool {
	f := c.Flag("log")
	return c.CommandPath() == "paceline proxy" && f != nil && f.Value.String() == "json"
}

// orNone and orAny translate the 0 of a flag into the value with the same meaning in a
// configuration. There 0 stands for the default.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

func orAny(n int64) int64 {
	if n == 0 {
		return -1
	}
	return n
}

// durations checks the flags that are times or numbers.
func (f *proxyFlags) durations(cmd *cobra.Command) error {
	for _, n := range []struct {
		flag         string
		value, least int64
	}{
		{"max-wait", int64(f.maxWait), 0}, {"grace", int64(f.c.Grace), 0}, {"timeout", int64(f.timeout), 0},
		{"connect-timeout", int64(f.u.ConnectTimeout), 1},
		{"attempts", int64(f.u.Attempts), 1}, {"max-outage", int64(f.maxOutage), 0}, {"max-pause", int64(f.u.MaxPause), 1},
		{"in-flight", int64(f.u.InFlight), 0},
		{"max-waiting", int64(f.c.Clients.Default.MaxWaiting), 0}, {"max-connections", int64(f.c.Bounds.Connections), 1},
		{"max-frozen", int64(f.maxFrozen), 1}, {"header-timeout", int64(f.c.Bounds.HeaderTimeout), 1},
		{"idle-timeout", int64(f.c.Bounds.IdleTimeout), 1}, {"stall", int64(f.c.Bounds.Stall), 1}, {"latency-max", int64(f.u.Arrivals.OneWayMax), 0},
	} {
		if n.value < n.least {
			return fmt.Errorf("--%s %s, expected at least %d", n.flag, cmd.Flag(n.flag).Value, n.least)
		}
	}
	return nil
}

// clients returns the clients with keys in the flags.
func (f *proxyFlags) clients() (all []proxy.Client, err error) {
	keys, err := format.KeysFromEnv("client-key-env", f.clientKeyEnv, os.LookupEnv)
	for _, k := range keys {
		all = append(all, proxy.Client{Name: k.Name, Keys: []proxy.KeyHash{proxy.HashKey(k.Secret)},
			MaxWaiting: f.c.Clients.Default.MaxWaiting})
	}
	return all, err
}

// upstream returns the upstream that the flags describe.
func (f *proxyFlags) upstream(cmd *cobra.Command) (u proxy.Upstream, err error) {
	usage := func(format string, args ...any) (proxy.Upstream, error) {
		return u, cli.Usage(fmt.Errorf(format, args...))
	}
	if f.to == "" {
		return usage("--to is missing, expected the URL of a server, such as https://api.example.com")
	}
	u = f.u
	u.AnswerTimeout, u.MaxOutage = orNone(f.timeout), orNone(f.maxOutage)
	if err := f.minuteFlags.check(cmd); err != nil {
		return u, err
	}
	text := f.to
	if rest, ok := strings.CutPrefix(text, "h2c://"); ok {
		u.H2C, text = true, "http://"+rest
	}
	if u.To, err = secret.ParseAddress(text); err != nil {
		return usage("--to %s: %w, expected such as https://api.example.com", secret.SanitizeAddress(f.to), err)
	}
	if u.Limits, u.Auto, err = f.allLimits(); err != nil {
		return u, cli.Usage(err)
	}
	if u.Charges, err = charge.ParseAll(f.charges); err != nil {
		return usage("--charge %w", err)
	}
	if f.u.Preset != "" {
		if _, ok := provider.LookupPreset(f.u.Preset); !ok {
			return u, cli.Usage(unknownPreset(f.u.Preset))
		}
	}
	if f.provider != "" {
		d, ok := provider.Lookup(f.provider)
		if !ok {
			return u, cli.Usage(unknownProvider(f.provider))
		}
		u.Provider = d
	}
	if err := f.perMinute(cmd, &u); err != nil {
		return u, err
	}
	if u.Header, err = fields(f.headers, ":", "Name: value"); err != nil {
		return usage("--header %w", err)
	}
	if u.Query, err = fields(f.query, "=", "name=value"); err != nil {
		return usage("--query %w", err)
	}
	if u.KeyIn, err = proxy.ParseKeyIn(f.keyIn); err != nil {
		return usage("--key-in %w", err)
	}
	keys, err := format.KeysFromEnv("key-env", f.keyEnv, f.lookup())
	if err != nil {
		return u, cli.Exit(cli.ExitConfig, err)
	}
	for _, k := range keys {
		u.Keys = append(u.Keys, proxy.Key{Name: k.Name, Secret: proxy.Secret(k.Secret)})
	}
	if f.caFile != "" {
		pem, err := os.ReadFile(f.caFile)
		pool := x509.NewCertPool()
		if err == nil && !pool.AppendCertsFromPEM(pem) {
			err = errors.New("there is no certificate in it, expected PEM")
		}
		if err != nil {
			return u, cli.Exit(cli.ExitConfig, fmt.Errorf("--ca-file %s: %w", f.caFile, err))
		}
		u.TLS = &tls.Config{RootCAs: pool}
	}
	return u, nil
}

// allLimits reads the values of --limit, in the forms of run. auto means that --limit auto was
// given.
func (f *proxyFlags) allLimits() (all []proxy.Limit, auto bool, err error) {
	switch perMinute, _ := f.minuteFlags.limits(); {
	case len(f.limits) > 0 || f.u.Preset != "" || f.u.InFlight > 0 || len(perMinute) > 0:
	case len(f.each) > 0:
		return nil, false, errors.New("--limit-model is beside --limit, --preset or --rpm, which are for the other models; " +
			"expected one of them, or --limit none")
	default:
		return nil, false, fmt.Errorf("--limit, --preset or --rpm is required: what the server allows cannot be guessed; "+
			"expected %s, auto to have it found out, or --limit none", rate.Forms)
	}
	none := false
	for _, s := range f.limits {
		if s == "none" || s == "auto" {
			none, auto = none || s == "none", auto || s == "auto"
			continue
		}
		one, err := limitOf(s)
		if err != nil {
			return nil, false, fmt.Errorf("--limit %w", err)
		}
		all = append(all, one)
	}
	perMinute, _ := f.minuteFlags.limits()
	switch {
	case none && (len(f.limits) > 1 || f.u.Preset != "" || len(perMinute) > 0):
		return nil, false, errors.New("--limit none is beside other limits; expected one of the two")
	case auto && len(f.each) > 0:
		return nil, false, errors.New("--limit auto with --limit-model: limits are found out for all requests of a key, " +
			"and not for each model; expected one of the two")
	}
	return all, auto, nil
}

// chargeUsage is the help of --charge.
const chargeUsage = "what some requests cost, or the resource they count in: " + charge.Forms + "; repeatable: the " +
	"first that fits holds, before the provider's own"

// limitOf reads a limit of requests, weight or orders, or NAME: LIMIT of a resource.
func limitOf(s string) (l proxy.Limit, err error) {
	if l.Only, s = charge.CutResource(s); l.Only != "" {
		l.Scope = provider.Resource
	}
	if l.Limit, err = rate.ParseLimit(s); err == nil {
		return l, nil
	}
	counted, other := rate.ParseCounted(s)
	if other == nil && (counted.Unit == limit.Weight || counted.Unit == limit.Orders) {
		l.Limit, err = counted, nil
	}
	return l, err
}

// fields reads 'Name: value' or 'name=value'.
func fields(lines []string, separator, form string) (all []proxy.Field, err error) {
	for _, line := range lines {
		name, value, ok := strings.Cut(line, separator)
		if !ok {
			return nil, fmt.Errorf("has no %q in it, expected %q", separator, form) // it may be a secret: not shown
		}
		all = append(all, proxy.Field{Name: strings.TrimSpace(name), Value: proxy.Secret(strings.TrimSpace(value))})
	}
	return all, nil
}
