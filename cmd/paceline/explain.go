package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/explain"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/provider"
)

const explainLong = `Explain a response: the limits of the server, the rest of them, and the time to come back.

FILE has the response; - is standard input. These forms are read: the output of curl -i, curl -v, HTTPie or wget -S; header fields as
a browser copies them; JSON with header fields; a HAR; a log with lines of JSON or key=value; the body of an error alone. Traces, and
objects as JavaScript, Python, Go, Ruby or Java print them, are not read. The error then says what to paste.

If FILE has several responses (redirects, 100 Continue), the last one counts. Of several objects or lines, the last one about limits
counts. The response is read as of its Date, or of now if it has none. For a URL, one GET is sent, and redirects are not followed.

The provider is known by the host of the URL, by the fields of the response, by an address in it, or by the codes of its body. If
that fails, --provider names it. Without a response, --provider prints the facts about a provider, --providers lists all providers,
and --preset prints published limits.

With --route and a preset or a provider, it prints what a request costs, the resource in which it counts, and the limits that it meets.`

type explanation struct {
	provider, output, at string
	headers              []string
	timeout              time.Duration
	preset, route        string
	providers            bool
	out, errs            io.Writer
	in                   io.Reader
	now                  func() time.Time
	terminal             func(io.Reader) bool // reports whether a user types at that reader
}

func newExplain() *cobra.Command { return explainAt(time.Now, isTerminal) }

func explainAt(now func() time.Time, terminal func(io.Reader) bool) *cobra.Command {
	e := explanation{now: now, terminal: terminal}
	c := &cobra.Command{
		Use:   "explain [FILE|-|URL]",
		Short: "Explain a response: the server's limits, the rest, the time to come back",
		Long:  explainLong,
		Example: `  curl -sD - -o /dev/null https://api.github.com/rate_limit | paceline explain
  paceline explain saved.txt --provider openai
  paceline explain https://api.github.com/users/octocat
  paceline explain https://api.openai.com/v1/models -H @auth.txt -o json
  pbpaste | paceline explain
  paceline explain --provider github
  paceline explain --preset github
  paceline explain --preset binance --route 'GET /api/v3/depth?limit=5000'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.MaximumNArgs(1)(cmd, args); err != nil {
				return err
			}
			return e.check(args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e.in, e.out, e.errs = cmd.InOrStdin(), cli.Harmless(cmd.OutOrStdout(), e.output), cmd.ErrOrStderr()
			return e.run(cmd, args)
		},
	}
	f := c.Flags()
	f.StringVar(&e.provider, "provider", "",
		"name of the provider (default: by host or fields); without a response: facts about the provider")
	f.BoolVar(&e.providers, "providers", false,
		"list the providers that are known, and the names of their published limits")
	f.StringVar(&e.preset, "preset", "", "print what a provider publishes about its limits instead")
	f.StringVar(&e.route, "route", "",
		"print what a request costs and where it counts: 'GET /path?name=value', with --preset or --provider")
	f.StringVar(&e.at, "at", "", "time of the response, in RFC 3339 (default: its Date, or now)")
	f.StringArrayVarP(&e.headers, "header", "H", nil,
		"send this field with the request: 'Name: value', or @FILE with one per line")
	f.DurationVar(&e.timeout, "timeout", 30*time.Second, "give up on a request after this")
	cli.OutputFlag(c, &e.output, "text", "json")
	return c
}

// check returns an error in the command line.
func (e *explanation) check(args []string) error {
	if _, ok := provider.LookupProvider(e.provider); e.provider != "" && !ok {
		return unknownProvider(e.provider)
	}
	if _, ok := provider.LookupPreset(e.preset); e.preset != "" && !ok {
		return unknownPreset(e.preset)
	}
	if e.preset != "" && len(args) > 0 {
		return errors.New("--preset needs no response")
	}
	if e.route != "" {
		if _, err := routeOf(e.route); err != nil {
			return err
		}
		if len(args) > 0 || e.preset == "" && e.provider == "" {
			return errors.New("--route needs --preset or --provider, and no response")
		}
	}
	if e.providers && (e.route != "" || len(args) > 0 || e.preset != "" || e.provider != "") {
		return errors.New("--providers lists the table: it takes no response, no --provider, no --preset and no --route")
	}
	if _, ok := provider.Lookup(e.provider); e.provider != "" && !ok && len(args) > 0 {
		return unknownProvider(e.provider)
	}
	if _, err := time.Parse(time.RFC3339, e.at); e.at != "" && err != nil {
		return fmt.Errorf("--at %q: want an instant like 2026-01-15T12:00:00Z", e.at)
	}
	if e.timeout <= 0 {
		return fmt.Errorf("--timeout %v: must be positive", e.timeout)
	}
	if isURL := len(args) == 1 && strings.Contains(args[0], "://"); isURL {
		u, err := secret.ParseAddress(args[0])
		if err != nil {
			return fmt.Errorf("%s: %w", secret.SanitizeAddress(args[0]), err)
		}
		if u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%q is no http or https URL", secret.SanitizeAddress(args[0]))
		}
	} else if len(e.headers) > 0 {
		return errors.New("-H is for a URL: a saved response is not sent for")
	}
	return nil
}

// when returns the instant for the judgement of an answer: --at, or else t, or else, if t is zero,
// now.
func (e *explanation) when(t time.Time) time.Time {
	if e.at != "" {
		t, _ = time.Parse(time.RFC3339, e.at) // check has found it valid
	}
	if t.IsZero() {
		t = e.now()
	}
	return t
}

func (e *explanation) run(cmd *cobra.Command, args []string) error {
	switch {
	case e.route != "":
		return e.charge()
	case e.preset != "":
		p, _ := provider.LookupPreset(e.preset)
		return e.published(p)
	case e.providers:
		return e.table()
	}
	from := "-"
	if len(args) == 1 {
		from = args[0]
	}
	var a explain.Answer
	var text []byte
	var date time.Time
	var err error
	if strings.Contains(from, "://") {
		u, _ := secret.ParseAddress(from)
		a.Response, err = e.fetch(cmd, u)
		a.Said, a.Host = true, u.Host
		from = secret.SanitizeAddress(u.String())
	} else {
		if text, err = e.load(from, len(args) == 0); err != nil {
			return err
		}
		if p, ok := provider.LookupProvider(e.provider); ok && len(args) == 0 && len(bytes.TrimSpace(text)) == 0 {
			return e.row(p)
		}
		if a, err = explain.Parse(text); err != nil {
			return cli.Exit(cli.ExitConfig, fmt.Errorf("%s, %w", label(from), err))
		}
		date, _ = http.ParseTime(a.Header.Get("Date"))
	}
	if err != nil {
		return err
	}
	return e.say(from, e.when(date), a)
}

// say explains an answer.
func (e *explanation) say(from string, now time.Time, a explain.Answer) error {
	if _, ok := provider.Lookup(e.provider); e.provider != "" && !ok {
		return cli.Usage(unknownProvider(e.provider))
	}
	who := e.who(now, &a)
	switch {
	case a.Said:
	case a.Bare && who.blank:
		fmt.Fprintf(e.errs, "no status found, and no refusal for a limit in the body: it is read as of an answer of %d\n",
			a.Status)
	case a.Bare:
		fmt.Fprintf(e.errs, "no status found: a body alone is read as of an answer of %d\n", a.Status)
	default:
		fmt.Fprintln(e.errs, "no status found: it is read as of an answer that was served (200)")
	}
	s := saying{from: from, now: now, answer: a, who: who, o: provider.Explain(who.Dialect, now, a.Response)}
	if p, ok := provider.LookupProvider(s.o.Dialect); ok {
		s.provider = p
		if len(s.o.Policies) == 0 && len(who.others) == 0 {
			s.published = publishedOf(p, now)
		}
		s.stranger = e.provider == "" && p.Kind == "Anybody"
	}
	if e.output == "json" {
		return e.encode(s.json())
	}
	_, err := io.WriteString(e.out, screen.Fit(s.words(), screen.TableWidth))
	return err
}

func (e *explanation) fetch(cmd *cobra.Command, u *url.URL) (provider.Response, error) {
	req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, u.String(), nil)
	if err != nil {
		return provider.Response{}, err
	}
	if req.Header, err = e.fields(); err != nil {
		return provider.Response{}, err
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	client := &http.Client{Timeout: e.timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok { // it quotes the URL with its query
		err = fmt.Errorf("%s: %w", secret.SanitizeAddress(u.String()), e.Err)
	}
	if err != nil {
		return provider.Response{}, err
	}
	defer resp.Body.Close()
	// A body that breaks off is no error. The part before may be enough, and the header fields are
	// there in any case.
	body, err := io.ReadAll(io.LimitReader(resp.Body, provider.MaxBody+1))
	if err != nil && len(body) == 0 {
		body = nil
	}
	return provider.Response{Status: resp.StatusCode, Header: resp.Header, Body: explain.Decoded(resp.Header, body)}, nil
}

// fields reads the header fields to send.
func (e *explanation) fields() (http.Header, error) {
	h := http.Header{}
	for _, v := range e.headers {
		lines := []string{v}
		where := "-H"
		if file, ok := strings.CutPrefix(v, "@"); ok {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, cli.Usage(err)
			}
			lines, where = strings.Split(string(text), "\n"), file
		}
		for i, line := range lines {
			if line = strings.TrimSpace(line); line == "" && len(lines) > 1 {
				continue
			}
			name, value, ok := strings.Cut(line, ":")
			if name = strings.TrimSpace(name); !ok || !explain.FieldName(name) {
				// The line may be a secret: it is not printed.
				return nil, cli.Usage(fmt.Errorf("%s, line %d: want 'Name: value'", where, i+1))
			}
			h.Add(name, strings.TrimSpace(value))
		}
	}
	return h, nil
}

// label is the name of an input in errors.
func label(name string) string {
	if name == "-" {
		return "stdin"
	}
	return name
}

// load reads a file or standard input. At a terminal it asks the user to paste. unasked means that
// the command line has no FILE. Then, with a provider on the command line, load waits for no
// typing.
func (e *explanation) load(name string, unasked bool) ([]byte, error) {
	in := e.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, cli.Exit(cli.ExitConfig, cli.NoSuchFile(name, err))
		}
		defer f.Close()
		in = f
	} else if e.terminal(e.in) {
		if unasked && e.provider != "" {
			fmt.Fprintf(e.errs, "to paste a response of %s: paceline explain --provider %s -\n", e.provider, e.provider)
			return nil, nil
		}
		fmt.Fprintln(e.errs, "paste a response (curl -i, header fields, JSON with them, a line of a log), and end with "+
			"Ctrl-D on a line of its own")
	}
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return nil, cli.Exit(cli.ExitConfig, cli.NoSuchFile(label(name), fmt.Errorf("%s: %w", label(name), err)))
	}
	return text, nil
}

// isTerminal reports whether a user types at in.
func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
