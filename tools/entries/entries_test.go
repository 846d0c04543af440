//go:build unix

package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

const source = `// Package main has functions of all kinds.
package main // import "example.com/m"

import "fmt"

type Table[K comparable, V any] struct{ rows map[K]V }

func (t *Table[K, V]) Get(k K) V { return t.rows[k] }

func (l (List[T])) len() int { // with a comment
	return len(l)
}

type List[T any] []T

func (plain) String() string { return "plain" }

type plain struct{}

func (plain) main() {}

func init() {}

func init() { func() { fmt.Println() }() }

func elsewhere(int) int

func main() {}
`

func TestInstrument(t *testing.T) {
	text, names, err := instrument("m.go", []byte(source), `"example.com/count"`, 7)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"Table.Get", "List.len", "plain.String", "plain.main", "init", "init", "main"}; !slices.Equal(names, want) {
		t.Errorf("names %q, want %q", names, want)
	}
	f, err := parser.ParseFile(token.NewFileSet(), "m.go", text, 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if first := f.Imports[0]; first.Name.Name != "entriesCount" || first.Path.Value != `"example.com/count"` {
		t.Errorf("the first import is %s %s", first.Name.Name, first.Path.Value)
	}
	if got, want := bytes.Count(text, []byte("\n")), strings.Count(source, "\n"); got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	for _, line := range []string{
		"func (t *Table[K, V]) Get(k K) V { entriesCount.N[7].Add(1);  return t.rows[k] }\n",
		"func (l (List[T])) len() int { entriesCount.N[8].Add(1);  // with a comment\n",
		"func (plain) main() { entriesCount.N[10].Add(1); }\n",
		"func init() { entriesCount.N[12].Add(1);  func() { fmt.Println() }() }\n",
		"func elsewhere(int) int\n",
		"func main() { entriesCount.Mark(); entriesCount.N[13].Add(1); }\n",
	} {
		if !bytes.Contains(text, []byte(line)) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
}

// A mistake in a source text is an error with its place.
func TestInstrumentBroken(t *testing.T) {
	_, _, err := instrument("m.go", []byte("package m\n\nfunc {}\n"), `"example.com/count"`, 0)
	if err == nil || !strings.HasPrefix(err.Error(), "m.go:3:") {
		t.Errorf("error %v, want one that begins with m.go:3:", err)
	}
}

// Averages of less than one half add to calls, and are no function that is entered.
func TestSum(t *testing.T) {
	functions := []function{{"limit", "limit/a.go", "A"}, {"limit", "limit/a.go", "B"}, {"mono", "mono/c.go", "C"}, {"mono", "mono/d.go", "D"}}
	s := sum(functions, []float64{1, 2.5, 0.25, 0})
	if decimal(s.calls) != "3.8" || !slices.Equal(s.entered, []int{1, 0}) || s.files != 1 || !slices.Equal(s.packages, []string{"limit"}) {
		t.Errorf("%+v", s)
	}
}
