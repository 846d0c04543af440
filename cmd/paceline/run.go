package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/app/work"
)

const runLong = `Send the HTTP requests of FILE as fast as the limits allow and no faster. FILE has URLs, one a line; a table or rows of JSON, with --url;
curl commands; or whole requests, one JSON object a line. Of a request, only url is required:

  {"id":"a1","method":"POST","url":"https://api.example.com/v1/things","body":{"name":"x"}}

A file may also have OpenAI's batch format (custom_id, method, url, body) or Anthropic's (custom_id, params). Its results then have
the same format. Such files have limits of tokens, too: --preset openai:tier1, or --rpm and --tpm. --dry-run prints the plan:
requests, tokens, money, time, and the limit that binds.

Results are lines of JSON on standard output or in --out FILE. With --out, a run may break off at any moment, even by kill -9. The
same command again sends the remaining requests. The limits still count the requests sent before.

Exit codes: 0 all done; 1 failure, running again resumes; 2 usage; 3 finished, but some requests are dead, expired, lost
or invalid, or --select failed; 4 bad configuration or input, nothing was sent; 5 nothing arrived for --max-outage,
it is the time of --until, or --budget is spent: running again resumes; 6 every key is out of use or denied all; 130 interrupted. The first Ctrl-C waits
for the requests in flight, the second breaks them off.`

const runExample = `  paceline run urls.txt --limit 100/min
  paceline run people.csv --url 'https://api.example.com/people/{row.email}' --limit 20/s
  paceline run --limit 20/s --limit 500/m --out results.jsonl requests.jsonl
  paceline run --preset openai:tier1 --key-env OPENAI_API_KEY --out results.jsonl prompts.jsonl`

func newRun() *cobra.Command {
	f := newRunFlags()
	c := &cobra.Command{
		Use:     "run [FILE|-]",
		Short:   "Send a file of HTTP requests within the server's limits",
		Long:    runLong,
		Example: runExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				for _, a := range args {
					if _, err := format.ParseDead(a); err == nil && cmd.Flag("retry-dead").Changed {
						return cli.Usage(fmt.Errorf("--retry-dead %s, expected --retry-dead=%s, with = in place of the space", a, a))
					}
				}
				if _, isKind := countingKinds[args[0]]; isKind && cmd.Flag("strangers").Changed {
					return cli.Usage(fmt.Errorf("--strangers %s, expected --strangers=%s, with = in place of the space", args[0], args[0]))
				}
				return cli.Usage(fmt.Errorf("%d files, expected one, or - for standard input; all of them: cat %s | paceline run … -", len(args), strings.Join(args, " ")))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && cmd.Flags().NFlag() == 0 {
				return cli.Usage(errors.New("expected a FILE of requests (- is standard input) and what the server allows, such as: paceline run --limit 20/s requests.jsonl; see paceline run --help"))
			}
			name := "-"
			if len(args) == 1 {
				name = args[0]
			}
			return f.run(cmd, name)
		},
	}
	f.add(c)
	f.given.api.add(c.Flags())
	return c
}

func (f *runFlags) run(cmd *cobra.Command, name string) error {
	err := f.backlog.check(cmd)
	if err == nil && f.backlog.store != "" {
		err = refuses(cmd, ofOneRun, "--backlog")
	}
	if err != nil {
		return cli.Usage(err)
	}
	notice, err := f.outputIsFile(cmd)
	if err != nil {
		return cli.Usage(err)
	}
	if err := f.prompts(cmd); err != nil {
		return cli.Usage(err)
	}
	c, err := f.config(cmd)
	if err == nil {
		err = f.prompt.config(f, &c)
	}
	if err != nil {
		return withoutFile(name, err)
	}
	errs, err := newScreen(f.console.screen(cmd), f)
	if err != nil {
		return err
	}
	if notice != "" {
		errs.Line(notice)
	}
	c.Notice = errs.Line
	f.warn(errs)
	c.Log = f.logger(cmd, errs)

	in, err := openRunInput(cmd, name)
	if err != nil {
		return err
	}
	defer in.close()
	if f.llm.dryRun {
		f.watch.addr = ""
	}
	var watch *watching
	if f.backlog.store == "" { // otherwise the page begins when the backlog is there
		if watch, err = f.watch.listen(); err != nil {
			return err
		}
		defer watch.close()
	}
	c.InputInfo = in.info
	if err := f.format(cmd, in, &c); err != nil {
		return err
	}

	signals, stop := notified()
	defer stop()
	if over, err := f.otherwise(cmd, in, &c, signals, errs); over || err != nil {
		return err
	}
	if err := f.upstream.open(cmd, &c); err != nil {
		return err
	}
	defer f.upstream.close()
	if !f.llm.dryRun {
		if c.Share, err = f.sharing.store.Open(cmd.Context(), c.Log); err != nil {
			return err
		}
		defer c.Share.Close()
	}
	r, err := run.New(c)
	if err != nil {
		return codeOf(err)
	}
	defer cli.Overhear(r.Tell)()
	if err := f.check(r, in, signals); err != nil {
		return err
	}
	if f.llm.dryRun {
		readerMayGo()
		return f.llm.printPlan(cli.Harmless(cmd.OutOrStdout(), f.output), f.plan(r, &c), f.output)
	}
	if err := r.Open(); err != nil {
		return codeOf(err)
	}
	f.announce(r, in, &c, errs)
	h, letGo := f.control(r, in, errs.Line)
	defer letGo()
	if err := watch.serve("paceline run "+in.name, r, nil, errs.Line, h); err != nil {
		return err
	}
	return f.send(cmd.Context(), r, in, signals, errs)
}

// otherwise is what does not send each request from here. over says that nothing is left to do.
func (f *runFlags) otherwise(cmd *cobra.Command, in *runInput, c *run.Config, signals <-chan os.Signal,
	errs *screen.Screen) (over bool, err error) {
	switch {
	case f.backlog.store != "":
		return true, f.viaBacklog(cmd, in, *c, signals, errs)
	case f.via.file != "":
		return true, f.writeBatch(in, *c, signals, errs)
	}
	return false, f.via.run(cmd, f, in, c, signals, errs)
}

// withoutFile adds to an error that names no flag, such as a missing key, that the input is missing as well.
func withoutFile(name string, err error) error {
	if _, missing := os.Stat(name); name != "-" && cli.Code(err) == cli.ExitConfig && errors.Is(missing, fs.ErrNotExist) {
		return cli.Exit(cli.ExitConfig, fmt.Errorf("%w; %w", cli.NoSuchFile(name, missing), err))
	}
	return err
}

// warn says what the flags do that a user may not expect.
func (f *runFlags) warn(errs *screen.Screen) {
	if f.retryDead.Has(format.DeadLength) && f.prompt.maxTokens == 0 {
		errs.Line("--retry-dead=length without --max-tokens asks again with the bounds that the requests have: " +
			"expected --max-tokens N for more")
	}
	if f.nowhere != "" {
		errs.Line(fmt.Sprintf("results are thrown away (--out %s), so there is nothing to go on from: "+
			"the same command again sends all", f.nowhere))
	}
	if f.dead != "" && f.dead != "-" && f.out != "-" && output.IsNowhere(f.dead) {
		errs.Line(fmt.Sprintf("dead letters are thrown away (--dead %s), so the same command again sends them again", f.dead))
	}
}

// announce says what a batch of a file will cost.
func (f *runFlags) announce(r *run.Run, in *runInput, c *run.Config, errs *screen.Screen) {
	if !in.isMetered || !in.isFile {
		return
	}
	p := f.llm.plan(r)
	if p.Requests == 0 {
		return
	}
	f.countingNotes(&p, c)
	errs.Line(announce(p))
	for _, n := range p.Notes {
		errs.Line("note: " + n)
	}
}

// runInput is the input that a run reads.
type runInput struct {
	reader io.Reader
	name   string
	info   os.FileInfo // nil if it is no file
	isFile bool        // it can be read more than once
	head   []byte      // its beginning
	// isMetered says that the tokens of its requests are counted.
	isMetered bool
	note      *work.Note // of the backlog that is the input; nil: it is none
	close     func() error
	whole     func() string // how far all processes of a backlog are; nil: there is no backlog
}

// openRunInput opens the FILE of the command line, or takes standard input.
func openRunInput(cmd *cobra.Command, name string) (*runInput, error) {
	if name == "-" {
		in := cmd.InOrStdin()
		if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) && cmd.Flags().NArg() == 0 {
			return nil, cli.Usage(errors.New("no FILE, expected one, or - for standard input; see paceline run --help"))
		}
		all := &runInput{reader: in, name: "standard input", close: func() error { return nil }}
		if file, ok := in.(*os.File); ok {
			all.info, _ = file.Stat()
		}
		return all, nil
	}
	file, err := os.Open(name)
	if err != nil {
		err = cli.Expecting(err, "a file of requests, or - for standard input")
		return nil, cli.Exit(cli.ExitConfig, cli.NoSuchFile(name, err))
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = cli.Exit(cli.ExitConfig, fmt.Errorf("%s is a folder, expected a file", name))
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &runInput{reader: file, name: name, info: info, isFile: info.Mode().IsRegular(), close: file.Close}, nil
}

// format finds out whether the input is a batch file for language models, and if so configures the
// run for it.
func (f *runFlags) format(cmd *cobra.Command, in *runInput, c *run.Config) error {
	taken, err := f.take(cmd, in, c)
	if err != nil {
		return err
	}
	if taken {
		return f.suits(cmd, in, c)
	}
	provider, isLLM, reader, err := f.llm.readFormat(in.reader, int(f.maxLine))
	if err != nil {
		return err
	}
	in.reader, in.isMetered = reader, isLLM
	if !isLLM {
		return f.suits(cmd, in, c)
	}
	if err := f.results.batches(f.okStatus); err != nil {
		return cli.Usage(err)
	}
	return f.llm.config(cmd, provider, c, f.prompt.maxTokens)
}

// suits checks the flags against the form of an input that is no batch.
func (f *runFlags) suits(cmd *cobra.Command, in *runInput, c *run.Config) error {
	if err := f.meter(cmd, in, c); err != nil {
		return err
	}
	in.isMetered = c.Meter != nil
	if in.note != nil && in.isMetered { // the requests have the fields of their API, but for its key
		if err := withKey(c, format.ProviderOf(c.Meter)); err != nil {
			return err
		}
	}
	if len(c.Keys) > 0 && !format.Uses(c.Header, "key") && !format.Uses(c.Query, "key") {
		return cli.Usage(errors.New("--key-env without {key} in --header or --query: no request would have a key, " +
			"expected such as --header 'Authorization: Bearer {key}'"))
	}
	return nil
}

// check reads the whole input before the first request, if the input can be read twice or no
// request will be sent.
func (f *runFlags) check(r *run.Run, in *runInput, signals <-chan os.Signal) error {
	if in.isMetered || f.llm.dryRun {
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
		return codeOf(r.MayOpen())
	}
	_, err := in.reader.(io.Seeker).Seek(0, io.SeekStart)
	return err
}

// send sends the requests of the input until its end or a signal, and prints the report.
func (f *runFlags) send(ctx context.Context, r *run.Run, in *runInput, signals <-chan os.Signal, errs *screen.Screen) error {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	done := make(chan struct{})
	interrupted := make(chan bool, 1)
	drain := func() {
		f.upstream.stopWaiting()
		r.Drain()
	}
	leave := f.fill(r, in, errs)
	defer leave()                           // also in a panic
	breakOff := func() { leave(); abort() } // a third signal ends the process
	go func() { interrupted <- listen(signals, done, r, drain, breakOff, errs.Line) }()
	stopProgress := errs.Follow(in.lines(runLines(r.Progress)))
	began := time.Now()
	cli.Ballast()
	err := r.Send(ctx, in.name, in.reader)
	stopProgress()
	leave()
	close(done)
	wasInterrupted := <-interrupted
	totals, cerr := r.Close()
	totals.SelectFailed += f.via.brought.Unselected
	because := r.DeadBecause()
	if because != "" {
		errs.Line(because)
	}
	again := r.DeadAgain()
	if again != "" && f.output == "json" { // programs read the last line of standard error, so this one is before it
		errs.Line(again)
	}
	if serr := f.report(errs, totals, time.Since(began)); cerr == nil {
		cerr = serr
	}
	if again != "" && f.output != "json" {
		errs.Line(again)
	}
	if derr := f.drawn.write(cmp.Or(strings.TrimPrefix(f.out, "-"), in.name)); cerr == nil {
		cerr = derr
	}
	if wasInterrupted {
		return f.interruption(totals)
	}
	return f.console.ended(f.end(totals, err, cerr), &totals, because)
}
