package provider_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paceline-go/paceline/internal/testkit/corpus"
	"github.com/paceline-go/paceline/provider"
)

// Package classify looks names up and must have all: Refusals is compared with the source.
func TestRefusalsAreAll(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "observation.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []provider.Refusal
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if kind, isRefusal := v, ok; isRefusal {
			if name, ok := kind.Type.(*ast.Ident); ok && name.Name == "Refusal" {
				s, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, provider.Refusal(s))
			}
		}
		return true
	})
	if got := append([]provider.Refusal{provider.None}, provider.Refusals()...); len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A dialect gives no name that it does not list, whatever its server says.
func TestOnlyListedNamesRefuse(t *testing.T) {
	for _, name := range provider.Names() {
		_, _, listed := provider.Whom(name)
		for _, s := range corpus.Load(t, "testdata", name) {
			d, _ := provider.Lookup(name)
			o := d.Read(s.Now, s.Response)
			for _, by := range o.RefusedBy {
				if !slices.ContainsFunc(listed, func(r provider.Refuser) bool { return r.Pattern.Match(by) }) {
					t.Errorf("%s: refused by %q, which is not among %q", s.Name, by, listed)
				}
			}
			if i := slices.IndexFunc(o.Problems, func(p string) bool { return strings.Contains(p, "no name that the dialect") }); i >= 0 {
				t.Errorf("%s: %s", s.Name, o.Problems[i])
			}
		}
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern provider.Pattern
		yes, no string // separated by |
	}{
		{"global", "global", "|globa|global |x global"},
		{"*", "|a|a*b", ""},
		{"endpoint-*", "endpoint-|endpoint-rate", "endpoint|an endpoint-rate"},
		{"*-quota-*", "jira-quota-global-based|-quota-", "jira-quota|quota-based"},
		{"a*a", "aa|aba|abaa", "a|ab|ba"},
		{"a*b*a", "aba|axbxa|abba", "aa|ab|ba|aab"},
		{"", "", "a"},
	} {
		for name := range strings.SplitSeq(c.yes, "|") {
			if !c.pattern.Match(name) {
				t.Errorf("%q does not match %q", name, c.pattern)
			}
		}
		for name := range strings.SplitSeq(c.no, "|") {
			if c.no != "" && c.pattern.Match(name) {
				t.Errorf("%q matches %q", name, c.pattern)
			}
		}
	}
}

// A provider that refuses with 200 needs the body; a Dialect of another package may be one of them.
func TestInBody(t *testing.T) {
	var got []string
	for _, name := range provider.Names() {
		if d, _ := provider.Lookup(name); provider.InBody(d) {
			got = append(got, name)
		}
	}
	if want := []string{"aws", "bybit", "deribit", "etherscan", "github", "kraken", "linear", "microsoft-graph", "monday", "okx", "shopify", "slack", "wikimedia"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if provider.InBody(nil) || provider.InBody(own{}) || !provider.InBody(ownBody{}) {
		t.Error("nobody, a dialect without the method, one with it:", provider.InBody(nil), provider.InBody(own{}), provider.InBody(ownBody{}))
	}
}

type own struct{}

func (own) Name() string                                               { return "own" }
func (own) Read(time.Time, provider.Response) (o provider.Observation) { return o }

type ownBody struct{ own }

func (ownBody) InBody() bool { return true }
