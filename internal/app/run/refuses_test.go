package run

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/run/format"
	"github.com/paceline-go/paceline/internal/app/run/output"
	"github.com/paceline-go/paceline/internal/app/run/sending"
	"github.com/paceline-go/paceline/internal/app/sharestore"
	"github.com/paceline-go/paceline/pool"
	"github.com/paceline-go/paceline/provider"
)

// Options that contradict each other, or are impossible, are an ErrConfig before any file is
// opened.
func TestNewRefuses(t *testing.T) {
	template := func(text string) []format.Template {
		all, err := format.ParseHeaders([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	llm, err := format.NewLLM(format.LLMConfig{})
	if err != nil {
		t.Fatal(err)
	}
	shape, err := output.CompileShape(".id", output.JSONL)
	if err != nil {
		t.Fatal(err)
	}
	next, err := sending.ParseNext("link", "")
	if err != nil {
		t.Fatal(err)
	}
	limits := []format.Rate{{N: 1, Per: time.Second, Text: "1/s"}}
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{Header: template("A: {key}")}, "--header has {key}, but there are no keys"},
		{Config{Concurrency: -1}, "a negative number"}, {Config{Attempts: -1}, "a negative number"}, {Config{Redirects: -1}, "a negative number"}, {Config{Queue: -1}, "a negative number"},
		{Config{Timeout: -1}, "a negative number"}, {Config{TTL: -1}, "a negative number"}, {Config{Gap: -1}, "a negative number"}, {Config{NonceUnit: -1}, "a negative number"}, {Config{MaxResponse: -1}, "a negative number"},
		{Config{Format: llm, OutDir: "x"}, "results of batches"},
		{Config{OutDir: "x", Ordered: true}, "files of bodies with rows"}, {Config{OutDir: "x", Shape: shape}, "files of bodies with rows"},
		{Config{Ordered: true, Next: next}, "pages come after others"}, {Config{Format: llm, Next: next}, "following pages does not go with batches"},
		{Config{Header: template("A: {token}")}, "{token} in a template and an issuer"}, {Config{Bearer: &Bearer{Issuer: &giver{}}}, "{token} in a template and an issuer"},
		{Config{Limits: []format.Rate{{N: 0, Per: time.Second, Text: "0/s"}}}, "limit 0/s: "},
		{Config{Auto: &Auto{}, Limits: limits, Share: &sharestore.Limits{}}, "limits that are to be found out beside limits in a store"},
		{Config{Backoff: pool.Backoff{Jitter: 2}}, "backoff: Jitter 2"},
		{Config{Every: -1}, "a negative number"}, {Config{Decay: -1}, "a negative number"}, {Config{Rounds: -1}, "a negative number"}, {Config{MostInFlight: -1}, "a negative number"},
		{Config{AnswerTime: time.Hour, TTL: time.Hour}, "answers take 1h0m0s (--answer-time), and requests are of use for 1h0m0s"},
		{Config{AnswerTime: time.Hour, By: time.Now().Add(time.Hour)}, "answers take 1h0m0s (--answer-time), and 1h0m0s are left"},
		{Config{Every: 1, OutDir: "x"}, "requests that are asked again"}, {Config{Every: 1, Ordered: true}, "requests that are asked again"},
		{Config{Every: 1, Shape: shape}, "requests that are asked again"}, {Config{Every: 1, Next: next}, "requests that are asked again"},
		{Config{Every: 1, RetryDead: 1}, "requests that are asked again"}, {Config{Every: 1, HoldUnanswered: true}, "requests that are asked again"},
		{Config{Every: 1, Format: llm}, "requests that are asked again"}, {Config{Decay: 1, Every: 1}, "a value that falls with age"},
		{Config{Decay: 1, Backlog: &shelf{}, Out: "-"}, "a value that falls with age"},
		{Config{Table: "t", Ordered: true, Shape: shape}, "a table is in a file"}, {Config{Table: "t", Out: "-"}, "a table is in a file"},
		{Config{Share: &sharestore.Limits{}}, "--share without a limit"},
		{Config{Resources: []ResourceLimit{{Resource: "r", Rate: format.Rate{Per: time.Second, Text: "0/s"}}}}, "limit 0/s of r: "},
		{Config{Charges: []provider.Charge{{On: "?"}}}, "--charge: "},
	} {
		if c.c.Out == "" {
			c.c.Out = filepath.Join(t.TempDir(), "out")
		}
		_, err := New(c.c)
		if !errors.Is(err, ErrConfig) || err == nil || !strings.HasPrefix(err.Error(), ErrConfig.Error()+": "+c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	for _, c := range []Config{{}, {Next: next}, {Shape: shape}, {Ordered: true}, {Ordered: true, Shape: shape}, {Auto: &Auto{}}, {Limits: limits},
		{AnswerTime: time.Hour, TTL: time.Hour + 1}, {AnswerTime: time.Hour, By: time.Now().Add(2 * time.Hour)}, {Every: 1}, {Decay: 1}, {MaxResponse: 1},
		{Format: llm, Shape: shape}, {Format: llm, Ordered: true}} {
		c.Out = filepath.Join(t.TempDir(), "out")
		if _, err := New(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
