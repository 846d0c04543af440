package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/tokens/tiktoken"
)

const serveOpenAILong = `Serve OpenAI's API with its limits, as if by a language model. The text is made up. Everything else is as at the provider.

  POST /v1/chat/completions   whole or as a stream; stream_options.include_usage, n, max_tokens, max_completion_tokens, tools
  POST /v1/responses          whole or as a stream; max_output_tokens, tools
  POST /v1/embeddings         of strings or token numbers; dimensions, encoding_format
  POST /v1/moderations        nothing is flagged
  GET  /v1/models             and /v1/models/NAME
  /v1/files, /v1/batches      sent, listed, read, canceled and deleted; all in memory

Give the server's address to a client as base URL, such as OPENAI_BASE_URL=http://127.0.0.1:9999/v1. The server takes any key, or only
those of --keys. It takes any published model, by a dated name, too; --models names others. Each key and model has its own limits.

` + serveLimits + `
With --per-second, limits also hold per second, as the provider warns. 60,000 a minute is then a bucket of 1,000 that is refilled in a
second. The number is rounded down to a whole number, 1 at least. A request with more tokens than that is served when the bucket is
full. Then nothing else is served until the bucket has these tokens back.

When a request arrives, it counts the larger of its max_tokens and an estimate of its input (a token per 4 characters), as documented.
The real usage does not change this. Every answer has

  x-ratelimit-limit-requests       -remaining-requests       -reset-requests: 120ms, until all is there again
  x-ratelimit-limit-tokens         -remaining-tokens         -reset-tokens: 6m0s
  x-request-id, openai-processing-ms

and a refusal retry-after-ms and retry-after:

  429 rate_limit_exceeded  over a limit (type requests or tokens), or larger than a limit (without a wait)
  429 insufficient_quota   --credit is used up
  503                      overloaded
` + serveLLMRest

const serveAnthropicLong = `Serve Anthropic's Messages API with its limits, as if by a language model. The text is made up. Everything else is as at the
provider.

  POST /v1/messages                whole or as a stream; tools
  POST /v1/messages/count_tokens   the input of a message
  /v1/messages/batches             made, listed, read, canceled and deleted; all in memory
  GET  /v1/models                  and /v1/models/NAME

Give the server's address to a client as base URL, such as ANTHROPIC_BASE_URL=http://127.0.0.1:9999. The server takes any key, or only
those of --keys. It takes any published model, by a dated name, too; --models names others. Each key and model has its own limits.

` + serveLimits + `
When a request arrives, it counts an estimate of its input (a token per 4 characters), as documented. Its output counts as it is
produced, and max_tokens does not count. A request is refused if no token of output is left. A running answer goes on even then. At
the end of the answer, the true input replaces the estimate. Input read from a cache does not count. Every answer has

  anthropic-ratelimit-requests-limit       -remaining   -reset: 2026-01-15T12:00:01Z, when all is there again
  anthropic-ratelimit-input-tokens-limit   and output-tokens, and tokens for both; what remains of tokens is rounded to the nearest thousand, as documented
  request-id

and a refusal retry-after:

  429 rate_limit_error        over a limit, or larger than a limit (without a wait)
  400 invalid_request_error   --credit is used up
  529 overloaded_error        overloaded
` + serveLLMRest

const serveLimits = `Each limit is a bucket that holds the amount of one window and is refilled evenly. With --rolling, no window of the past holds more
than the limit. Limits of a day are buckets, or windows, of 24 hours.`

const serveLLMRest = `
The usage of a request is random, by --seed. Input is counted with the model's vocabulary, or is near the estimate if there is none.
Output is lognormal (150 tokens, 1,500 for one in a hundred), up to the request's own bound. --count changes the tokens that count:
reserved, corrected (at the end of the answer), produced, or true (the server knows the usage when a request arrives).

If tool_choice demands a tool, the tool is called with the fewest arguments of its schema. "auto" is answered in words. If the request
asks for JSON, the answer is a value of its schema.

A batch serves its requests one after another, 10 ms each. It counts in no limit, and so do lists, files and the counting of tokens.
None of these is in --log.

A request has one fault at most. --fault cut=0.01,500=0.005 sets the probability of each. --script 429,ok,cut sets the faults of the
first requests.

  429               refused, although there is room, with --retry-after
  500, 502          failed; a proxy's page in HTML: the request counts
  overloaded        503 or 529; unpaid: no credit
  reset             the connection is reset before the answer
  cut, ended        the answer breaks off in its middle, by a broken connection or in good order
  error-event       a stream reports an error in its middle
  no-usage          the answer has no usage
  no-headers        no fields about limits, and no retry-after
  lying-headers     the fields say that no request was counted
  garbled-headers   a limit of 0, -1 left, a reset that is no time, a retry-after of a year

Ctrl-C ends the server: it answers the requests under way, and prints a report. The report is by an independent judge, from the same
lines that --log writes. It has the fullest window of each key, model and limit, by real usage, without and with the refused requests.
The command fails if one verdict of the limits was against the rule. A second Ctrl-C aborts.`

type serveLLM struct {
	serving
	config        llm.Config
	before, first string
	count         string
	models        []string
	limits        []string
	windowGiven   func() bool // whether --window is on the command line
	faults        []string
	script        []string
	retryAfter    time.Duration
}

// Words that --models accepts beside names.
const (
	publishedModels = "published"
	anyModel        = "any"
)

var countings = []string{"documented", "reserved", "corrected", "true", "produced"}

func newServeOpenAI() *cobra.Command {
	return newServeLLM(llm.OpenAI, &cobra.Command{
		Use:   "openai",
		Short: "OpenAI's API with its limits, header fields, errors and faults",
		Long:  serveOpenAILong,
		Example: `  paceline serve openai
  paceline serve openai --rpm 60 --tpm 100000 --fault 500=0.01,cut=0.01 --log requests.jsonl
  curl -i http://127.0.0.1:9999/v1/chat/completions -H 'Authorization: Bearer k' \
    -H 'Content-Type: application/json' \
    -d '{"model":"gpt-4o","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}'`,
	})
}

func newServeAnthropic() *cobra.Command {
	return newServeLLM(llm.Anthropic, &cobra.Command{
		Use:   "anthropic",
		Short: "Anthropic's Messages API with its limits, header fields, errors and faults",
		Long:  serveAnthropicLong,
		Example: `  paceline serve anthropic
  paceline serve anthropic --rpm 1000 --input-tpm 500000 --script ok,429,overloaded
  curl -i http://127.0.0.1:9999/v1/messages -H 'x-api-key: k' \
    -H 'anthropic-version: 2023-06-01' -H 'content-type: application/json' \
    -d '{"model":"claude-sonnet-4","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}'`,
	})
}

func newServeLLM(p llm.Provider, c *cobra.Command) *cobra.Command {
	s := serveLLM{config: llm.Config{Provider: p}}
	c.RunE = s.until(s.run)
	s.flags(c, "text", "json", "csv")
	l := &s.config.Limits
	published := map[llm.Provider]string{llm.OpenAI: "500 requests and 30000 tokens, tier 1 of gpt-4o",
		llm.Anthropic: "50 requests, 30000 input and 8000 output tokens, tier 1 of Claude Sonnet 4"}[p]
	f := c.Flags()
	f.Int64Var(&l.Requests, "rpm", 0, "most requests in a window (if no such limit is given: "+published+")")
	f.Int64Var(&l.Input, "input-tpm", 0, "most input tokens in a window")
	f.Int64Var(&l.Output, "output-tpm", 0, "most output tokens in a window")
	f.Int64Var(&l.Tokens, "tpm", 0, "most tokens, input and output, in a window")
	f.Int64Var(&l.RequestsPerDay, "rpd", 0, "most requests in 24 hours (0: any number)")
	f.Int64Var(&l.TokensPerDay, "tpd", 0, "most tokens in 24 hours (0: any number)")
	f.DurationVar(&l.Window, "window", time.Minute, "the window")
	s.windowGiven = func() bool { return f.Changed("window") }
	f.StringArrayVar(&s.limits, "limit", nil, "a limit with its window, in place of --rpm, --window and the like: N/U of "+
		"requests, or NAME=N/U of input, output or tokens; N/d is --rpd or --tpd; "+rate.Forms)
	if p == llm.OpenAI {
		f.BoolVar(&l.PerSecond, "per-second", false,
			"what holds per window also holds per second: 60000 a minute as 1000 a second, rounded down")
	}
	f.BoolVar(&s.config.Rolling, "rolling", false, "count rolling windows, not buckets")
	f.BoolVar(&s.config.RefusedCount, "refused-count", false, "what is refused counts as a request (with --rolling)")
	f.StringVar(&s.count, "count", countings[0], "what counts toward limits of tokens: "+strings.Join(countings, ", "))
	f.StringSliceVar(&s.config.Keys, "keys", nil, "API keys, separated by commas (default any)")
	f.StringSliceVar(&s.models, "models", []string{publishedModels}, "models, separated by commas: names, published, any")
	f.Int64Var(&s.config.Credit, "credit", 0, "tokens that each key may use, ever (0: any number)")
	f.StringVar(&s.before, "latency", "uniform:0-50ms", "latency before the check: "+latency.Forms)
	f.StringVar(&s.first, "first", "lognormal:200ms,p99=1s", "latency from the check to the first token")
	f.Float64Var(&s.config.TokensPerSecond, "tokens-per-second", 200,
		"how fast the tokens after it are generated (0: at once)")
	f.Float64Var(&s.config.Law.Cached, "cached", 0, "probability that input of 1024 tokens or more is read from a cache")
	f.Float64Var(&s.config.Law.Reasoning, "reasoning", 0, "share of the output that is thought and not shown")
	f.StringSliceVar(&s.faults, "fault", nil, "probabilities of faults: NAME=P, separated by commas")
	f.StringSliceVar(&s.script, "script", nil, "faults of the first requests, separated by commas; ok is none")
	f.DurationVar(&s.retryAfter, "retry-after", time.Second,
		"how long the faults 429 and overloaded ask to wait (0: they do not say)")
	f.Uint64Var(&s.config.Seed, "seed", 1, "seed of usage, latencies and faults")
	return c
}

func (s *serveLLM) run(ctx context.Context) error {
	if err := s.check(); err != nil {
		return cli.Usage(err)
	}
	return attend(ctx, &s.serving, func(log io.Writer) (*llm.Server, error) {
		s.config.LogTo = log
		return llm.New(s.config)
	}, func(l *llm.Server, url string) greeting {
		return greeting{
			fmt.Sprintf("serving %s/v1/: %v, %s, latency %v and %v to the first token", url, s.config.Provider,
				enforced(l.Config().Limits), s.config.Before, s.config.First),
			s.try(url, l.Config().Limits),
		}
	}, func(l *llm.Server) error {
		r := l.Report()
		return errors.Join(s.write(r), verdicts(r.Wrong, r.FirstWrong))
	})
}

var apis = map[string]tokens.API{"chat": tokens.Chat, "responses": tokens.Responses, "embeddings": tokens.Embeddings,
	"messages": tokens.Messages}

// vocabularies counts tokens by the published vocabularies. It learns nothing from answers, so the
// same text always has the same count.
var vocabularies = sync.OnceValue(func() *tokens.Estimator {
	e, err := tokens.New(tokens.Config{Vocabulary: tiktoken.Vocabulary, CountMax: 1 << 20})
	if err != nil {
		panic(err) // the built-in vocabularies are broken, which no user can cause
	}
	return e
})

// counted returns the number of input tokens in a body, by the vocabulary of its model. It returns
// false if no vocabulary is published for the model.
func counted(api string, body []byte) (int64, bool) {
	e, err := vocabularies().Estimate(apis[api], body)
	return e.Input, err == nil && e.Counted
}

// enforced describes the limits that the server enforces.
func enforced(l llm.Limits) string {
	var all []string
	add := func(n int64, what string) {
		if n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(l.Requests, "requests")
	add(l.Input, "input tokens")
	add(l.Output, "output tokens")
	add(l.Tokens, "tokens")
	text := fmt.Sprintf("%s per %v for each key and model", strings.Join(all, ", "), l.Window)
	if l.PerSecond {
		text += ", also per second"
	}
	all = nil
	add(l.RequestsPerDay, "requests")
	add(l.TokensPerDay, "tokens")
	if len(all) > 0 {
		text += ", " + strings.Join(all, ", ") + " per day"
	}
	return text
}

func (s *serveLLM) check() (err error) {
	c := &s.config
	if err := s.setLimits(); err != nil {
		return fmt.Errorf("--limit: %w", err)
	}
	for _, flag := range []struct {
		name string
		n    int64
	}{{"rpm", c.Limits.Requests}, {"input-tpm", c.Limits.Input}, {"output-tpm", c.Limits.Output}, {"tpm", c.Limits.Tokens},
		{"rpd", c.Limits.RequestsPerDay}, {"tpd", c.Limits.TokensPerDay}, {"credit", c.Credit}} {
		if flag.n < 0 {
			return fmt.Errorf("--%s %d: want 0 or more", flag.name, flag.n)
		}
	}
	count := slices.Index(countings, s.count)
	switch {
	case c.Limits.Window < time.Millisecond || c.Limits.Window%time.Millisecond != 0:
		return fmt.Errorf("--window %v: want a whole number of milliseconds", c.Limits.Window)
	case count < 0:
		return fmt.Errorf("--count %q: want one of %s", s.count, strings.Join(countings, ", "))
	case c.RefusedCount && !c.Rolling:
		return errors.New("--refused-count: want --rolling, too")
	case c.Limits.PerSecond && (c.Rolling || c.Limits.Window < time.Second):
		return errors.New("--per-second: want buckets, not --rolling, and a window of a second or more")
	case !(c.TokensPerSecond >= 0):
		return fmt.Errorf("--tokens-per-second %v: want 0 or more", c.TokensPerSecond)
	case !(c.Law.Cached >= 0 && c.Law.Cached <= 1):
		return fmt.Errorf("--cached %v: want 0 to 1", c.Law.Cached)
	case !(c.Law.Reasoning >= 0 && c.Law.Reasoning <= 1):
		return fmt.Errorf("--reasoning %v: want 0 to 1", c.Law.Reasoning)
	case s.retryAfter < 0:
		return fmt.Errorf("--retry-after %v: want 0 or more", s.retryAfter)
	}
	if c.Count = ""; count > 0 {
		c.Count = s.count
	}
	c.Models, c.Published = nil, false
	for _, name := range s.models {
		switch {
		case name == publishedModels:
			c.Published = true
		case name != anyModel:
			c.Models = append(c.Models, name)
		case len(s.models) > 1:
			return fmt.Errorf("--models %s: any is all of them", strings.Join(s.models, ","))
		}
	}
	c.Input = counted
	if c.RetryAfter = s.retryAfter; c.RetryAfter == 0 {
		c.RetryAfter = -1
	}
	if c.Before, err = openLaw(s.before); err != nil {
		return fmt.Errorf("--latency: %w", err)
	}
	if c.First, err = openLaw(s.first); err != nil {
		return fmt.Errorf("--first: %w", err)
	}
	c.Faults = map[string]float64{}
	for _, flag := range s.faults {
		name, p, ok := strings.Cut(flag, "=")
		n, err := strconv.ParseFloat(p, 64)
		if !ok || err != nil {
			return fmt.Errorf("--fault %q: want NAME=PROBABILITY, such as cut=0.01", flag)
		}
		c.Faults[name] += n
	}
	c.Script = s.script
	return nil
}

// setLimits puts the limits of --limit where the other flags put theirs. All but those of a day have
// one window.
func (s *serveLLM) setLimits() error {
	l, window := &s.config.Limits, time.Duration(0)
	inWindow := map[string]*int64{"requests": &l.Requests, "input": &l.Input, "output": &l.Output, "tokens": &l.Tokens}
	perDay := map[string]*int64{"requests": &l.RequestsPerDay, "tokens": &l.TokensPerDay}
	for _, v := range s.limits {
		name, text, named := strings.Cut(v, "=")
		if !named {
			name, text = "requests", v
		}
		r, err := rate.Parse(text)
		to := inWindow[name]
		switch {
		case to == nil:
			return fmt.Errorf("%q: no limit %q, expected one of requests, input, output, tokens", v, name)
		case err != nil:
			return err
		case r.Per == 24*time.Hour && perDay[name] != nil:
			to = perDay[name]
		case window != 0 && window != r.Per:
			return fmt.Errorf("%q: another limit has a window of %v, and all but those of a day have the same", v, window)
		case s.windowGiven():
			return fmt.Errorf("%q has a window, and so has --window", v)
		default:
			window = r.Per
		}
		if *to != 0 {
			return fmt.Errorf("%q: there is a limit of %s already", v, name)
		}
		*to = r.N
	}
	if window != 0 {
		l.Window = window
	}
	return nil
}

func (s *serveLLM) write(r llm.Report) error {
	switch s.output {
	case "json":
		return cli.WriteJSON(s.out, r)
	case "csv":
		c := csv.NewWriter(s.out)
		c.Write([]string{"key", "model", "accepted", "limited", "limit_name", "limit", "counted_most", "worst_window",
			"worst_window_percent", "worst_window_sent", "worst_window_sent_percent"})
		n := func(n int64) string { return strconv.FormatInt(n, 10) }
		p := func(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }
		for _, a := range r.Accounts {
			for _, w := range a.Limits {
				c.Write([]string{a.Key, a.Model, strconv.Itoa(a.Accepted), strconv.Itoa(a.Limited), w.Name, n(w.Limit),
					n(w.Counted), n(w.Worst), p(w.WorstPercent), n(w.Sent), p(w.SentPercent)})
			}
		}
		c.Flush()
		return c.Error()
	}
	over := false
	t := screen.Table{Right: true}
	t.Head("key", "model", "accepted", "limited", "of", "limit", "worst window", "in %", "as sent", "sent %")
	for _, a := range r.Accounts {
		for _, w := range a.Limits {
			t.Row(a.Key, a.Model, strconv.Itoa(a.Accepted), strconv.Itoa(a.Limited), w.Name, strconv.FormatInt(w.Limit, 10),
				strconv.FormatInt(w.Worst, 10), fmt.Sprintf("%.1f", w.WorstPercent), strconv.FormatInt(w.Sent, 10),
				fmt.Sprintf("%.1f", w.SentPercent))
			over = over || w.WorstPercent > 100 && w.Counted <= w.Limit
		}
	}
	if err := t.Write(s.out, screen.TableWidth); err != nil {
		return err
	}
	refused := r.Verdicts["limited"] + r.Verdicts["too_large"]
	_, err := fmt.Fprintf(s.out, "%d accepted and %d limited in %v", r.Verdicts["accepted"], refused,
		r.Elapsed.Round(time.Millisecond))
	for _, group := range []struct {
		name   string
		counts map[string]int
		but    []string
	}{{"otherwise refused", r.Verdicts, []string{"accepted", "limited", "too_large"}}, {"faults", r.Faults, nil}} {
		var all []string
		for what, n := range group.counts {
			if !slices.Contains(group.but, what) {
				all = append(all, fmt.Sprintf("%s %d", strings.ReplaceAll(what, "_", " "), n))
			}
		}
		if slices.Sort(all); len(all) > 0 {
			fmt.Fprintf(s.out, "; %s: %s", group.name, strings.Join(all, ", "))
		}
	}
	fmt.Fprintf(s.out, "; %d retries of SDKs, %d dropped at the end\n", r.Retries, r.Dropped)
	if over && !s.config.Rolling {
		fmt.Fprintln(s.out, "More than 100 % in a window is no excess: a full bucket serves its limit at once, "+
			"and refills meanwhile.")
	}
	return err
}
