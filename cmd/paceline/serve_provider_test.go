package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/ratetest/service"
)

func TestServeProvider(t *testing.T) {
	log := filepath.Join(t.TempDir(), "requests.jsonl")
	out := serveVerb(t, []string{"a", "b", "c"}, []int{200, 200, 403}, "github", "--limit", "without a token=2/h", "--limit", "concurrent=5", "-o", "json", "--log", log)
	var r service.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Provider != "github" || r.Accepted != 2 || r.Limited != 1 || r.Wrong != 0 || len(r.Limits) != 2 || r.Limits[1].Worst != 2 || r.Limits[0].Limit != 5 || r.Elapsed <= 0 {
		t.Errorf("%+v", r)
	}
	lines, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	again, err := service.Judge(service.Config{Provider: "github", Limits: []provider.Policy{{Name: "without a token", Limit: 2}, {Name: "concurrent", Limit: 5}}}, lines)
	if err != nil || again.Wrong != 0 || again.Accepted != 2 {
		t.Errorf("%+v, %v", again, err)
	}
	out = serveVerb(t, []string{"a", "b", "c"}, []int{200, 429, 429}, "slack", "--preset", "slack:tier1")
	for _, want := range []string{"requests  127.0.0.1 /         1        2     1   1m             1  100.0\n", "1 accepted and 2 limited in "} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in\n%s", want, out)
		}
	}
	out = serveVerb(t, []string{"a", "b", "c"}, []int{200, 403, 403}, "bybit", "--limit", "1/5s", "--scale", "10", "--latency", "constant:10ms")
	if !strings.Contains(out, "1 accepted and 1 limited in ") || !strings.Contains(out, ", 1 bans with 1 requests refused for them; ") {
		t.Error(out)
	}
}

// TestServeHelp: every dialect that is read can be served, and the help says which limits.
func TestServeHelp(t *testing.T) {
	t.Parallel()
	help := func(args ...string) string {
		var out strings.Builder
		if code := execute(t.Context(), append(append([]string{"serve"}, args...), "--help-all"), strings.NewReader(""), &out, io.Discard); code != cli.ExitOK {
			t.Errorf("%v: %d", args, code)
		}
		return out.String()
	}
	all := help()
	for _, p := range service.All() {
		if !strings.Contains(all, "\n  "+p.Name+" ") {
			t.Errorf("no verb %s in\n%s", p.Name, all)
		}
		text := help(p.Name)
		for _, preset := range p.Presets {
			if !strings.Contains(text, "--preset "+preset) {
				t.Errorf("%s: no %s", p.Name, preset)
			}
		}
	}
	if text := help("discord"); !strings.Contains(text, "  route        5 requests per 5s, in windows that begin with a request, of a key and route\n") {
		t.Error(text)
	}
}

func TestServeProviderBadFlags(t *testing.T) {
	for want, args := range map[string]string{
		`--preset "github": want slack:tier3, slack:tier1`:                     "slack --preset github",
		`--limit: "orders=5/s": no limit "orders", expected one of "requests"`: "heroku --limit orders=5/s",
		`--limit: "5" does not say per what time`:                              "heroku --limit 5",
		`"concurrent=5/s": "concurrent" is a limit of requests at once`:        "github --limit concurrent=5/s",
		`--limit: "5/90d": the window is longer than`:                          "heroku --limit 5/90d",
		"--scale 0: want more than 0":                                          "x --scale 0",
		`--output "csv": want text or json`:                                    "okx -o csv",
		"--latency: ":                                                          "okx --latency fast",
		"--latency-after: ":                                                    "okx --latency-after fast",
		`unknown command "slak" for "paceline serve"; did you mean slack?`:     "slak",
		`unknown command "bin" for "paceline serve"; did you mean binance or`:  "bin",
		`unknown command "zzzzzz" for "paceline serve"; see`:                   "zzzzzz",
	} {
		var says strings.Builder
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // what starts all the same ends at once
		code := execute(ctx, append([]string{"serve"}, strings.Fields(args)...), strings.NewReader(""), io.Discard, &says)
		if code != cli.ExitUsage || !strings.Contains(says.String(), want) {
			t.Errorf("%s: %d, %s, want %s", args, code, &says, want)
		}
	}
}
