//go:build unix

// Command entries counts which functions of this module are entered by five things that users do,
// the doors. Its figures say how much code a reader has to follow behind each door. They say
// nothing about time.
//
//	go run ./tools/entries                      a line for each door
//	go run ./tools/entries -packages start      also a line for each package
//	go run ./tools/entries -v roundtrip wait    also a line for each function
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
// The command builds the programs with an overlay, in which each function begins with an atomic
// addition. Methods and functions called init count like others. Function literals do not count,
// nor do tests, other modules and the standard library. Background work counts where it happens
// meanwhile, so the figures of run and proxy differ by 1 % between runs.
//
// The input of start is a named pipe: its reader has to wait for a writer. The counts are taken
// once they rest, and hold if the pipe has a reader by then. Three folders are known by path: the
// module's root, transport and cmd/paceline. The package of the limits is the one with the function
// MustRolling.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// door is something that users do. Its count returns how often each function was entered, in one row or more.
type door struct {
	name  string
	count func(*build) ([]row, error)
}

// row is a line of the table.
type row struct {
	name  string
	calls []float64 // by function
}

var doors = []door{{"roundtrip", roundTrip}, {"wait", wait}, {"run", run}, {"proxy", proxy}, {"start", start}}

func main() {
	log.SetFlags(0)
	log.SetPrefix("entries: ")
	names := make([]string, len(doors))
	for i, d := range doors {
		names[i] = d.name
	}
	all := strings.Join(names, ", ")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(),
			"usage: go run ./tools/entries [-packages] [-v] [DOOR...]\n\nThe doors are %s; without one, all.\n\n", all)
		flag.PrintDefaults()
	}
	packages := flag.Bool("packages", false, "print a line for each package, too")
	functions := flag.Bool("v", false, "print a line for each function, too")
	flag.Parse()
	for _, name := range flag.Args() {
		if !slices.Contains(names, name) {
			log.Fatalf("unknown door %q, expected some of %s", name, all)
		}
	}
	if err := count(os.Stdout, flag.Args(), *packages || *functions, *functions); err != nil {
		log.Fatal(err)
	}
}

// count counts what the named doors enter, or all doors if there are no names, and prints it.
func count(w io.Writer, names []string, packages, functions bool) error {
	b, err := newBuild()
	if err != nil {
		return err
	}
	defer b.remove()
	var rows []row
	for _, d := range doors {
		if len(names) > 0 && !slices.Contains(names, d.name) {
			continue
		}
		more, err := d.count(b)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		rows = append(rows, more...)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "calls\tfunctions\tfiles\tpackages\t  door\n")
	for _, r := range rows {
		s := sum(b.functions, r.calls)
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t  %s\n", decimal(s.calls), len(s.entered), s.files, len(s.packages), r.name)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if packages {
			printPackages(w, b.functions, r, functions)
		}
	}
	return nil
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

// printPackages prints the packages of a row, those with most calls first, and maybe their functions.
func printPackages(w io.Writer, functions []function, r row, each bool) {
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
	fmt.Fprintf(w, "\n   calls  functions  files  package: %s\n", r.name)
	for _, pkg := range order {
		s := of[pkg]
		fmt.Fprintf(w, "%8s  %9d  %5d  %s\n", decimal(s.calls), len(s.entered), s.files, pkg)
		for _, i := range s.entered {
			if each {
				fmt.Fprintf(w, "%8s    %s %s\n", decimal(r.calls[i]), functions[i].file, functions[i].name)
			}
		}
	}
}

func tenths(n float64) float64 { return math.Round(n * 10) }

func decimal(n float64) string { return strconv.FormatFloat(tenths(n)/10, 'f', -1, 64) }
