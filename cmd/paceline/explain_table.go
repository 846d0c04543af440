package main

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
	"github.com/paceline-go/paceline/tokens"
)

// providerRow is a known provider, in JSON. Later versions only add fields.
type providerRow struct {
	Name         string         `json:"name"`
	Title        string         `json:"title"`
	Kind         string         `json:"kind"`
	Hosts        []string       `json:"hosts,omitempty"`
	SDKs         []string       `json:"sdks,omitempty"`
	Docs         string         `json:"docs,omitempty"`
	AsOf         string         `json:"as_of,omitempty"`
	Silent       bool           `json:"silent,omitempty"`
	Fields       []string       `json:"fields,omitempty"`
	Refusals     []string       `json:"refusals,omitempty"`
	Concerns     string         `json:"concerns"`
	Published    []publishedRow `json:"published,omitempty"`
	PerSecond    bool           `json:"per_second,omitempty"`
	Tokens       string         `json:"tokens,omitempty"`
	Organization string         `json:"organization,omitempty"`
	Shares       []string       `json:"shared_models,omitempty"`
	Models       int            `json:"models,omitempty"`
}

// publishedRow is a published limit, in JSON.
type publishedRow struct {
	Preset string   `json:"preset"`
	About  string   `json:"about"`
	Source string   `json:"source"`
	AsOf   string   `json:"as_of"`
	Old    bool     `json:"old,omitempty"` // known for a year or more
	Limits []string `json:"limits"`
}

func rowOf(p provider.Provider, now time.Time) providerRow {
	r := providerRow{Name: p.Name, Title: p.Title, Kind: p.Kind, Hosts: p.Hosts, Docs: p.Docs, AsOf: p.AsOf,
		Silent: p.Silent,
		Fields: foldFields(fieldsOf(p)), Concerns: concerns(p), Published: publishedOf(p, now), PerSecond: p.PerSecond,
		Tokens: countingWords[p.Tokens], Organization: p.Organization, Models: len(p.Models)}
	for _, s := range provider.Signs(p.Name) {
		r.Refusals = append(r.Refusals, signWords(s))
	}
	for _, s := range p.SDKs {
		r.SDKs = append(r.SDKs, string(s))
	}
	for _, s := range p.Shares {
		var models []string
		for _, m := range s.Models {
			models = append(models, string(m))
		}
		r.Shares = append(r.Shares, sharedWords(s.Name, models))
	}
	return r
}

func publishedOf(p provider.Provider, now time.Time) (all []publishedRow) {
	for _, v := range p.Published {
		row := publishedRow{Preset: v.Name, About: v.About, Source: v.Source, AsOf: v.AsOf, Old: old(v.AsOf, now)}
		for _, l := range v.Policies {
			l.Source, l.WindowSource = provider.Stated, provider.Stated // the heading has the source of all of them
			row.Limits = append(row.Limits, classify.PolicyName(l.Name, l.Unit)+classify.DescribePolicy(l))
		}
		all = append(all, row)
	}
	return all
}

// old reports whether a date, given as a year or as a year and month, may be a year ago. In doubt
// it is.
func old(asOf string, now time.Time) bool {
	for _, layout := range []string{"2006-01", "2006"} {
		if t, err := time.Parse(layout, asOf); err == nil {
			return !now.Before(t.AddDate(1, 0, 0))
		}
	}
	return asOf != ""
}

// sinceWords says since when a published limit is known.
func (p publishedRow) sinceWords() string {
	if p.Old {
		return "published " + p.AsOf + ", a year old or more: look it up again"
	}
	return "published " + p.AsOf
}

func (p publishedRow) words() string {
	return fmt.Sprintf("%s (%s; %s): %s", p.Preset, p.About, p.sinceWords(), strings.Join(p.Limits, "; "))
}

const perSecondWords = "limits per minute may also hold per second, by the documentation (--per-second)"

var countingWords = map[string]string{
	tokens.Reserved.String(): "when a request arrives, the larger of its input and its largest output",
	tokens.Sum.String():      "when a request arrives, its input and its largest output",
	tokens.Used.String():     "after the answer, the tokens used",
	tokens.Produced.String(): "input when a request arrives, output as it is produced",
	tokens.Input.String():    "input alone",
}

func sharedWords(name string, models []string) string {
	if name == "*" {
		return strings.Join(models, ", ") + " share the limits of *"
	}
	return strings.Join(models, ", ") + " share the limits of " + name
}

// fieldsOf returns the names of the header fields for a provider's limits. The fields that are read
// from every server stand together under one name.
func fieldsOf(p provider.Provider) []string {
	own, anybodys := provider.Fields(p.Name), provider.Fields("generic")
	if p.Name == "generic" || slices.ContainsFunc(anybodys, func(f string) bool { return !slices.Contains(own, f) }) {
		return own
	}
	own = slices.DeleteFunc(own, func(f string) bool { return slices.Contains(anybodys, f) })
	return append(own, "those of any server")
}

// foldFields writes X-Limit, X-Remaining and X-Reset as X-{Limit,Remaining,Reset}.
func foldFields(names []string) (all []string) {
	last := []string{"limit", "remaining", "used", "reset"}
	type shape struct{ head, tail string }
	at := map[shape]int{}
	var what [][]string
	for _, name := range names {
		words := strings.Split(name, "-")
		i := len(words) - 1
		for i > 0 && !slices.Contains(last, strings.ToLower(words[i])) {
			i--
		}
		if i < 1 {
			all, what = append(all, name), append(what, nil)
			continue
		}
		s := shape{strings.Join(words[:i], "-") + "-",
			strings.TrimPrefix(strings.Join(append([]string{""}, words[i+1:]...), "-"), "")}
		if _, ok := at[s]; !ok {
			at[s] = len(all)
			all, what = append(all, s.head+"\x00"+s.tail), append(what, nil)
		}
		what[at[s]] = append(what[at[s]], words[i])
	}
	for i, w := range what {
		one := strings.Join(w, ",")
		if len(w) > 1 {
			one = "{" + one + "}"
		}
		all[i] = strings.Replace(all[i], "\x00", one, 1)
	}
	return all
}

// signWords describes a refusal.
func signWords(s provider.Sign) string {
	var is []string
	for _, p := range s.Is {
		v := string(p)
		if s.Body { // a body matches anywhere, so its stars have no meaning
			v = strings.Trim(v, "*")
		}
		is = append(is, v)
	}
	const most = 6
	more := ""
	if len(is) > most {
		more = fmt.Sprintf(" or %d more", len(is)-most)
		is = is[:most]
	}
	what := strings.Join(is, " or ") + more
	switch {
	case s.Field != "":
		what = s.Field + " is " + cmp.Or(what, "there")
	case s.Path != "" && what == "":
		what = s.Path + " is in the body"
	case s.Path != "":
		what = s.Path + " is " + what
	case s.Body:
		what = "the body has " + what
	}
	var status []string
	for _, n := range s.Status {
		status = append(status, strconv.Itoa(n))
	}
	if len(status) > 0 {
		what = strings.TrimSuffix(strings.Join(status, ", ")+" and "+what, " and ")
	}
	what += ": " + cmp.Or(string(s.Means), "no limit's")
	if s.By != "" && s.By != "=" {
		what += ", by " + s.By
	}
	if s.Wait > 0 {
		what += ", for " + text.Span(s.Wait) + " where nothing is said"
	}
	return what
}

// whose names a scope; the zero Scope: that of the policy.
func whose(s provider.Scope) string { return cmp.Or(s.Info().Whose, "those of the policy") }

// concerns describes the scope of a provider's refusal.
func concerns(p provider.Provider) string {
	var text strings.Builder
	text.WriteString(whose(p.Limited))
	if p.Banned != p.Limited {
		text.WriteString("; a ban: " + whose(p.Banned))
	}
	for _, r := range p.Refusers {
		name := string(r.Pattern)
		if name == "*" {
			name = "any other name"
		}
		text.WriteString("; " + name + ": " + whose(r.Scope))
	}
	return text.String()
}

// row prints all about one provider.
func (e *explanation) row(p provider.Provider) error {
	r := rowOf(p, e.when(time.Time{}))
	if e.output == "json" {
		return e.encode(r)
	}
	var t screen.Table
	line := func(what, format string, args ...any) { t.Row(what, fmt.Sprintf(format, args...)) }
	several := func(what string, all []string) {
		for _, v := range all {
			line(what, "%s", v)
			what = ""
		}
	}
	line(r.Name, "%s (%s)", r.Title, strings.ToLower(r.Kind))
	if len(r.Hosts) > 0 {
		line("hosts", "%s", strings.Join(r.Hosts, ", "))
	}
	if len(r.SDKs) > 0 {
		line("libraries", "%s", strings.Join(r.SDKs, ", "))
	}
	if r.Docs != "" {
		line("documented", "%s (as of %s)", r.Docs, cmp.Or(r.AsOf, "nobody knows when"))
	}
	if r.Silent {
		line("says", "nothing of its limits before it refuses")
	}
	several("fields", r.Fields)
	several("refusals", append(r.Refusals, usualSigns(p)...))
	line("they concern", "%s", r.Concerns)
	for i, v := range r.Published {
		line([]string{"published", ""}[min(i, 1)], "%s", v.words())
	}
	if r.PerSecond {
		line("", "%s", perSecondWords)
	}
	if r.Tokens != "" {
		line("tokens", "counted %s", r.Tokens)
	}
	if r.Organization != "" {
		line("keys", "those whose answers have the same %s share limits", r.Organization)
	}
	several("models", r.Shares)
	if r.Models > 0 {
		line("prices", "of %d models: paceline models %s", r.Models, r.Name)
	}
	return t.Write(e.out, screen.TableWidth)
}

// usualSigns are the signs of a refusal that hold for every provider, in words. The rows of the
// table need not repeat them.
func usualSigns(p provider.Provider) []string {
	d, ok := provider.Lookup(p.Name)
	if !ok {
		return nil
	}
	var all []string
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		o := d.Read(time.Unix(0, 0), provider.Response{Status: status, Header: http.Header{}})
		if !slices.ContainsFunc(provider.Signs(p.Name), func(s provider.Sign) bool {
			return s.Field == "" && s.Path == "" && !s.Body && slices.Contains(s.Status, status)
		}) && o.Refusal != provider.None {
			all = append(all, fmt.Sprintf("%d: %s", status, o.Refusal))
		}
	}
	return all
}

// table prints all known providers.
func (e *explanation) table() error {
	now := e.when(time.Time{})
	var all []providerRow
	for _, p := range provider.Providers() {
		all = append(all, rowOf(p, now))
	}
	if e.output == "json" {
		return e.encode(all)
	}
	for i, kind := range kinds(all) {
		if i > 0 {
			fmt.Fprintln(e.out)
		}
		fmt.Fprintln(e.out, kind)
		t := screen.Table{Indent: "  "}
		t.Head("provider", "name", "host", "published limits")
		for _, r := range all {
			if r.Kind != kind {
				continue
			}
			hosts, published := "", ""
			if len(r.Hosts) > 0 {
				hosts = r.Hosts[0]
			}
			if n := len(r.Hosts) - 1; n > 0 {
				hosts += fmt.Sprintf(" and %d more", n)
			}
			for i, v := range r.Published {
				published += []string{"--preset ", " "}[min(i, 1)] + v.Preset
			}
			t.Row(r.Name, r.Title, cmp.Or(hosts, "–"), cmp.Or(published, "–"))
		}
		if err := t.Write(e.out, screen.TableWidth); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(e.out, "\nAll that is known of one: paceline explain --provider NAME")
	return err
}

// kinds are the groups of the table, by name. The group of readings without a provider comes last.
func kinds(all []providerRow) []string {
	var names []string
	for _, r := range all {
		if !slices.Contains(names, r.Kind) {
			names = append(names, r.Kind)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(strings.Compare(strconv.FormatBool(a == "Anybody"), strconv.FormatBool(b == "Anybody")),
			strings.Compare(a, b))
	})
	return names
}

// published prints a preset.
func (e *explanation) published(p provider.Preset) error {
	v := publishedOf(provider.Provider{Published: []provider.Preset{p}}, e.when(time.Time{}))[0]
	if e.output == "json" {
		return e.encode(struct {
			Preset      string               `json:"preset"`
			About       string               `json:"about"`
			Source      string               `json:"source"`
			AsOf        string               `json:"as_of"`
			Old         bool                 `json:"old,omitempty"`
			Observation provider.Observation `json:"observation"`
		}{p.Name, p.About, p.Source, p.AsOf, v.Old, provider.Observation{Dialect: p.Name, Policies: p.Policies}})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s, as published in %s", p.Name, p.About, p.AsOf)
	if v.Old {
		b.WriteString(", a year ago or more: look it up again")
	}
	fmt.Fprintf(&b, "\n%s\n\n", p.Source)
	for _, l := range v.Limits {
		fmt.Fprintf(&b, "  %s\n", l)
	}
	_, err := io.WriteString(e.out, b.String())
	return err
}

func (e *explanation) encode(v any) error { return cli.WriteJSON(e.out, v) }
