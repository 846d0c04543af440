package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/paceline-go/paceline/lab/sim/fleet"
)

// Table is the result, and what `paceline-lab sim throttle -o json` prints. Fields are only ever added.
type Table struct {
	Ours string `json:"ours"` // the name of our strategy, which is compared with the others
	// Strategies has a row for each scenario and strategy; the rows of a scenario stand together.
	Strategies   []Row   `json:"strategies"`
	VirtualHours float64 `json:"virtual_hours"` // of all runs together
	Interrupted  bool    `json:"interrupted,omitempty"`
	Wall         float64 `json:"wall_seconds"`
}

// Row is a strategy in a scenario: the median and the worst of its runs, one per seed. The fields
// of fleet.Report say what the measures are.
type Row struct {
	Name     string  `json:"name"`
	Scenario string  `json:"scenario"`
	Clients  int     `json:"clients"`
	Minutes  float64 `json:"minutes"`
	Seeds    int     `json:"seeds"` // how many were run

	RetryPercent Spread  `json:"retry_percent"`
	LimitedLate  Spread  `json:"limited_late"`
	MaxSleep     Spread  `json:"max_sleep_s"`
	P99Sleep     Spread  `json:"p99_sleep_s"`
	Optimum      float64 `json:"optimum_sleep_s"` // the largest it was at any time
	RequestSD    Spread  `json:"request_sd"`
	Jain         Spread  `json:"jain"` // the worst is the smallest
	Unused       Spread  `json:"unused_percent"`
	Concurrent   Spread  `json:"peak_concurrent"`
	// The steady measures are those of the last two thirds of the run.
	SteadyPercent Spread  `json:"steady_limited_percent"`
	CV            Spread  `json:"share_cv_percent"`
	SteadyCV      Spread  `json:"steady_share_cv_percent"`
	Poorest       Spread  `json:"poorest_share"` // the worst is the smallest
	LongestWait   Spread  `json:"longest_wait_s"`
	WindowCV      *Spread `json:"window_cv_percent"` // of the median window
	WindowUnused  *Spread `json:"window_unused_percent"`
	SettleClients *Spread `json:"settle_clients_s"`
	// Clear and Settle are set if they were measured. A null in them means that it never happened,
	// which counts as later than any time.
	Clear  *Spread `json:"clear_s"`
	Settle *Spread `json:"settle_s"`

	// First is what each client did with the first seed, as the published simulations print it.
	First Clients `json:"first_seed"`
	// Series is of the first seed, where it was asked for.
	Series *fleet.Series `json:"series,omitempty"`
}

// Clients has a value per client in each list.
type Clients struct {
	MaxSleep   []float64 `json:"max_sleep_s"`
	RetryRatio []float64 `json:"retry_ratio"`
	Requests   []int     `json:"request_count"`
}

// Spread has the median and the worst over the seeds.
type Spread struct {
	Median *float64 `json:"median"`
	Worst  *float64 `json:"worst"`
}

// sum makes a row from its runs, in whatever order they come.
func (r *Row) sum(runs []fleet.Report) {
	r.Seeds, r.Clients, r.Optimum = len(runs), runs[0].Clients, runs[0].OptimumSleepMost
	for i := range runs {
		for _, g := range runs[i].Groups { // for the first seed only
			r.First.MaxSleep = append(r.First.MaxSleep, g.MaxSleep...)
			r.First.RetryRatio = append(r.First.RetryRatio, g.RetryRatio...)
			r.First.Requests = append(r.First.Requests, g.Requests...)
		}
		if runs[i].Series != nil {
			r.Series = runs[i].Series
		}
	}
	over := func(of func(*fleet.Report) float64) Spread {
		values := make([]float64, len(runs))
		for i := range runs {
			values[i] = of(&runs[i])
		}
		return spread(values)
	}
	r.RetryPercent = over(func(r *fleet.Report) float64 { return r.RetryPercent })
	r.LimitedLate = over(func(r *fleet.Report) float64 { return float64(r.LimitedLate) })
	r.MaxSleep = over(func(r *fleet.Report) float64 { return r.Sleep.Max })
	r.P99Sleep = over(func(r *fleet.Report) float64 { return r.Sleep.P99 })
	r.RequestSD = over(func(r *fleet.Report) float64 { return r.RequestSD })
	r.Unused = over(func(r *fleet.Report) float64 { return r.UnusedPercent })
	r.Concurrent = over(func(r *fleet.Report) float64 { return float64(r.PeakConcurrent) })
	r.SteadyPercent = over(func(r *fleet.Report) float64 { return r.Steady.Percent })
	r.CV = over(func(r *fleet.Report) float64 { return r.Shares.CV })
	r.SteadyCV = over(func(r *fleet.Report) float64 { return r.SharesSteady.CV })
	r.LongestWait = over(func(r *fleet.Report) float64 { return r.LongestWait })
	r.Poorest = over(func(r *fleet.Report) float64 { return -r.Shares.Least })
	*r.Poorest.Median, *r.Poorest.Worst = -*r.Poorest.Median, -*r.Poorest.Worst
	if runs[0].Windows != nil {
		r.WindowCV = new(over(func(r *fleet.Report) float64 { return r.Windows.CV.Median }))
		r.WindowUnused = new(over(func(r *fleet.Report) float64 { return r.Windows.Unused.Median }))
	}
	r.Jain = over(func(r *fleet.Report) float64 { return -r.Jain }) // so that the worst is the smallest
	*r.Jain.Median, *r.Jain.Worst = -*r.Jain.Median, -*r.Jain.Worst
	if strings.HasPrefix(r.Scenario, "clear") {
		r.Clear = new(over(func(r *fleet.Report) float64 { return OrNever(r.Clear) }))
	}
	if runs[0].Change != nil {
		r.Settle = new(over(func(r *fleet.Report) float64 { return OrNever(r.Settle) }))
		r.SettleClients = new(over(func(r *fleet.Report) float64 { return OrNever(r.SettleClients) }))
	}
}

// OrNever is a time that a report may not have: then it is infinite.
func OrNever(p *float64) float64 {
	if p == nil {
		return math.Inf(1)
	}
	return *p
}

// spread returns the median (of two, the lower one) and the largest of the values; nil where that is infinite.
func spread(values []float64) Spread {
	slices.Sort(values)
	finite := func(v float64) *float64 {
		if math.IsInf(v, 1) {
			return nil
		}
		return &v
	}
	return Spread{finite(values[(len(values)-1)/2]), finite(values[len(values)-1])}
}

// WriteText writes a block for each scenario with a line for each strategy, within 100 columns.
func (t *Table) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "clients that share a quota; median and worst of the seeds; our strategy is %q\n", t.Ours)
	if slices.ContainsFunc(t.Strategies, func(r Row) bool { return shortName(r.Name) != r.Name }) {
		fmt.Fprintln(w, "exp: exponential, inc: increase, prop: proportional, rem: remaining, dec: decrease")
	}
	for i := 0; i < len(t.Strategies); {
		of := 1 // how many rows the scenario has
		for i+of < len(t.Strategies) && t.Strategies[i+of].Scenario == t.Strategies[i].Scenario {
			of++
		}
		if err := writeScenario(w, t.Strategies[i:i+of]); err != nil {
			return err
		}
		i += of
	}
	_, err := fmt.Fprintf(w, "\n%s virtual hours in %s s\n", fixed(t.VirtualHours, 1), fixed(t.Wall, 1))
	return err
}

func writeScenario(w io.Writer, rows []Row) error {
	r := &rows[0]
	fmt.Fprintf(w, "\n%s: %d clients, %s min, %d seeds", r.Scenario, r.Clients, fixed(r.Minutes, 0), r.Seeds)
	if r.Optimum > 0 {
		fmt.Fprintf(w, ", optimum sleep %s s", fixed(r.Optimum, 1))
	}
	// Not internal/app/screen, which knows how wide characters are by a module of others: this package
	// needs the standard library alone.
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	last := "" // what is measured in some scenarios only
	switch {
	case r.Clear != nil:
		last = "\tclear s"
	case r.Settle != nil:
		last = "\tsettle s"
	}
	fmt.Fprintf(table, "\n  strategy\tlimited %%\tmax sleep s\tsd\tCV %%\tunused %%%s\n", last)
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s", shortName(r.Name), r.RetryPercent.text(2), r.MaxSleep.text(0),
			r.RequestSD.text(0), r.CV.text(1), r.Unused.text(1))
		switch {
		case r.Clear != nil:
			fmt.Fprint(table, "\t", r.Clear.text(0))
		case last != "":
			fmt.Fprint(table, "\t", r.Settle.text(0))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// shortName abbreviates a name that a table has no room for. If that is not enough, as of a name of
// somebody's own, its end is shown.
func shortName(name string) string {
	const most = 20
	if utf8.RuneCountInString(name) <= most {
		return name
	}
	short := []rune(strings.NewReplacer("exponential", "exp", "increase", "inc", "proportional", "prop", "remaining",
		"rem", "decrease", "dec").Replace(name))
	if len(short) > most {
		return "…" + string(short[len(short)-most+1:])
	}
	return string(short)
}

func (s *Spread) text(digits int) string {
	if s == nil {
		return "-"
	}
	number := func(p *float64) string {
		if p == nil {
			return "never"
		}
		return fixed(*p, digits)
	}
	return number(s.Median) + "/" + number(s.Worst)
}

func fixed(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }
