package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/paceline-go/paceline/internal/app/proxy"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
)

// proxyUpstream is what flags of paceline proxy say of the server.
func proxyUpstream(args string) (proxy.Upstream, error) {
	f, cmd := &proxyFlags{}, &cobra.Command{}
	f.add(cmd)
	if err := cmd.ParseFlags(strings.Fields("--to https://api.example.com " + args)); err != nil {
		return proxy.Upstream{}, err
	}
	u, err := f.upstream(cmd)
	if err != nil {
		return u, err
	}
	c, err := proxy.Config{Upstreams: []proxy.Upstream{u}}.Checked()
	if err != nil {
		return u, err
	}
	return c.Upstreams[0], nil
}

// The flags mean what they mean to run: the same limits, of each model or of one.
func TestProxyMinuteFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--rpm 500":                                     "500/m requests bucket, model",
		"--rpm 500 --tpm 30000 --rule rolling":          "500/m requests rolling, model; 30000/m tokens rolling, model",
		"--limit none --limit-model gpt-4o=rpm:5,tpm:9": "5/m requests bucket, model gpt-4o; 9/m tokens bucket, model gpt-4o",
		"--rpm 5 --limit-model b=itpm:7":                "5/m requests bucket, model; 7/m input tokens bucket, model b",
		"--rpm 600 --per-second":                        "600/m requests bucket, model; 10/s requests bucket, model",
		// A flag replaces the preset's limits of the same unit, and the others still hold.
		// Anthropic counts output as it is produced.
		"--preset openai:tier1 --rpm 5000":                     "5000/m requests bucket, model; 30000/m tokens bucket, model",
		"--preset openai:tier1 --rpm 5000 --tpm 7 --limit 9/s": "9/s, key; 5000/m requests bucket, model; 7/m tokens bucket, model",
		"--preset anthropic:start --itpm 7000":                 "7000/m input tokens bucket, model; 1000/m requests bucket, model; 100000/m output tokens bucket produced, model",
		"--preset openai:tier1":                                "",
		"--preset openai:tier1 --rule rolling":                 "500/m requests rolling, model; 30000/m tokens rolling, model",
	} {
		u, err := proxyUpstream(args)
		var got []string
		for _, l := range u.Limits {
			s := l.Text
			if l.Bucket {
				s += " bucket"
			}
			s += map[limit.Counting]string{limit.CountsWindow: " window", limit.CountsRolling: " rolling"}[l.Counts]
			if l.Produced {
				s += " produced"
			}
			got = append(got, strings.TrimSpace(fmt.Sprintf("%s, %s %s", s, l.Scope, l.Only)))
		}
		if err != nil || strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, %v, expected %q", args, strings.Join(got, "; "), err, want)
		}
		if is := u.Preset != ""; is != (want == "") {
			t.Errorf("%s: the preset is %q", args, u.Preset)
		}
		if strings.Contains(args, "anthropic") || want == "" {
			continue
		}
		flags, cmd := &llmFlags{}, &cobra.Command{}
		flags.add(cmd)
		args := slices.DeleteFunc(strings.Fields(args), func(s string) bool { return s == "--limit" || s == "none" || s == "9/s" })
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		var c run.Config
		if err := flags.check(cmd, &c); err != nil {
			t.Errorf("%q: run: %v", args, err)
		}
		for _, l := range c.Limits {
			if !slices.ContainsFunc(u.Limits, func(o proxy.Limit) bool { return o.Limit == l || o.Limit == (rate.Limit)(l) }) {
				t.Errorf("%q: run has %+v, the proxy %+v", args, l, u.Limits)
			}
		}
	}
	for args, want := range map[string]string{
		"--rpm 0": "--rpm 0, expected 1 to", "--rpm 5 --rule leaky": `--rule "leaky", expected bucket or rolling`, "--limit-model x=rpm:5": "--limit-model is beside --limit",
		"--limit none --limit-model x": "expected NAME=rpm:N", "--limit none --rpm 5": "--limit none is beside other limits", "--limit auto --limit-model x=rpm:5": "--limit auto with --limit-model",
		"--rpm 5 --rule rolling --per-second": "--per-second, expected limits per minute that are buckets", "": "--limit, --preset or --rpm is required",
	} {
		_, err := proxyUpstream(args)
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, expected %q", args, err, want)
		}
	}
}

// How a provider counts goes along with its limits, for who shares them with strangers; --rule has
// another opinion.
func TestPresetSaysHowItIsCounted(t *testing.T) {
	for args, want := range map[string]limit.Counting{
		"--preset github:unauthenticated":                limit.CountsWindow,
		"--preset docker-hub:personal":                   limit.CountsRolling,
		"--preset github:unauthenticated --rule rolling": limit.CountsRolling,
		"--preset github:unauthenticated --rule bucket":  limit.CountsSomehow, // Bucket says it
	} {
		flags, cmd := &llmFlags{}, &cobra.Command{}
		flags.add(cmd)
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		c := run.Config{Concurrency: 1}
		if err := flags.check(cmd, &c); err != nil || len(c.Limits) == 0 || c.Limits[0].Counts != want || c.Limits[0].Bucket != strings.HasSuffix(args, "bucket") {
			t.Errorf("%s: %+v, %v, want it counted as %d", args, c.Limits, err, want)
		}
	}
}
