package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/charge"
	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/pool/backoff"
	"github.com/paceline-go/paceline/provider"
)

type runFlags struct {
	limits, charges              []string
	keyEnv, headers, query       []string
	organizations                map[string]string
	sharing                      sharingFlags
	console                      consoleFlags
	watch                        watchFlags
	token                        tokenFlags
	pages                        pageFlags
	polls                        pollFlags
	given                        givenFlags
	prompt                       promptFlags
	keyHosts                     []string
	rejectsFree                  bool
	latencyMax                   time.Duration
	nonceUnit, nonceGap          time.Duration
	concurrency, attempts, queue int
	sameErrors, first            int
	timeout, maxOutage           time.Duration
	ttl, decay, answerTime       time.Duration
	renew                        bool
	until                        string
	budget                       dollars
	price                        float64
	backoff                      pool.Backoff
	redirects                    int
	banStatus, nonceStatus       []int
	okStatus                     []int
	provider, success            string
	out, dead, sync, unanswered  string
	partly                       string
	nowhere                      string // the value of --out if it names a file that throws everything away; out is standard output then
	retryDead                    format.DeadSet
	skipInvalid, trustClock      bool
	recent                       bool
	appends                      bool
	keepHeaders                  []string
	maxLine, maxHeader, maxBody  byteSize
	maxResponse                  byteSize
	progress, color, logLevel    string
	log                          *slog.Logger // made with the screen
	summary, output              string
	drawn                        drawnFlags
	results                      resultFlags
	llm                          llmFlags
	via                          viaFlags
	upstream                     upstreamFlags
	backlog                      backlogFlags
}

// ofOneRun are flags for the input of a run, which no other process shares.
var ofOneRun = refusals{
	{"first", "workers of a backlog send all of it"},
	{"batch-file", "a batch file is for the batches of a provider"},
}

func newRunFlags() runFlags {
	return runFlags{maxLine: 16 << 20, maxHeader: 64 << 10, maxBody: 16 << 20, maxResponse: 1 << 20}
}

// add adds the flags to a command.
func (f *runFlags) add(c *cobra.Command) {
	p := c.Flags()
	p.StringArrayVar(&f.limits, "limit", nil, "the server's limit, per key: "+rate.Forms+", or "+rate.ZoneForm+" for the days of a place; repeatable: all hold; 'auto' finds it out; 'none' if there is none")
	p.StringArrayVar(&f.charges, "charge", nil, chargeUsage)
	f.sharing.add(p)
	f.results.add(p)
	f.drawn.add(p)
	f.token.add(p)
	f.pages.add(p)
	f.polls.add(p)
	f.given.add(p)
	f.prompt.add(p)
	p.BoolVar(&f.rejectsFree, "rejects-free", false, "the server does not count requests that it refuses with 429")
	p.DurationVar(&f.latencyMax, "latency-max", 0, "your promise: the server counts each request within this time of its send. The run is a little faster, and as safe as the promise")
	p.StringSliceVar(&f.keyEnv, "key-env", nil, "environment variables with an API key each, A,B. Each key has the limits for itself, except keys of one organization")
	p.StringToStringVar(&f.organizations, "organization", nil, "the organization of each key, A=NAME,B=NAME. Keys of one organization share the limits (default: from the answers of OpenAI and Anthropic)")
	p.StringSliceVar(&f.keyHosts, "key-host", nil, "a host that keys may go to: HOST, HOST:PORT or https://HOST; repeatable (default: the host of the first line, or of --base-url)")
	p.StringArrayVarP(&f.headers, "header", "H", nil, "'Name: value' for every request; {key}, {token}, {nonce}, {id}, {attempt} are filled in; repeatable")
	p.StringArrayVar(&f.query, "query", nil, "'name=value' for the query of every request, likewise; repeatable")
	p.DurationVar(&f.nonceUnit, "nonce-unit", time.Millisecond, "unit of a {nonce}")
	p.DurationVar(&f.nonceGap, "nonce-gap", 0, "least time between two nonces of a key. It allows several requests of a key in flight, if the one-way latency varies by less than this (default: one in flight per key)")
	p.IntVar(&f.concurrency, "concurrency", 0, "most requests in flight; unset: 64, and then as many as limits and answers need")
	p.IntVar(&f.attempts, "attempts", 5, "attempts of a request before it is a dead letter")
	p.IntVar(&f.sameErrors, "same-errors", 5, "if so many first answers to POST, PUT, PATCH or DELETE at one address are the same error 4xx, and nothing was served yet, the rest is not sent; 0: it is")
	p.DurationVar(&f.timeout, "timeout", 30*time.Second, "longest time for an attempt")
	p.DurationVar(&f.ttl, "ttl", 0, "deadline of requests without their own, as a duration. It begins at the field created; without that, when the line of a pipe, or the file, was first read (default: for ever)")
	p.DurationVar(&f.decay, "decay", 0, "time in which a request loses half its value. Of those that were read, "+
		"the most valuable goes first: the newest, by its field created, or the one with the higher priority "+
		"(default: the oldest)")
	p.DurationVar(&f.answerTime, "answer-time", 0, "expected time of an answer. A request is not sent if its answer would come after its deadline; 0s: send until the deadline (default: measured, for each host)")
	p.BoolVar(&f.renew, "renew", false, "a deadline that is a duration begins anew at each retry. A deadline that passes uses up an attempt")
	p.StringVar(&f.until, "until", "", "end of sending: a time of day (09:00), an instant as in RFC 3339, or a duration. The run ends with exit code 5, and can be resumed; with --every it ends well")
	p.Var(&f.budget, "budget", "most money to spend, such as 20USD, over all runs with one --out, or by all workers of a backlog. Language models have their prices (paceline models, or --price-input and --price-output), other requests --price")
	p.Float64Var(&f.price, "price", 0, "USD per attempt of cost 1, for --budget; not for language models")
	p.DurationVar(&f.maxOutage, "max-outage", 0, "longest outage. The run ends with exit code 5 if nothing arrives at a host for this time, and nothing else is left to do. It ends with 6 if keys answer 401 or 403 to all for this time. 0s: at once (default: for ever; keys: 1m, or 1h once something was served)")
	p.DurationVar(&f.backoff.Base, "backoff-base", backoff.DefaultBase, "longest delay before the second attempt; it doubles")
	p.DurationVar(&f.backoff.Max, "backoff-max", backoff.DefaultMax, "longest delay before any attempt")
	p.IntVar(&f.redirects, "redirects", 0, "redirects to follow, each with a permit of its own")
	p.IntSliceVar(&f.banStatus, "ban-status", []int{401, 418}, "statuses that take the key out of use (with --key-env)")
	p.IntSliceVar(&f.okStatus, "ok-status", nil,
		"statuses of answers that are as good as 2xx, such as 404 "+
			"where nothing found is a result: the request is done")
	p.IntSliceVar(&f.nonceStatus, "nonce-status", nil, "statuses for a {nonce} that did not rise, in addition to known texts. Such a request goes again with a new nonce")
	p.StringVar(&f.provider, "provider", "", "provider whose forms of refusals are known, such as refusals with status 200 (default: by host, by --preset, or by the answers); see paceline explain --providers")
	p.StringVar(&f.success, "success", "", "jq expression on the JSON of an answer, such as '.status == \"OK\"'. If it is not true, an answer 2xx is a failed attempt")
	p.IntVar(&f.queue, "queue", 1000, "requests to read ahead")
	p.StringVarP(&f.out, "out", "O", "-", "file for the results. The same command again resumes, and appends to this file; - is standard output, without resuming")
	p.BoolVar(&f.appends, "append", false, "the results in --out may be of another input")
	p.StringVar(&f.dead, "dead", "", "file for dead letters (default: beside --out, its name with .dead.jsonl; or among the results on standard output)")
	p.Var((*deadSet)(&f.retryDead), "retry-dead", "send dead letters of earlier runs again: all, or some classes, as in --retry-dead=outage,limited (classes: see docs/results.md)")
	p.Lookup("retry-dead").NoOptDefVal = "all"
	p.StringVar(&f.unanswered, "unanswered", "resend", "a request without an answer that may have been served: resend it, or hold it as a dead letter")
	p.StringVar(&f.partly, "partly", "done", "a request that a limit refused in part: done, with a note in its result (it goes again if it only reads); again; or hold it as a dead letter")
	p.StringVar(&f.sync, "sync", "group", "group: write to the disk within 100 ms, sooner at 64 lines; always: also before each send, safe even in a power cut")
	p.BoolVar(&f.recent, "recent", true, "count what other runs, exec and proxies of this user sent a moment ago with the same keys to the same servers, "+
		"whatever their files are. A store, of --share, counts it anyway")
	p.BoolVar(&f.trustClock, "trust-clock", false, "measure the time since the run before by the wall clock, also over a reboot. Use it only if nobody set that clock")
	p.IntVar(&f.first, "first", 0, "send only the first so many requests of the input, as a trial. The "+
		"same command without it sends the others (default: all)")
	p.BoolVar(&f.skipInvalid, "skip-invalid", false, "leave out invalid lines instead of not starting")
	p.StringSliceVar(&f.keepHeaders, "keep-headers", nil, "more fields of the answers to keep; * for all")
	p.Var(&f.maxLine, "max-line", "longest line of the input")
	p.Var(&f.maxHeader, "max-header", "largest headers of a request")
	p.Var(&f.maxBody, "max-body", "largest body of a request")
	p.Var(&f.maxResponse, "max-response", "longest part of an answer's body to keep")
	p.StringVar(&f.progress, "progress", "auto", "auto: one line, rewritten, on a terminal, and without one a new line after 30s, then ever more rarely; a time: a new line so often, without a terminal; off")
	p.StringVar(&f.color, "color", "auto", "auto, always or never")
	p.StringVar(&f.logLevel, "log-level", "warn", "level of standard error; debug has a line for each answer and expired request")
	p.StringVar(&f.summary, "summary", "", "file to write the summary to, as JSON")
	p.StringVarP(&f.output, "output", "o", "text", "the summary on standard error, or the plan: text or json")
	f.llm.add(c)
	f.via.add(p)
	f.upstream.add(p)
	f.backlog.add(p)
	f.console.add(p)
	f.watch.add(p)
}

// beside sets what is of other programs of the user: their notes, and a paceline exec that leads this run.
func (f *runFlags) beside(cmd *cobra.Command, c *run.Config) {
	by := os.Getenv(leads)
	c.TrustClock, c.Recent, c.Led, c.Captured = f.trustClock, notesIn(cmd, f.recent), by != "", by == captures
	if c.Led && !isGiven(cmd, "timeout") {
		c.Timeout = 10 * time.Minute // the wait for a turn in exec is a part of each attempt
	}
}

// config checks the flags.
func (f *runFlags) config(cmd *cobra.Command) (run.Config, error) {
	usage := func(format string, args ...any) (run.Config, error) {
		return run.Config{}, cli.Usage(fmt.Errorf(format, args...))
	}
	c := run.Config{
		Organizations: f.organizations, Arrivals: limit.Arrivals{OneWayMax: f.latencyMax, RejectsFree: f.rejectsFree},
		NonceUnit: f.nonceUnit, Gap: f.nonceGap, Concurrency: f.concurrency, Attempts: f.attempts, SameErrors: f.sameErrors, Timeout: f.timeout,
		Redirects: f.redirects, Backoff: f.backoff, Queue: f.queue, TTL: f.ttl, Decay: f.decay, Renew: f.renew, Budget: float64(f.budget), Price: f.price, Prices: f.llm.prices,
		Input: format.InputLimits{Line: int(f.maxLine), Header: int(f.maxHeader), Body: int(f.maxBody),
			First: f.first},
		SkipInvalid: f.skipInvalid, Out: f.out, Dead: f.dead, Summary: f.summary, Stdout: cmd.OutOrStdout(), MaxResponse: int64(f.maxResponse),
		KeepHeaders: f.keepHeaders, RetryDead: f.retryDead, Append: f.appends, UserAgent: "paceline",
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		c.UserAgent += "/" + info.Main.Version
	}
	if err := f.allLimits(cmd, &c); err != nil {
		return c, err
	}
	var err error
	if err = f.sharing.config(cmd, &c); err != nil {
		return c, cli.Usage(err)
	}
	if err := f.atLeast(cmd); err != nil {
		return c, err
	}
	c.AnswerTime, c.MaxOutage = zeroIsNone(cmd, "answer-time", f.answerTime), zeroIsNone(cmd, "max-outage", f.maxOutage)
	if f.backoff.Base > f.backoff.Max {
		return usage("--backoff-base %v is above --backoff-max %v", f.backoff.Base, f.backoff.Max)
	}
	if err := f.ends(&c); err != nil {
		return c, cli.Usage(err)
	}
	if c.Header, err = format.ParseHeaders(f.headers); err != nil {
		return usage("--header %w", err)
	}
	if c.Query, err = format.ParseQuery(f.query); err != nil {
		return usage("--query %w", err)
	}
	if err := errors.Join(f.pages.config(cmd, &c), f.polls.config(cmd, &c)); err != nil {
		return c, cli.Usage(err)
	}
	if err := f.token.config(cmd, &c); err != nil {
		return c, err
	}
	for _, h := range f.keyHosts {
		place, err := secret.ParsePlace(h)
		if err != nil {
			return usage("--key-host %w", err)
		}
		c.KeyHosts = append(c.KeyHosts, place)
	}
	if err := f.console.setLevel(cmd, &f.logLevel); err != nil {
		return usage("%w", err)
	}
	for _, v := range []struct {
		flag, value string
		one         []string
	}{
		{"unanswered", f.unanswered, []string{"resend", "hold"}}, {"partly", f.partly, run.PartlyNames}, {"sync", f.sync, []string{"group", "always"}},
		{"color", f.color, []string{"auto", "always", "never"}}, {"output", f.output, []string{"text", "json"}},
		{"log-level", f.logLevel, []string{"debug", "info", "warn", "error"}},
	} {
		if !slices.Contains(v.one, v.value) {
			return usage("--%s %q, expected %s", v.flag, v.value, strings.Join(v.one, " or "))
		}
	}
	if err := f.readings(&c); err != nil {
		return c, cli.Usage(err)
	}
	c.HoldUnanswered, c.Partly = f.unanswered == "hold", run.Partly(slices.Index(run.PartlyNames, f.partly))
	c.SyncAlways = f.sync == "always"
	f.beside(cmd, &c)
	if !(f.price >= 0 && f.price < 1e9) {
		return usage("--price %v, expected USD per attempt", f.price)
	}
	if f.out == "" {
		return usage("--out is empty, expected a file, or - for standard output")
	}
	if err := f.results.config(cmd, &f.out, &c); err != nil {
		return c, cli.Usage(err)
	}
	if err := f.files(&c); err != nil {
		return c, cli.Usage(err)
	}
	if c.Out = f.out; f.nowhere != "" {
		c.Stdout = io.Discard
	}
	if f.retryDead != 0 && f.out == "-" && (f.dead == "" || f.dead == "-") {
		return usage("--retry-dead without --out FILE or --dead FILE: there are no dead letters of a run before")
	}
	if len(f.keyEnv) > 0 && f.via.file == "" { // a batch file has no key in it
		if c.Keys, err = format.KeysFromEnv("key-env", f.keyEnv, os.LookupEnv); err != nil {
			return run.Config{}, cli.Exit(cli.ExitConfig, err)
		}
		c.BanStatus = f.banStatus
	}
	f.ofAddress(&c)
	return c, f.whose(&c)
}

// ends reads when the run, or the plan, is to end.
func (f *runFlags) ends(c *run.Config) (err error) {
	if c.Until, err = parseUntil(f.until, time.Now()); err != nil {
		return fmt.Errorf("--until %w", err)
	}
	if c.By, err = parseUntil(f.llm.by, time.Now()); err != nil {
		return fmt.Errorf("--by %w", err)
	}
	if !c.By.IsZero() && !f.llm.dryRun {
		return errors.New("--by is for the plan: expected --dry-run beside it; --until ends a run")
	}
	return nil
}

// ofAddress joins the keys if the preset has a limit of the address: the server counts all of them together.
func (f *runFlags) ofAddress(c *run.Config) {
	if !f.llm.ofAddress || len(c.Keys) < 2 || len(f.organizations) > 0 {
		return
	}
	c.Organizations = map[string]string{}
	for _, k := range c.Keys {
		c.Organizations[k.Name] = "address"
	}
}

// whose checks --organization.
func (f *runFlags) whose(c *run.Config) error {
	if len(f.organizations) > 0 && c.Auto != nil && len(c.Limits)+len(c.Resources) == 0 {
		return cli.Usage(errors.New("--organization with --limit auto alone: each key finds a limit for itself, and none " +
			"is shared; expected --limit N/U or --preset beside it"))
	}
	for _, name := range slices.Sorted(maps.Keys(f.organizations)) {
		switch {
		case !slices.Contains(f.keyEnv, name):
			return cli.Usage(fmt.Errorf("--organization %s=%s: expected keys of --key-env (%s)", name, f.organizations[name], strings.Join(f.keyEnv, ", ")))
		case f.organizations[name] == "":
			return cli.Usage(fmt.Errorf("--organization %s=: expected a name, such as %s=acme", name, name))
		}
	}
	return nil
}

// allLimits collects the limits of batches for language models, and those of --limit.
func (f *runFlags) allLimits(cmd *cobra.Command, c *run.Config) error {
	if err := f.upstream.read(cmd, f); err != nil {
		return err
	}
	if err := f.via.check(cmd, f); err != nil {
		return cli.Usage(err)
	}
	f.backlog.shares(f)
	if err := f.llm.check(cmd, c); err != nil {
		return err
	}
	others := slices.ContainsFunc(c.Limits, func(l format.Rate) bool { return l.Model == "" })
	switch {
	case len(f.limits) > 0 || others || len(c.Resources) > 0 || f.upstream.name != "":
	case len(c.Limits) > 0:
		return cli.Usage(errors.New("--limit-model is beside --limit, --preset or --rpm, which are for the other models; expected one of them, or --limit none"))
	case f.llm.preset != "" && len(f.llm.bounded) == 0:
		who, _ := provider.Publisher(f.llm.preset)
		return cli.Usage(fmt.Errorf("--preset %s has no number, as %s publishes none; expected --limit beside it, "+
			"such as 20/s, or auto to have it found out", f.llm.preset, who.Title))
	case isStoreAddress(f.sharing.store.Address):
		return cli.Usage(fmt.Errorf("--limit, --preset or --rpm is required: --share needs a limit that is known, the same in all processes; expected %s", rate.Forms))
	default:
		return cli.Usage(fmt.Errorf("--limit, --preset or --rpm is required: what the server allows cannot be "+
			"guessed; expected %s, auto to have it found out, or --limit none, as behind paceline proxy, which keeps the "+
			"limit itself", rate.Forms))
	}
	for _, s := range f.limits {
		if s == "none" || s == "auto" {
			if err := f.isAlone(cmd, s); err != nil {
				return cli.Usage(err)
			}
			if s == "auto" && slices.ContainsFunc(c.Limits, func(l format.Rate) bool { return l.Model != "" }) {
				return cli.Usage(errors.New("--limit auto with --limit-model: limits are found out for all requests of a key, and not for each model; expected one of the two"))
			}
			if s == "auto" {
				c.Auto = &run.Auto{}
			}
			continue
		}
		l, err := limitOf(s)
		if err != nil {
			return cli.Usage(fmt.Errorf("--limit %w", err))
		}
		if l.Only != "" {
			c.Resources = append(c.Resources, run.ResourceLimit{Resource: provider.Pattern(l.Only), Rate: l.Limit})
			continue
		}
		c.Limits = append(c.Limits, l.Limit)
	}
	if who, ok := provider.Publisher(f.llm.preset); ok {
		c.ChargedBy = who.Name
	} else {
		c.ChargedBy = f.provider
	}
	var err error
	if c.Charges, err = charge.ParseAll(f.charges); err != nil {
		return cli.Usage(fmt.Errorf("--charge %w", err))
	}
	return f.named(c)
}

// named checks that requests can count in the resources that have limits, as far as the provider is known.
func (f *runFlags) named(c *run.Config) error {
	own, err := provider.NewCharges(c.Charges)
	if err != nil || c.ChargedBy == "" {
		return nil // the run says what is wrong
	}
	for _, l := range c.Resources {
		if !own.Names(l.Resource) && !provider.ChargesOf(c.ChargedBy).Names(l.Resource) {
			return cli.Usage(fmt.Errorf("--limit %q: no charge of %s, and no --charge, names the resource %q",
				string(l.Resource)+": "+l.Text, c.ChargedBy, l.Resource))
		}
	}
	return nil
}

// isAlone returns an error if --limit none stands beside another limit. Beside --limit-model, none
// means the models without a limit of their own. auto goes with every limit but none.
func (f *runFlags) isAlone(cmd *cobra.Command, is string) error {
	if is == "auto" && !slices.Contains(f.limits, "none") {
		return nil
	}
	beside := ""
	for _, flag := range []string{"rpm", "tpm", "itpm", "otpm", "preset"} {
		if cmd.Flag(flag).Changed {
			beside = "--" + flag + " " + cmd.Flag(flag).Value.String()
		}
	}
	for _, s := range f.limits {
		if s != is {
			beside = "--limit " + s
		}
	}
	if beside == "" {
		return nil
	}
	says := map[string]string{"none": "there is no limit", "auto": "nobody knows the limit"}[is]
	return fmt.Errorf("--limit %s is beside %s, and says that %s; expected one of the two", is, beside, says)
}

// files checks the output files of the run. It refuses a named pipe, since the run would wait for a
// reader. It refuses a device, since other files have no place beside it. A file that discards
// everything counts as standard output without a reader.
func (f *runFlags) files(c *run.Config) error {
	if f.out != "-" && output.IsNowhere(f.out) {
		f.nowhere, f.out = f.out, "-"
	}
	for _, v := range []struct{ flag, path, or string }{
		{"--out", f.out, ", or - for standard output"}, {"--dead", f.dead, ", or - for standard output"}, {"--summary", f.summary, ""},
	} {
		if v.path == "-" && v.or != "" || v.path == "" || output.IsNowhere(v.path) {
			continue
		}
		if what := output.NoFile(v.path); what != "" {
			return fmt.Errorf("%s %s is %s, expected a file%s", v.flag, v.path, what, v.or)
		}
	}
	return f.drawn.config(f, c)
}

// readings checks the flags for the reading of answers: the provider, and the signs of a success, a
// ban and a bad nonce.
func (f *runFlags) readings(c *run.Config) (err error) {
	name := f.provider
	if name == "" && f.llm.preset != "" {
		publisher, _ := provider.Publisher(f.llm.preset)
		name = publisher.Name
	}
	if name != "" { // the first look makes the table of providers
		if d, ok := provider.Lookup(name); ok {
			c.Provider = d
		} else if f.provider != "" {
			return unknownProvider(f.provider)
		}
	}
	if f.success != "" {
		if c.Success, err = success(f.success); err != nil {
			return fmt.Errorf("--success %w", err)
		}
	}
	for _, s := range f.banStatus {
		if s < 400 || s > 599 {
			return fmt.Errorf("--ban-status %d, expected 400 to 599", s)
		}
	}
	for _, s := range f.okStatus {
		if s < 400 || s > 599 || s == http.StatusTooManyRequests || slices.Contains(f.banStatus, s) {
			return fmt.Errorf("--ok-status %d, expected 400 to 599, but neither 429, which is a refusal, nor one of "+
				"--ban-status", s)
		}
	}
	c.OKStatus = f.okStatus
	if what := templateOf(c, "nonce"); what != "" && f.backlog.store == "" && isStoreAddress(f.sharing.store.Address) {
		return fmt.Errorf("%s with --share: several processes number the same keys, and their nonces cannot arrive in "+
			"order; expected one process, without --share", what)
	}
	for _, s := range f.nonceStatus {
		switch {
		case s < 400 || s > 599:
			return fmt.Errorf("--nonce-status %d, expected 400 to 599", s)
		case !format.Uses(c.Header, "nonce") && !format.Uses(c.Query, "nonce"):
			return errors.New("--nonce-status without {nonce} in --header or --query: requests have none")
		}
	}
	c.NonceStatus = f.nonceStatus
	return nil
}

// zeroIsNone returns −1 for a duration that the user set to 0: there is none of it, where 0 stands
// for a default.
func zeroIsNone(cmd *cobra.Command, flag string, d time.Duration) time.Duration {
	if d == 0 && cmd.Flag(flag).Changed {
		return -1
	}
	return d
}

// atLeast checks that numbers given in flags are not too small.
func (f *runFlags) atLeast(cmd *cobra.Command) error {
	leastFlights, leastFirst := int64(0), int64(0) // unset
	if cmd.Flag("concurrency").Changed {
		leastFlights = 1
	}
	if isGiven(cmd, "first") {
		leastFirst = 1
	}
	for _, n := range []struct {
		flag  string
		value int64
		least int64
	}{
		{"concurrency", int64(f.concurrency), leastFlights}, {"attempts", int64(f.attempts), 1}, {"same-errors", int64(f.sameErrors), 0}, {"queue", int64(f.queue), 1}, {"first", int64(f.first), leastFirst},
		{"redirects", int64(f.redirects), 0}, {"timeout", int64(f.timeout), 1}, {"max-outage", int64(f.maxOutage), 0}, {"ttl", int64(f.ttl), 0}, {"decay", int64(f.decay), 0}, {"answer-time", int64(f.answerTime), 0}, {"latency-max", int64(f.latencyMax), 0},
		{"nonce-unit", int64(f.nonceUnit), 1}, {"nonce-gap", int64(f.nonceGap), 0},
		{"backoff-base", int64(f.backoff.Base), 1}, {"backoff-max", int64(f.backoff.Max), 1},
	} {
		if n.value < n.least {
			return cli.Usage(fmt.Errorf("--%s %s, expected at least %d", n.flag, cmd.Flag(n.flag).Value, n.least))
		}
	}
	return nil
}

// parseUntil reads the end of a run: the next 09:00 or 09:00:30 of the local clock, an instant, or
// a duration from now.
func parseUntil(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(d), nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		of, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		today := func(days int) time.Time {
			return time.Date(now.Year(), now.Month(), now.Day()+days, of.Hour(), of.Minute(), of.Second(), 0, now.Location())
		}
		if at := today(0); at.After(now) {
			return at, nil
		}
		return today(1), nil
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return at, fmt.Errorf("%q, expected a time of day (09:00), an instant as in RFC 3339, or a duration above 0 (8h)", s)
	}
	if !at.After(now) {
		return at, fmt.Errorf("%s is past, expected an instant to come", s)
	}
	return at, nil
}

// dollars is the flag --budget.
type dollars float64

func (d *dollars) String() string {
	if *d == 0 {
		return ""
	}
	return fmt.Sprintf("%gUSD", float64(*d))
}

func (d *dollars) Type() string { return "USD" }

func (d *dollars) Set(s string) error {
	n, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSuffix(s, "USD"), "$"), 64)
	if err != nil || !(n > 0 && n < 1e9) {
		return fmt.Errorf("%q, expected dollars such as 20USD or 0.5", s)
	}
	*d = dollars(n)
	return nil
}

// deadSet is the flag --retry-dead.
type deadSet format.DeadSet

func (d *deadSet) String() string {
	if *d == 0 {
		return ""
	}
	return "some"
}

func (d *deadSet) Type() string { return "class,…" }

func (d *deadSet) Set(s string) error {
	switch s {
	case "true": // --retry-dead was once a switch without values
		s = "all"
	case "false":
		*d = 0
		return nil
	}
	set, err := format.ParseDead(s)
	*d = deadSet(set)
	return err
}

// notesIn is the folder in which a command with --recent notes what it sends. It is empty if there is none, which it
// says.
func notesIn(cmd *cobra.Command, recent bool) string {
	if !recent || !notesSends && !cmd.Flags().Changed("recent") {
		return ""
	}
	folder, err := recentFolder()
	if err != nil {
		fmt.Fprintf(cli.Harmless(cmd.ErrOrStderr(), "text"), "what other programs of this user sent a moment ago "+
			"does not count, and a server may refuse for it: %v\n", err)
	}
	return folder
}

// notesSends is whether commands count what others of this user sent, without --recent. Most tests use
// servers at random ports, one of which may be that of a test before.
var notesSends = true
