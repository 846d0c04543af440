package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/app/run/jsonl"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/tokens/tiktoken"
)

// Provider is the provider whose form of batch files an LLM reads and writes.
type Provider uint8

const (
	OpenAI    Provider = iota // {"custom_id", "method", "url", "body"}
	Anthropic                 // {"custom_id", "params"}
)

func (p Provider) String() string { return [...]string{"openai-batch", "anthropic-batch"}[p] }

// BaseURL is the address of the provider's own API.
func (p Provider) BaseURL() string {
	return [...]string{"https://api.openai.com", "https://api.anthropic.com"}[p]
}

// KeyHeader is the template of the header field that carries the key.
func (p Provider) KeyHeader() string {
	return [...]string{"Authorization: Bearer {key}", "x-api-key: {key}"}[p]
}

// LLMConfig describes an LLM.
type LLMConfig struct {
	Provider Provider
	// BaseURL, without a /v1 at its end, is put before the url of each line. If empty, it is the
	// provider's.
	BaseURL string
	// Count states which tokens of a request the server counts. If zero, it is the documented
	// counting of the provider LimitsOf. LimitsOf is a name in provider.Providers; if empty, it is
	// the provider at BaseURL's host.
	Count    tokens.Counting
	LimitsOf string
	// Overrun is the probability that a request outputs more than was reserved for it, with
	// tokens.Used; see tokens.Config. If zero, all the output that a request allows itself is
	// reserved.
	Overrun float64
	// MaxOutput is the bound for requests that do not bound their output. If zero, it is the most
	// that their model can output.
	MaxOutput int64
	// Limits are the limits of the run. A request larger than one of them is refused.
	Limits []Rate
	// Array says that the batch is one array of JSON instead of a request a line.
	Array bool
}

// LLM is the format of batch files for language models. It also reads the tokens and errors in
// their answers. Safe for concurrent use, except that only one goroutine at a time may read the
// input with it.
type LLM struct {
	c           LLMConfig
	base        *url.URL
	header      http.Header
	provider    provider.Dialect
	own         bool   // the host is the provider's own
	sells       string // the provider whose prices apply
	estimator   *tokens.Estimator
	rough       *tokens.Estimator // guesses the tokens, which is faster than a count
	corrections map[string]*correction
	produces    bool // the server counts output as it is produced
}

// Drawn returns the limits as the server counts them: by output as it is produced, and by the
// models that share one.
func (l *LLM) Drawn(limits []Rate) []Rate {
	limits = slices.Clone(limits)
	for i := range limits {
		r := &limits[i]
		r.Produced = r.Produced || l.produces && r.Bucket && r.Unit == limit.Output
		if r.Model != "" {
			r.Model = l.SharedModel(r.Model)
		}
	}
	return limits
}

// correction measures how wrong the rough estimates of a model's input are.
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
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.RawQuery != "" ||
		base.User != nil {
		return nil, fmt.Errorf("base URL %q, expected http:// or https://, a host and perhaps a path",
			secret.SanitizeAddress(c.BaseURL))
	}
	dialect, known := provider.ForHost(base.Host)
	switch {
	case c.LimitsOf != "":
	case known:
		c.LimitsOf = dialect.Name()
	case c.Provider == Anthropic: // no other provider takes batches in this form
		c.LimitsOf = "anthropic"
	}
	row, _ := provider.LookupProvider(c.LimitsOf)
	if c.Count = c.Count.Of(row.Tokens); c.Overrun != 0 && !c.Count.Corrected() {
		return nil, fmt.Errorf("an estimate of the output helps only where the server counts what was used, not with %v",
			c.Count)
	}
	l := &LLM{c: c, base: base, provider: dialect, produces: c.Count == tokens.Produced,
		header: http.Header{"Content-Type": {"application/json"}}, corrections: map[string]*correction{}}
	if c.Provider == Anthropic {
		l.header["Anthropic-Version"] = []string{"2023-06-01"}
	}
	if l.own = known; !known {
		l.provider, _ = provider.Lookup([...]string{"openai", "anthropic"}[c.Provider])
	}
	if l.sells = l.provider.Name(); !known && c.LimitsOf != "" {
		l.sells = c.LimitsOf
	}
	l.c.Limits = l.Drawn(c.Limits)
	if l.estimator, err = tokens.New(tokens.Config{Overrun: c.Overrun, Vocabulary: tiktoken.Vocabulary}); err != nil {
		return nil, err
	}
	l.rough, err = tokens.New(tokens.Config{CountMax: -1})
	return l, err
}

// Form returns the form of the batch. LimitsOf names the provider whose limits apply, if it is known, and
// Seller the one whose prices do.
func (l *LLM) Form() Provider   { return l.c.Provider }
func (l *LLM) LimitsOf() string { return l.c.LimitsOf }
func (l *LLM) Seller() string   { return l.sells }

// Base returns the URL before the path of each line. It is the provider's own if IsOwn is set.
func (l *LLM) Base() *url.URL { return l.base }
func (l *LLM) IsOwn() bool    { return l.own }

// Count returns which tokens of a request the server is assumed to count.
func (l *LLM) Count() tokens.Counting { return l.c.Count }

// endpoints are the endpoints of OpenAI's batches whose tokens can be counted here.
var endpoints = []string{"/v1/chat/completions", "/v1/responses", "/v1/embeddings"}

func (l *LLM) parse(r *Reader, line jsonl.Value) (*Request, error) {
	q := &Request{Line: line.Line(), Column: 1, Method: http.MethodPost, Header: l.header}
	path, seen, err := l.members(r, q, line)
	if err != nil {
		return nil, err
	}
	q.Digest = NewDigest(q.Method, path, nil, q.Body)
	if r.Ended != nil && r.Ended(q.ID) {
		return q, nil // the rest is not needed, and a count of its tokens would take long
	}
	names := memberNames[l.c.Provider]
	bodyName := names[len(names)-1]
	body, err := tokens.Parse(tokens.APIOf(path), q.Body)
	if err != nil {
		return nil, seen[bodyName].Errorf("%s: %v", bodyName, strings.TrimPrefix(err.Error(), "tokens: "))
	}
	if q.Passed = r.Passes != nil && r.Passes(body.Model); q.Passed {
		return q, nil
	}
	if body.Stream {
		return nil, seen[bodyName].Errorf("the %s has \"stream\": true, expected none: the results of a batch are whole "+
			"answers", bodyName)
	}
	q.URL = l.address(path)
	q.Unbounded = !body.Bounded && body.API != tokens.Embeddings
	if q.Unbounded && l.c.MaxOutput > 0 {
		body.MaxOutput, body.Bounded = l.c.MaxOutput, true
	}
	l.estimate(q, body, r.Pass == Checking)
	if err := l.fit(q, body, r.Pass == Checked, seen["custom_id"]); err != nil {
		return nil, err
	}
	return q, nil
}

// memberNames are the members of a line, by the provider. The last one has the body.
var memberNames = [...][]string{{"custom_id", "method", "url", "body"}, {"custom_id", "params"}}

// members reads the members of a line into q, and returns the path of its URL, and each member by its name.
func (l *LLM) members(r *Reader, q *Request, line jsonl.Value) (path string, seen map[string]jsonl.Value, err error) {
	names := memberNames[l.c.Provider]
	all := strings.Join(names, ", ")
	if line.Raw[0] != '{' {
		return "", nil, line.Errorf("%s, expected a JSON object with %s", line.Kind(), all)
	}
	path, seen = "/v1/messages", map[string]jsonl.Value{}
	err = line.Object(func(name string, key, v jsonl.Value) (err error) {
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
			if l.c.Array { // in an array it may go over several lines
				var b bytes.Buffer
				_ = json.Compact(&b, v.Raw)
				q.Body = b.Bytes()
			}
			return r.fits(name, len(v.Raw), v)
		}
		return nil
	})
	for _, name := range names {
		if _, ok := seen[name]; !ok && err == nil {
			line.Column = 1
			err = line.Errorf("there is no %s, expected %s", name, all)
		}
	}
	return path, seen, err
}

// fit lowers the cost of a request to what each limit allows at once, where no more than an estimate is too
// large: the request goes alone. Answers may have raised it since the input was checked. fit fails if a
// request can never go.
func (l *LLM) fit(q *Request, body tokens.Body, checked bool, id jsonl.Value) error {
	least := l.least(q.Estimate, body)
	for _, rate := range LimitsOf(l.c.Limits, l.SharedModel(body.Model)) {
		switch n := q.Cost[rate.Unit]; {
		case rate.Fits(n):
		case checked || rate.Fits(least[rate.Unit]):
			q.Cost[rate.Unit] = rate.Most()
		default:
			return id.Errorf("custom_id %q can never go: it counts %d %v (%d in, at most %d out), and limit %s allows %d at once",
				q.ID, n, rate.Unit, q.Estimate.Input, q.Estimate.Output, rate.Text, rate.Most())
		}
	}
	return nil
}

// address is the URL to which a line with this path goes.
func (l *LLM) address(path string) *url.URL {
	u := *l.base
	at := strings.TrimSuffix(u.Path, "/")
	u.Path, u.RawPath = strings.TrimSuffix(at, "/v1")+path, ""
	return &u
}

// estimate sets the cost of q. With roughly set it is ten times as fast: for each model it counts
// the first 200 texts, and then one of 64. These counts correct its guesses for the others.
func (l *LLM) estimate(q *Request, b tokens.Body, roughly bool) {
	if !roughly {
		q.Estimate = l.estimator.Of(b)
		q.Cost = l.cost(q.Estimate, b)
		return
	}
	s := l.corrections[b.Model]
	if s == nil {
		if len(l.corrections) >= 1000 {
			clear(l.corrections) // the names of models seem to be made up
		}
		s = &correction{}
		l.corrections[strings.Clone(b.Model)] = s
	}
	s.n++
	e := l.rough.Of(b)
	// A quarter more than a guess is above almost every count. If that fits the limits, no count is
	// needed.
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
	return slices.ContainsFunc(LimitsOf(l.c.Limits, l.SharedModel(model)), func(r Rate) bool { return !r.Fits(c[r.Unit]) })
}

// cost returns the cost at which a request is admitted: the reservation in the limits until its
// answer comes.
func (l *LLM) cost(e tokens.Estimate, b tokens.Body) limit.Cost {
	in, out, total := l.c.Count.Reserve(e, b)
	if l.produces { // the server reserves nothing, and an expected output would not bound the usage
		out = e.MaxOutput
	}
	return limit.Cost{limit.Requests: 1, limit.Input: in, limit.Output: out, limit.Tokens: total}
}

// least returns the part of the cost that is no estimate.
func (l *LLM) least(e tokens.Estimate, b tokens.Body) limit.Cost {
	in, out, total := l.c.Count.Least(e, b)
	return limit.Cost{limit.Requests: 1, limit.Input: in, limit.Output: out, limit.Tokens: total}
}

// used returns the cost at which a request is settled when its answer reports its usage.
func (l *LLM) used(u tokens.Usage) limit.Cost {
	in := u.Input
	if l.c.Provider == Anthropic {
		in = u.Uncached()
	}
	return limit.Cost{limit.Requests: 1, limit.Input: in, limit.Output: u.Output, limit.Tokens: in + u.Output}
}

// Sniff recognizes the form of a batch by the first line of an input. It returns false if it is
// none.
func Sniff(line []byte) (Provider, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(jsonl.NoMarks(line), &fields) != nil {
		return 0, false
	}
	return batchOf(fields)
}

// batchOf recognizes the form of a batch by the members of a request.
func batchOf(fields map[string]json.RawMessage) (Provider, bool) {
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

// SniffArray recognizes the form of a batch that is an array of JSON by its beginning, which may end
// within the first request.
func SniffArray(head []byte) (Provider, bool) {
	d := json.NewDecoder(bytes.NewReader(jsonl.NoMarks(head)))
	for _, open := range []json.Delim{'[', '{'} {
		if t, err := d.Token(); err != nil || t != open {
			return 0, false
		}
	}
	fields := map[string]json.RawMessage{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			break
		}
		var value json.RawMessage
		err = d.Decode(&value)
		if text, ok := name.(string); ok {
			fields[text] = append(value, ' ') // not nil, also where head ends in the value
		}
		if err != nil {
			break
		}
	}
	return batchOf(fields)
}

// SharedModel is the name under which a model shares limits with others of its family.
func (l *LLM) SharedModel(model string) string {
	row, _ := provider.LookupProvider(l.LimitsOf())
	return provider.SharedModel(cmp.Or(row.Name, l.Dialect().Name()), model)
}
