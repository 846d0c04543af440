package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/paceline-go/paceline/backoff"
	"github.com/paceline-go/paceline/dispatch"
	"github.com/paceline-go/paceline/internal/batch"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/internal/shown"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
)

const runLong = `Send the HTTP requests of FILE, one JSON object a line, as fast as the limits allow and no faster.

Only url is required of id, method, url, headers, body, cost, priority, deadline, created:

  {"id":"a1","url":"https://api.example.com/v1/things?page=1"}
  {"id":"a2","method":"POST","url":"https://api.example.com/v1/things","body":{"name":"x"},"deadline":"90s"}

A file in OpenAI's batch format (custom_id, method, url, body) or in Anthropic's (custom_id, params) is taken as it is, and the
results are in that format, too. Its limits are in tokens as well: --preset openai:tier1, or --rpm and --tpm. --dry-run prints
the plan: requests, tokens, money, time, and which limit binds.

Results are lines of JSON on standard output or in --out FILE. With --out a run can be broken off in any way, kill -9
included; the same command again sends what has not ended, and the limits remember what was sent before.

Exit codes: 0 all done; 1 failure, running again resumes; 2 usage; 3 finished, but some requests are dead, expired, lost
or invalid; 4 bad configuration or input, nothing was sent; 5 nothing arrived for --max-outage,
it is the time of --until, or --budget is spent: running again resumes; 6 every key is banned; 130 interrupted. The first Ctrl-C
waits for what is in flight, the second breaks it off.`

const runExample = `  paceline run --limit 20/s requests.jsonl
  paceline run --limit 20/s --limit 500/m --out results.jsonl requests.jsonl
  paceline run --key-env KEY_A,KEY_B --header 'Authorization: Bearer {key}' --limit 4500/h --out r.jsonl requests.jsonl
  paceline run --preset openai:tier1 --key-env OPENAI_API_KEY --out results.jsonl prompts.jsonl
  paceline run --rpm 500 --tpm 200000 --dry-run prompts.jsonl
  generate | paceline run --limit 300/10s - | jq .status`

type runFlags struct {
	limits, keyEnv, headers, query []string
	keyHosts                       []string
	rejectsFree                    bool
	latencyMax                     time.Duration
	nonceUnit, nonceGap            time.Duration
	concurrency, attempts, queue   int
	timeout, maxOutage, ttl        time.Duration
	renew                          bool
	until                          string
	budget                         dollars
	price                          float64
	backoff                        backoff.Policy
	redirects                      int
	banStatus, nonceStatus         []int
	provider, success              string
	out, dead, sync, unanswered    string
	retryDead                      batch.Dead
	skipInvalid, trustClock        bool
	keepHeaders                    []string
	maxLine, maxHeader, maxBody    byteSize
	maxResponse                    byteSize
	progress, color, logLevel      string
	summary, output                string
	llm                            llmFlags
}

func newRun() *cobra.Command {
	f := runFlags{maxLine: 16 << 20, maxHeader: 64 << 10, maxBody: 16 << 20, maxResponse: 1 << 20}
	c := &cobra.Command{
		Use:     "run [FILE|-]",
		Short:   "Send a file of HTTP requests within the server's limits",
		Long:    runLong,
		Example: runExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				for _, a := range args {
					if _, err := batch.ParseDead(a); err == nil && cmd.Flag("retry-dead").Changed {
						return usageError{fmt.Errorf("--retry-dead %s, expected --retry-dead=%s, with = in place of the space", a, a)}
					}
				}
				return usageError{fmt.Errorf("%d files, expected one, or - for standard input", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name := "-"
			if len(args) == 1 {
				name = args[0]
			}
			return f.run(cmd, name)
		},
	}
	p := c.Flags()
	p.StringArrayVar(&f.limits, "limit", nil, "the server's limit, per key: "+rateForms+"; repeatable: all hold; 'none' if there is none")
	p.BoolVar(&f.rejectsFree, "rejects-free", false, "the server does not count what it refuses with 429")
	p.DurationVar(&f.latencyMax, "latency-max", 0, "you promise that no request takes longer than this to be counted by the server: a little faster, and no safer than the promise")
	p.StringSliceVar(&f.keyEnv, "key-env", nil, "environment variables with an API key each, A,B: each key has the limits for itself")
	p.StringSliceVar(&f.keyHosts, "key-host", nil, "where keys may be sent: HOST, HOST:PORT or https://HOST, repeatable (default: the host of the first line, or of --base-url)")
	p.StringArrayVar(&f.headers, "header", nil, "'Name: value' for every request; {key}, {nonce}, {id}, {attempt} are filled in; repeatable")
	p.StringArrayVar(&f.query, "query", nil, "'name=value' for the query of every request, likewise; repeatable")
	p.DurationVar(&f.nonceUnit, "nonce-unit", time.Millisecond, "what a {nonce} counts")
	p.DurationVar(&f.nonceGap, "nonce-gap", 0, "least time between two nonces of a key: several in flight, for a path whose one-way latency varies by less than this (default: one in flight per key)")
	p.IntVar(&f.concurrency, "concurrency", 64, "most requests in flight")
	p.IntVar(&f.attempts, "attempts", 5, "how often a request is tried before it is a dead letter")
	p.DurationVar(&f.timeout, "timeout", 30*time.Second, "longest time for an attempt")
	p.DurationVar(&f.ttl, "ttl", 0, "how long a request without a deadline of its own is of use: from its field created, else from when it was read from a pipe, or its file first (default: for ever)")
	p.BoolVar(&f.renew, "renew", false, "deadlines that are durations count anew at each retry; one that passes uses up an attempt")
	p.StringVar(&f.until, "until", "", "when to send no more and end with exit code 5, to be resumed: a time of day (09:00), an instant as in RFC 3339, or a duration")
	p.Var(&f.budget, "budget", "what may be spent, such as 20USD, over all runs with one --out: by --price-input and --price-output, or by --price")
	p.Float64Var(&f.price, "price", 0, "USD per attempt of cost 1, for --budget (batches: --price-input, --price-output)")
	p.DurationVar(&f.maxOutage, "max-outage", 0, "how long nothing may arrive at a host before the run ends with exit code 5, if nothing else is left to do; 0s: as soon as it is known (default: for ever)")
	p.DurationVar(&f.backoff.Base, "backoff-base", 100*time.Millisecond, "longest delay before the second attempt; it doubles")
	p.DurationVar(&f.backoff.Max, "backoff-max", 30*time.Second, "longest delay before any attempt")
	p.IntVar(&f.redirects, "redirects", 0, "redirects to follow, each with a permit of its own")
	p.IntSliceVar(&f.banStatus, "ban-status", []int{401, 418}, "answers that take the key out of use (with --key-env)")
	p.IntSliceVar(&f.nonceStatus, "nonce-status", nil, "answers that say that a {nonce} did not rise, beside those that say so in words: such a request goes again with a new one")
	p.StringVar(&f.provider, "provider", "", "whose words answers are read in, refusals with status 200 among them (default: by host, by --preset, or as they look): "+strings.Join(quota.Names(), ", "))
	p.StringVar(&f.success, "success", "", "jq expression that is true of the JSON of a success, such as '.status == \"OK\"': any other answer 2xx is a failed attempt")
	p.IntVar(&f.queue, "queue", 1000, "requests to read ahead")
	p.StringVarP(&f.out, "out", "O", "-", "file for the results, to which a run that is repeated adds; - is standard output, without resuming")
	p.StringVar(&f.dead, "dead", "", "file for dead letters (default: beside --out, its name with .dead.jsonl; or among the results on standard output)")
	p.Var((*deadSet)(&f.retryDead), "retry-dead", "send the dead letters of the runs before again: all, or of some classes, as in --retry-dead=outage,limited (classes: see docs/run.md)")
	p.Lookup("retry-dead").NoOptDefVal = "all"
	p.StringVar(&f.unanswered, "unanswered", "resend", "what was sent and may have been served without an answer: resend, or hold as a dead letter")
	p.StringVar(&f.sync, "sync", "group", "group: make durable every 100 ms or 64 lines; always: also before each send, which a power cut asks for")
	p.BoolVar(&f.trustClock, "trust-clock", false, "count what the wall clock says has passed since the run before, also over a reboot: it was not set")
	p.BoolVar(&f.skipInvalid, "skip-invalid", false, "pass over lines that are not valid instead of not starting")
	p.StringSliceVar(&f.keepHeaders, "keep-headers", nil, "more fields of the answers to keep; * for all")
	p.Var(&f.maxLine, "max-line", "longest line of the input")
	p.Var(&f.maxHeader, "max-header", "largest headers of a request")
	p.Var(&f.maxBody, "max-body", "largest body of a request")
	p.Var(&f.maxResponse, "max-response", "how much of an answer's body to keep")
	p.StringVar(&f.progress, "progress", "auto", "auto: a line that is rewritten, on a terminal; a time: a line so often where there is no terminal; off")
	p.StringVar(&f.color, "color", "auto", "auto, always or never")
	p.StringVar(&f.logLevel, "log-level", "warn", "debug has a line per answer and expiry on standard error")
	p.StringVar(&f.summary, "summary", "", "file to write the summary to, as JSON")
	p.StringVarP(&f.output, "output", "o", "text", "the summary on standard error, or the plan: text or json")
	f.llm.add(c)
	return c
}

// config checks the flags.
func (f *runFlags) config(cmd *cobra.Command) (batch.Config, error) {
	usage := func(format string, args ...any) (batch.Config, error) {
		return batch.Config{}, usageError{fmt.Errorf(format, args...)}
	}
	c := batch.Config{
		Arrivals:  limit.Arrivals{OneWayMax: f.latencyMax, RejectsFree: f.rejectsFree},
		NonceUnit: f.nonceUnit, Gap: f.nonceGap, Concurrency: f.concurrency, Attempts: f.attempts, Timeout: f.timeout,
		Redirects: f.redirects, Backoff: f.backoff, Queue: f.queue, TTL: f.ttl, Renew: f.renew, Budget: float64(f.budget), Price: f.price, Prices: f.llm.prices,
		Input:       batch.InputLimits{Line: int(f.maxLine), Header: int(f.maxHeader), Body: int(f.maxBody)},
		SkipInvalid: f.skipInvalid, Out: f.out, Dead: f.dead, Summary: f.summary, Stdout: cmd.OutOrStdout(), MaxResponse: int64(f.maxResponse),
		KeepHeaders: f.keepHeaders, RetryDead: f.retryDead, UserAgent: "paceline",
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		c.UserAgent += "/" + info.Main.Version
	}
	if err := f.llm.check(cmd, &c); err != nil {
		return c, err
	}
	if len(f.limits) == 0 && len(c.Limits) == 0 {
		return usage("--limit, --preset or --rpm is required: what the server allows cannot be guessed; expected %s, or --limit none", rateForms)
	}
	for _, s := range f.limits {
		if s == "none" && len(f.limits) == 1 {
			continue
		}
		n, per, err := parseRate(s)
		if err != nil {
			return usage("--limit %w", err)
		}
		c.Limits = append(c.Limits, batch.Rate{N: n, Per: per, Text: s})
	}
	if err := f.atLeast(cmd); err != nil {
		return c, err
	}
	if c.MaxOutage = f.maxOutage; f.maxOutage == 0 && cmd.Flag("max-outage").Changed {
		c.MaxOutage = -1
	}
	if f.backoff.Base > f.backoff.Max {
		return usage("--backoff-base %v is above --backoff-max %v", f.backoff.Base, f.backoff.Max)
	}
	var err error
	if c.Until, err = parseUntil(f.until, time.Now()); err != nil {
		return usage("--until %w", err)
	}
	if c.Header, err = batch.ParseHeaders(f.headers); err != nil {
		return usage("--header %w", err)
	}
	if c.Query, err = batch.ParseQuery(f.query); err != nil {
		return usage("--query %w", err)
	}
	for _, h := range f.keyHosts {
		place, err := secret.ParsePlace(h)
		if err != nil {
			return usage("--key-host %w", err)
		}
		c.KeyHosts = append(c.KeyHosts, place)
	}
	for _, v := range []struct {
		flag, value string
		one         []string
	}{
		{"unanswered", f.unanswered, []string{"resend", "hold"}}, {"sync", f.sync, []string{"group", "always"}},
		{"color", f.color, []string{"auto", "always", "never"}}, {"output", f.output, []string{"text", "json"}},
		{"log-level", f.logLevel, []string{"debug", "info", "warn", "error"}},
	} {
		if !contains(v.one, v.value) {
			return usage("--%s %q, expected %s", v.flag, v.value, strings.Join(v.one, " or "))
		}
	}
	if err := f.readings(&c); err != nil {
		return c, usageError{err}
	}
	c.HoldUnanswered = f.unanswered == "hold"
	c.SyncAlways = f.sync == "always"
	c.TrustClock = f.trustClock
	if !(f.price >= 0 && f.price < 1e9) {
		return usage("--price %v, expected USD per attempt", f.price)
	}
	if f.out == "" {
		return usage("--out is empty, expected a file, or - for standard output")
	}
	if err := f.files(); err != nil {
		return c, usageError{err}
	}
	if f.retryDead != 0 && f.out == "-" && (f.dead == "" || f.dead == "-") {
		return usage("--retry-dead without --out FILE or --dead FILE: there are no dead letters of a run before")
	}
	if len(f.keyEnv) > 0 {
		if c.Keys, err = batch.KeysFromEnv(f.keyEnv, os.LookupEnv); err != nil {
			return batch.Config{}, exitError{exitConfig, fmt.Errorf("--key-env: %w", err)}
		}
		c.BanStatus = f.banStatus
	}
	return c, nil
}

// files checks where the run writes to. A named pipe would have to be waited for, and what goes beside --out has no place beside a device.
func (f *runFlags) files() error {
	for _, v := range []struct{ flag, path, or string }{
		{"--out", f.out, ", or - for standard output"}, {"--dead", f.dead, ", or - for standard output"}, {"--summary", f.summary, ""},
	} {
		if v.path == "-" && v.or != "" || v.path == "" {
			continue
		}
		if what := batch.NoFile(v.path); what != "" {
			return fmt.Errorf("%s %s is %s, expected a file%s", v.flag, v.path, what, v.or)
		}
	}
	return nil
}

// readings is how answers are read: whose they are, what a success is, what a ban and what a bad nonce.
func (f *runFlags) readings(c *batch.Config) (err error) {
	name := f.provider
	if name == "" {
		name, _, _ = strings.Cut(f.llm.preset, ":")
	}
	if d, ok := quota.Lookup(name); ok {
		c.Provider = d
	} else if f.provider != "" {
		return fmt.Errorf("--provider %q, expected one of %s", f.provider, strings.Join(quota.Names(), ", "))
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
	for _, s := range f.nonceStatus {
		switch {
		case s < 400 || s > 599:
			return fmt.Errorf("--nonce-status %d, expected 400 to 599", s)
		case !batch.Uses(c.Header, "nonce") && !batch.Uses(c.Query, "nonce"):
			return errors.New("--nonce-status without {nonce} in --header or --query: requests have none")
		}
	}
	c.NonceStatus = f.nonceStatus
	return nil
}

// atLeast checks the flags that are numbers.
func (f *runFlags) atLeast(cmd *cobra.Command) error {
	for _, n := range []struct {
		flag  string
		value int64
		least int64
	}{
		{"concurrency", int64(f.concurrency), 1}, {"attempts", int64(f.attempts), 1}, {"queue", int64(f.queue), 1},
		{"redirects", int64(f.redirects), 0}, {"timeout", int64(f.timeout), 1}, {"max-outage", int64(f.maxOutage), 0}, {"ttl", int64(f.ttl), 0}, {"latency-max", int64(f.latencyMax), 0},
		{"nonce-unit", int64(f.nonceUnit), 1}, {"nonce-gap", int64(f.nonceGap), 0},
		{"backoff-base", int64(f.backoff.Base), 1}, {"backoff-max", int64(f.backoff.Max), 1},
	} {
		if n.value < n.least {
			return usageError{fmt.Errorf("--%s %s, expected at least %d", n.flag, cmd.Flag(n.flag).Value, n.least)}
		}
	}
	return nil
}

// parseUntil reads when to end: the next time that a clock here shows 09:00 or 09:00:30, an instant, or so long from now.
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

func contains(all []string, s string) bool {
	return slices.Contains(all, s)
}

func (f *runFlags) run(cmd *cobra.Command, name string) error {
	c, err := f.config(cmd)
	if err != nil {
		return err
	}
	screen, err := newScreen(cmd.ErrOrStderr(), f)
	if err != nil {
		return err
	}
	c.Notice = screen.line
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.logLevel)) // it was checked
	c.Log = slog.New(slog.NewTextHandler(screen, &slog.HandlerOptions{Level: level}))

	in, err := openRunInput(cmd, name)
	if err != nil {
		return err
	}
	defer in.close()
	c.InputInfo = in.info
	if err := f.format(cmd, in, &c); err != nil {
		return err
	}

	signals, stop := notified()
	defer stop()

	r, err := batch.New(c)
	if err != nil {
		return codeOf(err)
	}
	defer overhear(r.Tell)()
	if err := f.check(r, in, signals); err != nil {
		return err
	}
	if f.llm.dryRun {
		return f.llm.printPlan(harmless(cmd.OutOrStdout(), f.output), f.llm.plan(r), f.output)
	}
	if err := r.Open(); err != nil {
		return codeOf(err)
	}
	if in.isLLM && in.isFile {
		p := f.llm.plan(r)
		screen.line(announce(p))
		for _, n := range p.Notes {
			screen.line("note: " + n)
		}
	}
	return f.send(cmd.Context(), r, in, signals, screen)
}

// runInput is what a run reads.
type runInput struct {
	reader io.Reader
	name   string
	info   os.FileInfo // nil: no file
	isFile bool        // it can be read twice
	isLLM  bool        // a batch file for language models
	close  func() error
}

// openRunInput opens the FILE of the command line, or takes standard input.
func openRunInput(cmd *cobra.Command, name string) (*runInput, error) {
	if name == "-" {
		in := cmd.InOrStdin()
		if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) && cmd.Flags().NArg() == 0 {
			return nil, usageError{errors.New("no FILE, expected one, or - for standard input")}
		}
		all := &runInput{reader: in, name: "standard input", close: func() error { return nil }}
		if file, ok := in.(*os.File); ok {
			all.info, _ = file.Stat()
		}
		return all, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, exitError{exitConfig, err}
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = exitError{exitConfig, fmt.Errorf("%s is a folder, expected a file", name)}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &runInput{reader: file, name: name, info: info, isFile: info.Mode().IsRegular(), close: file.Close}, nil
}

// format looks for a batch file for language models, and configures the run for it.
func (f *runFlags) format(cmd *cobra.Command, in *runInput, c *batch.Config) error {
	provider, isLLM, reader, err := f.llm.readFormat(in.reader, int(f.maxLine))
	if err != nil {
		return err
	}
	in.reader, in.isLLM = reader, isLLM
	switch {
	case f.budget > 0 && isLLM && f.llm.prices.Input < 0:
		return usageError{errors.New("--budget without prices: --price-input and --price-output, in USD per million tokens")}
	case f.budget > 0 && !isLLM && f.price <= 0:
		return usageError{errors.New("--budget without a price: --price, in USD per attempt of cost 1")}
	}
	if isLLM {
		return f.llm.config(cmd, provider, c)
	}
	if len(f.keyEnv) > 0 && !batch.Uses(c.Header, "key") && !batch.Uses(c.Query, "key") {
		return usageError{errors.New("--key-env without {key} in --header or --query: no request would have a key, expected such as --header 'Authorization: Bearer {key}'")}
	}
	if len(f.llm.bounded) > 0 {
		return usageError{fmt.Errorf("%s: tokens are known of batches for language models only (--format openai-batch)", f.llm.bounded[0])}
	}
	return nil
}

// check reads the whole input before anything is sent, if it can be read twice or nothing will be sent.
func (f *runFlags) check(r *batch.Run, in *runInput, signals <-chan os.Signal) error {
	if in.isLLM || f.llm.dryRun {
		if err := interruptible(signals, r.Peek); err != nil {
			return codeOf(err)
		}
	}
	if !in.isFile && !f.llm.dryRun {
		return nil
	}
	if err := interruptible(signals, func() error { return r.Check(in.name, in.reader) }); err != nil {
		return codeOf(err)
	}
	if f.llm.dryRun {
		return nil
	}
	_, err := in.reader.(io.Seeker).Seek(0, io.SeekStart)
	return err
}

// send sends the input until its end or a signal, and reports.
func (f *runFlags) send(ctx context.Context, r *batch.Run, in *runInput, signals <-chan os.Signal, screen *screen) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	done := make(chan struct{})
	interrupted := make(chan bool, 1)
	go func() { interrupted <- listen(signals, done, r, abort, screen) }()
	stopProgress := screen.follow(r)
	began := time.Now()
	err := r.Send(ctx, in.name, in.reader)
	stopProgress()
	close(done)
	wasInterrupted := <-interrupted
	totals, cerr := r.Close()
	if because := r.DeadBecause(); because != "" {
		screen.line(because)
	}
	again := r.DeadAgain()
	if again != "" && f.output == "json" { // whose last line is read by programs
		screen.line(again)
	}
	if serr := f.report(screen, totals, time.Since(began)); cerr == nil {
		cerr = serr
	}
	if again != "" && f.output != "json" {
		screen.line(again)
	}
	if wasInterrupted {
		return f.interruption(totals)
	}
	return f.end(totals, err, cerr)
}

// interruption is the error of a run that a signal ended.
func (f *runFlags) interruption(t batch.Totals) error {
	how := "interrupted"
	if t.Left > 0 {
		how += ": " + leftText(t.Left)
		if f.out != "-" {
			how += "; the same command again resumes"
		}
	}
	return exitError{exitInterrupted, errors.New(how)}
}

// end is the error of a run that ended by itself, by what came of sending, of closing, and of the requests.
func (f *runFlags) end(t batch.Totals, sending, closing error) error {
	switch {
	case errors.Is(sending, batch.ErrOutput) && f.out != "-":
		return exitError{exitFailure, fmt.Errorf("%w; then nothing more was sent, and the same command again resumes", sending)}
	case errors.Is(sending, batch.ErrHost), errors.Is(sending, batch.ErrOutage), errors.Is(sending, batch.ErrEnough):
		how := leftText(t.Left) + ", and nothing is lost"
		if f.out != "-" {
			how += "; the same command again resumes"
		}
		return codeOf(fmt.Errorf("%w; %s", sending, how))
	case sending != nil:
		return codeOf(sending)
	case closing != nil:
		return exitError{exitFailure, closing}
	case t.Lost > 0:
		return exitError{exitSomeFailed, fmt.Errorf("%s no end state in %s", shown.Count(t.Lost, "request is lost: it has", "requests are lost: they have"), f.out)}
	case t.Dead+t.Expired+t.SkippedDead+t.Invalid+t.Appended > 0:
		return exitError{code: exitSomeFailed}
	}
	return nil
}

func leftText(n int) string { return shown.Count(n, "request is left", "requests are left") }

// codeOf gives an error of package batch its exit code.
func codeOf(err error) error {
	switch {
	case errors.Is(err, errInterrupted):
		return exitError{exitInterrupted, err}
	case errors.Is(err, batch.ErrConfig):
		return exitError{exitConfig, err}
	case errors.Is(err, batch.ErrOutput) && errors.Is(err, batch.ErrUnsent):
		return exitError{exitFailure, err}
	case errors.Is(err, batch.ErrOutput):
		return exitError{exitFailure, fmt.Errorf("%w; then nothing more was sent", err)}
	case errors.Is(err, dispatch.ErrExhausted):
		return exitError{exitExhausted, err}
	case errors.Is(err, batch.ErrOutage), errors.Is(err, batch.ErrEnough):
		return exitError{exitBudget, err}
	case errors.Is(err, batch.ErrUnsent):
		return exitError{exitConfig, err}
	case errors.Is(err, batch.ErrInput):
		return exitError{exitSomeFailed, err}
	}
	return err
}

// report prints the summary.
func (f *runFlags) report(s *screen, t batch.Totals, wall time.Duration) error {
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if f.summary != "" {
		if err := os.WriteFile(f.summary, append(line, '\n'), 0o600); err != nil {
			return fmt.Errorf("--summary: %w", err)
		}
	}
	if f.output == "json" {
		s.line(string(line))
		return nil
	}
	var parts []string
	add := func(n int, what, color string) {
		text := fmt.Sprintf("%d %s", n, what)
		if n > 0 && color != "" {
			text = s.paint(color, text)
		}
		parts = append(parts, text)
	}
	add(t.Offered, "offered", "")
	add(t.Done, "done", "")
	rejected := red
	if t.Rejected == 0 {
		rejected = green
	}
	parts = append(parts, s.paint(rejected, fmt.Sprintf("%d rejected", t.Rejected)))
	add(t.Expired, "expired", red)
	add(t.Dead, "dead", red)
	add(t.Lost, "lost", red)
	for _, v := range []struct {
		n           int
		what, color string
	}{
		{t.SkippedDone, "done before", ""}, {t.SkippedDead, "dead before (--retry-dead)", red}, {t.Invalid, "invalid lines", red},
		{t.Left, "left", red}, {t.Appended, "lines appended meanwhile", red}, {t.Unwritten, "of them answered but not written", red}, {t.Repeats, "possible repeats", red},
	} {
		if v.n > 0 {
			add(v.n, v.what, v.color)
		}
	}
	text := strings.Join(parts, ", ")
	if t.Rate > 0 {
		text += fmt.Sprintf("; %.1f/s", t.Rate)
		if t.Ceiling > 0 {
			text += fmt.Sprintf(", %.1f %% of the ceiling", t.Percent)
		}
	}
	if f.budget > 0 {
		text += fmt.Sprintf("; $%.2f of $%.2f spent", t.USD, float64(f.budget))
	}
	if l := t.Latency; l != nil {
		text += "; answers in " + l.String()
	}
	const mostKeys = 20
	if len(t.Keys) > 1 {
		for _, k := range t.Keys[:min(len(t.Keys), mostKeys)] {
			s.ours(keyText(&k))
		}
	}
	s.ours(fmt.Sprintf("%s; %v", text, wall.Round(10*time.Millisecond)))
	return nil
}

// keyText is the figures of a key.
func keyText(k *batch.KeyTotals) string {
	text := fmt.Sprintf("key %s: %d sent, %d done, %d rejected", k.Key, k.Sends, k.Done, k.Rejected)
	if k.Percent > 0 {
		text += fmt.Sprintf(", %.1f %% of its ceiling", k.Percent)
	}
	if k.Latency.Mean > 0 {
		text += "; answers in " + k.Latency.String()
	}
	return text
}

const (
	green = "32"
	red   = "31"
)

// screen is standard error: lines, and on a terminal a last line that is rewritten. Safe for concurrent use.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	fd    int // of the terminal, or -1
	color bool
	every time.Duration // 0: no progress
	shown bool          // there is a line to be rewritten
}

func newScreen(w io.Writer, f *runFlags) (*screen, error) {
	s := &screen{w: w, fd: -1}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		s.fd = int(file.Fd())
	}
	force := os.Getenv("CLICOLOR_FORCE")
	s.color = f.color == "always" ||
		f.color == "auto" && os.Getenv("NO_COLOR") == "" && (s.fd >= 0 || force != "" && force != "0")
	switch f.progress {
	case "off":
		s.fd = -1
	case "auto":
		// Results and a line that is rewritten do not go together on one terminal.
		if f.out == "-" && term.IsTerminal(int(os.Stdout.Fd())) {
			s.fd = -1
		}
		if s.fd >= 0 {
			s.every = 200 * time.Millisecond
		}
	default:
		d, err := time.ParseDuration(f.progress)
		if err != nil || d <= 0 {
			return nil, usageError{fmt.Errorf("--progress %q, expected auto, off, or a time such as 5s", f.progress)}
		}
		s.every = d
	}
	return s, nil
}

func (s *screen) paint(color, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// line writes what may have text of strangers in it.
func (s *screen) line(text string) { s.ours(shown.Text(text)) }

// ours writes text with colours.
func (s *screen) ours(text string) { _, _ = s.Write([]byte(text + "\n")) }

// Write implements io.Writer for the log: whole lines, above the one that is rewritten.
func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clearLocked()
	return s.w.Write(b)
}

func (s *screen) clearLocked() {
	if s.shown {
		_, _ = io.WriteString(s.w, "\r\x1b[K")
		s.shown = false
	}
}

// follow shows the progress until the function it returns is called.
func (s *screen) follow(r *batch.Run) (stop func()) {
	if s.every == 0 {
		return func() {}
	}
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		t := time.NewTicker(s.every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				s.show(s.progressText(r.Progress()))
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-finished
		s.mu.Lock()
		s.clearLocked()
		s.mu.Unlock()
	}
}

func (s *screen) show(text string) {
	if s.fd < 0 {
		s.ours(text)
		return
	}
	width, _, err := term.GetSize(s.fd)
	if err != nil || width < 20 {
		width = 80
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.w, "\r\x1b[K"+clip(text, width-1))
	s.shown = true
}

// clip cuts text to so many columns; colours take none.
func clip(text string, columns int) string {
	n, escape := 0, false
	for i, c := range text {
		switch {
		case c == '\x1b':
			escape = true
		case escape:
			escape = c != 'm'
		default:
			if n == columns {
				return text[:i] + "\x1b[0m"
			}
			n++
		}
	}
	return text
}

func (s *screen) progressText(p batch.Progress) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if p.Total > 0 {
		add("%d of %d done", p.Done, p.Total)
	} else {
		add("%d done", p.Done)
	}
	add("%d in flight", p.InFlight)
	add("%d waiting", p.Waiting)
	failed := fmt.Sprintf("%d failed", p.Dead+p.Expired)
	if p.Dead+p.Expired > 0 {
		failed = s.paint(red, failed)
	}
	parts = append(parts, failed)
	rate := fmt.Sprintf("%.1f/s", p.Rate)
	if p.Ceiling > 0 {
		rate += fmt.Sprintf(" (%.0f %% of the ceiling)", p.Percent)
	}
	parts = append(parts, rate)
	color := green
	if p.Rejected > 0 {
		color = red
	}
	parts = append(parts, s.paint(color, fmt.Sprintf("%d rejected", p.Rejected)))
	if p.ETA > 0 {
		add("ETA %v", max(p.ETA.Round(time.Second), time.Second))
	}
	if len(p.Down) > 0 {
		text := "nothing arrives at " + shown.Text(p.Down[0])
		if more := len(p.Down) - 1; more > 0 {
			text += fmt.Sprintf(" (and at %d more)", more)
		}
		parts = append(parts, s.paint(red, text))
	}
	if p.Why != "" {
		add("waiting for %s", shown.Text(p.Why))
	}
	return strings.Join(parts, ", ")
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
type deadSet batch.Dead

func (d *deadSet) String() string {
	if *d == 0 {
		return ""
	}
	return "some"
}

func (d *deadSet) Type() string { return "class,…" }

func (d *deadSet) Set(s string) error {
	switch s {
	case "true": // it was a switch once
		s = "all"
	case "false":
		*d = 0
		return nil
	}
	set, err := batch.ParseDead(s)
	*d = deadSet(set)
	return err
}
