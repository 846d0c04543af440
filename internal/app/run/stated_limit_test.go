package run

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/ratetest/latency"
	"github.com/paceline-go/paceline/ratetest/llm"
)

// The server states 150 requests and 10,000 tokens a minute, and a flag says more. That is said once, with the flag that
// mends it, and nothing is refused. Where the flags say what the server does, nothing is said.
func TestAStatedLimitBelowTheFlags(t *testing.T) {
	const n = 100
	for _, c := range []struct {
		name          string
		requests, all int64
		says          string
	}{
		{"tpm", 150, 70_000, "limit of 10000 tokens/m, and 70000 tokens/m is configured: --tpm 10000."},
		{"rpm", 5000, 10_000, "limit of 150/m, and 5000/m is configured: --rpm 150."},
		{"none", 150, 10_000, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.jsonl")
			synctest.Test(t, func(t *testing.T) {
				var notices lockedBuffer
				v := &virtually{t: t, llm: format.LLMConfig{LimitsOf: "openai"},
					config: Config{Out: out, Notice: func(s string) { fmt.Fprintln(&notices, s) }, Limits: []format.Rate{
						minutely(c.requests, limit.Requests, true), minutely(c.all, limit.Tokens, true)}},
					server: llm.Config{Limits: llm.Limits{Requests: 150, Tokens: 10_000}, First: latency.Constant(time.Second)}}
				v.run(prompts(format.OpenAI, n, 0))
				v.once(n)
				said := strings.Count(notices.String(), "the server states a ")
				if said != min(len(c.says), 1) || !strings.Contains(notices.String(), c.says) {
					t.Errorf("%d lines, want %q once in\n%s", said, c.says, notices.String())
				}
				if v.report.Verdicts["accepted"] != n || len(v.report.Verdicts) != 1 {
					t.Errorf("the server: %v", v.report.Verdicts)
				}
			})
		})
	}
}
