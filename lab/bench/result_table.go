package bench

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/paceline-go/paceline/internal/app/screen"
)

// publishedRates are the rates that the published clients reached in another language, on another
// machine, against an exchange that their author wrote. The reader can compare them; they are no
// claim of ours.
const publishedRates = "published, live, elsewhere: original 74/s, ring alone 85/s, adaptive 84/s (loop), 77/s " +
	"(threads)"

// column is a column of a table.
type column[Row any] struct {
	name  string
	value func(*Row) string
}

var nonceColumn = column[Result]{"nonce",
	func(r *Result) string { return map[bool]string{true: "yes", false: "-"}[r.Nonce] }}

// narrow are the columns for people: with the longest name, and a figure of seven digits in each,
// they fit 100 characters.
var narrow = []column[Result]{
	{"rate/s", func(r *Result) string { return fixed(r.Rate, 2) }},
	{"ceiling", func(r *Result) string { return fixed(r.PercentOfCeiling, 1) + "%" }},
	{"in time", func(r *Result) string { return fixed(r.InTimePercent, 1) + "%" }},
}

// bad are figures that had better be 0. A column with nothing but 0 is left out, and a line below the table says so.
var bad = []column[Result]{
	{"429", func(r *Result) string { return strconv.Itoa(r.Rejected) }},
	{"bad nonce", func(r *Result) string { return strconv.Itoa(r.BadNonce) }},
	{"banned", func(r *Result) string { return strconv.Itoa(r.BannedKeys) }},
	{"expired", func(r *Result) string { return strconv.Itoa(r.Expired) }},
	{"dead", func(r *Result) string { return strconv.Itoa(r.Dead) }},
	{"lost", func(r *Result) string { return strconv.Itoa(r.Lost) }},
}

func fixed(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// WriteText writes the tables for people, a block per group, within 100 columns.
func (r *Report) WriteText(w io.Writer) error {
	rule, path, _ := strings.Cut(r.Exchange, "), ")
	fmt.Fprintf(w, "exchange: %s),\n%s; virtual, %d seeds × %s s\n%s\n", rule, path, r.Seeds, fixed(r.Seconds, 0), publishedRates)
	for _, block := range r.blocks() {
		shown, none := block.columns()
		var t screen.Table
		fmt.Fprintln(w)
		t.Head(append([]string{block.title}, names(shown)...)...)
		for k := range block.rows {
			t.Row(append([]string{block.rows[k].Name}, cells(shown, &block.rows[k])...)...)
		}
		if err := t.Write(w, screen.TableWidth); err != nil {
			return err
		}
		if len(none) > 0 {
			fmt.Fprintf(w, "  0 in every row: %s\n", strings.Join(none, ", "))
		}
	}
	_, err := fmt.Fprintf(w, "\nin %s s of wall time, %s s of CPU\n", fixed(r.Wall, 1), fixed(r.CPU, 1))
	return err
}

// names are the headings of columns, and cells are the values of a row in them.
func names[Row any](columns []column[Row]) (all []string) {
	for _, c := range columns {
		all = append(all, c.name)
	}
	return all
}

func cells[Row any](columns []column[Row], row *Row) (all []string) {
	for _, c := range columns {
		all = append(all, cmp.Or(c.value(row), "-"))
	}
	return all
}

// writeTable writes a line per row, within 100 characters as far as possible.
func writeTable[Row any](w io.Writer, columns []column[Row], rows []Row) error {
	var t screen.Table
	t.Head(names(columns)...)
	for k := range rows {
		t.Row(cells(columns, &rows[k])...)
	}
	return t.Write(w, screen.TableWidth)
}

// block has the rows of one group under one heading. In the group of limiters each load, with
// nonces or without, has a block of its own.
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

// columns returns the columns that the block shows, and the names of those that have nothing but 0.
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
