package batch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/strict"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/quota"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/tokens/tiktoken"
)

// Provider says whose batch files an LLM reads and writes.
type Provider uint8

const (
	OpenAI    Provider = iota // {"custom_id", "method", "url", "body"}
	Anthropic                 // {"custom_id", "params"}
)

func (p Provider) String() string { return [...]string{"openai-batch", "anthropic-batch"}[p] }

// BaseURL is the provider's own.
func (p Provider) BaseURL() string {
	return [...]string{"https://api.openai.com", "https://api.anthropic.com"}[p]
}

// KeyHeader is the template of the field that has the key.
func (p Provider) KeyHeader() string {
	return [...]string{"Authorization: Bearer {key}", "x-api-key: {key}"}[p]
}

// LLMConfig describes an LLM.
type LLMConfig struct {
	Provider Provider
	// BaseURL is before the url of each line. If empty, the provider's. A path that ends in /v1 does not have it twice.
	BaseURL string
	// Count is what the server counts of a request's tokens: of the zero Counting, what LimitsOf documents, a name of
	// quota.Providers. If that is empty, the provider of BaseURL's host.
	Count    tokens.Counting
	LimitsOf string
	// Overrun is the chance that a request outputs more than is reserved, with tokens.Used: see tokens.Config. If zero, what
	// the request allows itself is reserved.
	Overrun float64
	// MaxOutput is taken for requests that do not bound their output. If zero, the most that their model can.
	MaxOutput int64
	// Limits are the run's: a request that is larger is refused.
	Limits []Rate
}

// LLM is the format of batch files for language models, and what their answers say. Safe for concurrent use, but for
// reading, of which there is one at a time.
type LLM struct {
	c           LLMConfig
	base        *url.URL
	header      http.Header
	provider    quota.Dialect
	own         bool   // the host is the provider's own
	seller      string // whose prices hold
	estimator   *tokens.Estimator
	rough       *tokens.Estimator // guesses, which is quick
	corrections map[string]*correction
	produces    bool // the server counts output as it is produced
}

// drawn are limits as the server counts them.
func (l *LLM) drawn(limits []Rate) []Rate {
	limits = slices.Clone(limits)
	for i := range limits {
		r := &limits[i]
		r.Produced = r.Produced || l.produces && r.Bucket && r.Unit == limit.Output
		if r.Model != "" {
			r.Model = l.sharedModel(r.Model)
		}
	}
	return limits
}

// correction is by how much the rough estimates of a model's input are wrong.
type correction struct {
	n            int
	exact, rough float64
}

// NewLLM checks the configuration.
func NewLLM(c LLMConfig) (*LLM, error) {
	if c.BaseURL == "" {
		c.BaseURL = c.Provider.BaseURL()
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.RawQuery != "" || base.User != nil {
		return nil, fmt.Errorf("base URL %q, expected http:// or https://, a host and perhaps a path", c.BaseURL)
	}
	provider, known := quota.ForHost(base.Host)
	switch {
	case c.LimitsOf != "":
	case known:
		c.LimitsOf = provider.Name()
	case c.Provider == Anthropic: // nobody else has taken to its batches
		c.LimitsOf = "anthropic"
	}
	row, _ := quota.LookupProvider(c.LimitsOf)
	if c.Count = c.Count.Of(string(row.Tokens)); c.Overrun != 0 && !c.Count.Corrected() {
		return nil, fmt.Errorf("an estimate of the output helps only where the server counts what was used, not with %v", c.Count)
	}
	l := &LLM{c: c, base: base, provider: provider, produces: c.Count == tokens.Produced, header: http.Header{"Content-Type": {"application/json"}}, corrections: map[string]*correction{}}
	if c.Provider == Anthropic {
		l.header["Anthropic-Version"] = []string{"2023-06-01"}
	}
	if l.own = known; !known {
		l.provider, _ = quota.Lookup([...]string{"openai", "anthropic"}[c.Provider])
	}
	if l.seller = l.provider.Name(); !known && c.LimitsOf != "" {
		l.seller = c.LimitsOf
	}
	l.c.Limits = l.drawn(c.Limits)
	if l.estimator, err = tokens.New(tokens.Config{Overrun: c.Overrun, Vocabulary: tiktoken.Vocabulary}); err != nil {
		return nil, err
	}
	l.rough, err = tokens.New(tokens.Config{CountMax: -1})
	return l, err
}

// Count is what the server is taken to count.
func (l *LLM) Count() tokens.Counting { return l.c.Count }

// endpoints are those of OpenAI's batches of which the tokens are known.
var endpoints = []string{"/v1/chat/completions", "/v1/responses", "/v1/embeddings"}

func (l *LLM) parse(r *Reader, line strict.Value) (*Request, error) {
	all := [...]string{"custom_id, method, url, body", "custom_id, params"}[l.c.Provider]
	if line.Raw[0] != '{' {
		return nil, line.Errorf("%s, expected a JSON object with %s", line.Kind(), all)
	}
	q := &Request{Line: line.Line(), Column: 1, Method: http.MethodPost, Header: l.header}
	names := strings.Split(all, ", ")
	seen := map[string]strict.Value{}
	path := "/v1/messages"
	err := line.Object(func(name string, key, v strict.Value) (err error) {
		if !slices.Contains(names, name) {
			return key.Errorf("unknown field %q, expected %s", name, all)
		}
		if _, twice := seen[name]; twice {
			return key.Errorf("field %q is given twice, expected once", name)
		}
		seen[name] = v
		switch name {
		case "custom_id":
			return q.id(name, v)
		case "method":
			if string(v.Raw) != `"POST"` {
				return v.Errorf("method %v, expected \"POST\"", v)
			}
		case "url":
			if path, err = v.Text(name); err == nil && !slices.Contains(endpoints, path) {
				err = v.Errorf("url %v, expected %s (the host comes from --base-url)", v, strings.Join(endpoints, ", "))
			}
			return err
		default: // body, params
			if v.Raw[0] != '{' {
				return v.Errorf("%s is %s, expected an object", name, v.Kind())
			}
			q.Body = bytes.Clone(v.Raw)
			return r.fits(name, len(v.Raw), v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, ok := seen[name]; !ok {
			line.Column = 1
			return nil, line.Errorf("there is no %s, expected %s", name, all)
		}
	}
	q.Digest = newDigest(q.Method, path, nil, q.Body)
	if r.ended != nil && r.ended(q.ID) {
		return q, nil // counting is what takes long
	}
	bodyName := names[len(names)-1]
	body, err := tokens.Parse(tokens.APIOf(path), q.Body)
	if err != nil {
		return nil, seen[bodyName].Errorf("%s: %v", bodyName, strings.TrimPrefix(err.Error(), "tokens: "))
	}
	if q.passed = r.passes != nil && r.passes(body.Model); q.passed {
		return q, nil
	}
	if body.Stream {
		return nil, seen[bodyName].Errorf("the %s has \"stream\": true, expected none: the results of a batch are whole answers", bodyName)
	}
	q.URL = l.address(path)
	q.Unbounded = !body.Bounded && body.API != tokens.Embeddings
	if q.Unbounded && l.c.MaxOutput > 0 {
		body.MaxOutput, body.Bounded = l.c.MaxOutput, true
	}
	l.estimate(q, body, r.pass == checking)
	for _, rate := range limitsOf(l.c.Limits, l.sharedModel(body.Model)) {
		switch n := q.Cost[rate.Unit]; {
		case rate.fits(n):
		case r.pass == checked:
			// Then it fitted, and answers have taught to estimate more since. It goes alone.
			q.Cost[rate.Unit] = rate.most()
		default:
			return nil, seen["custom_id"].Errorf("custom_id %q can never go: it counts %d %v (%d in, at most %d out), and limit %s allows %d at once",
				q.ID, n, rate.Unit, q.Estimate.Input, q.Estimate.Output, rate.Text, rate.most())
		}
	}
	return q, nil
}

// address is where a line goes.
func (l *LLM) address(path string) *url.URL {
	u := *l.base
	at := strings.TrimSuffix(u.Path, "/")
	u.Path, u.RawPath = strings.TrimSuffix(at, "/v1")+path, ""
	return &u
}

// estimate says what q costs. Roughly is ten times as quick: of the texts of each model the first 200 are counted and of
// those after them one of 64, which says by how much the guesses for the others are to be corrected.
func (l *LLM) estimate(q *Request, b tokens.Body, roughly bool) {
	if !roughly {
		q.Estimate = l.estimator.Of(b)
		q.Cost = l.cost(q.Estimate, b)
		return
	}
	s := l.corrections[b.Model]
	if s == nil {
		if len(l.corrections) >= 1000 {
			clear(l.corrections) // models that somebody made up
		}
		s = &correction{}
		l.corrections[strings.Clone(b.Model)] = s
	}
	s.n++
	e := l.rough.Of(b)
	// A quarter more than a guess is above almost every count: what is not too large by that is not.
	most := e
	most.Input += most.Input / 4
	if s.n <= 200 || s.n%64 == 0 || l.tooLarge(b.Model, l.cost(most, b)) {
		rough := e.Input
		e = l.estimator.Of(b)
		s.exact += float64(e.Input)
		s.rough += float64(rough)
	} else if s.rough > 0 {
		e.Input = int64(float64(e.Input)*s.exact/s.rough + 0.5)
	}
	q.Estimate, q.Cost = e, l.cost(e, b)
}

func (l *LLM) tooLarge(model string, c limit.Cost) bool {
	return slices.ContainsFunc(limitsOf(l.c.Limits, l.sharedModel(model)), func(r Rate) bool { return !r.fits(c[r.Unit]) })
}

// cost is what a request is admitted with: what the server may count when it arrives.
func (l *LLM) cost(e tokens.Estimate, b tokens.Body) limit.Cost {
	in, out, total := l.c.Count.Reserve(e, b)
	if l.produces { // nothing is reserved, and what it is expected to come to is no bound
		out = e.MaxOutput
	}
	return limit.Cost{limit.Requests: 1, limit.Input: in, limit.Output: out, limit.Tokens: total}
}

// used is what an answer is settled with.
func (l *LLM) used(u tokens.Usage) limit.Cost {
	in := u.Input
	if l.c.Provider == Anthropic {
		in = u.Uncached()
	}
	return limit.Cost{limit.Requests: 1, limit.Input: in, limit.Output: u.Output, limit.Tokens: in + u.Output}
}

// Sniff says by the first line of an input whose batch it is; false: nobody's.
func Sniff(line []byte) (Provider, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(bytes.TrimPrefix(line, []byte("\ufeff")), &fields) != nil {
		return 0, false
	}
	var path string
	_ = json.Unmarshal(fields["url"], &path)
	switch {
	case fields["custom_id"] != nil && fields["params"] != nil:
		return Anthropic, true
	case fields["custom_id"] != nil, strings.HasPrefix(path, "/v1/"):
		return OpenAI, true
	}
	return 0, false
}
