package proxybench

import (
	"fmt"
	"io"
	"strconv"

	"github.com/paceline-go/paceline/internal/text/table"
)

// Report is what `paceline-lab bench proxy -o json` prints. A figure that is null was not measured.
type Report struct {
	Rows        []Row   `json:"rows"`
	Rounds      int     `json:"rounds"`
	Requests    int     `json:"requests"`
	Interrupted bool    `json:"interrupted,omitempty"`
	Wall        float64 `json:"wall_seconds"`
}

// Row is what was measured of one proxy: medians of the rounds.
type Row struct {
	Name string `json:"name"`
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
}

// row sums up the samples of a proxy, beside those of all.
func (s *samples) row(name string, all map[string]*samples) Row {
	row := Row{Name: name, Error: s.why, P50: median(s.p50), P99: median(s.p99), ManyCPU: median(s.manyCPU),
		CPU: median(s.cpu), Rate: median(s.rate), First: median(s.first), Event: median(s.event)}
	if name == direct {
		row.CPU, row.ManyCPU = nil, nil // what was measured is the processor time of this process
		return row
	}
	row.AddedP50, row.AddedP99 = less(s.p50, all[direct].p50), less(s.p99, all[direct].p99)
	if name == ours {
		row.OverP50, row.OverCPU = less(s.p50, all[plain].p50), less(s.manyCPU, all[plain].manyCPU)
	}
	return row
}

// less is the median of the differences between two rows, round by round.
func less(a, b []float64) *float64 {
	var all []float64
	for i := range min(len(a), len(b)) {
		all = append(all, a[i]-b[i])
	}
	return median(all)
}

// WriteText writes a table for people, within 100 columns.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "Medians of %d rounds, in which the proxies take turns before one server.\n\n", r.Rounds)
	t := table.Table{Right: true}
	t.Head("nothing in the way", "added p50 µs", "added p99 µs", "CPU µs", "requests/s", "first event ms", "event µs")
	for i := range r.Rows {
		row := &r.Rows[i]
		cell := func(v *float64, digits int) string {
			if v == nil {
				return "-"
			}
			return strconv.FormatFloat(*v, 'f', digits, 64)
		}
		t.Row(row.Name, cell(row.AddedP50, 0), cell(row.AddedP99, 0), cell(row.ManyCPU, 1), cell(row.Rate, 0),
			cell(row.First, 2), cell(row.Event, 0))
	}
	if err := t.Write(w, table.Width); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nAdded is to the way without a proxy, one request at a time; CPU is the proxy's; requests/s are "+
		"of\n%d clients.\n", together)
	for _, row := range r.Rows {
		if row.Error != "" {
			fmt.Fprintf(w, "%s: %s\n", row.Name, row.Error)
		}
	}
	return nil
}

// Failed says which row was not measured. It returns "" if all were.
func (r *Report) Failed() string {
	for _, row := range r.Rows {
		if row.Error != "" {
			return row.Name + ": " + row.Error
		}
	}
	return ""
}
