package fleet

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/text"
)

// Expectation is a bound on a figure of a Report. ParseExpectation reads one from text.
type Expectation struct {
	Text     string // as it was written
	figure   int
	operator string
	bound    float64
}

// Expected is an expectation and what the run came to.
type Expected struct {
	Expect string `json:"expect"`
	// Value is the figure. It is nil where it is infinite or was not measured, as a settling that never came.
	Value *float64 `json:"value"`
	Unit  string   `json:"unit,omitempty"`
	Held  bool     `json:"held"`
}

// expectable are the figures of a Report that a bound may be on. Infinity stands for what never came.
var expectable = []struct {
	name, unit string
	of         func(*Report) float64
}{
	{"limited", "%", func(r *Report) float64 { return r.RetryPercentPooled }},
	{"limited_steady", "%", func(r *Report) float64 { return r.Steady.Percent }},
	{"limited_late", "", func(r *Report) float64 { return float64(r.LimitedLate) }},
	{"throughput", "%", func(r *Report) float64 { return 100 - r.UnusedPercent }},
	{"requests", "", func(r *Report) float64 { return float64(r.Requests) }},
	{"served", "", func(r *Report) float64 { return float64(r.Served) }},
	{"cv", "%", func(r *Report) float64 { return r.Shares.CV }},
	{"cv_steady", "%", func(r *Report) float64 { return r.SharesSteady.CV }},
	{"poorest", "", func(r *Report) float64 { return r.Shares.Least }},
	{"richest", "", func(r *Report) float64 { return r.Shares.Most }},
	{"jain", "", func(r *Report) float64 { return r.Jain }},
	{"max_sleep", "s", func(r *Report) float64 { return r.Sleep.Max }},
	{"p99_sleep", "s", func(r *Report) float64 { return r.Sleep.P99 }},
	{"longest_wait", "s", func(r *Report) float64 { return r.LongestWait }},
	{"concurrent", "", func(r *Report) float64 { return float64(r.PeakConcurrent) }},
	{"clear", "s", func(r *Report) float64 { return orNever(r.Clear) }},
	{"settle", "s", func(r *Report) float64 { return orNever(r.Settle) }},
	{"settle_clients", "s", func(r *Report) float64 { return orNever(r.SettleClients) }},
}

func orNever(p *float64) float64 {
	if p == nil {
		return math.Inf(1)
	}
	return *p
}

// ExpectForm is the form of an expectation, as a pattern.
const ExpectForm = `^\s*([A-Za-z_0-9]+)\s*(<=|>=|<|>)\s*([0-9.]+)\s*(%|s)?\s*$`

var expectation = regexp.MustCompile(ExpectForm)

// ParseExpectation reads a bound such as "limited < 3 %", "max_sleep <= 20 s" or "served >= 4500".
func ParseExpectation(s string) (Expectation, error) {
	parts := expectation.FindStringSubmatch(s)
	if parts == nil {
		return Expectation{}, fmt.Errorf("%q is no expectation: want a figure, <, <=, > or >=, and a number, "+
			"such as limited < 3 %%", s)
	}
	names := make([]string, len(expectable))
	for i, f := range expectable {
		names[i] = f.name
		if f.name != parts[1] {
			continue
		}
		bound, err := strconv.ParseFloat(parts[3], 64)
		switch {
		case err != nil:
			return Expectation{}, fmt.Errorf("%q: %s is no number", s, parts[3])
		case parts[4] != "" && f.unit == "":
			return Expectation{}, fmt.Errorf("%q: %s is a number without a unit", s, f.name)
		case parts[4] != "" && parts[4] != f.unit:
			return Expectation{}, fmt.Errorf("%q: the unit of %s is %s", s, f.name, f.unit)
		}
		return Expectation{strings.TrimSpace(s), i, parts[2], bound}, nil
	}
	return Expectation{}, fmt.Errorf("%q is no figure: want one of %s%s", parts[1], strings.Join(names, ", "),
		text.DidYouMean(parts[1], names))
}

// judge compares a report with what was expected of it.
func (e *Expectation) judge(r *Report) Expected {
	f := &expectable[e.figure]
	v := f.of(r)
	x := Expected{Expect: e.Text, Unit: f.unit}
	if !math.IsInf(v, 0) && !math.IsNaN(v) {
		x.Value = &v
	}
	switch e.operator {
	case "<":
		x.Held = v < e.bound
	case "<=":
		x.Held = v <= e.bound
	case ">":
		x.Held = v > e.bound && x.Value != nil
	case ">=":
		x.Held = v >= e.bound && x.Value != nil
	}
	return x
}

// Missed is an error that counts the expectations that a whole run missed, or nil.
func (r *Report) Missed() error {
	missed := 0
	for i := range r.Expected {
		if !r.Expected[i].Held {
			missed++
		}
	}
	if missed == 0 {
		return nil
	}
	return errors.New(text.Count(missed, "expectation is", "expectations are") +
		fmt.Sprintf(" missed, of %d", len(r.Expected)))
}
