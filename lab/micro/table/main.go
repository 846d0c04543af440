// Command table times all cases of package micro and prints medians beside the aims, and ratios to ours. With arguments
// it times the groups whose names contain one of them.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/paceline-go/paceline/lab/micro"
)

var (
	turns = flag.Int("turns", 25, "turns per case")
	turn  = flag.Duration("turn", 2*time.Millisecond, "length of a turn")
)

// ours names, for each group, the case of ours that the others are compared with. In the first
// group the limiters of others lock, so ours is one that locks, too.
var ours = map[string]string{
	micro.Counters: "window.Log Take, locked",
	micro.Leases:   "limit.Rolling",
	micro.Refusals: "limit.Rolling",
	micro.Gates:    "Gate Wait and Settle",
	micro.Refused:  "Gate TryWait",
	micro.Parallel: "Gate Wait and Settle",
	micro.Cold:     "limit.Rolling, a lease",
}

type running struct {
	micro.Case
	run    func(int) time.Duration
	ops    int
	ns     []float64
	allocs float64
}

func main() {
	flag.Parse()
	fmt.Printf("%s, %d cores, Go %s; medians of %d turns of %v, in ns per operation\n", runtime.GOARCH,
		runtime.GOMAXPROCS(0), runtime.Version()[2:], *turns, *turn)
	var groups []string
	cases := map[string][]*running{}
	for _, c := range micro.Cases() {
		if cases[c.Group] == nil {
			groups = append(groups, c.Group)
		}
		cases[c.Group] = append(cases[c.Group], &running{Case: c})
	}
	wanted := func(group string) bool {
		return flag.NArg() == 0 || slices.ContainsFunc(flag.Args(), func(a string) bool { return strings.Contains(group, a) })
	}
	for _, g := range groups {
		if !wanted(g) {
			continue
		}
		if g == micro.Cold { // one at a time, since all together they would not fit into the memory
			for _, r := range cases[g] {
				measure([]*running{r})
				r.run = nil
				runtime.GC()
			}
		} else {
			measure(cases[g])
		}
		show(g, cases[g])
	}
	if wanted("bytes") {
		fmt.Println("\nbytes of a limiter of 20 per second, after 40 operations")
		w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
		fmt.Fprintln(w, "  \tholds\tone operation touches at most")
		for _, h := range micro.Holdings() {
			touched := ""
			if h.Touched > 0 {
				touched = fmt.Sprint(h.Touched)
			}
			fmt.Fprintf(w, "  %s\t%d\t%s\n", h.Name, h.Bytes, touched)
		}
		w.Flush()
	}
}

// measure times cases in turns.
func measure(cases []*running) {
	for _, r := range cases {
		r.run, r.ops = r.Run(), 64
		long := *turn
		if r.Group == micro.Parallel {
			long *= 10 // so long that the time to start and stop goroutines does not matter
		}
		for r.run(r.ops) < long/2 && r.ops < 1<<24 {
			r.ops *= 2
		}
	}
	runtime.GC()
	for range *turns {
		for _, r := range cases {
			r.ns = append(r.ns, float64(r.run(r.ops).Nanoseconds())/float64(r.ops))
		}
	}
	for _, r := range cases {
		r.allocs = math.Inf(1)
		for range 3 { // the least of three: other goroutines allocate, too, and what grows has not reached its size at first
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			r.run(r.ops)
			runtime.ReadMemStats(&after)
			r.allocs = min(r.allocs, float64(after.Mallocs-before.Mallocs)/float64(r.ops))
		}
		slices.Sort(r.ns)
	}
}

func (r *running) median() float64 { return r.ns[len(r.ns)/2] }

func show(group string, cases []*running) {
	fmt.Printf("\n%s\n", group)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	var names []string
	by := map[string]map[int64]*running{}
	var sizes []int64
	for _, r := range cases {
		if by[r.Name] == nil {
			by[r.Name] = map[int64]*running{}
			names = append(names, r.Name)
		}
		by[r.Name][r.N] = r
		if !slices.Contains(sizes, r.N) {
			sizes = append(sizes, r.N)
		}
	}
	slices.Sort(sizes)
	width := 0
	for _, n := range names {
		width = max(width, len(n))
	}
	fmt.Fprintf(w, "  %-*s\t", width, "")
	for _, n := range sizes {
		if n == 0 {
			fmt.Fprint(w, "any N\t")
		} else {
			fmt.Fprintf(w, "N=%d\t", n)
		}
	}
	fmt.Fprint(w, "fastest\taim\t\tx ours\tallocs\t\n")
	for _, name := range names {
		fmt.Fprintf(w, "  %-*s\t", width, name)
		var aim, ratio, allocs float64
		missed := false
		fastest := 1e18
		for _, n := range sizes {
			r := by[name][n]
			if r == nil {
				fmt.Fprint(w, "\t")
				continue
			}
			fmt.Fprintf(w, "%.1f\t", r.median())
			fastest = min(fastest, r.ns[0])
			aim, allocs = r.Aim, max(allocs, r.allocs)
			missed = missed || aim > 0 && r.median() > aim
			// A case is compared with ours at the same N or, if ours has none there, at the smallest N that ours has.
			for _, m := range append([]int64{n}, sizes...) {
				if o := by[ours[group]][m]; o != nil {
					ratio = max(ratio, r.median()/o.median())
					break
				}
			}
		}
		fmt.Fprintf(w, "%.1f\t", fastest)
		switch {
		case aim == 0:
			fmt.Fprint(w, "\t\t")
		case missed && fastest <= aim: // the machine is busy, or the aim is only just missed
			fmt.Fprintf(w, "%.0f\tat best\t", aim)
		case missed:
			fmt.Fprintf(w, "%.0f\tmissed\t", aim)
		default:
			fmt.Fprintf(w, "%.0f\tmet\t", aim)
		}
		fmt.Fprintf(w, "%.1f\t%.2f\t\n", ratio, allocs)
	}
	w.Flush()
}
