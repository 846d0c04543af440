package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/provider"
)

// explainIn runs explain on a day of one's choice, with standard input typed at a terminal or not.
func explainIn(now string, typed bool, stdin string, args ...string) (out, errs string, err error) {
	at, _ := time.Parse("2006-01-02", now)
	var stdout, stderr strings.Builder
	c := explainAt(func() time.Time { return at }, func(io.Reader) bool { return typed })
	c.SilenceUsage, c.SilenceErrors = true, true
	c.SetArgs(args)
	c.SetIn(strings.NewReader(stdin))
	c.SetOut(&stdout)
	c.SetErr(&stderr)
	err = c.ExecuteContext(context.Background())
	return stdout.String(), stderr.String(), err
}

// At a terminal the user gets a hint about the input. With a provider alone no input is awaited.
func TestExplainAtATerminal(t *testing.T) {
	const asks = "paste a response ("
	out, errs, err := explainIn("2026-11-22", true, "retry-after: 7\nstatus: 429\n")
	if err != nil || !strings.HasPrefix(out, "429 ") || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, asks) || !strings.Contains(errs, "end with Ctrl-D") {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
	out, errs, err = explainIn("2026-11-22", true, "retry-after: 7\nstatus: 429\n", "-", "--provider", "stripe")
	if err != nil || !strings.HasPrefix(out, "429 Too Many Requests, read as stripe") || !strings.HasPrefix(errs, asks) {
		t.Errorf("with -: %v\n%s\n%s", err, out, errs)
	}
	out, errs, err = explainIn("2026-11-22", true, "not read", "--provider", "stripe")
	if err != nil || !strings.HasPrefix(out, "stripe ") || !strings.Contains(errs, "paceline explain --provider stripe -\n") {
		t.Errorf("a provider alone: %v\n%s\n%s", err, out, errs)
	}
	if _, errs, _ = explainIn("2026-11-22", false, "retry-after: 7\nstatus: 429\n"); errs != "" {
		t.Errorf("from a pipe: %s", errs)
	}
}

// Where the input has no status it is read as 200, and that this is an assumption is said.
func TestExplainAssumesAStatus(t *testing.T) {
	out, errs, err := explainIn("2026-11-22", false, "{\"Retry-After\": \"7\"}")
	if err != nil || !strings.HasPrefix(out, "200 OK") || errs != "no status found: it is read as of an answer that was served (200)\n" {
		t.Errorf("%v\n%s\n%s", err, out, errs)
	}
	out, _, _ = explainIn("2026-11-22", false, "{\"Retry-After\": \"7\"}", "-o", "json")
	if !strings.Contains(out, `"status_assumed": true`) {
		t.Error(out)
	}
}

// The row of a provider, whole.
func TestExplainRow(t *testing.T) {
	out, errs, err := explainIn("2026-11-22", false, " \n", "--provider", "etherscan")
	const want = `etherscan     Etherscan (exchanges)
hosts         api.etherscan.io, api.bscscan.com, api.polygonscan.com, api.arbiscan.io, api-optimistic.etherscan.io
documented    https://docs.etherscan.io/resources/rate-limits (as of 2026-11)
says          nothing of its limits before it refuses
refusals      200, 400, 403, 429 and result is *ax daily rate limit*: quota exhausted
              200, 400, 403, 429 and result is *ax rate limit reached, please use API Key*: rate limited, by address
              200, 400, 403, 429 and result is *ax rate limit* or *ax calls per sec*: rate limited
              429: rate limited
              503: overloaded
they concern  the key; address: the address
published     etherscan (free, per key; published 2026-11): 3 requests per second (per key); day: 100,000 requests per day (per key)
`
	if err != nil || squeezed(out) != squeezed(want) || errs != "" {
		t.Errorf("%v %s\n%s\nwant\n%s", err, errs, out, want)
	}
	out, _, _ = explainIn("2026-11-22", false, "", "--provider", "anthropic")
	for _, says := range []string{
		"tokens        counted input when a request arrives, output as it is produced\n",
		"keys          those whose answers have the same Anthropic-Organization-Id share limits\n",
		"claude-opus-4, claude-opus-4-*, claude-4-opus* share the limits of claude-opus-4\n",
		"Anthropic-Ratelimit-input-tokens-{Limit,Remaining,Reset}\n",
		"paceline models anthropic\n",
	} {
		if !strings.Contains(out, says) {
			t.Errorf("no %q in\n%s", says, out)
		}
	}
	out, _, _ = explainIn("2026-11-22", false, "", "--provider", "cme")
	if !strings.Contains(out, "1,500 requests per 3 s") || strings.Contains(out, "429") || strings.Contains(out, "fields") {
		t.Error(out)
	}
	out, _, _ = explainIn("2026-11-22", false, "", "--provider", "etherscan", "-o", "json")
	var r providerRow
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Name != "etherscan" || !r.Silent || len(r.Refusals) != 3 || len(r.Published) != 1 || r.Published[0].Old || len(r.Published[0].Limits) != 2 {
		t.Errorf("%v %+v", err, r)
	}
}

// A published limit is old one year after its month, or its year, began. A date that cannot be read
// is old.
func TestExplainOld(t *testing.T) {
	for _, c := range []struct {
		now, asOf string
		want      bool
	}{
		{"2026-11-22", "2026-11", false}, {"2027-10-31", "2026-11", false}, {"2027-11-01", "2026-11", true}, {"2026-11-22", "2025-11", true},
		{"2026-12-31", "2026", false}, {"2027-01-01", "2026", true}, {"2026-11-22", "2021-02", true}, {"2026-11-22", "", false}, {"2026-11-22", "long ago", true},
	} {
		at, _ := time.Parse("2006-01-02", c.now)
		if got := old(c.asOf, at); got != c.want {
			t.Errorf("%q is old in %s: %v", c.asOf, c.now, got)
		}
	}
	for _, c := range []struct{ args, young, aged string }{
		{"--provider deribit", "published 2026-11)", "published 2026-11, a year old or more: look it up again)"},
		{"--preset deribit", "as published in 2026-11\n", "as published in 2026-11, a year ago or more: look it up again\n"},
		{"--preset deribit -o json", `"as_of": "2026-11",` + "\n  \"observation\"", `"old": true`},
	} {
		for now, want := range map[string]string{"2026-11-22": c.young, "2028-02-01": c.aged} {
			if out, _, err := explainIn(now, false, "", strings.Fields(c.args)...); err != nil || !strings.Contains(squeezed(out), squeezed(want)) {
				t.Errorf("%s in %s: %v\n%s\nwant %s", c.args, now, err, out, want)
			}
		}
		if out, _, _ := explainIn("2026-11-22", false, "", append(strings.Fields(c.args), "--at", "2028-02-01T00:00:00Z")...); !strings.Contains(squeezed(out), squeezed(c.aged)) {
			t.Errorf("%s: --at is not now:\n%s", c.args, out)
		}
	}
}

// A server that documents a limit and sends none: the table says it, as published and since when;
// where the answer states a limit, that is not repeated.
func TestExplainFromTheTable(t *testing.T) {
	const silent = "> Host: api.etherscan.io\n< HTTP/1.1 200 OK\n< \n{\"status\":\"1\"}\n"
	out, _, err := explainIn("2028-02-01", false, silent)
	const want = `200 OK, read as etherscan at 2028-02-01 00:00:00 UTC

  The response says nothing of limits.
  Etherscan documents its limits, and does not send them:
    https://docs.etherscan.io/resources/rate-limits (as of 2026-11)
  From the table, and not from the response (an account may have others):
    etherscan (free, per key; published 2026-11, a year old or more: look it up again): 3 requests
      per second (per key); day: 100,000 requests per day (per key)

Come back at once.
`
	if err != nil || out != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
	out, _, _ = explainIn("2028-02-01", false, silent, "-o", "json")
	if !strings.Contains(out, `"published": [`) || !strings.Contains(out, `"old": true`) || !strings.Contains(out, `"host": "api.etherscan.io"`) {
		t.Error(out)
	}
	out, _, _ = explainIn("2026-11-22", false, "HTTP/1.1 200 OK\nX-RateLimit-Limit: 5000\nX-RateLimit-Remaining: 1\n", "--provider", "github")
	if strings.Contains(out, "From the table") || strings.Contains(out, "not in the table") {
		t.Error(out)
	}
	out, _, _ = explainIn("2026-11-22", false, "HTTP/1.1 200 OK\nRatelimit-Limit: 600\nRatelimit-Remaining: 1\n", "--provider", "replicate") // silent, and yet
	if strings.Contains(out, "does not send") || !strings.Contains(out, "600 requests") {
		t.Error(out)
	}
}

// An unknown provider gets the generic reading, and the user gets instructions to add it. JSON has
// no advice.
func TestExplainStranger(t *testing.T) {
	const stranger = "> Host: api.acme.test\n< HTTP/1.1 200 OK\n< X-RateLimit-Limit: 5\n< X-RateLimit-Remaining: 4\n< \n"
	out, errs, err := explainIn("2026-11-22", false, stranger)
	if err != nil || errs != "" || !strings.HasPrefix(out, "200 OK, read as generic") || !strings.Contains(out, "5 requests, 4 left") || !strings.Contains(out, "\napi.acme.test is not in the table, and is read as any server is.") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, args := range [][]string{{"-o", "json"}, {"--provider", "generic"}, {"--provider", "twitch"}} {
		if out, _, _ := explainIn("2026-11-22", false, stranger, args...); strings.Contains(out, "not in the table") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

// The table, of all: everybody is in it, with every preset, and it fits a wide terminal.
func TestExplainProviders(t *testing.T) {
	race.Without(t)
	t.Parallel()
	out, _, err := explainIn("2026-11-22", false, "", "--providers")
	for _, p := range provider.Providers() {
		if !strings.Contains(out, "\n  "+p.Name+" ") {
			t.Errorf("no %s", p.Name)
		}
		for _, v := range p.Published {
			if !strings.Contains(out, " "+v.Name) {
				t.Errorf("no %s", v.Name)
			}
		}
	}
	for line := range strings.Lines(out) {
		if strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
			t.Errorf("blanks at the end of %q", line)
		}
	}
	if i := strings.Index(out, "\nAnybody\n"); err != nil || i < 0 || i < strings.Index(out, "\nWeb\n") || !strings.HasPrefix(out, "Business\n") {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, _ = explainIn("2026-11-22", false, "", "--providers", "-o", "json")
	var all []providerRow
	if err := json.Unmarshal([]byte(out), &all); err != nil || len(all) != len(provider.Providers()) {
		t.Errorf("%v, %d rows", err, len(all))
	}
}

func TestFoldFields(t *testing.T) {
	for in, want := range map[string]string{
		"X-A-Limit X-A-Remaining X-A-Reset":              "X-A-{Limit,Remaining,Reset}",
		"X-Limit-Requests X-Remaining-Requests":          "X-{Limit,Remaining}-Requests",
		"X-Rate-Limit X-Rate-Limit-Limit X-Rate-Limit-X": "X-Rate-Limit X-Rate-Limit-Limit X-Rate-Limit-X",
		"Limit Retry X-Foo":                              "Limit Retry X-Foo",
		"X-Limit-* X-Reset-*":                            "X-{Limit,Reset}-*",
	} {
		if got := strings.Join(foldFields(strings.Fields(in)), " "); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Help does not list eighty names; completion does.
func TestNamesInHelpAndCompletion(t *testing.T) {
	for _, verb := range []string{"run", "explain"} {
		_, help, _ := paceline("", verb, "--help-all")
		if strings.Contains(help, "bitfinex") || strings.Contains(help, "okta") || !strings.Contains(help, "--providers") {
			t.Errorf("%s --help:\n%s", verb, help)
		}
		for flag, name := range map[string]string{"--provider": "okta\n", "--preset": "okx\n"} {
			if _, out, _ := paceline("", "__complete", verb, flag, ""); !strings.Contains(out, name) {
				t.Errorf("%s %s completes with\n%s", verb, flag, out)
			}
		}
	}
	code, _, errs := paceline("", "run", "--provider", "gitub", "--limit", "1/s", os.DevNull)
	if code != cli.ExitUsage || !strings.Contains(errs, "did you mean github?") {
		t.Errorf("%d %s", code, errs)
	}
}

// Only providers that document limits per second beside those per minute get the note about them.
func TestExplainPerSecond(t *testing.T) {
	race.Without(t)
	t.Parallel()
	for _, p := range provider.Providers() {
		_, stdout, _ := paceline("", "explain", "--provider", p.Name)
		if says := strings.Contains(stdout, perSecondWords); says != p.PerSecond {
			t.Errorf("%s: %v in\n%s", p.Name, says, stdout)
		}
	}
}
