package charge

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/text/rate"
	"github.com/paceline-go/paceline/provider"
	"github.com/paceline-go/paceline/provider/classify"
)

// Forms are examples for Parse, for errors and help.
const Forms = "'GET */depth?limit>1000=250 weight' or '* /search/*=resource search'"

// AmountForms are examples for Amounts.
const AmountForms = "25 weight, or 1 order, 2 weight"

// units are the units of amounts: those that a limit can count, but requests and money.
var units = []provider.Unit{provider.Weight, provider.Orders, provider.Input, provider.Output, provider.Tokens}

// Unit reads the word for a unit, as limits have it: weight, orders, input, output, tokens.
func Unit(word string) (provider.Unit, error) {
	if u, ok := rate.UnitOf(word); ok {
		for _, unit := range units {
			if same, _ := classify.UnitOf(unit); same == u {
				return unit, nil
			}
		}
	}
	return "", fmt.Errorf("%q is no unit of a cost, expected weight, orders, input, output or tokens", word)
}

// Amounts reads "25 weight, 1 order". The amounts are 1 … provider.MaxCount.
func Amounts(text string) (map[provider.Unit]int64, error) {
	all := map[provider.Unit]int64{}
	for part := range strings.SplitSeq(text, ",") {
		number, word, _ := strings.Cut(strings.TrimSpace(part), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 || n > provider.MaxCount {
			return nil, fmt.Errorf("%q is no cost, expected whole numbers of 1 or more, each with its unit: %s", text,
				AmountForms)
		}
		unit, err := Unit(strings.TrimSpace(word))
		if err != nil {
			return nil, err
		}
		if all[unit] != 0 {
			return nil, fmt.Errorf("%q has two costs in %s", text, unit)
		}
		all[unit] = n
	}
	return all, nil
}

// Parse reads the form of a flag: requests, an equals sign, and amounts or a resource, or both with a comma
// between them.
func Parse(s string) (c provider.Charge, err error) {
	at := strings.LastIndexByte(s, '=')
	if at < 0 || strings.TrimSpace(s[at+1:]) == "" {
		return c, fmt.Errorf("%q does not say what the requests cost, expected %s", s, Forms)
	}
	c.On = strings.TrimSpace(s[:at])
	if c.Cost, c.Resource, err = split(s[at+1:], ",", "resource "); err != nil {
		return c, fmt.Errorf("%q: %w", s, err)
	}
	if _, err := provider.NewCharges([]provider.Charge{c}); err != nil {
		return c, fmt.Errorf("%q: %s, expected %s", s, Reason(err), Forms)
	}
	return c, nil
}

// CutResource reads the form of a limit: "search: 30/m" is of the resource search, "30/m" of none.
func CutResource(s string) (resource, limit string) {
	if name, rest, ok := strings.Cut(s, ": "); ok && strings.TrimSpace(name) != "" {
		return strings.TrimSpace(name), strings.TrimSpace(rest)
	}
	return "", s
}

// ParseAll reads the values of a flag that is repeated.
func ParseAll(all []string) (list []provider.Charge, err error) {
	for _, s := range all {
		c, err := Parse(s)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// Said reads the form of a header field: "25 weight; resource=search", or one of the two.
func Said(s string) (cost map[provider.Unit]int64, resource string, err error) {
	if cost, resource, err = split(s, ";", "resource="); err != nil || cost == nil && resource == "" {
		return nil, "", cmp.Or(err, fmt.Errorf("%q is empty", s))
	}
	return cost, resource, nil
}

// split reads amounts and a resource, in any order.
func split(s, separator, prefix string) (cost map[provider.Unit]int64, resource string, err error) {
	var amounts []string
	for part := range strings.SplitSeq(s, separator) {
		part = strings.TrimSpace(part)
		name, is := strings.CutPrefix(part, prefix)
		name = strings.TrimSpace(name)
		switch {
		case part == "":
		case !is:
			amounts = append(amounts, part)
		case resource != "":
			return nil, "", fmt.Errorf("two resources, %s and %s, expected one", resource, name)
		case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return nil, "", fmt.Errorf("%q is no name of a resource", name)
		default:
			resource = name
		}
	}
	if amounts != nil {
		cost, err = Amounts(strings.Join(amounts, ", "))
	}
	return cost, resource, err
}

// Reason is the text of an error of provider.NewCharges, without the name and the number of the charge.
func Reason(err error) string {
	_, reason, ok := strings.Cut(err.Error(), `": `)
	if !ok {
		return err.Error()
	}
	return reason
}
