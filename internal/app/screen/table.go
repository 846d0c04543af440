package screen

import (
	"io"
	"strings"
)

// TableWidth is the default width of tables, in columns of a terminal.
const TableWidth = 100

const columnGap = 2

// lastLeast is the least width of the last column, even if it has longer words.
const lastLeast = 32

// Table lays out rows of cells in columns two spaces apart. If a row is too wide, the text of its
// cells is broken into lines. A row may have fewer cells than others. Programs read JSON or CSV
// instead. Its zero value is empty. It is not safe for concurrent use.
type Table struct {
	// Right aligns all cells but those of the last column to the right, as for figures.
	Right bool
	// Indent stands before each line.
	Indent string

	rows   [][]string
	headed bool // the first row has headings, which stay whole
}

// Head adds headings, before any row.
func (t *Table) Head(cells ...string) { t.rows, t.headed = append(t.rows, cells), true }

// Row adds a row. Without cells it is an empty line.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Write writes the rows in no more than most columns, as far as cells can be broken at spaces; 0:
// any width.
func (t *Table) Write(w io.Writer, most int) error {
	wide := t.widths(most)
	var b strings.Builder
	for _, row := range t.rows {
		t.write(&b, row, wide)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// widths are the widths of the columns. If they are too much together, the widest are broken.
func (t *Table) widths(most int) (wide []int) {
	var bound []int // the widths that must stay whole
	total := Width(t.Indent) - columnGap
	for n, row := range t.rows {
		for i, cell := range row {
			if i == len(wide) {
				wide, bound = append(wide, 0), append(bound, 0)
				total += columnGap
			}
			is := Width(cell)
			total += max(is-wide[i], 0)
			wide[i] = max(wide[i], is)
			for word := range strings.SplitSeq(cell, " ") {
				bound[i] = max(bound[i], Width(word))
			}
			if n == 0 && t.headed {
				bound[i] = max(bound[i], is)
			}
		}
	}
	if n := len(bound); n > 0 && !t.Right {
		bound[n-1] = min(bound[n-1], lastLeast) // a longer word stands out, and the lines around it do not
	}
	for ; most > 0 && total > most; total-- {
		widest := -1
		for i := range wide {
			if wide[i] > bound[i] && (widest < 0 || wide[i] >= wide[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		wide[widest]--
	}
	return wide
}

// write writes a row, in as many lines as it takes.
func (t *Table) write(b *strings.Builder, row []string, wide []int) {
	lines := 1
	cells := make([][]string, len(row))
	for i, cell := range row {
		cells[i] = strings.Split(Wrap(cell, wide[i], ""), "\n")
		lines = max(lines, len(cells[i]))
	}
	for n := range lines {
		var line strings.Builder
		line.WriteString(t.Indent)
		for i := range row {
			cell := ""
			if n < len(cells[i]) {
				cell = cells[i][n]
			}
			if i > 0 {
				line.WriteString(strings.Repeat(" ", columnGap))
			}
			line.WriteString(Pad(cell, wide[i], t.Right && i < len(wide)-1))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// Wrap breaks a text at spaces into lines of no more than most columns, unless a word is longer.
// Each line but the first begins with indent, which does not count.
func Wrap(text string, most int, indent string) string { return wrap(text, most, most, indent) }

// Fit breaks each line of a text at spaces into lines of no more than most columns, unless a word
// is longer. A continuation is indented by two more columns than its line. After a label and two or
// more spaces it stands below the text that follows the label.
func Fit(text string, most int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if Width(line) > most {
			at := min(hang(line), most*2/3)
			lines[i] = wrap(line, most, most-at, strings.Repeat(" ", at))
		}
	}
	return strings.Join(lines, "\n")
}

// longestLabel is the largest end of a label, in columns. Two spaces after a later column are part
// of the text.
const longestLabel = 20

// hang returns the column in which the continuation of a line begins.
func hang(line string) int {
	begins := len(line) - len(strings.TrimLeft(line, " "))
	if label, text, labelled := strings.Cut(line[begins:], "  "); labelled && begins+Width(label) <= longestLabel {
		return Width(line) - Width(strings.TrimLeft(text, " "))
	}
	return begins + 2
}

// wrap breaks a text into a first line of no more than most columns, and others of no more than
// rest, each behind indent.
func wrap(text string, most, rest int, indent string) string {
	var b strings.Builder
	n := 0
	for i, word := range strings.Split(text, " ") {
		wide := Width(word)
		switch {
		case i == 0:
		case n+1+wide > most && n > 0:
			b.WriteString("\n" + indent)
			n, most = 0, rest
		default:
			b.WriteString(" ")
			n++
		}
		b.WriteString(word)
		n += wide
	}
	return b.String()
}
