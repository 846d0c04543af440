package charge

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/provider"
)

func TestParse(t *testing.T) {
	type costs = map[provider.Unit]int64
	for _, c := range []struct {
		text, on, resource string
		cost               costs
	}{
		{"GET */depth?limit>1000=250 weight", "GET */depth?limit>1000", "", costs{provider.Weight: 250}},
		{"* /search/*=resource search", "* /search/*", "search", nil},
		{" POST /order?type=limit = 1 order, 2 Weight, resource {path} {query:symbol} ", "POST /order?type=limit", "{path} {query:symbol}", costs{provider.Orders: 1, provider.Weight: 2}},
		{"GET /x=5 input, 6 output,7 tokens", "GET /x", "", costs{provider.Input: 5, provider.Output: 6, provider.Tokens: 7}},
	} {
		got, err := Parse(c.text)
		if err != nil || got.On != c.on || got.Resource != c.resource || !maps.Equal(got.Cost, c.cost) {
			t.Errorf("%s: %+v, %v", c.text, got, err)
		}
	}
	for text, want := range map[string]string{
		"GET /x":                            `"GET /x" does not say what the requests cost, expected 'GET */depth?limit>1000=250 weight'`,
		"GET /x=":                           "does not say what the requests cost",
		"GET /x=5":                          `"" is no unit of a cost, expected weight, orders, input, output or tokens`,
		"GET /x=5 apples":                   `"apples" is no unit of a cost`,
		"GET /x=5 requests":                 `"requests" is no unit of a cost`,
		"GET /x=0 weight":                   `"0 weight" is no cost, expected whole numbers of 1 or more`,
		"GET /x=99999999999999 weight":      "is no cost",
		"GET /x=1 weight, 2 weight":         "has two costs in weight",
		"GET /x=resource a, resource b":     "two resources, a and b, expected one",
		"GET /x=resource ":                  `"resource" is no cost`,
		"GET /x=resource {nothing}":         `has {nothing}; want {method}, {path}`,
		"get /x=5 weight":                   `the method "get"; want capital letters`,
		"HEAD /x=5 weight":                  `a charge of GET fits; want GET`,
		"GET /x?a>many=5 weight":            `want a whole number after >`,
		"GET /x?limit>10&limit<11=5 weight": `want two that one number can meet`,
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestSaid(t *testing.T) {
	cost, resource, err := Said(" 25 weight ; resource=search")
	if err != nil || cost[provider.Weight] != 25 || resource != "search" {
		t.Errorf("%v, %q, %v", cost, resource, err)
	}
	for _, text := range []string{"", ";", "25", "-1 weight", "resource=", "resource=a\x01", "resource=a; resource=b", "1 weight; 2 weight"} {
		if _, _, err := Said(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	for text, want := range map[string][2]string{"search: 30/m": {"search", "30/m"}, "30/m": {"", "30/m"}, "10/2s *: 5/s": {"10/2s *", "5/s"}, ": 5/s": {"", ": 5/s"}} {
		if name, rest := CutResource(text); name != want[0] || rest != want[1] {
			t.Errorf("%s: %q of %q", text, rest, name)
		}
	}
}

// An expression finds a number of 0 or more. The errors of others say what was found.
func TestExpressions(t *testing.T) {
	for _, c := range []struct {
		text, document, problem string
		want                    int64
	}{
		{".variables.first // 100", `{"variables":{"first":20}}`, "", 20},
		{".variables.first // 100", `{}`, "", 100},
		{"[.requests[].weight] | add", `{"requests":[{"weight":2},{"weight":3.2}]}`, "", 6},
		{".n", `{"n":0}`, "", 0},
		{".n", `{"n":17592186044416}`, "", provider.MaxCount},
		{".n", `{"n":17592186044417}`, "expected a number of 0 or more", 0},
		{".n", `{"n":-1}`, ".n is -1, expected a number of 0 or more", 0},
		{".n", `{"n":"7"}`, `is "7"`, 0},
		{".n", `{}`, "is null", 0},
		{".n.m", `{"n":1}`, "expected an object", 0},
		{"empty", `{}`, "it has no value", 0},
		{".n", `n=1`, "there is no JSON", 0},
		{".n", ``, "there is no JSON", 0},
		{"1e400", `{}`, "expected a number", 0},
		{"if . then [limit(1e9; repeat(1))] | length else 1 end", `{}`, "it took longer than 10ms", 0},
	} {
		e, err := Compile(c.text)
		if err != nil || e.String() != c.text {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		n, err := e.Count([]byte(c.document))
		if n != c.want || (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s of %s: %d, %v, want %d, %s", c.text, c.document, n, err, c.want, c.problem)
		}
	}
	for text, want := range map[string]string{
		".a | b(":             `".a | b(", character 8: unexpected EOF`,
		".a ]":                `character 4: unexpected token "]"`,
		"unknown":             `function not defined: unknown/0, expected a jq expression of the body alone`,
		"$x":                  "variable not defined",
		"def f: f; f":         "does not end, expected a jq expression that takes 10ms at most",
		"last(repeat(1))":     "does not end",
		"[range(infinite)]":   "does not end",
		`"a" * 1000 | length`: "",
	} {
		if _, err := Compile(text); (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// What is read has amounts within their bounds, and makes charges. No text panics.
func FuzzParse(f *testing.F) {
	f.Add("GET */depth?limit>1000=250 weight")
	f.Add("* /search/*=resource search, 3 orders")
	f.Add("25 weight; resource=search")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := Parse(text); err == nil {
			if _, err := provider.NewCharges([]provider.Charge{c}); err != nil || len(c.Cost) == 0 && c.Resource == "" {
				t.Errorf("%q: %+v, %v", text, c, err)
			}
		}
		cost, resource, err := Said(text)
		if err == nil && len(cost) == 0 && resource == "" {
			t.Errorf("%q says nothing", text)
		}
		for unit, n := range cost {
			if n < 1 || n > provider.MaxCount {
				t.Errorf("%q: %d %s", text, n, unit)
			}
		}
		if again, err := Amounts(inWords(cost)); len(cost) > 0 && (err != nil || !maps.Equal(again, cost)) {
			t.Errorf("%q: %v is written as %q, %v", text, cost, inWords(cost), err)
		}
	})
}

// A count is within its bounds, or there is an error.
func FuzzCount(f *testing.F) {
	e, err := Compile("if type == \"object\" then .n else . end")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{`{"n":1}`, `1e308`, `-0.5`, `[1]`, `99999999999999999999`, `{`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, document string) {
		if n, err := e.Count([]byte(document)); n < 0 || n > provider.MaxCount || err != nil && n != 0 {
			t.Errorf("%q: %d, %v", document, n, err)
		}
	})
}

func TestReason(t *testing.T) {
	if got := Reason(errors.New("other")); got != "other" {
		t.Error(got)
	}
	if n, ok := count(math.NaN()); ok {
		t.Errorf("NaN is %d", n)
	}
}

// inWords writes amounts as Amounts reads them.
func inWords(cost map[provider.Unit]int64) string {
	var words []string
	for _, unit := range slices.Sorted(maps.Keys(cost)) {
		words = append(words, fmt.Sprintf("%d %s", cost[unit], strings.TrimSuffix(string(unit), " tokens")))
	}
	return strings.Join(words, ", ")
}
