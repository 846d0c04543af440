package llm

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/paceline-go/paceline/ratetest/latency"
)

// Provider says whose API a Server speaks.
type Provider uint8

const (
	OpenAI    Provider = iota // POST /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/moderations
	Anthropic                 // POST /v1/messages
)

func (p Provider) String() string {
	switch p {
	case OpenAI:
		return "openai"
	case Anthropic:
		return "anthropic"
	}
	return fmt.Sprintf("Provider(%d)", uint8(p))
}

// Config describes a Server. The zero value is OpenAI for any key and model, without latency or faults.
type Config struct {
	Provider Provider
	// Keys and Models are those that the server knows. If empty, it knows all, up to 1000 pairs of key and model.
	Keys, Models []string
	// Published: it knows the models that the provider has published, by their dated names too, and beside them only Models.
	Published bool
	// Organizations names whose keys are whose: keys of one organization have their limits together, and answers name it. A key of "" has limits
	// of its own, and no answer to it names an organization. A key that is not there is an organization's of its own.
	Organizations map[string]string
	// Limits are those of each key for each model, but for those that ModelLimits has. If zero, 500 requests and 30,000 tokens
	// a minute of OpenAI (tier 1 of gpt-4o), 50 requests, 30,000 input and 8,000 output tokens of Anthropic (tier 1 of
	// Claude Sonnet 4).
	Limits      Limits
	ModelLimits map[string]Limits
	// Rolling: no closed window holds more than the limit. Otherwise each limit is a bucket that holds as much and is
	// refilled evenly, as both providers document (OpenAI by the figures in its answers).
	Rolling bool
	// Count is what counts against the limits of tokens. If zero, what the provider documents.
	Count Counting
	// RefusedCount: requests that are limited count against the limits of requests, as OpenAI warns. Only with Rolling.
	RefusedCount bool
	// Law decides what requests use in truth. Truth, if not nil, does so in its place, one call at a time; what it returns is
	// cut to what the request allows itself. It must not call the server.
	Law   Law
	Truth func(Ask) Usage
	// Input, if not nil, counts the input of a request of that API with its model's vocabulary. If nil, or if it reports false,
	// Law decides. It must be safe for concurrent use and not keep the body.
	Input func(api string, body []byte) (tokens int64, ok bool)
	// Before is the latency on the way to the check, First from there to the first token, and TokensPerSecond how fast those
	// after it are generated. If zero, there is none, and all are there at once.
	Before, First   latency.Law
	TokensPerSecond float64
	// EventTokens is how many tokens an event of a stream has. If zero, 8.
	EventTokens int64
	// Faults is the probability of each, at most 1 together. Script is the faults of the first requests, in order of receipt, and
	// goes before Faults.
	Faults map[Fault]float64
	Script []Fault
	// RetryAfter is how long Refused and Unavailable ask to wait. If zero, 1 s; if negative, they do not say.
	RetryAfter time.Duration
	// Credit is how many tokens each key may use, ever, until it is refused for want of credit. If zero, any number.
	Credit int64
	// Seed is for usage, latencies and faults: the same requests in the same order of receipt meet the same ones.
	Seed uint64
	// LogTo, if not nil, is written lines of JSON: see Line. A slow writer delays answers, not checks. It is not closed.
	LogTo io.Writer
}

// Law decides what a request uses. The zero value is a law of its own.
type Law struct {
	// Spread is that of the input about the estimate: the deviation of the logarithm of their ratio. If zero, 0.1; if negative,
	// none. At most 1.
	Spread float64
	// OutputMedian and OutputP99 are of the tokens of a choice, lognormal, before they are cut to what the request allows itself
	// (and then it says so: "length"), or to 16,384 of all choices if it does not say. If zero, 150 and 1,500.
	OutputMedian, OutputP99 int64
	// Cached is the probability that the input, from 1024 tokens on, is read from a cache, in whole multiples of 128.
	Cached float64
	// Reasoning is the share of the output that is thought and not shown, 0 to 1.
	Reasoning float64
}

// Usage is what a request uses, in tokens.
type Usage struct {
	Input     int64 `json:"input"`  // all of it
	Cached    int64 `json:"cached"` // the part of Input that was read from a cache
	Output    int64 `json:"output"` // of all choices
	Reasoning int64 `json:"reasoning"`
}

func (c Config) filled() (Config, error) {
	bad := func(format string, args ...any) (Config, error) {
		return c, fmt.Errorf("ratetest: LLM: "+format, args...)
	}
	c.Keys, c.Models, c.Script = slices.Clone(c.Keys), slices.Clone(c.Models), slices.Clone(c.Script)
	c.Faults, c.ModelLimits = maps.Clone(c.Faults), maps.Clone(c.ModelLimits)
	if c.Provider > Anthropic {
		return bad("there is no %v", c.Provider)
	}
	for name, list := range map[string][]string{"Keys": c.Keys, "Models": c.Models} {
		for i, s := range list {
			if s == "" || slices.Index(list, s) != i {
				return bad("%s: %q is empty or there twice", name, s)
			}
		}
	}
	c.Limits = c.Limits.filled(c.Provider)
	if err := c.Limits.check("Limits"); err != nil {
		return c, err
	}
	perSecond := c.Limits.PerSecond
	for model, l := range c.ModelLimits {
		perSecond = perSecond || l.PerSecond
		l = l.filled(c.Provider)
		if err := l.check(fmt.Sprintf("ModelLimits[%q]", model)); err != nil {
			return c, err
		}
		c.ModelLimits[model] = l
	}
	if perSecond && (c.Provider != OpenAI || c.Rolling) {
		return bad("PerSecond of %v, Rolling %t: it is of OpenAI's buckets", c.Provider, c.Rolling)
	}
	if c.Count > CountProduced {
		return bad("there is no Count %d", c.Count)
	}
	if c.Count == CountDocumented {
		c.Count = map[Provider]Counting{OpenAI: CountReserved, Anthropic: CountProduced}[c.Provider]
	}
	if c.RefusedCount && !c.Rolling {
		return bad("RefusedCount without Rolling")
	}
	l := &c.Law
	if l.OutputMedian == 0 && l.OutputP99 == 0 {
		l.OutputMedian, l.OutputP99 = 150, 1500
	}
	if l.Spread == 0 {
		l.Spread = 0.1
	}
	c.EventTokens = cmp.Or(c.EventTokens, 8)
	c.RetryAfter = cmp.Or(c.RetryAfter, time.Second)
	switch {
	case !(l.Spread <= 1):
		return bad("Law.Spread %v is above 1", l.Spread)
	case l.OutputMedian < 1 || l.OutputP99 < l.OutputMedian || l.OutputP99 > mostOutput:
		return bad("Law.OutputMedian %d and OutputP99 %d do not rise from 1 to %d", l.OutputMedian, l.OutputP99, mostOutput)
	case !(l.Cached >= 0 && l.Cached <= 1):
		return bad("Law.Cached %v is not from 0 to 1", l.Cached)
	case !(l.Reasoning >= 0 && l.Reasoning <= 1):
		return bad("Law.Reasoning %v is not from 0 to 1", l.Reasoning)
	case !(c.TokensPerSecond >= 0):
		return bad("TokensPerSecond %v is negative", c.TokensPerSecond)
	case c.EventTokens < 0:
		return bad("EventTokens %d is negative", c.EventTokens)
	case c.Credit < 0:
		return bad("Credit %d is negative", c.Credit)
	}
	return c, checkFaults(c.Faults, c.Script)
}

// knows reports whether there is a model of that name.
func (c *Config) knows(model string) bool {
	if len(c.Models) == 0 && !c.Published || slices.Contains(c.Models, model) {
		return true
	}
	_, known := mostOutputOf(c.Provider, model)
	return c.Published && known
}

func (c *Config) limitsOf(model string) Limits {
	if l, ok := c.ModelLimits[model]; ok {
		return l
	}
	return c.Limits
}
