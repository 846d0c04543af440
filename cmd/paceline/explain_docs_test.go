package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/provider"
)

var update = flag.Bool("update", false, "write anew what tests write in docs and README.md")

// TestProvidersPage: docs/providers.md is what the table says.
func TestProvidersPage(t *testing.T) {
	unraced(t)
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
		if cells := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); strings.HasPrefix(line, "|") && cells != 8 {
			t.Errorf("%d bars in %.100s", cells, line)
		}
	}
}

// providersPage is the table for people, grouped as the files of package provider are.
func providersPage() string {
	var b strings.Builder
	b.WriteString(`# What is known of providers

Written from the table in package [quota](../provider/provider.go) by a test (` + "`go test ./cmd/paceline -run ProvidersPage -update`" + `), which also checks it;
` + "`paceline explain --provider NAME`" + ` prints the row of one, and says what of it is a year old. All of it is what providers
document or were seen to send, as of the dates given; an account may have other limits, and what an answer states goes first.

- **Fields** are the header fields that are read; of all, Retry-After too, as a number, a duration or a date. A reset is read by its
  magnitude. "–": it says nothing of limits in header fields.
- **Refusals** are what they look like besides 402, 429, 503 and 529: a status, or a field of the JSON of the body and its value, with * for any
  text, in the order in which they are looked for. Some readings know more, in code.
- **Words** of a refusal by anybody are read where no field says when to come back: "Try again in 35 seconds", "Resets in 4hr 59min",
  "will reset at 12-02 09:18:00 UTC". A time without a zone is UTC; one more than a year away is not believed. After an hour one request
  finds out. The words of an answer that was served are never read for this.
- **Whom** a refusal for a limit concerns, by what is said to refuse; where a ban concerns others, that too.
- **Published** are limits that the documentation states, by the name that ` + "`--preset`" + ` and ` + "`transport.Published`" + ` take, and since when.
- **Tokens**: how they are counted.

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
	return strings.TrimSuffix(b.String(), "\n")
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
