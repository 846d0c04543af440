package meter

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
	"github.com/paceline-go/paceline/tokens/tiktoken"
)

// Config describes a Meter.
type Config struct {
	// Host is where the requests go, with its port. A known host names the provider.
	Host string
	// API is that of the requests. It names the provider of an unknown host, as far as that is possible:
	// Messages is Anthropic's.
	API tokens.API
	// Count states which tokens of a request the server counts. If zero, it is the documented
	// counting of the provider LimitsOf. LimitsOf is a name in provider.Providers; if empty, it is
	// the provider at Host.
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
	Limits []rate.Limit
}

// Meter counts the tokens of requests and of their answers. Safe for concurrent use.
type Meter struct {
	c         Config
	dialect   provider.Dialect
	own       bool   // the host is the provider's own
	sells     string // the provider whose prices apply
	shares    string // the provider that says which models share limits
	estimator *tokens.Estimator
	rough     *tokens.Estimator // guesses the tokens, which is faster than a count
	produces  bool              // the server counts output as it is produced

	mu          sync.Mutex
	corrections map[string]*correction
}

// correction measures how wrong the rough estimates of a model's input are.
type correction struct {
	n            int
	exact, rough float64
}

// New checks the configuration.
func New(c Config) (*Meter, error) {
	anthropic := c.API == tokens.Messages
	dialect, known := provider.ForHost(c.Host)
	switch {
	case c.LimitsOf != "":
	case known:
		c.LimitsOf = dialect.Name()
	case anthropic: // few other providers take requests in this form
		c.LimitsOf = "anthropic"
	}
	row, _ := provider.LookupProvider(c.LimitsOf)
	documented, _ := tokens.ParseCounting(row.Tokens)
	if c.Count = c.Count.Of(documented); c.Overrun != 0 && c.Count != tokens.Used && c.Count != tokens.Produced {
		return nil, fmt.Errorf("an estimate of the output helps only where the server counts the output that was used, not with %v",
			c.Count)
	}
	m := &Meter{c: c, dialect: dialect, own: known, produces: c.Count == tokens.Produced,
		corrections: map[string]*correction{}}
	if !known {
		name := "openai"
		if anthropic {
			name = "anthropic"
		}
		m.dialect, _ = provider.Lookup(name)
	}
	if m.sells = m.dialect.Name(); !known && c.LimitsOf != "" {
		m.sells = c.LimitsOf
	}
	m.shares = cmp.Or(row.Name, m.dialect.Name())
	m.c.Limits = m.Drawn(c.Limits)
	var err error
	if m.estimator, err = tokens.New(tokens.Config{Overrun: c.Overrun, Vocabulary: tiktoken.Vocabulary}); err != nil {
		return nil, err
	}
	m.rough, err = tokens.New(tokens.Config{CountMax: -1})
	return m, err
}

// Drawn returns the limits as the server counts them: by output as it is produced, and by the
// models that share one.
func (m *Meter) Drawn(limits []rate.Limit) []rate.Limit {
	limits = slices.Clone(limits)
	for i := range limits {
		r := &limits[i]
		r.Produced = r.Produced || m.produces && r.Bucket && r.Unit == limit.Output
		if r.Model != "" {
			r.Model = m.SharedModel(r.Model)
		}
	}
	return limits
}

// LimitsOf names the provider whose limits apply, if it is known, and Seller the one whose prices do.
func (m *Meter) LimitsOf() string { return m.c.LimitsOf }
func (m *Meter) Seller() string   { return m.sells }

// Divides names the provider that says which models, and which keys, share limits.
func (m *Meter) Divides() string { return m.shares }

// Dialect reads the answers of the provider at the host, or else of the API's.
func (m *Meter) Dialect() provider.Dialect { return m.dialect }

// IsOwn reports whether the host is the provider's own.
func (m *Meter) IsOwn() bool { return m.own }

// Count returns which tokens of a request the server is assumed to count.
func (m *Meter) Count() tokens.Counting { return m.c.Count }

// MaxTokens is the bound of the output in each request; 0: that of the request.
func (m *Meter) MaxTokens() int64 { return m.c.MaxTokens }

// CountsExactly reports whether the vocabulary of a model is known. The tokens of others are estimated.
func (m *Meter) CountsExactly(model string) bool {
	return m.estimator.Of(tokens.Body{API: tokens.Chat, Model: model, Choices: 1}).Counted
}

// API is that of the requests, as configured.
func (m *Meter) API() tokens.API { return m.c.API }

// SharedModel is the name under which a model shares limits with others of its family.
func (m *Meter) SharedModel(model string) string { return provider.SharedModel(m.shares, model) }
