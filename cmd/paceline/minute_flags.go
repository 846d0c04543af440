package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paceline-go/paceline/internal/app/cli"
	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/limit"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// minuteFlags are limits per minute of language models, for run and proxy.
type minuteFlags struct {
	rpm, tpm, itpm, otpm int64
	each                 []string // --limit-model
	rule                 string
}

// minute is one of the flags.
type minute struct {
	flag string
	n    int64
	unit limit.Unit
}

// add adds the flags. only is text in brackets about the use of the flags for tokens; empty if they
// are for any request.
func (f *minuteFlags) add(p *pflag.FlagSet, only string) {
	p.Var((*countValue)(&f.rpm), "rpm",
		"most requests per minute. This and the next three are buckets, and replace those of the preset")
	p.Var((*countValue)(&f.tpm), "tpm", "most tokens per minute, input and output, such as 30k or 1.5M"+only)
	p.Var((*countValue)(&f.itpm), "itpm", "most input tokens per minute"+only)
	p.Var((*countValue)(&f.otpm), "otpm", "most output tokens per minute"+only)
	p.StringArrayVar(&f.each, "limit-model", nil,
		"limits per minute of one model, in place of the others: NAME=rpm:N,tpm:N,itpm:N,otpm:N, one or more of them; "+
			"repeatable"+only)
	p.StringVar(&f.rule, "rule", "bucket",
		"how the server counts --rpm, --tpm, --itpm, --otpm: bucket (refilled evenly) or rolling (windows). If given, "+
			"it also holds for the limits of --preset")
}

// countValue is a flag for a count, in the forms that --limit takes.
type countValue int64

func (v *countValue) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		n, err = rate.ParseCount(s)
	}
	*v = countValue(n)
	return err
}

func (v *countValue) String() string { return strconv.FormatInt(int64(*v), 10) }
func (v *countValue) Type() string   { return cli.Count }

func (f *minuteFlags) all() []minute {
	return []minute{{"rpm", f.rpm, limit.Requests}, {"tpm", f.tpm, limit.Tokens}, {"itpm", f.itpm, limit.Input},
		{"otpm", f.otpm, limit.Output}}
}

// check returns an error in the flags.
func (f *minuteFlags) check(cmd *cobra.Command) error {
	if f.rule != "bucket" && f.rule != "rolling" {
		return cli.Usage(fmt.Errorf("--rule %q, expected bucket or rolling", f.rule))
	}
	given := cmd.Flag("preset").Changed || len(f.each) > 0
	for _, m := range f.all() {
		given = given || cmd.Flag(m.flag).Changed
	}
	if cmd.Flag("rule").Changed && !given {
		return cli.Usage(fmt.Errorf("--rule %s says how the server counts --preset, --rpm, --tpm, --itpm, --otpm and "+
			"--limit-model, and none is given; --limit is kept to however it counts", f.rule))
	}
	for _, m := range f.all() {
		if cmd.Flag(m.flag).Changed && (m.n < 1 || m.n > limit.MaxCost) {
			return cli.Usage(fmt.Errorf("--%s %d, expected 1 to %d", m.flag, m.n, int64(limit.MaxCost)))
		}
	}
	return nil
}

// replaces reports whether a flag replaces a published limit.
func (f *minuteFlags) replaces(p provider.Policy) bool {
	for _, m := range f.all() {
		if m.n > 0 && p.Window == time.Minute && knows(p.Unit) && units[p.Unit] == m.unit {
			return true
		}
	}
	return false
}

// published returns a published limit in the form of limits from flags.
func (f *minuteFlags) published(cmd *cobra.Command, p provider.Policy) rate.Limit {
	counts := classify.Counts(p.Rule)
	if cmd.Flag("rule").Changed {
		counts = f.counts()
	}
	l := rateOf(p.Limit, p.Window, units[p.Unit], counts, p.Burst)
	if p.Rule == provider.Calendar && !l.Bucket && counts != limit.CountsRolling && p.Zone != "" {
		l.Zone = p.Zone
		l.Text += "@" + p.Zone
	}
	l.EachModel = p.Scope == provider.Model
	return l
}

// counts is the server's way to count, as in --rule.
func (f *minuteFlags) counts() limit.Counting {
	if f.rule == "bucket" {
		return limit.CountsBucket
	}
	return limit.CountsRolling
}

// limits returns the limits that each model has for itself, as providers define them. used are the
// flags on the command line that count tokens.
func (f *minuteFlags) limits() (all []rate.Limit, used []string) {
	for _, m := range f.all() {
		if m.n == 0 {
			continue
		}
		l := rateOf(m.n, time.Minute, m.unit, f.counts(), 0)
		l.EachModel = true
		all = append(all, l)
		if m.unit != limit.Requests {
			used = append(used, "--"+m.flag)
		}
	}
	return all, used
}

// ofModels returns the limits of --limit-model, and the models.
func (f *minuteFlags) ofModels() (all []rate.Limit, models []string, err error) {
	units := map[string]limit.Unit{}
	for _, m := range f.all() {
		units[m.flag] = m.unit
	}
	named := map[string]bool{}
	for _, s := range f.each {
		usage := func(format string, args ...any) ([]rate.Limit, []string, error) {
			return nil, nil, cli.Usage(fmt.Errorf("--limit-model %q: "+format, append([]any{s}, args...)...))
		}
		i := strings.LastIndexByte(s, '=')
		if i < 1 || i+1 == len(s) {
			return usage("expected NAME=rpm:N,tpm:N,itpm:N,otpm:N, of these one or more, such as gpt-4o=rpm:500,tpm:30000")
		}
		name := s[:i]
		if named[name] {
			return usage("%s is given twice, expected once, with all of its limits", name)
		}
		named[name] = true
		seen := map[string]bool{}
		for part := range strings.SplitSeq(s[i+1:], ",") {
			what, value, _ := strings.Cut(part, ":")
			unit, known := units[what]
			n, err := rate.ParseCount(value)
			switch {
			case !known:
				return usage("%q, expected rpm:N, tpm:N, itpm:N or otpm:N", part)
			case seen[what]:
				return usage("%s is given twice", what)
			case err != nil || n < 1 || n > limit.MaxCost:
				return usage("%q, expected %s:N with N from 1 to %d", part, what, int64(limit.MaxCost))
			}
			seen[what] = true
			l := rateOf(n, time.Minute, unit, f.counts(), 0)
			l.Model = name
			all = append(all, l)
		}
		models = append(models, name)
	}
	return all, models, nil
}

var units = map[provider.Unit]limit.Unit{provider.Requests: limit.Requests, provider.Input: limit.Input,
	provider.Output: limit.Output, provider.Tokens: limit.Tokens,
	provider.Weight: limit.Weight, provider.Orders: limit.Orders}

func knows(u provider.Unit) bool { _, ok := units[u]; return ok }

// rateOf makes a limit that the user has not written as N/U, with a text of that form.
func rateOf(n int64, per time.Duration, unit limit.Unit, counts limit.Counting, burst int64) rate.Limit {
	text := map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h", 24 * time.Hour: "d"}[per]
	if text == "" {
		text = per.String()
	}
	l := rate.Limit{N: n, Per: per, Unit: unit, Bucket: counts == limit.CountsBucket, Burst: burst,
		Text: fmt.Sprintf("%d/%s %v", n, text, unit)}
	if !l.Bucket {
		l.Counts = counts
	}
	return l
}
