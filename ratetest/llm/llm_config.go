package llm

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/paceline-go/paceline/ratetest/internal/model"
	"github.com/paceline-go/paceline/ratetest/latency"
)

// Provider is the provider whose API a Server has.
type Provider uint8

const (
	OpenAI    Provider = iota // POST /v1/chat/completions, /v1/responses, /v1/embeddings, /v1/moderations; files, batches
	Anthropic                 // POST /v1/messages, /v1/messages/count_tokens; batches
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

func (p Provider) family() model.Family {
	if p == Anthropic {
		return model.FamilyAnthropic
	}
	return model.FamilyOpenAI
}

// Ask has the contents of a request to a Server.
type Ask struct {
	// API is "chat", "responses", "embeddings", "moderations" or "messages".
	API    string
	Model  string
	Stream bool
	// Choices is the number of answers, 1 or more. MaxOutput is the most tokens of each answer, 0
	// if there is no bound.
	Choices, MaxOutput int64
	// Estimate is the server's guess of the input when the request arrives, at least 1. It is a
	// token per 4 characters of text for the model, and 765 per picture, sound or file.
	Estimate int64
}

func askOf(a *model.Ask) Ask {
	return Ask{a.API, a.Model, a.Stream, a.Choices, a.MaxOutput, a.Estimate}
}

// Config describes a Server. The zero value is OpenAI for any key and model, without latency or
// faults.
type Config struct {
	Provider Provider
	// Keys and Models are the known keys and models. If empty, the server accepts any, up to 1000
	// pairs of key and model.
	Keys, Models []string
	// Published adds the models that the provider has published, with their dated names. Of other
	// models, only Models are known.
	Published bool
	// Organizations maps a key to its organization. Keys of one organization share its limits, and
	// answers name the organization. A key mapped to "" has limits of its own, and no answer to it
	// names an organization. A key without an entry has an organization of its own.
	Organizations map[string]string
	// Limits are the limits of each key for each model, except those in ModelLimits. If zero, they
	// are those of tier 1. For OpenAI: 500 requests and 30,000 tokens a minute (gpt-4o). For
	// Anthropic: 50 requests, 30,000 input and 8,000 output tokens a minute (Claude Sonnet 4).
	Limits      Limits
	ModelLimits map[string]Limits
	// Rolling limits have at most the limit in any closed window. If false, each limit is a bucket
	// that holds as much and is refilled evenly. Both providers document this (OpenAI by the
	// figures in its answers).
	Rolling bool
	// Count is the part of a request that counts against token limits, and the time of counting. If
	// empty, it is reserved for OpenAI and produced for Anthropic, as they document.
	//
	//	reserved    counts at the arrival, whatever is used in the end: the estimate of the input and
	//	            the output that the request allows; of tokens of OpenAI, the larger of the two
	//	corrected   reserves the same, as tokens the sum of both; the true usage replaces it at the end
	//	true        counts the true usage at the arrival: a test of clients without doubt about sizes
	//	produced    counts the estimate of the input at the arrival, and the output as it is produced.
	//	            A request is refused when not one token is left. Requests under way may overdraw
	//	            the limit. At the end, the true input replaces the estimate.
	Count string
	// RefusedCount counts limited requests against the limits of requests, as OpenAI warns. Only
	// with Rolling.
	RefusedCount bool
	// Law decides the true usage of requests. Truth, if not nil, decides in place of Law, one call
	// at a time. Its result is cut to the amount that the request allows. Truth must not call the
	// server.
	Law   Law
	Truth func(Ask) Usage
	// Input, if not nil, counts the input of a request to that API with its model's vocabulary. If
	// it is nil or reports false, Law decides. It must be safe for concurrent use and must not keep
	// the body.
	Input func(api string, body []byte) (tokens int64, ok bool)
	// Before is the latency on the way to the check. First is the time from there to the first
	// token. TokensPerSecond is the speed of the later tokens. If Before or First is zero, there is
	// none. If TokensPerSecond is zero, all tokens come at once.
	Before, First   latency.Law
	TokensPerSecond float64
	// EventTokens is the number of tokens in an event of a stream. If zero, 8.
	EventTokens int64
	// Faults has the probability of each fault, at most 1 together. Script has the faults of the
	// first requests, in order of receipt, and takes precedence. There, "" and "ok" are none.
	//
	//	429              refused with RetryAfter although there is room; it counts nowhere
	//	500              counts, but nothing was generated
	//	502              a page in HTML, as from a proxy that lost the answer; it counts
	//	overloaded       503 of OpenAI, 529 of Anthropic; it counts nowhere
	//	unpaid           insufficient_quota of OpenAI, a low balance of Anthropic; it counts nowhere
	//	reset            the connection is reset before the answer; it counts
	//	cut              the connection breaks in the middle of the answer
	//	ended            the answer stops in its middle, and the connection ends in good order. A
	//	                 stream lacks its last events, and JSON is cut off.
	//	error-event      a stream reports an error in its middle and ends; without a stream, 500
	//	no-usage         the answer has no usage
	//	no-headers       no field about limits, and no Retry-After
	//	lying-headers    fields state that nothing is used, and Retry-After is 0
	//	garbled-headers  a limit of 0, -1 left, a reset that is no time, a Retry-After of a year
	Faults map[string]float64
	Script []string
	// RetryAfter is the wait that 429 and overloaded ask for. If zero, 1 s. If negative, they
	// ask for none.
	RetryAfter time.Duration
	// BatchPace is the time that a request of a batch takes. A batch serves its requests one after
	// another, outside of all limits. If zero, 10 ms.
	BatchPace time.Duration
	// Credit is the total number of tokens for each key. Afterwards the key is refused for lack of
	// credit. If zero, unlimited.
	Credit int64
	// Seed is for usage, latencies and faults. The same requests in the same order of receipt get
	// the same ones.
	Seed uint64
	// LogTo, if not nil, gets lines of JSON: see Line. A slow writer delays answers, not checks.
	// The server does not close LogTo.
	LogTo io.Writer

	odds   [faults]float64 // Faults and Script, as read
	script []fault
}

// Law decides the usage of a request. The zero value has the defaults below.
type Law struct {
	// Spread is the deviation of the logarithm of true input divided by estimate. If zero, 0.1; if
	// negative, none. At most 1.
	Spread float64
	// OutputMedian and OutputP99 describe the tokens of a choice, a lognormal distribution. If
	// zero, 150 and 1,500. The draw is cut to the bound in the request, and the answer then says
	// "length". Without a bound, it is cut to 16,384 over all choices.
	OutputMedian, OutputP99 int64
	// Cached is the probability that input is read from a cache, in whole multiples of 128. It
	// applies to inputs of 1024 tokens and more.
	Cached float64
	// Reasoning is the fraction of the output that is thinking and not shown, 0 to 1.
	Reasoning float64
}

// Usage is the usage of a request, in tokens.
type Usage struct {
	Input     int64 `json:"input"`  // the whole input
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
	if c.Count == "" {
		c.Count = map[Provider]string{OpenAI: countReserved, Anthropic: countProduced}[c.Provider]
	}
	if !slices.Contains([]string{countReserved, countCorrected, countTrue, countProduced}, c.Count) {
		return bad("there is no Count %q", c.Count)
	}
	if c.RefusedCount && !c.Rolling {
		return bad("RefusedCount without Rolling")
	}
	l := &c.Law
	if l.OutputMedian == 0 && l.OutputP99 == 0 {
		l.OutputMedian, l.OutputP99 = 150, 1500
	}
	l.Spread = cmp.Or(l.Spread, 0.1)
	c.EventTokens = cmp.Or(c.EventTokens, 8)
	c.RetryAfter = cmp.Or(c.RetryAfter, time.Second)
	c.BatchPace = cmp.Or(c.BatchPace, 10*time.Millisecond)
	switch {
	case !(l.Spread <= 1):
		return bad("Law.Spread %v is above 1", l.Spread)
	case l.OutputMedian < 1 || l.OutputP99 < l.OutputMedian || l.OutputP99 > model.MostOutput:
		return bad("Law.OutputMedian %d and OutputP99 %d do not rise from 1 to %d", l.OutputMedian, l.OutputP99,
			model.MostOutput)
	case !(l.Cached >= 0 && l.Cached <= 1):
		return bad("Law.Cached %v is not from 0 to 1", l.Cached)
	case !(l.Reasoning >= 0 && l.Reasoning <= 1):
		return bad("Law.Reasoning %v is not from 0 to 1", l.Reasoning)
	case !(c.TokensPerSecond >= 0):
		return bad("TokensPerSecond %v is negative", c.TokensPerSecond)
	case c.EventTokens < 0:
		return bad("EventTokens %d is negative", c.EventTokens)
	case c.BatchPace < 0 || c.BatchPace > day:
		return bad("BatchPace %v is not from 0 to %v", c.BatchPace, day)
	case c.Credit < 0:
		return bad("Credit %d is negative", c.Credit)
	}
	return c, c.readFaults()
}

// knows reports whether the server has a model of that name.
func (c *Config) knows(name string) bool {
	if len(c.Models) == 0 && !c.Published || slices.Contains(c.Models, name) {
		return true
	}
	_, known := model.MostOutputOf(c.Provider.family(), name)
	return c.Published && known
}

func (c *Config) limitsOf(model string) Limits {
	if l, ok := c.ModelLimits[model]; ok {
		return l
	}
	return c.Limits
}
