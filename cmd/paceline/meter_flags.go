package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/meter"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// meterConfig is what the flags say of the tokens that a server counts.
func (f *llmFlags) meterConfig(c *run.Config, maxTokens int64) (meter.Config, error) {
	count, err := tokens.ParseCounting(f.count)
	publisher, _ := provider.Publisher(f.preset)
	return meter.Config{Count: count, LimitsOf: publisher.Name, Overrun: f.estimate, MaxOutput: f.maxOutput,
		MaxTokens: maxTokens, Limits: c.Limits}, err
}

// forTokens returns a flag that needs requests with a known number of tokens; empty: none is given.
func (f *llmFlags) forTokens(cmd *cobra.Command) string {
	if len(f.bounded) > 0 {
		return f.bounded[0]
	}
	for _, name := range []string{"prompt-column", "max-tokens", "count", "estimate", "max-output", "price-input"} {
		if isGiven(cmd, name) {
			return "--" + name
		}
	}
	return ""
}

// meter makes the run count the tokens of requests that are no batch, if flags need them. The first request
// names the provider.
func (f *runFlags) meter(cmd *cobra.Command, in *runInput, c *run.Config) error {
	flag := f.llm.forTokens(cmd)
	if flag == "" && in.note != nil && in.note.API != "" { // all processes that send from a backlog count alike
		flag = "a backlog of prompts"
	}
	unpriced := f.budget > 0 && f.price <= 0
	if flag == "" && !unpriced {
		return nil
	}
	m, err := f.llm.meterConfig(c, f.prompt.maxTokens)
	if err != nil {
		return cli.Usage(err)
	}
	form := c.Format
	if form == nil {
		form = format.Plain{}
	}
	q, err := in.first(form, c.Input)
	if err != nil {
		return err
	}
	switch {
	case q != nil:
		m.Host, m.API = q.URL.Host, tokens.APIOf(q.URL.Path)
		_, err = meter.Body(q.Method, q.URL, q.Body)
	case len(c.KeyHosts) > 0:
		m.Host = c.KeyHosts[0].Host()
	}
	_, unknown := errors.AsType[*meter.Uncounted](err)
	switch {
	case flag == "" && (unknown || q == nil):
		return cli.Usage(errors.New("--budget without a price: --price, in USD per attempt of cost 1"))
	case unknown:
		return cli.Usage(fmt.Errorf("%s: %w", flag, err))
	}
	if c.Meter, err = meter.New(m); err != nil {
		return cli.Usage(err)
	}
	f.llm.patient(cmd, c)
	return nil
}

// first returns the first request of the input; nil: none is found. The input is read from its beginning
// afterwards.
func (in *runInput) first(f format.Format, limits format.InputLimits) (*format.Request, error) {
	if in.note != nil {
		u, err := url.Parse(in.note.API)
		if err != nil || u.Host == "" {
			return nil, nil
		}
		return &format.Request{Method: http.MethodPost, URL: u}, nil
	}
	file, seeks := in.reader.(io.ReadSeeker)
	if !in.isFile || !seeks {
		return format.First(f, in.name, bytes.NewReader(in.head), limits), nil
	}
	q := format.First(f, in.name, file, limits)
	_, err := file.Seek(0, io.SeekStart)
	return q, err
}

// patient gives answers more time and room, unless flags say how much: models that think for a long time
// need both.
func (f *llmFlags) patient(cmd *cobra.Command, c *run.Config) {
	if !isGiven(cmd, "timeout") {
		c.Timeout = 10 * time.Minute
	}
	if !isGiven(cmd, "max-response") {
		c.MaxResponse = 16 << 20
	}
}
