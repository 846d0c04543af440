package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/app/run"
	"github.com/paceline-go/paceline/internal/app/screen"
	"github.com/paceline-go/paceline/internal/text"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/tokens"
)

// plan returns the plan, with notes about it.
func (f *llmFlags) plan(r *run.Run) run.Plan {
	p := r.Plan(time.Now().Round(time.Second))
	note := func(format string, args ...any) { p.Notes = append(p.Notes, fmt.Sprintf(format, args...)) }
	if len(p.Alone) > 0 && p.Alone[0].Seconds > 0 && (p.EachModel || p.Alone[0].Seconds < p.Seconds) {
		var alone []string
		for _, a := range p.Alone {
			text := fmt.Sprintf("%s %s", a.Model, lasts(a.Seconds))
			if a.Limit != "" {
				text += " (" + a.Limit + " binds)"
			}
			alone = append(alone, text)
		}
		whose := "the provider may have"
		if p.LimitsOf != "" {
			whose = p.LimitsOf + " has"
		}
		if p.EachModel {
			note("%s limits of each model, and so has the run: %s", whose, text.Some(alone, 5))
		} else {
			note("%s limits of each model, and the run keeps to those given for all %d together; alone they take: %s. Runs side by side, each with a file and an --out of its own, take as long as the first of these",
				whose, len(p.Alone), text.Some(alone, 5))
		}
	}
	if p.AtLeast {
		note("whose the %d keys are only their first answers tell; the plan counts %s. If they are of more, it goes so much faster", p.Keys, text.Count(p.Organizations, "organization", "organizations"))
	}
	if f.models != "" {
		preset, _ := provider.LookupPreset(f.models)
		var others []string
		for _, m := range p.Models {
			if !preset.Fits(m.Model) && !r.HasOwnLimits(m.Model) {
				others = append(others, m.Model)
			}
		}
		if len(others) > 0 {
			note("%s has the limits of %s, as published %s. The run uses them for %s, too, "+
				"which may be wrong: --rpm and --tpm set the limits of your account", f.models, preset.About, preset.AsOf,
				text.Some(others, 5))
		}
	}
	if p.Unbounded > 0 && f.maxOutput == 0 {
		counts := "the most that their model can is counted for them"
		if p.Count == tokens.Reserved.String() {
			counts = "their input alone is counted for them, and the tokens out are the most that their model can"
		}
		note("%d requests have no max_tokens: %s; --max-output N says better", p.Unbounded, counts)
	}
	if n := len(p.Unpriced); n > 0 {
		const most = 5
		note("no price is known of %s: --price-input and --price-output set it, in USD per million "+
			"tokens, for all models", text.Some(p.Unpriced, most))
	}
	for _, m := range p.Models {
		if m.Note != "" {
			note("%s: %s", m.Model, m.Note)
		}
		if m.TooLong > 0 {
			note("%s longer than %s takes, and it refuses such a prompt: more than its %s tokens, by the estimate. The first is "+
				"%q on line %d", text.Count(m.TooLong, "request is", "requests are"), m.Model, text.Thousands(m.Context),
				m.First.ID, m.First.Line)
		}
	}
	return p
}

// ownLimits says how to find the limits of an account, where those of the preset are not known to be its own; empty:
// the preset is not of tokens, its answers do not state them, or flags give other limits.
func (f *llmFlags) ownLimits() string {
	who, known := provider.Publisher(f.preset)
	given := slices.ContainsFunc(f.all(), func(m minute) bool { return m.n > 0 })
	if !known || given || len(f.bounded) == 0 {
		return ""
	}
	var fields []string
	for _, name := range provider.Fields(who.Name) {
		name = strings.ToLower(name)
		if strings.Contains(name+"-", "-limit-") {
			fields = append(fields, name)
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return fmt.Sprintf("these limits are published ones, and your account may have others: any answer states them (%s). "+
		"--rpm, --tpm and the like set them", text.Some(fields, 4))
}

// printPlan prints the plan of --dry-run.
func (f *llmFlags) printPlan(w io.Writer, p run.Plan, output string) error {
	if output == "json" {
		return cli.WriteJSON(w, p)
	}
	var t screen.Table
	line := func(what, format string, args ...any) { t.Row(what, fmt.Sprintf(format, args...)) }
	var about strings.Builder
	about.WriteString(text.Thousands(int64(p.Requests)) + " to send")
	for _, v := range []struct {
		n    int
		what string
	}{{p.DoneBefore, "done before"}, {p.DeadBefore, "dead before (--retry-dead)"},
		{p.ExpiredBefore, "expired before (--retry-dead=expired)"}, {p.Invalid, noun(p.Invalid, "invalid line", "invalid lines")}} {
		if v.n > 0 {
			fmt.Fprintf(&about, ", %s %s", text.Thousands(int64(v.n)), v.what)
		}
	}
	line("requests", "%s", about.String())
	if p.Count != "" {
		const most = 5
		for _, m := range p.Models[:min(most, len(p.Models))] {
			if len(p.Models) > 1 {
				about := fmt.Sprintf("%s, %s tokens in, at most %s out", text.Thousands(int64(m.Requests)), text.Thousands(m.Input), text.Thousands(m.Output))
				if m.USDMax != nil {
					about += ", at most " + text.Dollars(*m.USDMax)
				}
				line("  "+m.Model, "%s", about)
			}
		}
		if more := len(p.Models) - most; more > 0 {
			line("", "and %d more models", more)
		}
		line("input", "%s tokens", text.Thousands(p.Input))
		about := fmt.Sprintf("at most %s tokens", text.Thousands(p.Output))
		if p.Expected != nil {
			about += fmt.Sprintf("; expected %s, by %s in the results", text.Thousands(*p.Expected),
				text.Count(p.Answers, "answer", "answers"))
		} else {
			about += "; how many is not known before the first answers"
		}
		line("output", "%s", about)
		if p.USDMax != nil {
			about := "at most " + text.Dollars(*p.USDMax)
			if p.USDExpected != nil {
				about += "; expected " + text.Dollars(*p.USDExpected)
			}
			if p.PricesAsOf != "" {
				about += fmt.Sprintf(", by the prices of %s as of %s (paceline models)", p.PricesOf, p.PricesAsOf)
			}
			line("money", "%s", about)
		}
		if b := p.Batch; b != nil {
			line("batch API", "%s", batchText(b))
		}
		if p.Largest != nil {
			line("largest", "%s on line %d: %s tokens as counted", p.Largest.ID, p.Largest.Line, text.Thousands(p.Largest.Tokens))
		}
		line("counted", "%s", map[string]string{"reserved": "the larger of input and max_tokens, whatever is used (--count reserved)",
			"sum": "input and max_tokens, whatever is used (--count sum)", "used": "input and max_tokens, and what was used once it is answered (--count used)",
			"produced": "input, and output as it is produced (--count produced)", "input": "input (--count input)"}[p.Count])
	}
	for _, l := range p.Limits {
		binds := ""
		if l.Binds {
			binds = "  <- binds"
		}
		of := ""
		if l.Model != "" {
			of = ", for " + l.Model
		}
		line("limit "+l.Limit, "%s: %s%s%s", text.Thousands(l.Cost), lasts(l.Seconds), of, binds)
	}
	planTime(&p, line)
	if p.Until != nil {
		line("until", "%s, and then no more is sent (--until)", p.Until.Format("Mon 2 Jan 2006 15:04:05 MST"))
	}
	if p.By != nil {
		line("by", "%s", byText(&p))
	}
	if d := p.ReadingSeconds; d > 0 {
		line("read", "%s lines, %.1f MB in %.2f s: %s lines/s, %.1f MB/s", text.Thousands(int64(p.Lines)), float64(p.Bytes)/1e6, d, text.Thousands(int64(float64(p.Lines)/d)), float64(p.Bytes)/1e6/d)
	}
	if p.Paged {
		line("pages", "all of this is without further pages, which only answers name (--next)")
	}
	for _, n := range p.Notes {
		line("note", "%s", n)
	}
	if err := t.Write(w, screen.TableWidth); err != nil {
		return err
	}
	return printFirst(w, p.First)
}

// planTime says how long the requests take, and what binds.
func planTime(p *run.Plan, line func(what, format string, args ...any)) {
	if p.Keys > 1 {
		line("keys", "%d", p.Keys)
	}
	switch {
	case p.Requests == 0:
		line("time", "there is nothing to send")
	case p.OneInFlight:
		if p.Seconds > 0 {
			line("time", "at least %s and the last answer, by the limits", lasts(p.Seconds))
		}
		line("nonces", "one request at a time per key: its answer time, which is not known here, bounds the rate "+
			"(--nonce-gap allows more)")
	case p.Seconds > 0:
		of := ""
		if p.Together {
			of = ", by the limits together"
		}
		line("time", "%s and the last answer%s: %s", lasts(p.Seconds), of, finish(p))
		line("in flight", "%s (--concurrency)", inFlight(p))
	case len(p.Limits) > 0:
		line("time", "the limits let all of it go at once, %d at a time (--concurrency)", p.InFlight)
	case p.LimitUnknown:
		line("time", "nobody knows the limit: the run finds it out (--limit auto)")
	default:
		line("time", "there is no limit")
	}
}

// byText says what it takes to finish by a time.
func byText(p *run.Plan) string {
	by := p.By
	line := by.At.Format("Mon 2 Jan 15:04:05 MST") + ": "
	if by.Needed <= 1 {
		line += fmt.Sprintf("%.0f %% of the limits are enough", max(math.Ceil(100*by.Needed-1e-9), 1))
		if by.Keys < p.Keys {
			line += fmt.Sprintf(", or all of %s", text.Count(by.Keys, "key", "keys"))
		}
		if by.Needed < 0.95 {
			line += fmt.Sprintf(" (--use %.0f%%)", max(math.Ceil(100*by.Needed), 1))
		}
		return line
	}
	line += fmt.Sprintf("it takes %.2g times these limits, or %s with limits of their own; without, %s of %s fit",
		by.Needed, text.Count(by.Keys, "key", "keys"), text.Thousands(int64(by.Fits)), text.Thousands(int64(p.Requests)))
	if by.USDMax != nil {
		line += ", for at most " + text.Dollars(*by.USDMax)
	}
	return line + fmt.Sprintf(", and %s do not (--until stops then; those of the highest priority go first)",
		text.Thousands(int64(p.Requests-by.Fits)))
}

// batchText describes the provider's own batch API, as a row of the plan.
func batchText(b *run.PlanBatch) string {
	line := fmt.Sprintf("%s's own: %.0f %% less", b.Provider, 100*b.Discount)
	if b.USDMax != nil {
		line += ", at most " + text.Dollars(*b.USDMax)
	}
	if b.USDExpected != nil {
		line += "; expected " + text.Dollars(*b.USDExpected)
	}
	line += fmt.Sprintf(", within %.0f h", b.WithinHours)
	if b.Files > 0 {
		line += ", in " + text.Count(b.Files, "file", "files")
	}
	return line + " (" + b.Docs + ")"
}

// announce is the text before a batch is sent.
func announce(p run.Plan) string {
	var line strings.Builder
	fmt.Fprintf(&line, "plan: %s requests, %s tokens in, at most %s out", text.Thousands(int64(p.Requests)), text.Thousands(p.Input), text.Thousands(p.Output))
	for _, l := range p.Limits {
		if l.Binds {
			fmt.Fprintf(&line, "; limit %s takes %s, until %s", l.Limit, lasts(l.Seconds), finish(&p))
		}
	}
	if p.Together {
		fmt.Fprintf(&line, "; the limits together take %s, until %s", lasts(p.Seconds), finish(&p))
	}
	return line.String()
}

func seconds(s float64) time.Duration {
	d := rate.Lasting(s)
	if d < 10*time.Second {
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(time.Second)
}

// lasts writes how long something takes, by years if it takes two and more.
func lasts(s float64) string {
	const year = 365.25 * 24 * 3600
	switch d := seconds(s); {
	case d == math.MaxInt64:
		return "more than 292 years"
	case s >= 2*year:
		return fmt.Sprintf("%.1f years", s/year)
	default:
		return d.String()
	}
}

// inFlight says in words how many requests are in flight.
func inFlight(p *run.Plan) string {
	if p.InFlightMost > 0 {
		return fmt.Sprintf("%d at first, and then as many as the limits and the answers need", p.InFlight)
	}
	return fmt.Sprintf("%d are enough as long as an answer takes less than %s on the average", p.InFlight, lasts(p.AnswerWithin))
}

// finish writes when a plan ends.
func finish(p *run.Plan) string {
	if rate.Lasting(p.Seconds) == math.MaxInt64 {
		return fmt.Sprintf("after %d", p.Finish.Year())
	}
	return text.Date(p.Finish, time.Now())
}
