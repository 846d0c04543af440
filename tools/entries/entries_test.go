//go:build unix

// Package entries counts which functions of this module are entered by five things that users do,
// the doors. Its figures say how much code a reader has to follow behind each door. They say
// nothing about time. It has nothing but tests.
//
//	PACELINE_LONG=1 go test ./tools/entries -run Doors -v             each door, its packages and its functions
//	PACELINE_LONG=1 go test ./tools/entries -run Doors/roundtrip -v   one of them
//
// The doors are:
//
//	roundtrip  the second RoundTrip of a transport, without a network; closing the body is not part of it
//	wait       the second Wait of a Gate where nobody waits, and its Settle
//	run        a line of paceline run --out: runs of 25 and of 5 lines, the difference divided by 20
//	proxy      a GET through paceline proxy --admin off: 20 of them after the first 3, divided by 20
//	start      paceline run until it opens its input: before main.main, and from there on
//
// Calls are entries: a function that is called ten times counts ten times. Functions are distinct
// functions, and files are those that they stand in. The figures of run and proxy are averages, so
// calls may have a decimal. A function counts as entered from an average of one half on.
//
// The programs are built with an overlay, in which each function begins with an atomic
// addition. Methods and functions called init count like others. Function literals do not count,
// nor do tests, other modules and the standard library. Background work counts where it happens
// meanwhile, so the figures of run and proxy differ by 1 % between runs.
//
// The input of start is a named pipe: its reader has to wait for a writer. The counts are taken
// once they rest, and hold if the pipe has a reader by then. Three folders are known by path: the
// module's root, transport and cmd/paceline. The package of the limits is the one with the function
// MustRolling.
package entries

import (
	"bytes"
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paceline-go/paceline/internal/testkit/need"
)

// door is something that users do. Its count returns how often each function was entered, in one row or more.
type door struct {
	name  string
	count func(*build) ([]row, error)
	most  float64 // calls, over all rows
}

// row is a line of the table.
type row struct {
	name  string
	calls []float64 // by function
}

// A line of run has some 590, by how its sends and answers meet. Connections on which one goroutine writes and reads are 25
// of them, where those of net/http are not counted.
var doors = []door{{"roundtrip", roundTrip, 185}, {"wait", wait, 48}, {"run", run, 760}, {"proxy", proxy, 440}, {"start", start, 500}}

// TestDoors: no door has more code behind it than it had. A feature that needs more says so here.
func TestDoors(t *testing.T) {
	need.LongOnly(t, "it builds the programs with counters")
	b, err := newBuild()
	if err != nil {
		t.Fatal(err)
	}
	defer b.remove()
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			rows, err := d.count(b)
			if err != nil {
				t.Fatal(err)
			}
			all := 0.0
			for _, r := range rows {
				s := sum(b.functions, r.calls)
				all += s.calls
				var text strings.Builder
				writePackages(&text, b.functions, r)
				t.Logf("%s: %s calls of %d functions in %d files of %d packages\n%s", r.name, decimal(s.calls), len(s.entered),
					s.files, len(s.packages), &text)
			}
			if all > d.most {
				t.Errorf("%s calls, expected %v at most", decimal(all), d.most)
			}
		})
	}
}

// sums are the figures of a row, or of one package in it.
type sums struct {
	calls    float64
	entered  []int // the functions, most calls first
	files    int
	packages []string
}

func sum(functions []function, calls []float64) (s sums) {
	files, packages := map[string]bool{}, map[string]bool{}
	for i, n := range calls {
		s.calls += n
		if n >= 0.5 {
			s.entered = append(s.entered, i)
			files[functions[i].file], packages[functions[i].pkg] = true, true
		}
	}
	slices.SortStableFunc(s.entered, func(i, j int) int { return cmp.Compare(tenths(calls[j]), tenths(calls[i])) })
	s.files, s.packages = len(files), slices.Sorted(maps.Keys(packages))
	return s
}

// writePackages writes the packages of a row, those with most calls first, with their functions.
func writePackages(w io.Writer, functions []function, r row) {
	parts := map[string][]float64{}
	for i, n := range r.calls {
		pkg := functions[i].pkg
		if parts[pkg] == nil {
			parts[pkg] = make([]float64, len(functions))
		}
		parts[pkg][i] = n
	}
	of := map[string]sums{}
	for pkg, calls := range parts {
		if s := sum(functions, calls); len(s.entered) > 0 {
			of[pkg] = s
		}
	}
	order := slices.Sorted(maps.Keys(of))
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(of[b].calls, of[a].calls) })
	for _, pkg := range order {
		s := of[pkg]
		fmt.Fprintf(w, "%8s  %3d functions in %2d files  %s\n", decimal(s.calls), len(s.entered), s.files, pkg)
		for _, i := range s.entered {
			fmt.Fprintf(w, "%8s    %s %s\n", decimal(r.calls[i]), functions[i].file, functions[i].name)
		}
	}
}

func tenths(n float64) float64 { return math.Round(n * 10) }

func decimal(n float64) string { return strconv.FormatFloat(tenths(n)/10, 'f', -1, 64) }

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
