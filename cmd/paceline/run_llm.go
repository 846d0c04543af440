package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// llmFlags are the flags of run for limits of tokens and for batches for language models.
type llmFlags struct {
	minuteFlags
	format, baseURL, preset, count string
	maxOutput                      int64
	estimate                       float64
	prices                         run.Prices
	errors                         string
	dryRun, perSecond              bool
	stores                         bool   // the requests are not sent here
	by                             string // with dryRun

	models string // the preset, if its limits hold for each model
	array  bool   // the batch is an array of JSON
	// ofAddress says that the preset has a limit of weight or orders for all keys together.
	ofAddress bool
	bounded   []string // given flags that need requests with a known number of tokens
}

func (f *llmFlags) add(c *cobra.Command) {
	p := c.Flags()
	p.StringVar(&f.format, "format", "auto",
		"format of the input and the results: jsonl, openai-batch, anthropic-batch; auto: by the first line")
	p.StringVar(&f.baseURL, "base-url", "", "address for the requests of a batch (default: the provider's own)")
	p.StringVar(&f.preset, "preset", "", "published limits by name, such as openai:tier1")
	f.minuteFlags.add(p, " (language models)")
	p.BoolVar(&f.perSecond, "per-second", false, "limits per minute of --preset, --rpm, --tpm, --itpm, --otpm also hold per second, 60000 as 1000, rounded down. OpenAI documents that they may")
	p.StringVar(&f.count, "count", "documented", "tokens that the server counts. reserved: the larger of input and max_tokens (OpenAI). sum: both (Azure, Groq, Cerebras). used: both until the answer, then the tokens used. produced: input, and output as it is produced (Anthropic). input: input alone (Gemini). documented: by the provider of --preset or --base-url; sum for unknown providers")
	p.Float64Var(&f.estimate, "estimate", 0,
		"with --count used, produced or input: reserve less output than max_tokens. 0.05 reserves as much as 95 % of the answers stayed "+
			"within. More requests are then in flight")
	p.Int64Var(&f.maxOutput, "max-output", 0,
		"largest output of requests without max_tokens (default: the largest of the model)")
	p.Float64Var(&f.prices.Input, "price-input", -1,
		"USD per million input tokens, for the plan, the summary and --budget (default: the published price of each "+
			"model, see paceline models)")
	p.Float64Var(&f.prices.Output, "price-output", -1, "USD per million output tokens. Give both prices or neither")
	p.StringVar(&f.errors, "errors", "", "the same as --dead")
	p.StringVar(&f.by, "by", "", "with --dry-run: which part of the limits, how many keys and how much money it takes to finish by this time (as --until), and what does not fit")
	p.BoolVar(&f.dryRun, "dry-run", false, "print the plan (requests, tokens, money, time, the limit that binds) and send nothing; -o json")
}

// check turns the flags into limits, and adds them after those of --limit.
func (f *llmFlags) check(cmd *cobra.Command, c *run.Config) error {
	usage := func(format string, args ...any) error { return cli.Usage(fmt.Errorf(format, args...)) }
	if err := f.known(); err != nil {
		return cli.Usage(err)
	}
	if err := f.minuteFlags.check(cmd); err != nil {
		return err
	}
	if !(f.estimate >= 0 && f.estimate < 1) {
		return usage("--estimate %v, expected a share from 0 to 1", f.estimate)
	}
	if cmd.Flag("max-output").Changed && (f.maxOutput < 1 || f.maxOutput > limit.MaxCost) {
		return usage("--max-output %d, expected 1 to %d", f.maxOutput, int64(limit.MaxCost))
	}
	for _, price := range []string{"price-input", "price-output"} {
		if n, _ := cmd.Flags().GetFloat64(price); cmd.Flag(price).Changed && !(n >= 0 && n < 1e9) {
			return usage("--%s %v, expected USD per million tokens", price, n)
		}
	}
	if (f.prices.Input < 0) != (f.prices.Output < 0) {
		return usage("--price-input and --price-output, expected both or neither")
	}
	if f.errors != "" {
		if c.Dead != "" {
			return usage("--errors and --dead are the same, expected one of them")
		}
		c.Dead = f.errors
	}
	first := len(c.Limits) // index of the first limit that these flags add
	if f.preset != "" {
		preset, ok := provider.LookupPreset(f.preset)
		if !ok {
			return cli.Usage(unknownPreset(f.preset))
		}
		for _, p := range preset.Plain().Policies {
			if f.replaces(p) || p.Unpublished() {
				continue
			}
			if p.Rule == provider.Concurrency {
				c.Concurrency = min(c.Concurrency, int(p.Limit))
				continue
			}
			if !knows(p.Unit) {
				return usage("--preset %s limits %s, of which run knows nothing; expected --limit, with the cost of each line in the input", f.preset, p.Unit)
			}
			c.Limits = append(c.Limits, f.published(cmd, p))
			byCost := p.Unit == provider.Weight || p.Unit == provider.Orders
			f.ofAddress = f.ofAddress || byCost && p.Scope == provider.IP
			if p.Scope == provider.Model {
				f.models = f.preset
			}
			if u := units[p.Unit]; u == limit.Input || u == limit.Output || u == limit.Tokens {
				f.bounded = append(f.bounded, "--preset "+f.preset)
			}
		}
	}
	if err := f.ofResources(cmd, c); err != nil {
		return err
	}
	all, counting := f.limits()
	c.Limits, f.bounded = append(c.Limits, all...), append(f.bounded, counting...)
	all, models, err := f.ofModels()
	if err != nil {
		return err
	}
	c.Limits = append(c.Limits, all...)
	for _, name := range models {
		f.bounded = append(f.bounded, "--limit-model "+name)
	}
	return f.alsoPerSecond(c, first)
}

// known checks the values of flags that are one of some words.
func (f *llmFlags) known() error {
	for _, v := range []struct {
		flag, value string
		one         []string
	}{
		{"format", f.format, []string{"auto", "jsonl", format.OpenAI.String(), format.Anthropic.String()}},
		{"count", f.count, []string{"documented", "reserved", "sum", "used", "produced", "input"}},
	} {
		if !slices.Contains(v.one, v.value) {
			return fmt.Errorf("--%s %q, expected %s", v.flag, v.value, strings.Join(v.one, " or "))
		}
	}
	return nil
}

// ofResources adds the limits of the preset's resources, but the usual one.
func (f *llmFlags) ofResources(cmd *cobra.Command, c *run.Config) error {
	preset, ok := provider.LookupPreset(f.preset)
	if !ok {
		return nil
	}
	who, _ := provider.Publisher(f.preset)
	usual := provider.ChargesOf(who.Name).Usual()
	for _, p := range preset.Policies {
		if p.Scope != provider.Resource || p.Covers(usual) || p.Unpublished() || p.Rule == provider.Concurrency || !knows(p.Unit) {
			continue
		}
		c.Resources = append(c.Resources, run.ResourceLimit{Resource: provider.Pattern(p.Resource), Rate: f.published(cmd, p)})
	}
	return nil
}

// alsoPerSecond applies --per-second to the limits from index first on.
func (f *llmFlags) alsoPerSecond(c *run.Config, first int) error {
	if !f.perSecond {
		return nil
	}
	if who, ok := provider.Publisher(f.preset); ok && !who.PerSecond {
		return cli.Usage(fmt.Errorf("--per-second with --preset %s: %s does not say that limits per minute also hold per second", f.preset, who.Title))
	}
	all := c.Limits
	for _, minute := range all[first:] {
		if second, ok := format.PerSecond(minute); ok {
			c.Limits = append(c.Limits, second)
		}
	}
	if len(c.Limits) == len(all) {
		return cli.Usage(errors.New("--per-second, expected limits per minute that are buckets: --preset, --rpm, --tpm, and not --rule rolling"))
	}
	return nil
}

// takeArray notes that the input is a batch in one array of JSON, if it is. The input's form is then
// known, since head is its beginning.
func (f *llmFlags) takeArray(head []byte) bool {
	p, is := format.SniffArray(head)
	switch {
	case f.format != "auto":
		text := bytes.TrimLeft(head, " \t\r\n\ufeff")
		is = f.format != "jsonl" && len(text) > 0 && text[0] == '['
	case is:
		f.format = p.String()
	}
	f.array = f.array || is
	return is
}

// readFormat finds out the form of the input. again reads the input from its beginning.
func (f *llmFlags) readFormat(in io.Reader, maxLine int) (p format.Provider, isLLM bool, again io.Reader, err error) {
	switch f.format {
	case "jsonl":
		return 0, false, in, nil
	case format.OpenAI.String():
		return format.OpenAI, true, in, nil
	case format.Anthropic.String():
		return format.Anthropic, true, in, nil
	}
	var read bytes.Buffer
	lines := bufio.NewReaderSize(io.TeeReader(in, &read), 64<<10)
	// With flags that need tokens the input can only be a batch, even if its first line is
	// malformed.
	isLLM = len(f.bounded) > 0
	for told := false; !told && err == nil; {
		var line []byte
		line, err = lines.ReadSlice('\n')
		for err == bufio.ErrBufferFull && len(line) <= maxLine {
			var more []byte
			line = bytes.Clone(line)
			more, err = lines.ReadSlice('\n')
			line = append(line, more...)
		}
		var found format.Provider
		if found, told = format.Sniff(line); told {
			p, isLLM = found, true
		}
		var fields map[string]json.RawMessage
		if !told && json.Unmarshal(line, &fields) == nil && fields["url"] != nil {
			isLLM, told = false, true
		}
		told = told || read.Len() > 1<<20
	}
	if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
		return 0, false, nil, err
	}
	if s, ok := in.(io.Seeker); ok {
		if _, err := s.Seek(0, io.SeekStart); err == nil {
			return p, isLLM, in, nil
		}
	}
	return p, isLLM, io.MultiReader(&read, in), nil
}

// config sets c up for a batch for language models.
func (f *llmFlags) config(cmd *cobra.Command, p format.Provider, c *run.Config, maxTokens int64) error {
	m, err := f.meterConfig(c, maxTokens)
	if err != nil {
		return cli.Usage(err)
	}
	l, err := format.NewLLM(format.LLMConfig{Provider: p, BaseURL: f.baseURL, Count: m.Count, LimitsOf: m.LimitsOf,
		Overrun: m.Overrun, MaxOutput: m.MaxOutput, MaxTokens: m.MaxTokens, Limits: m.Limits, Array: f.array})
	if err != nil {
		return cli.Usage(err)
	}
	c.Format = l
	f.patient(cmd, c)
	if len(c.Keys) == 0 && f.baseURL == "" && len(c.Header) == 0 && !f.dryRun && !f.stores {
		return cli.Exit(cli.ExitConfig, fmt.Errorf("%s asks for a key: name its environment variable with --key-env, or another server with --base-url", p.BaseURL()))
	}
	return withKey(c, p)
}

// withKey puts the keys into the field that the API wants, if no flag says where they go.
func withKey(c *run.Config, p format.Provider) error {
	if len(c.Keys) == 0 || format.Uses(c.Header, "key") || format.Uses(c.Query, "key") {
		return nil
	}
	key, err := format.ParseHeaders([]string{p.KeyHeader()})
	c.Header = append(c.Header, key...)
	return err
}

// plan returns the plan, with notes about it.
func (f *llmFlags) plan(r *run.Run) run.Plan {
	p := r.Plan(time.Now().Round(time.Second))
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if len(p.Alone) > 0 && p.Alone[0].Seconds > 0 && (p.EachModel || p.Alone[0].Seconds < p.Seconds) {
		var alone []string
		for _, a := range p.Alone {
			text := fmt.Sprintf("%s %s", a.Model, lasts(a.Seconds))
			if a.Limit != "" {
				text += " (" + a.Limit + " binds)"
			}
			alone = append(alone, text)
		}
		whose := "the provider may have"
		if p.LimitsOf != "" {
			whose = p.LimitsOf + " has"
		}
		if p.EachModel {
			note("%s limits of each model, and so has the run: %s", whose, text.Some(alone, 5))
		} else {
			note("%s limits of each model, and the run keeps to those given for all %d together; alone they take: %s. Runs side by side, each with a file and an --out of its own, take as long as the first of these",
				whose, len(p.Alone), text.Some(alone, 5))
		}
	}
	if p.AtLeast {
		note("whose the %d keys are only their first answers tell; the plan counts %s. If they are of more, it goes so much faster", p.Keys, text.Count(p.Organizations, "organization", "organizations"))
	}
	if f.models != "" {
		preset, _ := provider.LookupPreset(f.models)
		var others []string
		for _, m := range p.Models {
			if !preset.Fits(m.Model) && !r.HasOwnLimits(m.Model) {
				others = append(others, m.Model)
			}
		}
		if len(others) > 0 {
			note("%s is %s, as published %s; of %s the same numbers are kept to, which may be wrong: give your account's limits with --rpm, --tpm", f.models, preset.About, preset.AsOf, text.Some(others, 5))
		}
	}
	if p.Unbounded > 0 && f.maxOutput == 0 {
		counts := "the most that their model can is counted for them"
		if p.Count == tokens.Reserved.String() {
			counts = "their input alone is counted for them, and the tokens out are the most that their model can"
		}
		note("%d requests have no max_tokens: %s; --max-output N says better", p.Unbounded, counts)
	}
	if n := len(p.Unpriced); n > 0 {
		const most = 5
		note("no price is known of %s: --price-input and --price-output, in USD per million tokens, are then those of all models", text.Some(p.Unpriced, most))
	}
	for _, m := range p.Models {
		if m.Note != "" {
			note("%s: %s", m.Model, m.Note)
		}
	}
	return p
}

// printPlan prints the plan of --dry-run.
func (f *llmFlags) printPlan(w io.Writer, p run.Plan, output string) error {
	if output == "json" {
		return cli.WriteJSON(w, p)
	}
	var t screen.Table
	line := func(what, format string, args ...any) { t.Row(what, fmt.Sprintf(format, args...)) }
	var about strings.Builder
	about.WriteString(text.Thousands(int64(p.Requests)) + " to send")
	for _, v := range []struct {
		n    int
		what string
	}{{p.DoneBefore, "done before"}, {p.DeadBefore, "dead before (--retry-dead)"}, {p.ExpiredBefore, "expired before (--retry-dead=expired)"}, {p.Invalid, "invalid lines"}} {
		if v.n > 0 {
			fmt.Fprintf(&about, ", %s %s", text.Thousands(int64(v.n)), v.what)
		}
	}
	line("requests", "%s", about.String())
	if p.Count != "" {
		const most = 5
		for _, m := range p.Models[:min(most, len(p.Models))] {
			if len(p.Models) > 1 {
				about := fmt.Sprintf("%s, %s tokens in, at most %s out", text.Thousands(int64(m.Requests)), text.Thousands(m.Input), text.Thousands(m.Output))
				if m.USDMax != nil {
					about += ", at most " + text.Dollars(*m.USDMax)
				}
				line("  "+m.Model, "%s", about)
			}
		}
		if more := len(p.Models) - most; more > 0 {
			line("", "and %d more models", more)
		}
		line("input", "%s tokens", text.Thousands(p.Input))
		about := fmt.Sprintf("at most %s tokens", text.Thousands(p.Output))
		if p.Expected != nil {
			about += fmt.Sprintf("; expected %s, by %s answers so far", text.Thousands(*p.Expected), text.Thousands(int64(p.Answers)))
		} else {
			about += "; how many is not known before the first answers"
		}
		line("output", "%s", about)
		if p.USDMax != nil {
			about := "at most " + text.Dollars(*p.USDMax)
			if p.USDExpected != nil {
				about += "; expected " + text.Dollars(*p.USDExpected)
			}
			if p.PricesAsOf != "" {
				about += fmt.Sprintf(", by the prices of %s as of %s (paceline models)", p.PricesOf, p.PricesAsOf)
			}
			line("money", "%s", about)
		}
		if b := p.Batch; b != nil {
			line("batch API", "%s", batchText(b))
		}
		if p.Largest != nil {
			line("largest", "%s on line %d: %s tokens as counted", p.Largest.ID, p.Largest.Line, text.Thousands(p.Largest.Tokens))
		}
		line("counted", "%s", map[string]string{"reserved": "the larger of input and max_tokens, whatever is used (--count reserved)",
			"sum": "input and max_tokens, whatever is used (--count sum)", "used": "input and max_tokens, and what was used once it is answered (--count used)",
			"produced": "input, and output as it is produced (--count produced)", "input": "input (--count input)"}[p.Count])
	}
	for _, l := range p.Limits {
		binds := ""
		if l.Binds {
			binds = "  <- binds"
		}
		of := ""
		if l.Model != "" {
			of = ", for " + l.Model
		}
		line("limit "+l.Limit, "%s: %s%s%s", text.Thousands(l.Cost), lasts(l.Seconds), of, binds)
	}
	switch {
	case p.Seconds > 0:
		line("time", "%s and the last answer: %s", lasts(p.Seconds), finish(&p))
		line("in flight", "%d are enough as long as an answer takes less than %s on the average (--concurrency)", p.InFlight, lasts(p.AnswerWithin))
	case len(p.Limits) > 0:
		line("time", "the limits let all of it go at once, %d at a time (--concurrency)", p.InFlight)
	case p.LimitUnknown:
		line("time", "nobody knows the limit: the run finds it out (--limit auto)")
	default:
		line("time", "there is no limit")
	}
	if p.Until != nil {
		line("until", "%s, and then no more is sent (--until)", p.Until.Format("Mon 2 Jan 2006 15:04:05 MST"))
	}
	if p.By != nil {
		line("by", "%s", byText(&p))
	}
	if d := p.ReadingSeconds; d > 0 {
		line("read", "%s lines, %.1f MB in %.2f s: %s lines/s, %.1f MB/s", text.Thousands(int64(p.Lines)), float64(p.Bytes)/1e6, d, text.Thousands(int64(float64(p.Lines)/d)), float64(p.Bytes)/1e6/d)
	}
	for _, n := range p.Notes {
		line("note", "%s", n)
	}
	if err := t.Write(w, screen.TableWidth); err != nil {
		return err
	}
	return printFirst(w, p.First)
}

// byText says what it takes to finish by a time.
func byText(p *run.Plan) string {
	by := p.By
	line := by.At.Format("Mon 2 Jan 15:04:05 MST") + ": "
	if by.Needed <= 1 {
		line += fmt.Sprintf("%.0f %% of the limits are enough", max(math.Ceil(100*by.Needed-1e-9), 1))
		if by.Keys < p.Keys {
			line += fmt.Sprintf(", or all of %s", text.Count(by.Keys, "key", "keys"))
		}
		if by.Needed < 0.95 {
			line += fmt.Sprintf(" (--use %.0f%%)", max(math.Ceil(100*by.Needed), 1))
		}
		return line
	}
	line += fmt.Sprintf("it takes %.2g times these limits, or %s with limits of their own; without, %s of %s fit",
		by.Needed, text.Count(by.Keys, "key", "keys"), text.Thousands(int64(by.Fits)), text.Thousands(int64(p.Requests)))
	if by.USDMax != nil {
		line += ", for at most " + text.Dollars(*by.USDMax)
	}
	return line + fmt.Sprintf(", and %s do not (--until stops then; those of the highest priority go first)",
		text.Thousands(int64(p.Requests-by.Fits)))
}

// batchText describes the provider's own batch API, as a row of the plan.
func batchText(b *run.PlanBatch) string {
	line := fmt.Sprintf("%s's own: %.0f %% less", b.Provider, 100*b.Discount)
	if b.USDMax != nil {
		line += ", at most " + text.Dollars(*b.USDMax)
	}
	if b.USDExpected != nil {
		line += "; expected " + text.Dollars(*b.USDExpected)
	}
	line += fmt.Sprintf(", within %.0f h", b.WithinHours)
	if b.Files > 0 {
		line += ", in " + text.Count(b.Files, "file", "files")
	}
	return line + " (" + b.Docs + ")"
}

// announce is the text before a batch is sent.
func announce(p run.Plan) string {
	var line strings.Builder
	fmt.Fprintf(&line, "plan: %s requests, %s tokens in, at most %s out", text.Thousands(int64(p.Requests)), text.Thousands(p.Input), text.Thousands(p.Output))
	for _, l := range p.Limits {
		if l.Binds {
			fmt.Fprintf(&line, "; limit %s takes %s, until %s", l.Limit, lasts(l.Seconds), finish(&p))
		}
	}
	return line.String()
}

func seconds(s float64) time.Duration {
	d := rate.Lasting(s)
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// lasts writes how long something takes, by years if it takes two and more.
func lasts(s float64) string {
	const year = 365.25 * 24 * 3600
	switch d := seconds(s); {
	case d == math.MaxInt64:
		return "more than 292 years"
	case s >= 2*year:
		return fmt.Sprintf("%.1f years", s/year)
	default:
		return d.String()
	}
}

// finish writes when a plan ends.
func finish(p *run.Plan) string {
	if rate.Lasting(p.Seconds) == math.MaxInt64 {
		return fmt.Sprintf("after %d", p.Finish.Year())
	}
	return text.Date(p.Finish, time.Now())
}
