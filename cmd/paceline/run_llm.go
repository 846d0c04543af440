package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
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
		"with --count used or produced: reserve less output than max_tokens. 0.05 reserves as much as 95 % of the answers stayed "+
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
				c.MostInFlight = int(p.Limit)
				if c.Concurrency > 0 {
					c.Concurrency = min(c.Concurrency, c.MostInFlight)
				}
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

// countingNotes adds to a plan what decides how many tokens count.
func (f *runFlags) countingNotes(p *run.Plan, c *run.Config) {
	m := c.Meter
	if l, is := c.Format.(*format.LLM); is {
		m = l.Meter
	}
	if m == nil {
		return
	}
	if f.prompt.schema != "" {
		p.Notes = append(p.Notes, "the JSON schema goes with each request, and its tokens are among those of the input")
	}
	assumed := m.LimitsOf() == "" && m.Count() == tokens.Sum && f.llm.count == tokens.Documented.String()
	if assumed && len(f.llm.bounded) > 0 {
		p.Notes = append(p.Notes, "the provider at this address is not known, so a request counts as with the strictest: "+
			"input and max_tokens. If the server counts the larger of the two, as OpenAI does, --count reserved is faster")
	}
	f.prompt.note(p, c)
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
