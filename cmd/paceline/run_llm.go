package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/batch"
	"github.com/paceline-go/paceline/internal/shown"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/tokens"
)

// llmFlags are those of run that are about limits of tokens and batches for language models.
type llmFlags struct {
	format, baseURL, preset, rule, count string
	rpm, tpm, itpm, otpm, maxOutput      int64
	each                                 []string // --limit-model
	estimate                             float64
	prices                               batch.Prices
	errors                               string
	dryRun, perSecond                    bool

	models  string   // the preset, if its limits are of each model
	bounded []string // the flags that need tokens
}

func (f *llmFlags) add(c *cobra.Command) {
	p := c.Flags()
	p.StringVar(&f.format, "format", "auto", "of the input and the results: jsonl, openai-batch, anthropic-batch; auto: what the first line is")
	p.StringVar(&f.baseURL, "base-url", "", "where the requests of a batch go (default: the provider's own)")
	p.StringVar(&f.preset, "preset", "", "published limits by name, such as openai:tier1")
	p.Int64Var(&f.rpm, "rpm", 0, "most requests per minute; this and the next three are a bucket, and replace the preset's")
	p.Int64Var(&f.tpm, "tpm", 0, "most tokens per minute, input and output (batches)")
	p.Int64Var(&f.itpm, "itpm", 0, "most input tokens per minute (batches)")
	p.Int64Var(&f.otpm, "otpm", 0, "most output tokens per minute (batches)")
	p.StringArrayVar(&f.each, "limit-model", nil, "limits per minute of one model, in place of the others: NAME=rpm:N,tpm:N,itpm:N,otpm:N, of these one or more; repeatable (batches)")
	p.StringVar(&f.rule, "rule", "bucket", "how the server counts --rpm, --tpm, --itpm, --otpm: bucket, which is refilled evenly, or rolling windows; if given, also the limits of --preset")
	p.BoolVar(&f.perSecond, "per-second", false, "limits per minute of --preset, --rpm, --tpm, --itpm, --otpm also hold per second, as OpenAI says that they may: 60000 as 1000, rounded down")
	p.StringVar(&f.count, "count", "documented", "what the server counts of a request's tokens: reserved, the larger of input and max_tokens (OpenAI); sum, both (Azure, Groq, Cerebras); used, both until the answer and then what was used; produced, input, and output as it is produced (Anthropic); input (Gemini); documented: as the provider of --preset or --base-url, and of another the sum")
	p.Float64Var(&f.estimate, "estimate", 0, "with --count used: reserve as much output as all but this share of the answers had, such as 0.05, instead of max_tokens: denser, and as safe as that share")
	p.Int64Var(&f.maxOutput, "max-output", 0, "output of requests that do not bound it (default: the most that the model can)")
	p.Float64Var(&f.prices.Input, "price-input", -1, "USD per million input tokens, for the plan, the summary and --budget (default: what is published of each model, as paceline models has it)")
	p.Float64Var(&f.prices.Output, "price-output", -1, "USD per million output tokens, likewise; both or neither")
	p.StringVar(&f.errors, "errors", "", "the same as --dead")
	p.BoolVar(&f.dryRun, "dry-run", false, "print the plan (requests, tokens, money, time, the limit that binds) and send nothing; -o json")
}

// check turns the flags into limits, after those of --limit.
func (f *llmFlags) check(cmd *cobra.Command, c *batch.Config) error {
	usage := func(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
	for _, v := range []struct {
		flag, value string
		one         []string
	}{
		{"format", f.format, []string{"auto", "jsonl", batch.OpenAI.String(), batch.Anthropic.String()}},
		{"rule", f.rule, []string{"bucket", "rolling"}}, {"count", f.count, []string{"documented", "reserved", "sum", "used", "produced", "input"}},
	} {
		if !slices.Contains(v.one, v.value) {
			return usage("--%s %q, expected %s", v.flag, v.value, strings.Join(v.one, " or "))
		}
	}
	minute := []struct {
		flag string
		n    int64
		unit limit.Unit
	}{{"rpm", f.rpm, limit.Requests}, {"tpm", f.tpm, limit.Tokens}, {"itpm", f.itpm, limit.Input}, {"otpm", f.otpm, limit.Output}}
	for _, m := range minute {
		if cmd.Flag(m.flag).Changed && (m.n < 1 || m.n > limit.MaxCost) {
			return usage("--%s %d, expected 1 to %d", m.flag, m.n, int64(limit.MaxCost))
		}
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
	first := len(c.Limits) // of those of these flags
	if f.preset != "" {
		preset, ok := quota.LookupPreset(f.preset)
		if !ok {
			return usageError{unknownPreset(f.preset)}
		}
		for _, p := range preset.Policies {
			replaced := false
			for _, m := range minute {
				replaced = replaced || m.n > 0 && p.Window == time.Minute && units[p.Unit] == m.unit && knows(p.Unit)
			}
			if replaced {
				continue
			}
			if p.Rule == quota.Concurrency {
				c.Concurrency = min(c.Concurrency, int(p.Limit))
				continue
			}
			if !knows(p.Unit) {
				return usage("--preset %s limits %s, of which run knows nothing; expected --limit, with the cost of each line in the input", f.preset, p.Unit)
			}
			rate := rateOf(p.Limit, p.Window, units[p.Unit], f.isBucket(cmd, p.Rule), p.Burst)
			rate.EachModel = p.Scope == quota.Model
			c.Limits = append(c.Limits, rate)
			if p.Scope == quota.Model {
				f.models = f.preset
			}
			if units[p.Unit] != limit.Requests {
				f.bounded = append(f.bounded, "--preset "+f.preset)
			}
		}
	}
	for _, m := range minute {
		if m.n == 0 {
			continue
		}
		rate := rateOf(m.n, time.Minute, m.unit, f.rule == "bucket", 0)
		rate.EachModel = true // where the provider's are
		c.Limits = append(c.Limits, rate)
		if m.unit != limit.Requests {
			f.bounded = append(f.bounded, "--"+m.flag)
		}
	}
	if err := f.ofModels(c); err != nil {
		return err
	}
	return f.alsoPerSecond(c, first)
}

// ofModels is --limit-model.
func (f *llmFlags) ofModels(c *batch.Config) error {
	units := map[string]limit.Unit{"rpm": limit.Requests, "tpm": limit.Tokens, "itpm": limit.Input, "otpm": limit.Output}
	named := map[string]bool{}
	for _, s := range f.each {
		usage := func(format string, args ...any) error {
			return usageError{fmt.Errorf("--limit-model %q: "+format, append([]any{s}, args...)...)}
		}
		i := strings.LastIndexByte(s, '=')
		if i < 1 || i+1 == len(s) {
			return usage("expected NAME=rpm:N,tpm:N,itpm:N,otpm:N, of these one or more, such as gpt-4o=rpm:500,tpm:30000")
		}
		name := s[:i]
		if named[name] {
			return usage("%s is given twice, expected once, with all of its limits", name)
		}
		named[name] = true
		seen := map[string]bool{}
		for part := range strings.SplitSeq(s[i+1:], ",") {
			what, value, _ := strings.Cut(part, ":")
			unit, known := units[what]
			n, err := strconv.ParseInt(value, 10, 64)
			switch {
			case !known:
				return usage("%q, expected rpm:N, tpm:N, itpm:N or otpm:N", part)
			case seen[what]:
				return usage("%s is given twice", what)
			case err != nil || n < 1 || n > limit.MaxCost:
				return usage("%q, expected %s:N with N from 1 to %d", part, what, int64(limit.MaxCost))
			}
			seen[what] = true
			rate := rateOf(n, time.Minute, unit, f.rule == "bucket", 0)
			rate.Model = name
			c.Limits = append(c.Limits, rate)
		}
		f.bounded = append(f.bounded, "--limit-model "+name)
	}
	return nil
}

// alsoPerSecond is --per-second, for the limits from the first on.
func (f *llmFlags) alsoPerSecond(c *batch.Config, first int) error {
	if !f.perSecond {
		return nil
	}
	if who, ok := quota.Publisher(f.preset); ok && !who.PerSecond {
		return usageError{fmt.Errorf("--per-second with --preset %s: %s does not say that limits per minute also hold per second", f.preset, who.Title)}
	}
	all := c.Limits
	for _, minute := range all[first:] {
		if second, ok := minute.PerSecond(); ok {
			c.Limits = append(c.Limits, second)
		}
	}
	if len(c.Limits) == len(all) {
		return usageError{errors.New("--per-second, expected limits per minute that are buckets: --preset, --rpm, --tpm, and not --rule rolling")}
	}
	return nil
}

// isBucket says how the server counts a published limit: as it is documented, unless the user says.
func (f *llmFlags) isBucket(cmd *cobra.Command, documented quota.Rule) bool {
	if cmd.Flag("rule").Changed {
		return f.rule == "bucket"
	}
	return documented == quota.Bucket
}

var units = map[quota.Unit]limit.Unit{quota.Requests: limit.Requests, quota.Input: limit.Input, quota.Output: limit.Output, quota.Tokens: limit.Tokens}

func knows(u quota.Unit) bool { _, ok := units[u]; return ok }

// rateOf is a limit that was not written as N/U.
func rateOf(n int64, per time.Duration, unit limit.Unit, bucket bool, burst int64) batch.Rate {
	text := map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h", 24 * time.Hour: "d"}[per]
	if text == "" {
		text = per.String()
	}
	return batch.Rate{N: n, Per: per, Unit: unit, Bucket: bucket, Burst: burst, Text: fmt.Sprintf("%d/%s %v", n, text, unit)}
}

// readFormat says what the input is, and returns it from its beginning.
func (f *llmFlags) readFormat(in io.Reader, maxLine int) (p batch.Provider, isLLM bool, again io.Reader, err error) {
	switch f.format {
	case "jsonl":
		return 0, false, in, nil
	case batch.OpenAI.String():
		return batch.OpenAI, true, in, nil
	case batch.Anthropic.String():
		return batch.Anthropic, true, in, nil
	}
	var read bytes.Buffer
	lines := bufio.NewReaderSize(io.TeeReader(in, &read), 64<<10)
	// With limits of tokens it can be nothing else, whatever is wrong with its first line.
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
		if bytes.HasPrefix(read.Bytes(), []byte("\x1f\x8b")) {
			return 0, false, nil, exitError{exitConfig, errors.New("it is compressed by gzip, expected lines of JSON: gunzip -c FILE | paceline run …")}
		}
		var found batch.Provider
		if found, told = batch.Sniff(line); told {
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

// config makes c that of a batch for language models.
func (f *llmFlags) config(cmd *cobra.Command, p batch.Provider, c *batch.Config) error {
	count, err := tokens.ParseCounting(f.count)
	if err != nil {
		return usageError{err}
	}
	publisher, _ := quota.Publisher(f.preset)
	l, err := batch.NewLLM(batch.LLMConfig{Provider: p, BaseURL: f.baseURL, Count: count, LimitsOf: publisher.Name,
		Overrun: f.estimate, MaxOutput: f.maxOutput, Limits: c.Limits})
	if err != nil {
		return usageError{err}
	}
	c.Format = l
	// What is usual for a page of text is not for a page of thought.
	if !cmd.Flag("timeout").Changed {
		c.Timeout = 10 * time.Minute
	}
	if !cmd.Flag("max-response").Changed {
		c.MaxResponse = 16 << 20
	}
	switch {
	case len(c.Keys) > 0 && !batch.Uses(c.Header, "key") && !batch.Uses(c.Query, "key"):
		key, err := batch.ParseHeaders([]string{p.KeyHeader()})
		if err != nil {
			return err
		}
		c.Header = append(c.Header, key...)
	case len(c.Keys) == 0 && f.baseURL == "" && len(c.Header) == 0 && !f.dryRun:
		return exitError{exitConfig, fmt.Errorf("%s asks for a key: name its environment variable with --key-env, or another server with --base-url", p.BaseURL())}
	}
	return nil
}

// plan returns the plan and what is to be said of it.
func (f *llmFlags) plan(r *batch.Run) batch.Plan {
	p := r.Plan(time.Now().Round(time.Second))
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if len(p.Alone) > 0 && p.Alone[0].Seconds > 0 && (p.EachModel || p.Alone[0].Seconds < p.Seconds) {
		var alone []string
		for _, a := range p.Alone {
			text := fmt.Sprintf("%s %v", a.Model, seconds(a.Seconds))
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
			note("%s limits of each model, and so has the run: %s", whose, shown.Some(alone, 5))
		} else {
			note("%s limits of each model, and the run keeps to those given for all %d together; alone they take: %s. Runs side by side, each with a file and an --out of its own, take as long as the first of these",
				whose, len(p.Alone), shown.Some(alone, 5))
		}
	}
	if f.models != "" {
		preset, _ := quota.LookupPreset(f.models)
		var others []string
		for _, m := range p.Models {
			if !preset.Fits(m.Model) && !r.HasOwnLimits(m.Model) {
				others = append(others, m.Model)
			}
		}
		if len(others) > 0 {
			note("%s is %s, as published %s; of %s the same numbers are kept to, which may be wrong: give your account's limits with --rpm, --tpm", f.models, preset.About, preset.AsOf, shown.Some(others, 5))
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
		note("no price is known of %s: --price-input and --price-output, in USD per million tokens, are then those of all models", shown.Some(p.Unpriced, most))
	}
	for _, m := range p.Models {
		if m.Note != "" {
			note("%s: %s", m.Model, m.Note)
		}
	}
	return p
}

// printPlan is --dry-run.
func (f *llmFlags) printPlan(w io.Writer, p batch.Plan, output string) error {
	if output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(p)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(what, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", what, fmt.Sprintf(format, args...)) }
	var text strings.Builder
	text.WriteString(grouped(int64(p.Requests)) + " to send")
	for _, v := range []struct {
		n    int
		what string
	}{{p.DoneBefore, "done before"}, {p.DeadBefore, "dead before (--retry-dead)"}, {p.Invalid, "invalid lines"}} {
		if v.n > 0 {
			fmt.Fprintf(&text, ", %s %s", grouped(int64(v.n)), v.what)
		}
	}
	line("requests", "%s", text.String())
	if p.Format != "jsonl" {
		const most = 5
		for _, m := range p.Models[:min(most, len(p.Models))] {
			if len(p.Models) > 1 {
				text := fmt.Sprintf("%s, %s tokens in, at most %s out", grouped(int64(m.Requests)), grouped(m.Input), grouped(m.Output))
				if m.USDMax != nil {
					text += ", at most " + moneyText(*m.USDMax)
				}
				line("  "+m.Model, "%s", text)
			}
		}
		if more := len(p.Models) - most; more > 0 {
			line("", "and %d more models", more)
		}
		line("input", "%s tokens", grouped(p.Input))
		text := fmt.Sprintf("at most %s tokens", grouped(p.Output))
		if p.Expected != nil {
			text += fmt.Sprintf("; expected %s, by %s answers so far", grouped(*p.Expected), grouped(int64(p.Answers)))
		} else {
			text += "; how many is not known before the first answers"
		}
		line("output", "%s", text)
		if p.USDMax != nil {
			text := "at most " + moneyText(*p.USDMax)
			if p.USDExpected != nil {
				text += "; expected " + moneyText(*p.USDExpected)
			}
			if p.PricesAsOf != "" {
				text += fmt.Sprintf(", by the prices of %s as of %s (paceline models)", p.PricesOf, p.PricesAsOf)
			}
			line("money", "%s", text)
		}
		if b := p.Batch; b != nil {
			line("batch API", "%s", batchText(b))
		}
		if p.Largest != nil {
			line("largest", "%s on line %d: %s tokens as counted", p.Largest.ID, p.Largest.Line, grouped(p.Largest.Tokens))
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
		line("limit "+l.Limit, "%s: %v%s%s", grouped(l.Cost), seconds(l.Seconds), of, binds)
	}
	switch {
	case p.Seconds > 0:
		line("time", "%v and the last answer: %s", seconds(p.Seconds), p.Finish.Format("Mon 2 Jan 15:04:05"))
		line("in flight", "%d are enough as long as an answer takes less than %v on the average (--concurrency)", p.InFlight, seconds(p.AnswerWithin))
	case len(p.Limits) > 0:
		line("time", "the limits let all of it go at once, %d at a time (--concurrency)", p.InFlight)
	default:
		line("time", "there is no limit")
	}
	if p.Until != nil {
		line("until", "%s, and then no more is sent (--until)", p.Until.Format("Mon 2 Jan 2006 15:04:05 MST"))
	}
	if d := p.ReadingSeconds; d > 0 {
		line("read", "%s lines, %.1f MB in %.2f s: %s lines/s, %.1f MB/s", grouped(int64(p.Lines)), float64(p.Bytes)/1e6, d, grouped(int64(float64(p.Lines)/d)), float64(p.Bytes)/1e6/d)
	}
	for _, n := range p.Notes {
		line("note", "%s", n)
	}
	return t.Flush()
}

// batchText is the provider's own batch API as a row of the plan.
func batchText(b *batch.PlanBatch) string {
	text := fmt.Sprintf("%s's own: %.0f %% less", b.Provider, 100*b.Discount)
	if b.USDMax != nil {
		text += ", at most " + moneyText(*b.USDMax)
	}
	if b.USDExpected != nil {
		text += "; expected " + moneyText(*b.USDExpected)
	}
	text += fmt.Sprintf(", within %.0f h", b.WithinHours)
	if b.Files > 0 {
		text += ", in " + shown.Count(b.Files, "file", "files")
	}
	return text + " (" + b.Docs + ")"
}

// announce is what is said before a batch is sent.
func announce(p batch.Plan) string {
	var text strings.Builder
	fmt.Fprintf(&text, "plan: %s requests, %s tokens in, at most %s out", grouped(int64(p.Requests)), grouped(p.Input), grouped(p.Output))
	for _, l := range p.Limits {
		if l.Binds {
			fmt.Fprintf(&text, "; limit %s takes %v, until %s", l.Limit, seconds(l.Seconds), p.Finish.Format("Mon 2 Jan 15:04:05"))
		}
	}
	return text.String()
}

func seconds(s float64) time.Duration {
	d := time.Duration(s * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// moneyText is dollars, and cents, or less of them where they are few.
func moneyText(usd float64) string {
	if usd > 0 && usd < 0.1 {
		return fmt.Sprintf("$%.4f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// grouped writes 1234567 as 1,234,567.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
