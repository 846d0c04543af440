package rate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/limit"
)

// CountedForms are examples for ParseCounted, for errors and help.
const CountedForms = "100/min, 4500/h, 200000 tokens/d, 50k input/m, 20k output/m, 5USD/d"

// words are the words for units other than requests.
var words = map[string]limit.Unit{
	"tokens": limit.Tokens, "token": limit.Tokens, "input": limit.Input, "output": limit.Output, "weight": limit.Weight,
	"orders": limit.Orders, "order": limit.Orders,
	limit.Input.String(): limit.Input, limit.Output.String(): limit.Output,
}

// UnitOf returns the unit of a word other than requests and money: tokens, weight, order.
func UnitOf(word string) (limit.Unit, bool) {
	u, ok := words[strings.ToLower(word)]
	return u, ok
}

// ParseCounted reads a limit with its unit: 200k tokens/d, 5USD/d. A limit without a unit is of
// requests, as in ParseLimit. Money is in dollars, and in millionths of them in the Limit.
func ParseCounted(s string) (Limit, error) {
	count, per, ok := split(s)
	if !ok {
		return Limit{}, fmt.Errorf("%q does not say per what time, expected %s", s, CountedForms)
	}
	number, unit := count, limit.Requests
	if dollars, ok := money(count); ok {
		n, err := strconv.ParseFloat(dollars, 64)
		if micros := math.Round(n * 1e6); err == nil && micros >= 1 && micros <= limit.MaxCost {
			number, unit = strconv.FormatInt(int64(micros), 10), limit.Money
		} else {
			return Limit{}, fmt.Errorf("%q: %q is no sum of dollars, expected one such as 5USD/d or 0.50 USD/h", s, count)
		}
	} else if head, word, ok := strings.Cut(count, " "); ok {
		if u, known := UnitOf(strings.TrimSpace(word)); known {
			number, unit = head, u
		}
	}
	r, zone, err := parseZoned(number + "/" + per)
	if err != nil {
		_, problem, _ := strings.Cut(strings.TrimSuffix(err.Error(), ", expected "+Forms), ": ")
		if strings.Contains(problem, ", expected ") { // a zone, of which there is something better to expect
			return Limit{}, fmt.Errorf("%q: %s", s, problem)
		}
		if word := strings.TrimLeft(count, "0123456789. "); unit == limit.Requests && word != count && justLetters(word) &&
			strings.Contains(problem, "is not a whole number") {
			problem = fmt.Sprintf("%q is no unit", word)
		}
		return Limit{}, fmt.Errorf("%q: %s, expected %s", s, problem, CountedForms)
	}
	l := Limit{N: r.N, Per: r.Per, Unit: unit, Zone: zone, Text: r.in(zone)}
	switch unit {
	case limit.Requests:
	case limit.Money:
		l.Text = strconv.FormatFloat(float64(r.N)/1e6, 'f', -1, 64) + "USD/" + after(l.Text)
	default:
		l.Text = fmt.Sprintf("%d %v/%s", r.N, unit, after(l.Text))
	}
	return l, nil
}

func justLetters(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
}

// after is the part of a rate after its slash.
func after(rate string) string {
	_, per, _ := strings.Cut(rate, "/")
	return per
}

// money is the number in 5USD, 5 USD and $5.
func money(s string) (number string, ok bool) {
	if number, ok = strings.CutPrefix(s, "$"); ok {
		return strings.TrimSpace(number), true
	}
	for _, suffix := range []string{"USD", "usd", "dollars"} {
		if number, ok = strings.CutSuffix(s, suffix); ok {
			return strings.TrimSpace(number), true
		}
	}
	return "", false
}
