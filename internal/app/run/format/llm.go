package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/paceline-go/paceline/internal/app/run/input"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/internal/secret"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/tokens"
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

// ProviderOf is the provider in whose form keys go to the API whose requests m counts.
func ProviderOf(m *meter.Meter) Provider {
	if m.Dialect().Name() == "anthropic" {
		return Anthropic
	}
	return OpenAI
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
	// MaxTokens is set as the bound of the output in each request, in place of its own. If zero, requests stay
	// as they are.
	MaxTokens int64
	// Limits are the limits of the run. A request larger than one of them is refused.
	Limits []Rate
	// Array says that the batch is one array of JSON instead of a request a line.
	Array bool
}

// LLM is the format of batch files for language models. Its Meter counts the tokens of their requests. Safe for
// concurrent use.
type LLM struct {
	*meter.Meter
	c      LLMConfig
	base   *url.URL
	header http.Header
}

// NewLLM checks the configuration.
func NewLLM(c LLMConfig) (*LLM, error) {
	base, err := ParseBase(cmp.Or(c.BaseURL, c.Provider.BaseURL()))
	if err != nil {
		return nil, err
	}
	l := &LLM{c: c, base: base, header: http.Header{"Content-Type": {"application/json"}}}
	api := tokens.Chat
	if c.Provider == Anthropic {
		l.header["Anthropic-Version"] = []string{"2023-06-01"}
		api = tokens.Messages
	}
	l.Meter, err = meter.New(meter.Config{Host: base.Host, API: api, Count: c.Count, LimitsOf: c.LimitsOf, Overrun: c.Overrun,
		MaxOutput: c.MaxOutput, MaxTokens: c.MaxTokens, Limits: c.Limits})
	return l, err
}

// ParseBase reads the address of an API.
func ParseBase(text string) (*url.URL, error) {
	if _, err := secret.ParseAddress(text); errors.Is(err, secret.ErrScheme) {
		return nil, fmt.Errorf("base URL %q: %w", secret.SanitizeAddress(text), err)
	}
	base, err := url.Parse(text)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.RawQuery != "" ||
		base.User != nil {
		return nil, fmt.Errorf("base URL %q, expected http:// or https://, a host and perhaps a path",
			secret.SanitizeAddress(text))
	}
	return base, nil
}

// Form returns the form of the batch.
func (l *LLM) Form() Provider { return l.c.Provider }

// Base returns the URL before the path of each line. It is the provider's own if IsOwn is set.
func (l *LLM) Base() *url.URL { return l.base }

// endpoints are the endpoints of OpenAI's batches whose tokens can be counted here.
var endpoints = []string{"/v1/chat/completions", "/v1/responses", "/v1/embeddings"}

func (l *LLM) parse(r *Reader, line input.Value) (*Request, error) {
	q := &Request{Line: line.Line(), Column: 1, Method: http.MethodPost, Header: l.header}
	path, err := l.members(r, q, line)
	if err != nil {
		return nil, err
	}
	q.Digest = NewDigest(q.Method, path, nil, q.Body)
	if r.Ended != nil && r.Ended(q.ID) {
		return q, nil // the rest is not needed, and a count of its tokens would take long
	}
	q.URL, q.Cost = l.address(path), limit.One
	return q, nil
}

// memberNames are the members of a line, by the provider. The last one has the body.
var memberNames = [...][]string{{"custom_id", "method", "url", "body"}, {"custom_id", "params"}}

// members reads the members of a line into q, and returns the path of its URL.
func (l *LLM) members(r *Reader, q *Request, line input.Value) (path string, err error) {
	names := memberNames[l.c.Provider]
	all := strings.Join(names, ", ")
	if line.Raw[0] != '{' {
		return "", line.Errorf("%s, expected a JSON object with %s", line.Kind(), all)
	}
	seen := map[string]bool{}
	path = "/v1/messages"
	err = line.Object(func(name string, key, v input.Value) (err error) {
		if !slices.Contains(names, name) {
			return key.Errorf("unknown field %q, expected %s", name, all)
		}
		if seen[name] {
			return key.Errorf("field %q is given twice, expected once", name)
		}
		seen[name] = true
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
			q.Body, q.BodyAt = bytes.Clone(v.Raw), v.Column
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
		if !seen[name] && err == nil {
			line.Column = 1
			err = line.Errorf("there is no %s, expected %s", name, all)
		}
	}
	return path, err
}

// address is the URL to which a line with this path goes.
func (l *LLM) address(path string) *url.URL {
	u := *l.base
	at := strings.TrimSuffix(u.Path, "/")
	u.Path, u.RawPath = strings.TrimSuffix(at, "/v1")+path, ""
	return &u
}

// Sniff recognizes the form of a batch by the first line of an input. It returns false if it is
// none.
func Sniff(line []byte) (Provider, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input.NoMarks(line), &fields) != nil {
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
	d := json.NewDecoder(bytes.NewReader(input.NoMarks(head)))
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
