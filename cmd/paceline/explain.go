package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/quota"
)

const explainLong = `Say in words what a response means: what the server's limits are, what is left of them, and when to come back.

FILE holds what curl -i or curl -D - printed; - is stdin. Of several responses in it (redirects, 100 Continue) the last
counts. It is read as of its Date, or of now if it has none. Of a URL, one GET is sent and its answer explained;
redirects are not followed.

The provider is found by the host of a URL, or else by the fields of the response; --provider names it where that fails.
Published limits of a provider, without any response: --preset.`

type explain struct {
	provider, output, at string
	headers              []string
	timeout              time.Duration
	preset               string
	out                  io.Writer
	in                   io.Reader
	now                  func() time.Time
}

func newExplain() *cobra.Command {
	e := explain{now: time.Now}
	c := &cobra.Command{
		Use:   "explain [FILE|-|URL]",
		Short: "Say what a response means: the server's limits, what is left, when to come back",
		Long:  explainLong,
		Example: `  curl -sD - -o /dev/null https://api.github.com/rate_limit | paceline explain
  paceline explain saved.txt --provider openai
  paceline explain https://api.github.com/users/octocat
  paceline explain https://api.openai.com/v1/models -H @auth.txt -o json
  paceline explain --preset github`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.MaximumNArgs(1)(cmd, args); err != nil {
				return err
			}
			return e.check(args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e.in, e.out = cmd.InOrStdin(), harmless(cmd.OutOrStdout(), e.output)
			return e.run(cmd, args)
		},
	}
	f := c.Flags()
	f.StringVar(&e.provider, "provider", "", "read it as this provider's (default: by host or fields)")
	f.StringVar(&e.preset, "preset", "", "print what a provider publishes about its limits instead")
	f.StringVar(&e.at, "at", "", "when the response was read, in RFC 3339 (default: its Date, or now)")
	f.StringArrayVarP(&e.headers, "header", "H", nil, "send this field with the request: 'Name: value', or @FILE with one per line")
	f.DurationVar(&e.timeout, "timeout", 30*time.Second, "give up on a request after this")
	f.StringVarP(&e.output, "output", "o", "text", "text or json")
	complete := func(names func() []string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return names(), cobra.ShellCompDirectiveNoFileComp
		}
	}
	_ = c.RegisterFlagCompletionFunc("provider", complete(quota.Names)) // it fails for a flag that is not there
	_ = c.RegisterFlagCompletionFunc("preset", complete(presetNames))
	return c
}

func presetNames() []string {
	var names []string
	for _, p := range quota.Presets() {
		names = append(names, p.Name)
	}
	return names
}

// check finds what is wrong with the command line.
func (e *explain) check(args []string) error {
	if e.output != "text" && e.output != "json" {
		return fmt.Errorf("--output %q: want text or json", e.output)
	}
	if _, ok := quota.Lookup(e.provider); e.provider != "" && !ok {
		return fmt.Errorf("--provider %q: want one of %s", e.provider, strings.Join(quota.Names(), ", "))
	}
	if _, ok := quota.LookupPreset(e.preset); e.preset != "" && !ok {
		return fmt.Errorf("--preset %q: want one of %s", e.preset, strings.Join(presetNames(), ", "))
	}
	if e.preset != "" && len(args) > 0 {
		return errors.New("--preset needs no response")
	}
	if _, err := time.Parse(time.RFC3339, e.at); e.at != "" && err != nil {
		return fmt.Errorf("--at %q: want an instant like 2026-01-15T12:00:00Z", e.at)
	}
	if e.timeout <= 0 {
		return fmt.Errorf("--timeout %v: must be positive", e.timeout)
	}
	if isURL := len(args) == 1 && strings.Contains(args[0], "://"); isURL {
		u, err := url.Parse(args[0])
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%q is no http or https URL", args[0])
		}
	} else if len(e.headers) > 0 {
		return errors.New("-H is for a URL: a saved response is not sent for")
	}
	return nil
}

func (e *explain) run(cmd *cobra.Command, args []string) error {
	if e.preset != "" {
		p, _ := quota.LookupPreset(e.preset)
		return e.published(p)
	}
	from := "-"
	if len(args) == 1 {
		from = args[0]
	}
	var resp quota.Response
	var dialect quota.Dialect
	var err error
	if strings.Contains(from, "://") {
		u, _ := url.Parse(from)
		dialect, _ = quota.ForHost(u.Host)
		resp, err = e.fetch(cmd, u)
		from = u.Redacted()
	} else {
		resp, err = e.load(from)
	}
	if err != nil {
		return err
	}
	switch {
	case e.provider != "":
		dialect, _ = quota.Lookup(e.provider)
	case dialect == nil:
		dialect = quota.Detect(resp)
	}
	now := e.now()
	if e.at != "" {
		now, _ = time.Parse(time.RFC3339, e.at)
	} else if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil && !strings.Contains(from, "://") {
		now = date
	}
	o := dialect.Read(now, resp)
	if e.output == "json" {
		return e.json(from, resp.Status, now, o)
	}
	_, err = io.WriteString(e.out, inWords(resp.Status, now, o))
	return err
}

func (e *explain) fetch(cmd *cobra.Command, u *url.URL) (quota.Response, error) {
	req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, u.String(), nil)
	if err != nil {
		return quota.Response{}, err
	}
	if req.Header, err = e.fields(); err != nil {
		return quota.Response{}, err
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	client := &http.Client{Timeout: e.timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return quota.Response{}, err
	}
	defer resp.Body.Close()
	// What is read of the body is enough: a body that breaks off leaves the header fields.
	body, err := io.ReadAll(io.LimitReader(resp.Body, quota.MaxBody+1))
	if err != nil && len(body) == 0 {
		body = nil
	}
	return quota.Response{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// fields reads the header fields to send.
func (e *explain) fields() (http.Header, error) {
	h := http.Header{}
	for _, v := range e.headers {
		lines := []string{v}
		where := "-H"
		if file, ok := strings.CutPrefix(v, "@"); ok {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, usageError{err}
			}
			lines, where = strings.Split(string(text), "\n"), file
		}
		for i, line := range lines {
			if line = strings.TrimSpace(line); line == "" && len(lines) > 1 {
				continue
			}
			name, value, ok := strings.Cut(line, ":")
			if name = strings.TrimSpace(name); !ok || !token(name) {
				// The line may be a secret: it is not printed.
				return nil, usageError{fmt.Errorf("%s, line %d: want 'Name: value'", where, i+1)}
			}
			h.Add(name, strings.TrimSpace(value))
		}
	}
	return h, nil
}

// token reports whether a header field may have this name.
func token(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// load reads a saved response.
func (e *explain) load(name string) (quota.Response, error) {
	in, label := e.in, "stdin"
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return quota.Response{}, err
		}
		defer f.Close()
		in, label = f, name
	}
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(in, most))
	if err != nil {
		return quota.Response{}, fmt.Errorf("%s: %w", label, err)
	}
	resp, err := parseResponse(text)
	if err != nil {
		return resp, fmt.Errorf("%s, %w", label, err)
	}
	return resp, nil
}

// parseResponse reads the last response of what curl printed: with CRLF or LF, of any version of HTTP, with the "< " of
// curl -v, and with lines of # before it. Header fields without a status line are read as of a response that was served.
func parseResponse(text []byte) (quota.Response, error) {
	var resp quota.Response
	lines := bufio.NewReader(bytes.NewReader(text))
	line, n := "", 0
	next := func() bool {
		s, err := lines.ReadString('\n')
		if err != nil && s == "" {
			return false
		}
		n++
		line = strings.TrimRight(s, "\r\n")
		if v, ok := strings.CutPrefix(line, "< "); ok || line == "<" {
			line = v
			if !ok {
				line = ""
			}
		}
		return true
	}
	more := next()
	// What curl -v says before the response begins with one of these.
	for more && (strings.TrimSpace(line) == "" || strings.ContainsRune("#*>{}", rune(line[0]))) {
		more = next()
	}
	if !more {
		return resp, errors.New("line 1: nothing there; want the output of curl -i or curl -D -")
	}
	for {
		resp = quota.Response{Status: http.StatusOK, Header: http.Header{}}
		if strings.HasPrefix(line, "HTTP/") {
			_, rest, _ := strings.Cut(line, " ")
			code, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			status, err := strconv.Atoi(code)
			if err != nil || status < 100 || status > 999 {
				return resp, fmt.Errorf("line %d: %.60q has no status code; want a line like HTTP/1.1 429 Too Many Requests", n, line)
			}
			resp.Status = status
			more = next()
		}
		last := ""
		for ; more && line != ""; more = next() {
			if last != "" && (line[0] == ' ' || line[0] == '\t') {
				v := resp.Header[last]
				v[len(v)-1] += " " + strings.TrimSpace(line)
				continue
			}
			name, value, ok := strings.Cut(line, ":")
			if !ok || !token(name) {
				return resp, fmt.Errorf("line %d: %.60q is no header field; want Name: value, as curl -i or curl -D - print", n, line)
			}
			last = textproto.CanonicalMIMEHeaderKey(name)
			resp.Header[last] = append(resp.Header[last], strings.TrimSpace(value))
		}
		if !more {
			return resp, nil
		}
		// A blank line: the body follows, or, after 100 Continue, a redirect or a proxy's CONNECT, another response.
		if ahead, _ := lines.Peek(len("< HTTP/")); bytes.HasPrefix(ahead, []byte("HTTP/")) || bytes.Equal(ahead, []byte("< HTTP/")) {
			more = next()
			continue
		}
		body, err := io.ReadAll(lines)
		if len(body) > 0 {
			resp.Body = body
		}
		return resp, err
	}
}

// explained is the output in JSON. Fields are only ever added.
type explained struct {
	From   string    `json:"from"`
	Status int       `json:"status"`
	At     time.Time `json:"at"`
	// ComeBack is missing where the server does not say, or where coming back does not help.
	ComeBack        *time.Time        `json:"come_back,omitempty"`
	ComeBackSeconds *float64          `json:"come_back_seconds,omitempty"`
	Advice          string            `json:"advice"`
	Observation     quota.Observation `json:"observation"`
}

func (e *explain) json(from string, status int, now time.Time, o quota.Observation) error {
	v := explained{From: from, Status: status, At: now.UTC(), Advice: advice(now, o), Observation: o}
	if at, ok := o.ComeBack(now); ok {
		at = at.UTC()
		s := at.Sub(now).Seconds()
		v.ComeBack, v.ComeBackSeconds = &at, &s
	}
	enc := json.NewEncoder(e.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (e *explain) published(p quota.Preset) error {
	if e.output == "json" {
		enc := json.NewEncoder(e.out)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Preset      string            `json:"preset"`
			About       string            `json:"about"`
			Source      string            `json:"source"`
			AsOf        string            `json:"as_of"`
			Observation quota.Observation `json:"observation"`
		}{p.Name, p.About, p.Source, p.AsOf, quota.Observation{Dialect: p.Name, Policies: p.Policies}})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, as published in %s\n%s\n\n", p.Name, p.About, p.AsOf, p.Source)
	for _, v := range p.Policies {
		v.Source, v.WindowSource = quota.Stated, quota.Stated // the heading says it of all
		fmt.Fprintf(&b, "  %s%s\n", policyName(v.Name, v.Unit), policyWords(v))
	}
	_, err := io.WriteString(e.out, b.String())
	return err
}

// inWords is the output in text.
func inWords(status int, now time.Time, o quota.Observation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s, read as %s at %s\n", status, cmp.Or(http.StatusText(status), "(no status of RFC 9110)"), o.Dialect, now.UTC().Format("2006-01-02 15:04:05 MST"))
	if o.Refusal != quota.None {
		fmt.Fprintf(&b, "Refused: %s", o.Refusal)
		if len(o.RefusedBy) > 0 {
			fmt.Fprintf(&b, ", by %s", strings.Join(o.RefusedBy, ", "))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	if len(o.Policies)+len(o.Limits) == 0 {
		b.WriteString("  The response says nothing of limits.\n")
	}
	seen := make([]bool, len(o.Limits))
	for _, p := range o.Policies {
		fmt.Fprintf(&b, "  %s%s", policyName(p.Name, p.Unit), policyWords(p))
		for i, l := range o.Limits {
			if l.Policy == p.Name && l.Unit == p.Unit && !seen[i] {
				seen[i] = true
				fmt.Fprintf(&b, ", %s", leftWords(now, l, p.Limit))
			}
		}
		b.WriteString("\n")
	}
	for i, l := range o.Limits {
		if !seen[i] {
			fmt.Fprintf(&b, "  %s%s: %s\n", policyName(l.Policy, l.Unit), l.Unit, leftWords(now, l, 0))
		}
	}
	fmt.Fprintf(&b, "\n%s\n", advice(now, o))
	for _, n := range o.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", n)
	}
	for _, n := range o.Problems {
		fmt.Fprintf(&b, "Odd: %s.\n", n)
	}
	return b.String()
}

// policyName is what a policy is called, where its unit does not say it.
func policyName(name string, unit quota.Unit) string {
	if plain := strings.ReplaceAll(name, "-", " "); name == "" || plain == string(unit) {
		return ""
	}
	return name + ": "
}

// policyWords writes "500 requests per minute (rolling, per key)".
func policyWords(p quota.Policy) string {
	var b strings.Builder
	if p.Limit > 0 {
		b.WriteString(thousands(p.Limit) + " ")
	}
	b.WriteString(string(p.Unit))
	if p.Limit == 1 {
		s := strings.TrimSuffix(b.String(), "s")
		b.Reset()
		b.WriteString(s)
	}
	if p.Window > 0 {
		b.WriteString(" per " + windowWords(p.Window))
	}
	var more []string
	if p.Rule != "" && p.Rule != quota.Concurrency {
		more = append(more, string(p.Rule))
	}
	if p.Burst > 0 && p.Burst != p.Limit {
		more = append(more, thousands(p.Burst)+" at once")
	}
	if p.Scope != "" {
		more = append(more, map[quota.Scope]string{
			quota.Key: "per key", quota.IP: "per address", quota.Model: "per model", quota.Route: "per endpoint", quota.All: "of everybody",
		}[p.Scope])
	}
	if p.Partition != "" {
		more = append(more, "partition "+p.Partition)
	}
	switch {
	case p.Limit == 0:
		more = append(more, "how many is not said")
	case p.Source != quota.Stated:
		more = append(more, string(p.Source))
	case p.Window > 0 && p.WindowSource != quota.Stated:
		more = append(more, "window "+string(p.WindowSource))
	}
	if len(more) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(more, ", "))
	}
	return b.String()
}

// leftWords writes "499 left, full again in 120 ms".
func leftWords(now time.Time, l quota.ServiceLimit, limit int64) string {
	var parts []string
	switch {
	case l.Remaining.OK && l.Remaining.N == limit && limit > 0:
		return "all left"
	case l.Remaining.OK:
		parts = append(parts, thousands(l.Remaining.N)+" left")
	case l.Used.OK:
		parts = append(parts, thousands(l.Used.N)+" used")
	}
	if !l.Reset.IsZero() {
		again := "more in "
		if l.Whole {
			again = "full again in "
		}
		d := l.Reset.Sub(now)
		if d <= 0 {
			parts = append(parts, strings.TrimSuffix(again, " in ")+" now")
		} else {
			parts = append(parts, again+spanWords(d))
		}
	}
	return strings.Join(parts, ", ")
}

// advice says when to come back.
func advice(now time.Time, o quota.Observation) string {
	at, ok := o.ComeBack(now)
	wait := at.Sub(now)
	when := ""
	if ok {
		second := at.Add(time.Second - 1).Truncate(time.Second)
		when = fmt.Sprintf("in %s (%s)", spanWords(wait), second.UTC().Format("2006-01-02 15:04:05 MST"))
		if wait <= 0 {
			when = "at once"
		}
	}
	switch o.Refusal {
	case quota.None:
		switch {
		case !ok:
			return "Nothing is left, and the server does not say when there will be more."
		case wait <= 0:
			return "Come back at once."
		case o.RetryAfter > 0:
			return "Come back " + when + ": the server asks for it."
		}
		return "Come back " + when + ": until then nothing is left of one of the limits."
	case quota.Unpaid:
		return "Do not come back before the account has credit: waiting does not help."
	case quota.TooLarge:
		return "Do not send this request again: it is larger than the limit and never fits. Make it smaller."
	case quota.Banned:
		if ok {
			return "Stop using this key or address until it is over, " + when + "; more requests make it longer."
		}
		return "Stop using this key or address: the server does not say until when."
	case quota.Conflict:
		return "This is no limit: somebody else holds the same object. Try again with a growing, random delay."
	case quota.Misordered:
		return "Send it again with a larger nonce: one that was sent later came first."
	case quota.TooMany:
		if !ok {
			return "Have fewer requests under way at once; then try again."
		}
		return "Have fewer requests under way at once; come back " + when + "."
	case quota.QuotaExhausted:
		if !ok {
			return "The quota is used up; the server does not say when it is back. Do not wait with a request in hand."
		}
		return "The quota is used up; come back " + when + "."
	}
	if !ok {
		return "Come back later: the server does not say when. Wait longer each time, with some randomness."
	}
	return "Come back " + when + "."
}

// thousands writes 30000 as 30,000.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// windowWords writes what comes after "per".
func windowWords(d time.Duration) string {
	switch d {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	}
	return spanWords(d)
}

// spanWords writes a duration by its two largest units: 120 ms, 7.66 s, 2 min 59.6 s, 23 h 47 min, 6 days 2 h. It rounds up,
// so that who waits as long as it says has waited long enough.
func spanWords(d time.Duration) string {
	type unit struct {
		name string
		d    time.Duration
	}
	units := []unit{{"days", 24 * time.Hour}, {"h", time.Hour}, {"min", time.Minute}}
	up := func(step time.Duration) {
		if r := d % step; r > 0 {
			d += step - r
		}
	}
	switch {
	case d < time.Second:
		up(time.Microsecond)
		return strconv.FormatFloat(float64(d)/1e6, 'f', -1, 64) + " ms"
	case d < time.Minute:
		up(time.Millisecond)
	case d < time.Hour:
		up(100 * time.Millisecond)
	case d < 24*time.Hour:
		up(time.Minute)
	default:
		up(time.Hour)
	}
	if d < time.Minute {
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
	}
	i := slices.IndexFunc(units, func(u unit) bool { return d >= u.d })
	s := fmt.Sprintf("%d %s", d/units[i].d, units[i].name)
	if d/units[i].d == 1 && i == 0 {
		s = "1 day"
	}
	rest := d % units[i].d
	switch {
	case rest == 0:
		return s
	case i == len(units)-1:
		return s + " " + strconv.FormatFloat(rest.Seconds(), 'f', -1, 64) + " s"
	}
	if n := rest / units[i+1].d; n > 0 {
		s += fmt.Sprintf(" %d %s", n, units[i+1].name)
	}
	return s
}
