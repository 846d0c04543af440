package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// published are the rates that the seed's author measured with clients in another language, on another machine: for the
// reader to compare, not for us to claim.
var published = []struct {
	name string
	rate float64
}{
	{"published: original", 74},
	{"published: circular buffer alone", 85},
	{"published: adaptive, event loop", 84},
	{"published: adaptive, threads", 77},
}

// WriteJSON writes the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error { return writeJSON(w, r) }

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// column is one of a table, in text and in CSV.
type column[Row any] struct {
	name  string
	value func(*Row) string
}

// writeCSV writes a line per row, with the columns of the text table.
func writeCSV[Row any](w io.Writer, columns []column[Row], rows []Row) error {
	c := csv.NewWriter(w)
	line := make([]string, len(columns))
	for i := range columns {
		line[i] = columns[i].name
	}
	_ = c.Write(line)
	for k := range rows {
		for i := range columns {
			line[i] = columns[i].value(&rows[k])
		}
		_ = c.Write(line)
	}
	c.Flush()
	return c.Error()
}

var columns = []column[Result]{
	{"row", func(r *Result) string { return r.Name }},
	{"load", func(r *Result) string { return r.Generator }},
	{"nonce", func(r *Result) string { return map[bool]string{true: "yes", false: "-"}[r.Nonce] }},
	{"rate/s", func(r *Result) string { return fixed(r.Rate, 2) }},
	{"% ceiling", func(r *Result) string { return fixed(r.PercentOfCeiling, 2) }},
	{"ceiling/s", func(r *Result) string { return fixed(r.Ceiling, 2) }},
	{"429", func(r *Result) string { return strconv.Itoa(r.Rejected) }},
	{"bad nonce", func(r *Result) string { return strconv.Itoa(r.BadNonce) }},
	{"banned", func(r *Result) string { return strconv.Itoa(r.BannedKeys) }},
	{"expired", func(r *Result) string { return strconv.Itoa(r.Expired) }},
	{"dead", func(r *Result) string { return strconv.Itoa(r.Dead) }},
	{"lost", func(r *Result) string { return strconv.Itoa(r.Lost) }},
	{"in time %", func(r *Result) string { return fixed(r.InTimePercent, 1) }},
	{"made→answer ms", func(r *Result) string { return fixed(r.Latency.SinceMade.Mean, 1) }},
	{"sent→answer ms", func(r *Result) string { return fixed(r.Latency.SinceSent.Mean, 1) }},
	{"delay ms mean/p50/p99", func(r *Result) string {
		return fixed(r.Delay.Mean, 1) + "/" + fixed(r.Delay.P50, 1) + "/" + fixed(r.Delay.P99, 1)
	}},
	{"first/last", func(r *Result) string { return fixed(r.Delay.Min, 1) + "/" + fixed(r.Delay.Max, 1) }},
	{"polls", func(r *Result) string { return fixed(r.PollsPerAdmission, 2) }},
	{"wake-ups", func(r *Result) string { return fixed(r.WakeUpsPerAdmission, 2) }},
	{"cpu s", func(r *Result) string {
		if r.CPU == nil {
			return ""
		}
		return fixed(*r.CPU, 2)
	}},
	{"concurrency", func(r *Result) string { return r.Concurrency }},
	{"queue", func(r *Result) string { return r.Queue }},
	{"note", func(r *Result) string { return r.Note }},
}

func fixed(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// WriteCSV writes a line per row, with the columns of the text table.
func (r *Report) WriteCSV(w io.Writer) error { return writeCSV(w, columns, r.Policies) }

// WriteText writes the table for people, a block per group.
func (r *Report) WriteText(w io.Writer) error {
	kind := "live on loopback"
	if r.Virtual {
		kind = fmt.Sprintf("virtual, %d seeds", r.Seeds)
	}
	fmt.Fprintf(w, "exchange: 5 keys × 20/s (refused when now − t[k−20] ≤ 1000 ms, banned at the tenth), latency %s each way, TTL 1 s, timeout 1 s; %s × %s s\n",
		r.Latency, kind, fixed(r.Seconds, 0))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	group := ""
	for k := range r.Policies {
		p := &r.Policies[k]
		if p.Group != group {
			group = p.Group
			fmt.Fprintf(t, "\n%s\t", group)
			for _, c := range columns[1:] {
				fmt.Fprintf(t, "%s\t", c.name)
			}
			fmt.Fprintln(t)
			if group == "limiters" {
				for _, p := range published {
					fmt.Fprintf(t, "  %s\t\t\t%s\n", p.name, fixed(p.rate, 0))
				}
			}
		}
		fmt.Fprint(t, "  ")
		for _, c := range columns {
			fmt.Fprintf(t, "%s\t", c.value(p))
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\nin %s s of wall time, %s s of CPU\n", fixed(r.Wall, 1), fixed(r.CPU, 1))
	return err
}
