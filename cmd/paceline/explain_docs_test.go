package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/race"
	"github.com/paceline-go/paceline/provider"
)

var update = flag.Bool("update", false, "write anew what tests write in docs and README.md")

// TestProvidersPage: docs/providers.md is what the table says.
func TestProvidersPage(t *testing.T) {
	race.Without(t)
	t.Parallel()
	const file = "../../docs/providers.md"
	got := providersPage()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Fatalf("%v: docs/providers.md is not what the table says; go test ./cmd/paceline -run ProvidersPage -update writes it", err)
	}
	for _, p := range provider.Providers() {
		if n := strings.Count(got, "\n| `"+p.Name+"` "); n != 1 {
			t.Errorf("%s has %d rows", p.Name, n)
		}
	}
	for line := range strings.Lines(got) {
		if cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); strings.HasPrefix(line, "|") && cells != 8 && cells != 5 {
			t.Errorf("%d bars in %.100s", cells, line)
		}
	}
}

// providersPage is the table for people, grouped as the files of package provider are.
func providersPage() string {
	var b strings.Builder
	b.WriteString(`# What is known of providers

The tables list the limits of each provider, and its ways to refuse. The facts come from the providers' documentation, or from
answers that were seen, with the date. Your account may have other limits. If an answer
states a smaller limit than a preset, the smaller one counts. For a larger limit, give ` + "`--limit`" + ` or ` + "`--rpm`" + ` in place of the preset.

To explain one answer, pipe the answer with its header into ` + "`paceline explain`" + `:

    curl -si https://api.github.com/user | paceline explain

` + "`paceline explain --provider NAME`" + ` prints one row, and marks facts that are older than a year. A test makes this page from the table in
package [provider](../provider/provider.go) (` + "`go test ./cmd/paceline -run ProvidersPage -update`" + `).

- **Fields**: header fields with limits. Retry-After is always read, too, as a number, a duration or a date. A reset may be a number of
  seconds or a time; its size decides. "–": no such fields.
- **Refusals**: answers that refuse, in addition to 402, 429, 503 and 529. A row has a status, or a field of the JSON body with its value. * is
  any text. The first match counts. Some providers have more, in code.
- **Whom**: the requests that a refusal for a limit stops: those of a key, an address, an endpoint or a model. A ban may stop others.
- **Published**: limits in the documentation, with their date, by the name for ` + "`--preset`" + ` and ` + "`transport.Published`" + `.
- **Tokens**: the tokens that the provider counts.

Some refusals state their time only in words: "Try again in 35 seconds", "Resets in 4hr 59min", "will reset at 12-02 09:18:00 UTC".
Paceline reads these words from any provider if no header field has the time. A time without a zone is UTC. A time more than a year away is
ignored. After an hour of waiting, one request tests the server. The words of a served answer are never read as a time.

`)
	var all []providerRow
	for _, p := range provider.Providers() {
		all = append(all, rowOf(p, time.Time{})) // what is old depends on who reads it, and when
	}
	for _, kind := range kinds(all) {
		fmt.Fprintf(&b, "## %s\n\n| Provider | Fields | Refusals | Whom | Published | Tokens | As of |\n|---|---|---|---|---|---|---|\n", kind)
		for _, r := range all {
			if r.Kind == kind {
				b.WriteString(providerLine(r))
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString(`## What requests cost

A request costs one request. Some cost more, or count in a part of the key's quota, a resource. The first row of a provider that fits
holds. * in a path is any text; conditions on the query follow the question mark. ` + "`paceline explain --route 'GET /path' --preset NAME`" + ` prints
the row of a request. A resource of an address counts the requests of all keys together, and those without a key.

| Provider | Requests | Cost | Resource |
|---|---|---|---|
`)
	for _, p := range provider.Providers() {
		b.WriteString(chargeLines(p))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// chargeLines has a line for each run of a provider's charges that differ in the request alone.
func chargeLines(p provider.Provider) string {
	var b strings.Builder
	var on []string
	for i, c := range p.Charges {
		on = append(on, "`"+c.On+"`"+map[bool]string{true: " without a key"}[c.Keyless])
		if i+1 < len(p.Charges) {
			next := p.Charges[i+1]
			if next.Resource == c.Resource && next.Source == c.Source && maps.Equal(next.Cost, c.Cost) && maps.Equal(next.Body, c.Body) &&
				maps.Equal(next.Answer, c.Answer) {
				continue
			}
		}
		cost := map[string]int64{}
		for unit, n := range c.Cost {
			cost[string(unit)] = n
		}
		var words strings.Builder
		words.WriteString(costWords(cost))
		for unit, e := range c.Body {
			words.WriteString(fmt.Sprintf("; in %s, %v", unit, e))
		}
		for unit, e := range c.Answer {
			words.WriteString(fmt.Sprintf("; in the end, in %s, `%v` of the answer", unit, e))
		}
		resource := "–"
		if c.Resource != "" {
			resource = "`" + c.Resource + "`"
		}
		fmt.Fprintf(&b, "| %s, [%s](%s) | %s | %s | %s |\n", p.Name, c.AsOf, c.Source, strings.Join(on, "<br>"), words.String(), resource)
		on = nil
	}
	return b.String()
}

func providerLine(r providerRow) string {
	code := func(s string) string {
		if strings.Contains(s, " ") { // it is none
			return s
		}
		return "`" + strings.ReplaceAll(s, "|", `\|`) + "`"
	}
	cell := func(all []string, write func(string) string) string {
		var out []string
		for _, v := range all {
			out = append(out, write(v))
		}
		if len(out) == 0 {
			return "–"
		}
		return strings.Join(out, "<br>")
	}
	words := func(s string) string {
		return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`).Replace(s)
	}
	var who strings.Builder
	who.WriteString(fmt.Sprintf("`%s` %s", r.Name, r.Title))
	for _, h := range r.Hosts {
		who.WriteString("<br>" + h)
	}
	var published []string
	for _, v := range r.Published {
		published = append(published, fmt.Sprintf("%s %s, [%s](%s): %s", code(v.Preset), words(v.About), v.AsOf, v.Source, words(strings.Join(v.Limits, "; "))))
	}
	if r.PerSecond {
		published = append(published, perSecondWords)
	}
	asOf := "–"
	if r.Docs != "" {
		asOf = fmt.Sprintf("[%s](%s)", r.AsOf, r.Docs)
	}
	tokens := strings.Join(append([]string{r.Tokens}, r.Shares...), "; ")
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |\n", who.String(), cell(r.Fields, code), cell(r.Refusals, words), words(r.Concerns),
		cell(published, func(s string) string { return s }), words(strings.Trim(tokens, "; ")), asOf)
}
