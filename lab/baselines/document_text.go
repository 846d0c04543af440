package baselines

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/paceline-go/paceline/internal/text/table"
)

// WriteText writes the page for a terminal: a block per claim, and the tables.
func (p *Page) WriteText(w io.Writer) error {
	var b strings.Builder
	for i := range p.Documents {
		d := &p.Documents[i]
		fmt.Fprintf(&b, "%s\n%s\n", strings.ToUpper(d.Name), strings.Repeat("=", utf8.RuneCountInString(d.Name)))
		paragraph(&b, d.About)
		for _, c := range d.Claims {
			fmt.Fprintln(&b)
			fill(&b, "claim  ", c.Claim)
			fill(&b, "set-up ", c.Setup)
			fill(&b, "rerun  ", c.Rerun)
			fill(&b, "verdict", strings.ToUpper(string(c.Verdict))+". "+c.Why)
		}
		for _, t := range d.Tables {
			fmt.Fprintln(&b)
			t.text(&b)
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "%s; %d seeds\n", p.summary(), p.Seeds)
	_, err := io.WriteString(w, b.String())
	return err
}

// summary counts the verdicts.
func (p *Page) summary() string {
	n := map[Verdict]int{}
	all := 0
	for _, d := range p.Documents {
		for _, c := range d.Claims {
			n[c.Verdict]++
			all++
		}
	}
	return fmt.Sprintf("%d claims: %d confirmed, %d in part, %d refuted", all, n[Confirmed], n[InPart], n[Refuted])
}

// fill writes text behind a label, on as many lines as it takes.
func fill(b *strings.Builder, label, text string) {
	b.WriteString(table.Fit(label+"  "+strings.Join(strings.Fields(text), " "), table.Width) + "\n")
}

// paragraph writes text on as many lines as it takes.
func paragraph(b *strings.Builder, text string) {
	b.WriteString(table.Wrap(strings.Join(strings.Fields(text), " "), table.Width, "") + "\n")
}

// text writes the table. Its headings are too long to stand side by side, so they stand above it, by number.
func (t *Table) text(b *strings.Builder) {
	paragraph(b, t.Title)
	numbers := make([]string, len(t.Heading))
	for i, h := range t.Heading {
		numbers[i] = fmt.Sprintf("(%d)", i+1)
		fill(b, "  "+numbers[i], h)
	}
	rows := table.Table{Indent: "  "}
	rows.Head(numbers...)
	for _, row := range t.Rows {
		rows.Row(row...)
	}
	_ = rows.Write(b, table.Width) // a Builder has no errors
}
