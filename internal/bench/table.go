package bench

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// publishedRates are what the published clients reached in another language, on another machine, against an exchange of
// their author's: for the reader to compare, not for us to claim.
const publishedRates = "published, live, elsewhere: original 74/s, ring alone 85/s, adaptive 84/s (loop), 77/s (threads)"

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

// columns are all there are, in CSV and in the wide table.
var columns = []column[Result]{
	{"row", func(r *Result) string { return r.Name }},
	{"load", func(r *Result) string { return r.Generator }},
	nonceColumn,
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

var nonceColumn = column[Result]{"nonce", func(r *Result) string { return map[bool]string{true: "yes", false: "-"}[r.Nonce] }}

// narrow are the columns for people: with the longest name and a figure of seven digits in each they fit 100 characters.
var narrow = []column[Result]{
	{"rate/s", func(r *Result) string { return fixed(r.Rate, 2) }},
	{"ceiling", func(r *Result) string { return fixed(r.PercentOfCeiling, 1) + "%" }},
	{"in time", func(r *Result) string { return fixed(r.InTimePercent, 1) + "%" }},
}

// bad are what had better be 0: a column of nothing else is left out, and said below.
var bad = []column[Result]{
	{"429", func(r *Result) string { return strconv.Itoa(r.Rejected) }},
	{"bad nonce", func(r *Result) string { return strconv.Itoa(r.BadNonce) }},
	{"banned", func(r *Result) string { return strconv.Itoa(r.BannedKeys) }},
	{"expired", func(r *Result) string { return strconv.Itoa(r.Expired) }},
	{"dead", func(r *Result) string { return strconv.Itoa(r.Dead) }},
	{"lost", func(r *Result) string { return strconv.Itoa(r.Lost) }},
}

func fixed(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// WriteCSV writes a line per row, with the columns of the text table.
func (r *Report) WriteCSV(w io.Writer) error { return writeCSV(w, columns, r.Policies) }

// WriteText writes the tables for people, a block per group, within 100 columns.
func (r *Report) WriteText(w io.Writer) error {
	r.writeHead(w)
	for _, block := range r.blocks() {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		shown, none := block.columns()
		fmt.Fprintf(t, "\n%s\t", block.title)
		writeRow(t, shown, func(c column[Result]) string { return c.name })
		for k := range block.rows {
			fmt.Fprintf(t, "%s\t", block.rows[k].Name)
			writeRow(t, shown, func(c column[Result]) string { return c.value(&block.rows[k]) })
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if len(none) > 0 {
			fmt.Fprintf(w, "  0 in every row: %s\n", strings.Join(none, ", "))
		}
	}
	return r.writeEnd(w)
}

// WriteWide writes one table with all columns.
func (r *Report) WriteWide(w io.Writer) error {
	r.writeHead(w)
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	writeRow(t, columns, func(c column[Result]) string { return c.name })
	for k := range r.Policies {
		writeRow(t, columns, func(c column[Result]) string { return cmp.Or(c.value(&r.Policies[k]), "-") })
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeEnd(w)
}

func writeRow(w io.Writer, columns []column[Result], cell func(column[Result]) string) {
	for _, c := range columns {
		fmt.Fprintf(w, "%s\t", cell(c))
	}
	fmt.Fprintln(w)
}

func (r *Report) writeHead(w io.Writer) {
	kind := "live on loopback"
	if r.Virtual {
		kind = fmt.Sprintf("virtual, %d seeds", r.Seeds)
	}
	rule, path, _ := strings.Cut(r.Exchange, "), ")
	fmt.Fprintf(w, "exchange: %s),\n%s; %s × %s s\n%s\n", rule, path, kind, fixed(r.Seconds, 0), publishedRates)
}

func (r *Report) writeEnd(w io.Writer) error {
	_, err := fmt.Fprintf(w, "\nin %s s of wall time, %s s of CPU\n", fixed(r.Wall, 1), fixed(r.CPU, 1))
	return err
}

// block is rows of one group under one heading. Those of the limiters are told apart by their load and by nonces.
type block struct {
	title string
	rows  []Result
}

func (r *Report) blocks() (blocks []block) {
	for _, p := range r.Policies {
		title := p.Group
		if p.Group == "limiters" {
			title += ", " + p.Generator
			if p.Nonce {
				title += ", nonces"
			}
		}
		if n := len(blocks); n == 0 || blocks[n-1].title != title {
			blocks = append(blocks, block{title: title})
		}
		last := &blocks[len(blocks)-1]
		last.rows = append(last.rows, p)
	}
	return blocks
}

// columns returns those that the block shows, and the names of those in which nothing but 0 stands.
func (b *block) columns() (shown []column[Result], none []string) {
	shown = slices.Clone(narrow)
	if slices.ContainsFunc(b.rows, func(r Result) bool { return r.Nonce != b.rows[0].Nonce }) {
		shown = append(shown, nonceColumn)
	}
	for _, c := range bad {
		if slices.ContainsFunc(b.rows, func(r Result) bool { return c.value(&r) != "0" }) {
			shown = append(shown, c)
		} else {
			none = append(none, c.name)
		}
	}
	return shown, none
}
