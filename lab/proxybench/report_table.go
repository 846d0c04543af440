package proxybench

import (
	"fmt"
	"io"
	"strconv"

	"github.com/paceline-go/paceline/internal/text/table"
)

// Report is what `paceline-lab bench proxy -o json` prints. Fields are only ever added to. A figure
// that is null was not measured.
type Report struct {
	Rows        []Row   `json:"rows"`
	Rounds      int     `json:"rounds"`
	Requests    int     `json:"requests"`
	Waiting     int     `json:"waiting"`
	Limit       int     `json:"limit_per_second"`
	Jitter      float64 `json:"jitter_ms"` // the longest latency, each way
	Strict      float64 `json:"strict_seconds"`
	Interrupted bool    `json:"interrupted,omitempty"`
	Wall        float64 `json:"wall_seconds"`
}

// Row is what was measured of one proxy: medians of the rounds.
type Row struct {
	Name string `json:"name"`
	Does string `json:"limits_by,omitempty"`
	// Error says why something was not measured.
	Error string `json:"error,omitempty"`

	P50      *float64 `json:"latency_p50_us"` // of a request, one at a time
	P99      *float64 `json:"latency_p99_us"`
	AddedP50 *float64 `json:"added_p50_us"` // P50 less that of requests without a proxy
	AddedP99 *float64 `json:"added_p99_us"`
	OverP50  *float64 `json:"over_reverse_proxy_p50_us"`
	CPU      *float64 `json:"cpu_us"`      // of a request, one at a time
	ManyCPU  *float64 `json:"many_cpu_us"` // of a request, 64 at a time
	Rate     *float64 `json:"many_per_second"`
	OverCPU  *float64 `json:"over_reverse_proxy_cpu_us"` // ManyCPU less that of ReverseProxy
	First    *float64 `json:"stream_first_event_ms"`
	Event    *float64 `json:"stream_event_us"` // how long an event is under way
	Memory   *float64 `json:"waiting_memory_mib"`
	// OfBare is Memory divided by the memory of a bare server that holds as many connections.
	OfBare *float64 `json:"waiting_memory_of_bare"`

	Percent *float64 `json:"strict_percent_of_ceiling"`
	Refused *float64 `json:"strict_refused_by_server"`
	Denied  *float64 `json:"strict_refused_by_proxy"`
	Other   int      `json:"strict_other_answers,omitempty"`
}

func (b *bench) report() *Report {
	r := &Report{Rounds: b.c.Rounds, Requests: b.c.Requests, Waiting: b.c.Waiting, Limit: Limit,
		Jitter: micros(jitter) / 1000, Strict: b.c.Strict.Seconds()}
	way, rp, server := b.rows[direct], b.rows[plain], b.rows[bare]
	for _, name := range append([]string{direct}, append(b.names, bare)...) {
		s := b.rows[name]
		row := Row{
			Name: name, Does: s.does, Error: s.why,
			P50: median(s.p50), P99: median(s.p99), ManyCPU: median(s.manyCPU), CPU: median(s.cpu), Rate: median(s.rate),
			First: median(s.first), Event: median(s.event), Memory: median(s.memory),
			Percent: median(s.percent), Refused: median(s.refused), Denied: median(s.denied), Other: s.other,
		}
		if name == direct {
			row.CPU, row.ManyCPU = nil, nil // what was measured is the processor time of this process
		} else {
			row.AddedP50, row.AddedP99 = less(s.p50, way.p50), less(s.p99, way.p99)
		}
		if name == ours && rp != nil {
			row.OverP50, row.OverCPU = less(s.p50, rp.p50), less(s.manyCPU, rp.manyCPU)
		}
		if m := median(server.memory); m != nil && row.Memory != nil {
			of := *row.Memory / *m
			row.OfBare = &of
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

// less is the median of the differences between two rows, round by round.
func less(a, b []float64) *float64 {
	var all []float64
	for i := range min(len(a), len(b)) {
		all = append(all, a[i]-b[i])
	}
	return median(all)
}

// column is a column of a table.
type column struct {
	head   string
	value  func(*Row) *float64
	digits int
}

var passing = []column{
	{"added p50 µs", func(r *Row) *float64 { return r.AddedP50 }, 0},
	{"added p99 µs", func(r *Row) *float64 { return r.AddedP99 }, 0},
	{"CPU µs", func(r *Row) *float64 { return r.ManyCPU }, 1},
	{"requests/s", func(r *Row) *float64 { return r.Rate }, 0},
	{"first event ms", func(r *Row) *float64 { return r.First }, 2},
	{"event µs", func(r *Row) *float64 { return r.Event }, 0},
}

var limiting = []column{
	{"% of ceiling", func(r *Row) *float64 { return r.Percent }, 1},
	{"refused by server", func(r *Row) *float64 { return r.Refused }, 0},
	{"by proxy", func(r *Row) *float64 { return r.Denied }, 0},
	{"waiting MiB", func(r *Row) *float64 { return r.Memory }, 0},
	{"of net/http", func(r *Row) *float64 { return r.OfBare }, 2},
}

// WriteText writes two tables for people, within 100 columns.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "Medians of %d rounds, in which the proxies take turns before one server.\n\n", r.Rounds)
	if err := r.table(w, "nothing in the way", passing); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nAdded is to the way without a proxy, one request at a time; CPU is the proxy's; requests/s are "+
		"of\n%d clients.\n\n", together)
	if err := r.table(w, fmt.Sprintf("%d a second", r.Limit), limiting); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nThe server refuses what is more than %d in any second; its path takes 0 to %g ms each way.\n%d "+
		"clients ask at once, and again at once. Waiting is %d clients in line.\n",
		r.Limit, r.Jitter, programs, r.Waiting)
	for _, row := range r.Rows {
		if row.Error != "" {
			fmt.Fprintf(w, "%s: %s\n", row.Name, row.Error)
		}
		if row.Other > 0 {
			fmt.Fprintf(w, "%s: %d answers were neither 200 nor 429\n", row.Name, row.Other)
		}
	}
	return nil
}

func (r *Report) table(w io.Writer, title string, columns []column) error {
	t := table.Table{Right: true}
	head := []string{title}
	for _, c := range columns {
		head = append(head, c.head)
	}
	t.Head(head...)
	for i := range r.Rows {
		row, some := &r.Rows[i], false
		cells := []string{row.Name}
		for _, c := range columns {
			v, cell := c.value(row), "-"
			if v != nil {
				cell, some = strconv.FormatFloat(*v, 'f', c.digits, 64), true
			}
			cells = append(cells, cell)
		}
		if some {
			t.Row(cells...)
		}
	}
	return t.Write(w, table.Width)
}

// Failed says how many requests were refused behind our proxy. It returns "" if none was.
func (r *Report) Failed() string {
	for _, row := range r.Rows {
		if row.Name == ours && row.Refused != nil && *row.Refused > 0 {
			return fmt.Sprintf("the server refused %g requests of paceline's", *row.Refused)
		}
	}
	return ""
}
